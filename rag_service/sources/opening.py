"""The source that a target names."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rag_service.domain import Role
from rag_service.errors import PermissionDeniedError
from rag_service.settings import Settings
from rag_service.sources.declared import load_readers
from rag_service.sources.folder import FolderSource
from rag_service.sources.reader import SCHEME, ReaderPolicy, ReaderSource
from rag_service.sources.source import Source
from rag_service.sources.store import StoreSource
from rag_service.sources.web import WebLimits, WebSource


def is_page(target: str) -> bool:
    """Whether a target is the address of a page or sitemap, which every user may sync."""
    return target.lower().startswith(("http://", "https://"))


def open_source(
    target: str,
    settings: Settings,
    *,
    extra_suffixes: Collection[str] = (),
    depth: int = 0,
    role: Role = Role.ADMIN,
    others_wait: Callable[[], bool] = lambda: False,
) -> Source:
    """The source of a target: a folder, a page or a sitemap, a URL of fsspec, or a declared reader.

    Args:
        extra_suffixes: further extensions of documents, such as `.log`.
        depth: links to follow from a page.
        role: for whom; only administrators reach folders, stores, readers, and the networks of RAG_SYNC_NETWORKS.
        others_wait: whether a long run should end early.

    Raises:
        InputError: the target cannot be used.
        PermissionDeniedError: only administrators may use it.
        ConfigurationError: the file of RAG_SOURCE_READERS is wrong.
    """
    networks = _networks(settings) if role is Role.ADMIN else []
    max_bytes = settings.uploads.max_mb * 1024**2
    if is_page(target):
        allowed = [ipaddress.ip_network(network) for network in networks]
        limits = WebLimits(
            networks=allowed, depth=depth, pages=settings.sync.pages, max_bytes=max_bytes, others_wait=others_wait
        )
        return WebSource(target, limits)
    if role is not Role.ADMIN:
        raise PermissionDeniedError(
            "Only administrators can sync folders, object stores and readers. Give the address of a page."
        )
    if target.startswith(SCHEME):
        readers = load_readers(settings.sync.readers)
        policy = ReaderPolicy(networks=networks, max_bytes=max_bytes)
        return ReaderSource(target.removeprefix(SCHEME), readers, policy)
    if target.startswith("file://"):
        return FolderSource(Path(url2pathname(urlsplit(target).path)), extra_suffixes)
    if "://" in target:
        return StoreSource(target, extra_suffixes, max_bytes=max_bytes)
    return FolderSource(Path(target).expanduser(), extra_suffixes)


def _networks(settings: Settings) -> list[str]:
    return [part.strip() for part in (settings.sync.networks or "").split(",") if part.strip()]
