"""Files within a file: attachments of a message, files of an archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError, NoTextError, TooLargeError
from rag_service.readers.common.builder import TextBuilder
from rag_service.readers.common.names import clean_file_name

MAX_PARTS = 200  # files read in one file, those of nested files included
MAX_PICTURES = 100  # recognised in one file, those of nested files included
MAX_PART_DEPTH = 3  # an archive in a message in an archive

Parse = Callable[[bytes, str, "Parts"], ParsedDocument]


class Parts:
    """Reads the files within a file, and counts them over all levels: 500 attachments or nested archives end here."""

    def __init__(self, parse: Parse, *, depth: int = 0, counted: list[int] | None = None):
        self._parse = parse
        self._depth = depth
        self._counted = [0, 0] if counted is None else counted  # files, pictures

    def recognise(self, picture: bytes, *, path: str) -> tuple[str, Sequence[str]] | None:
        """(text, warnings) of a picture as text recognition reads it; None if it is damaged or one too many."""
        if self._counted[1] >= MAX_PICTURES:
            return None
        self._counted[1] += 1
        try:
            document = self._parse(picture, path, Parts(self._parse, depth=self._depth + 1, counted=self._counted))
        except NoTextError:
            return "", ()
        except DocumentError:
            return None
        return document.text, document.warnings

    def write(self, builder: TextBuilder, data: bytes, *, path: str) -> None:
        """Append the text of a file; one that cannot be read becomes a warning.

        `path`: within the outer file; the `part` of its places.
        """
        if self._depth >= MAX_PART_DEPTH:
            builder.warn(f"{path} was not read: files are nested too deeply.")
            return
        if self._counted[0] >= MAX_PARTS:
            builder.warn(f"More than {MAX_PARTS} embedded files were found; the rest were not read.")
            return
        self._counted[0] += 1
        inner = Parts(self._parse, depth=self._depth + 1, counted=self._counted)
        try:
            document = self._parse(data, clean_file_name(path), inner)
        except DocumentError as error:
            reason = error.message.replace(f'"{clean_file_name(path)}"', "it", 1).partition(". ")[0].rstrip(".")
            builder.warn(f"{path} was not read: {reason}.")
            return
        if len(builder) and len(document.text):
            builder.write("\n\n")
        try:
            builder.write_document(document, part=path)
        except TooLargeError as error:
            raise TooLargeError(f"{error.message} The limit was reached in {path}.") from error
