"""Golden texts: small files of every format, and beside each what the readers make of it (`prices.csv.txt`).

The expected file is written for people: first title, metadata and warnings, then the stored text line by line.
Behind `⟵` stand the places of what begins in the line; `‹` and `›` mark what a place covers unless it is the whole
line or a row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_service.domain import Location, ParsedDocument, Span
from rag_service.errors import RagError
from rag_service.readers.ocr.recognition import HOW_TO_INSTALL
from rag_service.readers.parse import parse

FOLDER = Path(__file__).parent
_ARROW = "  ⟵ "


def inputs() -> list[Path]:
    """All inputs: each file of a format's folder that is not the expectation of another."""
    files = sorted(path for path in FOLDER.glob("*/*") if path.is_file() and "__pycache__" not in path.parts)
    return [path for path in files if not (path.suffix == ".txt" and path.with_suffix("") in files)]


def expectation(path: Path) -> Path:
    """The file beside an input with what is expected of it."""
    return path.with_name(path.name + ".txt")


def read(path: Path) -> str:
    """What the readers make of an input, as its expectation says it."""
    try:
        return describe(parse(path.read_bytes(), file_name=path.name))
    except RagError as error:
        return f"refused: {error}\n"


def describe(document: ParsedDocument) -> str:
    """A parsed document as readable lines."""
    head = [f"title: {document.title}", f"type: {document.media_type}"]
    if document.language:
        head.append(f"language: {document.language}")
    head += [f"{key}: {_value(value)}" for key, value in sorted(document.metadata.items())]
    head += [f"warning: {warning.removesuffix(HOW_TO_INSTALL).strip()}" for warning in document.warnings]
    return "\n".join([*head, "", *_lines(document)]).rstrip("\n") + "\n"


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _lines(document: ParsedDocument) -> Iterator[str]:
    spans, start = list(document.spans), 0
    for line in document.text.split("\n"):
        end = start + len(line)
        begun = [span for span in spans if start <= span.start < max(end, start + 1)]
        yield _marked(line, start, spans) + (_ARROW + _places(begun) if begun else "")
        start = end + 1


def _marked(line: str, start: int, spans: Sequence[Span]) -> str:
    """The line with marks at the ends of its spans, unless they are those of the line, or labels of a row."""
    end = start + len(line)
    spans = [span for span in spans if not (span.location.cell and line[: span.end - start].endswith(": "))]
    if any((span.start, span.end) in ((start, end), (start, end + 1)) for span in spans):
        return line
    marks = sorted(
        [(span.end, 0, "›") for span in spans if start < span.end <= end]
        + [(span.start, 1, "‹") for span in spans if start <= span.start < max(end, start + 1)],
        reverse=True,
    )
    for at, _, mark in marks:
        line = line[: at - start] + mark + line[at - start :]
    return line


def _places(spans: Sequence[Span]) -> str:
    """The places of a line's spans; each but the first says what differs from the one before."""
    said, before = [], {}
    for span in spans:
        fields = _fields(span.location)
        said.append(", ".join(value for key, value in fields.items() if before.get(key) != value) or "same")
        before = fields
    return "; ".join(said)


def _fields(location: Location) -> dict[str, str]:
    numbers = {name: getattr(location, name) for name in ("page", "slide", "sheet", "row", "cell", "paragraph", "path")}
    texts = {"headings": " > ".join(location.headings), "part": location.part, "time": location.time}
    found = {name: f"{name} {value}" for name, value in numbers.items() if value is not None}
    return found | {name: f"{name} {value}" for name, value in texts.items() if value}
