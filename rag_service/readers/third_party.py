"""Third-party LlamaIndex readers: their documents become one text with the locations they declare."""

from __future__ import annotations

import importlib
import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from rag_service.domain import Location, ParsedDocument
from rag_service.readers.common.builder import TextBuilder, clean
from rag_service.readers.common.names import choose_title

_PAGE_KEYS = ("page_label", "page_number", "page")
_SHEET_KEYS = ("sheet_name", "sheet")


def parse_with(path: str, options: Mapping[str, Any], file: str, *, name: str) -> ParsedDocument:
    """Read a file with the LlamaIndex reader `path` (`package.module:Class`), made with these options.

    `page_label`, `sheet_name` and `row` in a document's metadata become its location. Metadata shared by all documents
    becomes that of the file. Raises DocumentError without text, TooLargeError, and anything the reader raises.
    """
    module, _, attribute = path.replace(":", ".").rpartition(".")
    loaded: BaseReader = getattr(importlib.import_module(module), attribute)(**options)
    documents: Sequence[Document] = loaded.load_data(Path(file))
    builder = TextBuilder(name)
    for document in documents:
        text = clean(document.text).strip("\n")
        builder.write("\n\n" if text and len(builder) else "")
        builder.write(text, _place(document.metadata))
    metadata = _common_metadata(documents)
    return builder.build(
        title=choose_title(name, metadata.get("title")),
        media_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
        metadata=metadata,
    )


def _place(metadata: Mapping[str, Any]) -> Location | None:
    page = next((int(str(metadata[key])) for key in _PAGE_KEYS if str(metadata.get(key)).isdecimal()), None)
    sheet = next((str(metadata[key]) for key in _SHEET_KEYS if metadata.get(key)), None)
    row = int(str(metadata["row"])) if str(metadata.get("row")).isdecimal() else None
    return Location(page=page or None, sheet=sheet, row=row or None) if page or sheet or row else None


def _common_metadata(documents: Sequence[Document]) -> dict[str, Any]:
    """JSON-compatible metadata shared by all documents, without the path of our copy."""
    first = documents[0].metadata if documents else {}
    return {
        key: value
        for key, value in first.items()
        if isinstance(value, str | int | float | bool)
        and key != "file_path"
        and all(document.metadata.get(key) == value for document in documents)
    }
