"""The files to ingest, and those left aside with the reason."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from rag_service.errors import InputError
from rag_service.readers.common.names import FORMATS, REFUSED_SUFFIXES, SUFFIXES, is_litter

Paths = str | Path | Iterable[str | Path]


@dataclass
class FoundFiles:
    """What is in the given files and folders."""

    files: list[tuple[str, Path]] = field(default_factory=list)  # (name in the corpus, file)
    named: set[str] = field(default_factory=set)  # names of files that were given one by one
    left: list[tuple[str, str]] = field(default_factory=list)  # (name, why it is skipped)
    litter: list[str] = field(default_factory=list)  # hidden files, lock files and the like, skipped by name
    unseen: list[str] = field(default_factory=list)  # folders that cannot be listed; "": the whole one


def find_files(paths: Paths, extra_suffixes: Collection[str] = ()) -> FoundFiles:
    """The given files, and every document below the given folders.

    Files without an extension are taken: their content tells what they are. So are old Office files and images, whose
    readers say what to do. Other files of folders are left aside, as are links that lead out of their folder. Raises
    InputError if a path does not exist, or there is no document. `extra_suffixes`: further extensions of
    documents, such as `.log`.
    """
    named = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    found = FoundFiles()
    for path in named:
        if not path.exists():
            raise InputError(f"{path} does not exist.", field="paths")
        if path.is_file():
            found.files.append((readable(path.name), path))
            found.named.add(readable(path.name))
        else:
            look_into(path, found, extra_suffixes)
    if not found.files:
        raise InputError(
            f"No documents found in {', '.join(map(str, named))}. Supported formats: {FORMATS}.",
            field="paths",
        )
    return found


def look_into(folder: Path, found: FoundFiles, extra_suffixes: Collection[str]) -> None:
    """Add what is below a folder, in order of the names. Links to folders are not followed."""
    root = folder.resolve()

    def tell(error: OSError) -> None:
        name = readable(Path(error.filename).relative_to(folder).as_posix())
        found.unseen.append("" if name == "." else name)
        found.left.append((name, f"the folder cannot be opened: {error.strerror}"))

    paths: list[Path] = []
    for parent, folders, files in os.walk(folder, onerror=tell):
        paths += [Path(parent, name) for name in (*folders, *files)]
        folders[:] = [name for name in folders if not name.startswith(".")]  # .git alone may hold 100,000 files
    for file in sorted(paths):
        name = readable(file.relative_to(folder).as_posix())
        try:
            if is_litter(name):
                found.litter += [name] * (not file.is_dir() or file.name.startswith("."))
            elif file.is_symlink() and not file.resolve().is_relative_to(root):
                found.left.append((name, "it is a link that leads out of the folder"))
            elif not file.is_file():
                if not file.is_dir():
                    found.left.append((name, "it is not a regular file"))
                elif file.is_symlink():
                    found.left.append((name, "it is a link to a folder, which is not followed"))
            elif reason := why_not(name, extra_suffixes):
                found.left.append((name, reason))
            else:
                found.files.append((name, file))
        except OSError as error:
            found.left.append((name, f"it cannot be opened: {error.strerror}"))


def why_not(name: str, extra_suffixes: Collection[str]) -> str | None:
    """Why a file of a folder is no document, by its name; None: it may be one."""
    suffix = PurePosixPath(name).suffix
    taken = not suffix or any(suffix.lower() in known for known in (SUFFIXES, REFUSED_SUFFIXES, extra_suffixes))
    return None if taken else f"{suffix} files are not supported"


def readable(name: str) -> str:
    """A name whose bytes are not UTF-8, as old systems write them, in characters that can be stored."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name).decode("cp1252", "replace")
    return name
