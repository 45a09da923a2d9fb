"""ZIP archives of documents."""

from __future__ import annotations

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError, TooLargeError
from rag_service.readers.common.archive import open_archive
from rag_service.readers.common.builder import TextBuilder, one_line
from rag_service.readers.common.embedded_files import MAX_PARTS, Parts
from rag_service.readers.common.names import choose_title, is_litter
from rag_service.readers.common.xml import read_member

MEDIA_TYPE = "application/zip"


def parse_zip(data: bytes, *, name: str, parts: Parts) -> ParsedDocument:
    """Read the documents of an archive; the `part` of a place is the path of its file.

    Files that are no documents become warnings. Raises DocumentError: damaged, protected by a password, or no document
    in it. TooLargeError: too many files, or a bomb.
    """
    archive = open_archive(data, name)
    files = [member for member in archive.infolist() if not member.is_dir() and not is_litter(member.filename)]
    if len(files) > MAX_PARTS:
        raise TooLargeError(
            f'"{name}" contains {len(files):,} files; the limit for an archive is {MAX_PARTS}. '
            "Unpack it and upload the files separately."
        )
    builder = TextBuilder(name)
    for member in sorted(files, key=lambda member: member.filename):
        content = read_member(archive, member.filename, name)
        path = one_line(_decoded(member.filename, member.flag_bits))
        parts.write(builder, content or b"", path=path)
    if not len(builder):
        reason = f": {builder.first_warning}" if builder.first_warning else "."
        raise DocumentError(
            f'"{name}" is a ZIP archive without any readable document{reason} Unpack it and check its files.'
        )
    return builder.build(title=choose_title(name), media_type=MEDIA_TYPE, metadata={"files": len(files)})


def _decoded(name: str, flags: int) -> str:
    """A name as it was packed: without the flag for UTF-8, many programs write UTF-8 all the same."""
    if flags & 0x800:
        return name
    try:
        return name.encode("cp437").decode("utf-8")
    except UnicodeError:
        return name
