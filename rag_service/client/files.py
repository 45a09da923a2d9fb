"""The files to ingest."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from rag_service.errors import InputError
from rag_service.readers.common.names import FORMATS, SUFFIXES

Paths = str | Path | Iterable[str | Path]


def find_files(paths: Paths, more: Collection[str] = ()) -> list[tuple[str, Path]]:
    """(name in the corpus, file) of the given files, and of every document below the given folders.

    `more` are further suffixes of documents, such as `.log`.

    Raises:
        InputError: a path does not exist, or there is no document.
    """
    named = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    suffixes = {*SUFFIXES, *more}
    found: list[tuple[str, Path]] = []
    for path in named:
        if not path.exists():
            raise InputError(f"{path} does not exist.", field="paths")
        if path.is_file():
            found.append((path.name, path))
        else:
            inside = sorted(file for file in path.rglob("*") if file.suffix.lower() in suffixes and file.is_file())
            found += [(file.relative_to(path).as_posix(), file) for file in inside]
    if not found:
        raise InputError(
            f"No document found in {', '.join(map(str, named))}. These are read: {FORMATS}.",
            field="paths",
        )
    return found
