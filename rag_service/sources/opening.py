"""The source that a target names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rag_service.errors import InputError
from rag_service.sources.folder import FolderSource
from rag_service.sources.source import Source


def open_source(target: str, more: Collection[str] = ()) -> Source:
    """The source of a target, which is a folder.

    `more`: further extensions of documents. Raises InputError if the target cannot be used.
    """
    if "://" in target:
        raise InputError(f"{target.partition('://')[0]}:// is no source that can be synced.", field="target")
    return FolderSource(Path(target).expanduser(), more)
