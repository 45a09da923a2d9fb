"""Settings of the store, and of the ways into it."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from pydantic import Field, SecretStr, field_validator

from rag_service.settings.group import SettingGroup


class DatabaseSettings(SettingGroup, alias_generator="database_{}".format):
    """Where data lives."""

    data_dir: Path = Field(
        Path(".rag"), alias="data_dir", description="Folder of the embedded database and of kept uploads."
    )
    url: SecretStr | None = Field(
        None,
        description="postgresql:// URL of an external database, with the unprivileged role. Unset: embedded database.",
    )
    owner_url: SecretStr | None = Field(
        None, description="The same with the owner role; used only by `migrate` and `reingest`."
    )
    replica_url: SecretStr | None = Field(
        None, description="postgresql:// URL of a read replica for searches, with the unprivileged role."
    )
    pool_size: int = Field(10, ge=1, le=200, description="Maximum number of database connections per process.")
    timeout: float = Field(
        5.0, gt=0, description="Seconds to wait for a connection, and for a database that does not respond."
    )
    # Three times what the slowest in twenty takes over a million chunks whose pages are on disk (docs/how-to/scale.md).
    search_timeout: float = Field(
        3.0,
        alias="search_timeout",
        gt=0,
        description="Seconds after which PostgreSQL ends a statement of a search or list.",
    )


class UploadSettings(SettingGroup):
    """Uploaded documents."""

    max_mb: int = Field(10, alias="upload_max_mb", ge=1, le=1000, description="Maximum upload size in megabytes.")
    originals_url: str | None = Field(
        None, description="Where uploaded files are kept: any fsspec URL (`s3://…`, `file:///…`). Unset: the database."
    )
    keep_mb: int = Field(
        200,
        alias="upload_keep_mb",
        ge=0,
        description="Maximum size of the uploads, in megabytes, that are kept in the data folder while the database "
        "cannot be reached, and accepted when it is back; with `RAG_AUTH=required`, one user has half. 0: they are "
        "refused.",
    )
    import_max_mb: int = Field(
        10_000,
        alias="import_max_mb",
        ge=1,
        description="Maximum size in megabytes of an exported corpus that is sent to the API to be imported.",
    )
    ttl_seconds: int | None = Field(
        None,
        alias="document_ttl_seconds",
        ge=1,
        description="Lifetime of a document if neither upload nor corpus sets one. Unset: unlimited.",
    )


class SyncSettings(SettingGroup, alias_generator="sync_{}".format):
    """Folders, sites and readers that corpora are kept equal to."""

    networks: str | None = Field(
        None,
        description="Networks besides the public internet that syncs of pages and readers may reach:"
        " `10.1.0.0/16,127.0.0.1`.",
    )
    pages: int = Field(1000, ge=1, description="Maximum number of pages that one round over a site reads.")
    readers: Path | None = Field(
        None,
        alias="source_readers",
        description="YAML file that declares LlamaIndex readers as sources: name, class path, arguments, limits."
        " Unset: none.",
    )

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
        description="Process uploads and sync sources in `serve`; false: leave this to `rag-service worker`.",
    )
    concurrency: int = Field(
        2, alias="worker_concurrency", ge=1, le=64, description="Documents that a process works on at the same time."
    )
    parse_concurrency: int = Field(
        2, ge=1, le=64, description="Maximum number of concurrent parser subprocesses per process."
    )
    job_attempts: int = Field(5, ge=1, le=50, description="Attempts after which a document counts as failed.")
    job_backoff_seconds: float = Field(2.0, ge=0, description="Seconds before the second attempt; doubles each time.")
    job_backoff_max_seconds: float = Field(300.0, ge=0, description="Maximum seconds between two attempts.")
    job_stalled_seconds: float = Field(
        30.0,
        gt=0,
        le=3_600,
        description="Seconds without a sign of life after which another worker takes over a worker's documents.",
    )
