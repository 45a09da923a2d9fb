"""The source that a target names."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rag_service.domain import Role
from rag_service.errors import PermissionDeniedError
from rag_service.settings import Settings
from rag_service.sources.folder import FolderSource
from rag_service.sources.source import Source
from rag_service.sources.store import StoreSource
from rag_service.sources.web import WebLimits, WebSource


def is_page(target: str) -> bool:
    """Whether a target is the address of a page or sitemap, which every user may sync."""
    return target.lower().startswith(("http://", "https://"))


def open_source(
    target: str, settings: Settings, *, more: Collection[str] = (), depth: int = 0, role: Role = Role.ADMIN
) -> Source:
    """The source of a target: a folder, a page or a sitemap, or a URL of fsspec.

    Args:
        more: further extensions of documents.
        depth: links to follow from a page.
        role: for whom; only administrators reach folders, stores, and the networks of RAG_SYNC_NETWORKS.

    Raises:
        InputError: the target cannot be used.
        PermissionDeniedError: only administrators may use it.
    """
    if is_page(target):
        allowed = (settings.sync.networks or "") if role is Role.ADMIN else ""
        networks = [ipaddress.ip_network(part.strip()) for part in allowed.split(",") if part]
        limits = WebLimits(
            networks=networks,
            depth=depth,
            pages=settings.sync.pages,
            max_bytes=settings.uploads.max_mb * 1024**2,
        )
        return WebSource(target, limits)
    if role is not Role.ADMIN:
        raise PermissionDeniedError(
            "Only administrators can sync folders and object stores. Give the address of a page."
        )
    if target.startswith("file://"):
        return FolderSource(Path(url2pathname(urlsplit(target).path)), more)
    if "://" in target:
        return StoreSource(target, more, max_bytes=settings.uploads.max_mb * 1024**2)
    return FolderSource(Path(target).expanduser(), more)
