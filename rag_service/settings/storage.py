"""Settings of the store, and of the ways into it."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from pydantic import Field, SecretStr, field_validator

from rag_service.settings.group import SettingGroup


class DatabaseSettings(SettingGroup, alias_generator="database_{}".format):
    """Where data lives."""

    data_dir: Path = Field(Path(".rag"), alias="data_dir", description="Folder of the embedded database.")
    url: SecretStr | None = Field(
        None, description="postgresql:// URL of an external database, as the unprivileged role. Unset: embedded."
    )
    owner_url: SecretStr | None = Field(None, description="The same as the owning role; only `migrate` uses it.")
    replica_url: SecretStr | None = Field(
        None, description="postgresql:// URL of a read replica, as the unprivileged role; searches go there."
    )
    pool_size: int = Field(10, ge=1, le=200, description="Maximum number of connections of one process.")
    timeout: float = Field(5.0, gt=0, description="Seconds to wait for a connection.")


class UploadSettings(SettingGroup):
    """Uploaded documents."""

    max_mb: int = Field(10, alias="upload_max_mb", ge=1, le=1000, description="Maximum upload size in megabytes.")
    originals_url: str | None = Field(
        None, description="Where uploaded files are kept: any fsspec URL (`s3://…`, `file:///…`). Unset: the database."
    )
    ttl_seconds: int | None = Field(
        None,
        alias="document_ttl_seconds",
        ge=1,
        description="Lifetime of a document where upload and corpus set none; unset: for ever.",
    )


class SyncSettings(SettingGroup, alias_generator="sync_{}".format):
    """Folders and sites that corpora are kept equal to."""

    networks: str | None = Field(
        None,
        description="Networks besides the public internet that pages may be fetched from: `10.1.0.0/16,127.0.0.1`.",
    )
    pages: int = Field(1000, ge=1, description="Maximum number of pages of one site.")

    @field_validator("networks")
    @classmethod
    def _are_networks(cls, value: str | None) -> str | None:
        for part in (value or "").split(",") if value else ():
            ipaddress.ip_network(part.strip())
        return value


class WorkerSettings(SettingGroup):
    """Background processing of uploads."""

    embedded: bool = Field(
        True,
        alias="worker_embedded",
        description="Process uploads and sync sources in `serve`; false: `rag-service worker` does.",
    )
    concurrency: int = Field(
        2, alias="worker_concurrency", ge=1, le=64, description="Documents that one process works on at a time."
    )
    parse_concurrency: int = Field(2, ge=1, le=64, description="Parser subprocesses of one process at a time.")
    job_attempts: int = Field(5, ge=1, le=50, description="Attempts after which a document has failed.")
    job_backoff_seconds: float = Field(2.0, ge=0, description="Pause before the second attempt; doubles each time.")
    job_backoff_max_seconds: float = Field(300.0, ge=0, description="Longest pause between two attempts.")
    job_stalled_seconds: float = Field(
        30.0, gt=0, description="Silence after which a worker counts as dead and another one takes over its documents."
    )
