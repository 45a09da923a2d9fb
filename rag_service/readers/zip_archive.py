"""ZIP archives of documents."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from contextlib import suppress

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError, TooLargeError
from rag_service.readers.common.archive import open_archive
from rag_service.readers.common.builder import TextBuilder, one_line
from rag_service.readers.common.embedded_files import MAX_PARTS, Parts
from rag_service.readers.common.encoding import decode_text
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
    names = _decoded_names(files)
    for member in sorted(files, key=lambda member: member.filename):
        path = one_line(names[member.filename])
        try:
            content = read_member(archive, member.filename, name)
        except DocumentError:
            builder.warn(f"{path} was not read: it is damaged.")
            continue
        parts.write(builder, content or b"", path=path)
    if not len(builder):
        reason = f": {builder.first_warning}" if builder.first_warning else "."
        raise DocumentError(
            f'"{name}" is a ZIP archive without any readable document{reason} Unpack it and check its files.'
        )
    return builder.build(title=choose_title(name), media_type=MEDIA_TYPE, metadata={"files": len(files)})


def _decoded_names(files: Sequence[zipfile.ZipInfo]) -> dict[str, str]:
    """Names as they were packed: without the flag for UTF-8, in the encoding that makes the best words of all of them.

    That is UTF-8 all the same with many programs, the system's with others: Shift JIS, Windows-1252, CP850 …
    """
    names = {member.filename: member.filename for member in files}
    unflagged = [member.filename for member in files if not member.flag_bits & 0x800 and not member.filename.isascii()]
    with suppress(UnicodeError):  # of a name that was changed since: it stays as it is
        packed = "\n".join(unflagged).encode("cp437")
        decoded = (decode_text(packed) or "").split("\n")
        if len(decoded) == len(unflagged):
            names |= dict(zip(unflagged, decoded, strict=True))
    return names
