"""The plain JSON knowledge base of RAG_ENABLED=false: loaded whole, checked entry by entry.

    {"documents": [
      {"id": "leave-policy", "title": "Leave policy", "text": "Employees receive 25 days …",
       "source": "HR", "tags": ["leave"], "fields": {"plan": "any"}, "territory": "Andalucía",
       "fileName": "leave.md", "language": "en", "updatedAt": "2026-01-31"}
    ]}

`id`, `title` and `text` are needed, the rest may be left out. `text` is plain text; blank lines part
its paragraphs. Unknown keys are errors, so that a typo never hides a restriction.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rag_service.domain import Chunk, DocumentRef, Location, Span
from rag_service.errors import DefinitionError

CORPUS_ID = uuid5(NAMESPACE_URL, "urn:rag-service:knowledge-base")
MAX_BYTES = 50_000_000
PASSAGE_CHARS = 2400  # some 600 tokens; longer paragraphs stay whole
_PARAGRAPH = re.compile(r"\S(?:.*?\S)?(?=\s*\n\s*\n|\s*\Z)", re.DOTALL)


class Entry(BaseModel):
    """One document of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    id: str = Field(min_length=1, max_length=200)
    title: str = Field(min_length=1)
    text: str
    source: str | None = None
    tags: tuple[str, ...] = ()
    fields: dict[str, str] = Field(default_factory=dict)
    territory: str | None = None
    file_name: str | None = Field(None, alias="fileName")
    language: str | None = Field(None, pattern="^(es|fr|en)$")
    updated_at: date | None = Field(None, alias="updatedAt")

    @field_validator("text")
    @classmethod
    def _holds_text(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        return text


class KnowledgeBase(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    documents: tuple[Entry, ...] = Field(min_length=1)


def load_knowledge_base(file: Path | None) -> KnowledgeBase:
    """Read and check the file.

    Raises:
        DefinitionError: there is none, or it is wrong; names file, entry and mend.
    """
    if file is None:
        raise DefinitionError(
            "RAG_ENABLED=false needs RAG_KNOWLEDGE_BASE_PATH: the JSON file to answer from.",
            field="RAG_KNOWLEDGE_BASE_PATH",
        )
    raw = _read_json(file)
    try:
        loaded = KnowledgeBase.model_validate(raw)
    except ValidationError as error:
        problems = [_describe(problem, raw) for problem in error.errors(include_url=False)]
        raise DefinitionError(f"{file}: " + "; ".join(problems), field="RAG_KNOWLEDGE_BASE_PATH") from error
    seen: dict[str, int] = {}
    for number, entry in enumerate(loaded.documents, start=1):
        if entry.id in seen:
            raise DefinitionError(
                f"{file}: documents[{number}] has the id {entry.id!r} of documents[{seen[entry.id]}]; give it another.",
                field="RAG_KNOWLEDGE_BASE_PATH",
            )
        seen[entry.id] = number
    return loaded


def _read_json(file: Path) -> Any:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise DefinitionError(
                f"{file}: has more than {MAX_BYTES // 1_000_000} MB; use RAG_ENABLED=true for that much.",
                field="RAG_KNOWLEDGE_BASE_PATH",
            )
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise DefinitionError(
            f"{file}:{error.lineno}: is no valid JSON: {error.msg}.", field="RAG_KNOWLEDGE_BASE_PATH"
        ) from error
    except RecursionError as error:
        raise DefinitionError(f"{file}: is nested too deep.", field="RAG_KNOWLEDGE_BASE_PATH") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(
            f"{file}: cannot be read as UTF-8 text; correct RAG_KNOWLEDGE_BASE_PATH.", field="RAG_KNOWLEDGE_BASE_PATH"
        ) from error


def _describe(problem: Any, raw: Any) -> str:
    place = [*problem["loc"]]
    name = ""
    if len(place) > 1 and place[0] == "documents" and isinstance(place[1], int):
        entry = raw["documents"][place[1]]
        identity = entry.get("id") if isinstance(entry, dict) else None
        name = f"documents[{place[1] + 1}]" + (f" ({identity})" if isinstance(identity, str) else "")
        place = place[2:]
    key = ".".join(map(str, place))
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = "unknown key; remove it or correct its name"
    elif problem["type"] == "missing":
        message = "is missing; add it"
    return " ".join(part for part in (name, f"{key}:" if key else "", message) if part)


def cut_passages(entry: Entry) -> Iterator[Chunk]:
    """The passages of an entry: whole paragraphs, packed up to `PASSAGE_CHARS`."""
    document = DocumentRef(
        id=uuid5(CORPUS_ID, entry.id),
        corpus_id=CORPUS_ID,
        title=entry.title,
        file_name=entry.file_name,
        source=entry.source,
        tags=entry.tags,
        content_hash=hashlib.sha256(entry.text.encode()).hexdigest(),
        updated_at=_moment(entry.updated_at),
    )
    paragraphs = [(match.start(), match.end()) for match in _PARAGRAPH.finditer(entry.text)]
    groups: list[list[int]] = []
    for number, (_, end) in enumerate(paragraphs):
        if groups and end - paragraphs[groups[-1][0]][0] <= PASSAGE_CHARS:
            groups[-1].append(number)
        else:
            groups.append([number])
    for index, group in enumerate(groups):
        start, end = paragraphs[group[0]][0], paragraphs[group[-1]][1]
        yield Chunk(
            id=f"{entry.id}#{index}",
            document=document,
            index=index,
            text=entry.text[start:end],
            start=start,
            end=end,
            spans=tuple(
                Span(start=paragraphs[n][0], end=paragraphs[n][1], location=Location(paragraph=n + 1)) for n in group
            ),
            metadata=entry.fields,
        )


def _moment(day: date | None) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC)


def document_id(entry_id: str) -> UUID:
    """Id under which an entry of the file is known to the API."""
    return uuid5(CORPUS_ID, entry_id)
