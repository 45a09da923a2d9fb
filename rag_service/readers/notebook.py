"""Jupyter notebooks (nbformat 3 and 4): Markdown cells, code and what it printed, as one Markdown text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers.common.builder import pictures_not_read
from rag_service.readers.common.encoded_data import leave_out_data
from rag_service.readers.text.markdown import parse_markdown

MEDIA_TYPE = "application/x-ipynb+json"
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # of terminals
_ATTACHED = re.compile(r"!\[[^\]\n]*\]\(attachment:[^)\n]*\)")
_FENCES = re.compile(r"^\s*(`{3,})", re.MULTILINE)


def parse_notebook(text: str, *, name: str) -> ParsedDocument:
    """Read a notebook cell by cell; headings of Markdown cells hold for the code below them.

    Of outputs the text is read, and a page where there is no text; pictures are counted. Raises DocumentError.
    """
    try:
        notebook = json.loads(text)
        cells = notebook.get("cells")
        if cells is None:  # nbformat 3
            cells = [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DocumentError(f'"{name}" is not a Jupyter notebook. Save it again, or rename it to .json.') from error
    reader = _Cells(_language_of(notebook))
    blocks = [block.strip("\n") for cell in cells if isinstance(cell, Mapping) for block in reader.blocks(cell)]
    source, warnings = leave_out_data("\n\n".join(filter(None, blocks)))
    document = parse_markdown(source, name=name)
    if reader.pictures:
        warnings.insert(0, pictures_not_read(reader.pictures))
    return replace(document, media_type=MEDIA_TYPE, warnings=(*warnings, *document.warnings))


class _Cells:
    """Turns cells into blocks of Markdown."""

    def __init__(self, language: str):
        self._language = language  # of the code
        self.pictures = 0

    def blocks(self, cell: Mapping[str, Any]) -> Iterator[str]:
        source = _joined(cell.get("source", cell.get("input")))
        match cell.get("cell_type"):
            case "code":
                yield _fenced(source, self._language)
                for output in cell.get("outputs") or ():
                    if isinstance(output, Mapping):
                        yield self._output(output)
            case "heading":  # nbformat 3
                level = cell.get("level")
                yield f"{'#' * (level if isinstance(level, int) and 0 < level < 7 else 1)} {source}"
            case _:
                self.pictures += len(_ATTACHED.findall(source))
                yield _ATTACHED.sub("", source)

    def _output(self, output: Mapping[str, Any]) -> str:
        if "ename" in output:
            return _fenced(f"{output['ename']}: {_joined(output.get('evalue'))}")
        data = output.get("data", output)  # in nbformat 3 beside the other fields
        if not isinstance(data, Mapping):
            return ""
        self.pictures += any(kind.startswith("image/") or kind in ("png", "jpeg", "svg") for kind in data)
        if markdown := _joined(data.get("text/markdown")):
            return markdown
        if plain := _joined(data.get("text/plain", data.get("text"))):
            return _fenced(plain)
        if page := _joined(data.get("text/html", data.get("html"))):
            from rag_service.readers.web.html import parse_html

            return parse_html(f"<html><body>{page}</body></html>", name="output.html").text
        return ""


def _fenced(text: str, language: str = "") -> str:
    """Text as a block of code, whose fence is longer than those within it."""
    text = _COLOURS.sub("", text).strip("\n")
    if not text.strip():
        return ""
    fence = "`" * max(3, 1 + max((len(found) for found in _FENCES.findall(text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _joined(lines: Any) -> str:
    """A text, or lines of one with their ends."""
    if isinstance(lines, str):
        return lines
    return "".join(line for line in lines if isinstance(line, str)) if isinstance(lines, Sequence) else ""


def _language_of(notebook: Mapping[str, Any]) -> str:
    """The programming language, as it is written behind a fence."""
    metadata = notebook.get("metadata")
    for key, field in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(key) if isinstance(metadata, Mapping) else None
        if isinstance(found, Mapping) and re.fullmatch(r"[\w+#-]{1,30}", str(found.get(field, ""))):
            return str(found[field])
    return ""
