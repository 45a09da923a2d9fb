"""Our LlamaIndex reader: one file in, one `Document` with text, locations and properties out.

    documents = FileReader().load_data(Path("report.pdf"))
    SimpleDirectoryReader("folder", file_extractor={".pdf": FileReader()})

The parsers are plain functions that run in a sandbox, where importing LlamaIndex would take 2.3 s and 100 MB per file;
a parser takes 0.15 s and 15 MB.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from rag_service.domain import ParsedDocument, write_span
from rag_service.readers.common.names import suffix_of
from rag_service.readers.fork_server import ForkServer
from rag_service.readers.ocr.recognition import NeedsOcrError
from rag_service.readers.old_office import modernise
from rag_service.readers.parse import ReaderClass
from rag_service.readers.sandbox import parse_in_sandbox
from rag_service.turns import Turns

# Keys of a document's metadata.
TITLE = "title"
LANGUAGE = "language"  # ISO 639-1, or None
MEDIA_TYPE = "media_type"
SPANS = "rag_spans"  # [[start, end, {location}], ...] in characters of the text
LONG_TABLES = "long_tables"  # tuple[EncodedTable, ...] whose rows are too many for the text; only there
WARNINGS = "warnings"  # what of the file is not in the text
PROPERTIES = "properties"  # from the file itself: front matter, author, pages without text

Parser = Callable[[bytes, str], Awaitable[ParsedDocument]]  # (bytes, file name) → parsed


class FileReader(BaseReader):
    """Reads the formats of `detect`, and others with readers given by extension."""

    def __init__(
        self,
        parser: Parser | None = None,
        *,
        readers: Mapping[str, ReaderClass] | None = None,
        concurrency: int | None = None,
    ):
        """
        Args:
            parser: for extensions without an entry in `readers`; None: ours, in the sandbox.
            readers: lower-case extension with its dot → reader, run in the same sandbox; may replace our own.
            concurrency: maximum number of files parsed at a time; None: no limit.
        """
        self._forks = ForkServer()
        self._parser = parser or self._in_sandbox
        self._readers = readers or {}
        self._recognising = Turns("text_recognition", limit=1)  # apart: it takes minutes, and others should go on
        self._parsing = Turns("parsing", limit=concurrency or sys.maxsize)

    @property
    def turns(self) -> tuple[Turns, Turns]:
        """Files that are parsed, and those whose text is recognised."""
        return self._parsing, self._recognising

    def load_data(self, file: Path | bytes, extra_info: Mapping[str, Any] | None = None) -> list[Document]:
        """`aload_data` outside an event loop."""
        return asyncio.run(self.aload_data(file, extra_info))

    async def aload_data(
        self,
        file: Path | bytes,
        extra_info: Mapping[str, Any] | None = None,
        *,
        file_name: str | None = None,
        readers: Mapping[str, ReaderClass] | None = None,
    ) -> list[Document]:
        """Read one file; the list has one document.

        Raises DocumentError, whose message is for the uploader, if it is unreadable.

        Args:
            extra_info: added to the document's metadata.
            file_name: None: that of the path.
            readers: more readers by extension, which take precedence.
        """
        data = file if isinstance(file, bytes) else await asyncio.to_thread(file.read_bytes)
        name = file_name or ("document" if isinstance(file, bytes) else file.name)
        chosen = {**self._readers, **(readers or {})}.get(suffix_of(name))
        try:
            async with self._parsing.take():
                if chosen is None:
                    data = await modernise(data, name)
                    parsed = await self._parser(data, name)
                else:
                    parsed = await parse_in_sandbox(data, file_name=name, reader=chosen)
        except NeedsOcrError:
            async with self._recognising.take():
                parsed = await parse_in_sandbox(data, file_name=name, ocr=True)
        return [await asyncio.to_thread(to_document, parsed, extra_info)]

    async def _in_sandbox(self, data: bytes, file_name: str) -> ParsedDocument:
        return await parse_in_sandbox(data, file_name=file_name, ocr=False, forks=self._forks)


def to_document(parsed: ParsedDocument, extra_info: Mapping[str, Any] | None = None) -> Document:
    """A parsed file as a LlamaIndex document. Models see only the title of its metadata."""
    metadata = {
        TITLE: parsed.title,
        LANGUAGE: parsed.language,
        MEDIA_TYPE: parsed.media_type,
        SPANS: [write_span(span) for span in parsed.spans],
        PROPERTIES: dict(parsed.metadata),
        WARNINGS: list(parsed.warnings),
        **({LONG_TABLES: parsed.long_tables} if parsed.long_tables else {}),
        **(extra_info or {}),
    }
    hidden = [LANGUAGE, MEDIA_TYPE, SPANS, LONG_TABLES, PROPERTIES, WARNINGS]
    return Document(
        text=parsed.text, metadata=metadata, excluded_embed_metadata_keys=hidden, excluded_llm_metadata_keys=hidden
    )
