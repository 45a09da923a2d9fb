"""The plain JSON knowledge base of RAG_ENABLED=false: loaded whole, checked entry by entry.

    {"documents": [
      {"id": "leave-policy", "title": "Leave policy", "text": "Employees receive 25 days …",
       "source": "HR", "tags": ["leave"], "fields": {"plan": "any"}, "territory": "Andalucía",
       "fileName": "leave.md", "language": "en", "updatedAt": "2026-01-31"}
    ]}

`id`, `title` and `text` are required. `text` is plain text with blank lines between its paragraphs. Unknown keys are
errors, so that a typo never hides a restriction.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rag_service.domain import Chunk, DocumentRef, Location, Span
from rag_service.errors import DefinitionError
from rag_service.indices import Language

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
    language: Language | None = None
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

    Raises DefinitionError if there is none or it is wrong; it names file, entry and what to change.
    """
    if file is None:
        raise _error("RAG_ENABLED=false needs RAG_KNOWLEDGE_BASE_PATH: the JSON file to answer from.")
    try:
        if file.stat().st_size > MAX_BYTES:
            limit = MAX_BYTES // 1_000_000
            raise _error(f"{file}: is larger than {limit} MB; use RAG_ENABLED=true for that much text.")
        raw = json.loads(file.read_text(encoding="utf-8-sig"))
        loaded = KnowledgeBase.model_validate(raw)
    except json.JSONDecodeError as error:
        raise _error(f"{file}:{error.lineno}: is no valid JSON: {error.msg}.") from error
    except RecursionError as error:
        raise _error(f"{file}: is nested too deep.") from error
    except ValidationError as error:
        problems = [_describe(problem, raw) for problem in error.errors(include_url=False)]
        raise _error(f"{file}: {'; '.join(problems)}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise _error(f"{file}: cannot be read as UTF-8 text; correct RAG_KNOWLEDGE_BASE_PATH.") from error
    seen: dict[str, int] = {}
    for number, entry in enumerate(loaded.documents, start=1):
        if (first := seen.setdefault(entry.id, number)) != number:
            raise _error(f"{file}: documents[{number}] has the id {entry.id!r} of documents[{first}]; change one.")
    return loaded


def _error(message: str) -> DefinitionError:
    return DefinitionError(message, field="RAG_KNOWLEDGE_BASE_PATH")


def _describe(problem: Any, raw: Any) -> str:
    """One problem, with number and id of the entry."""
    place, name = [*problem["loc"]], ""
    if len(place) > 1 and place[0] == "documents" and isinstance(place[1], int):
        entry = raw["documents"][place[1]]
        identity = f" ({entry['id']})" if isinstance(entry, dict) and isinstance(entry.get("id"), str) else ""
        name, place = f"documents[{place[1] + 1}]{identity}", place[2:]
    message = {"extra_forbidden": "unknown key; remove it or correct its name", "missing": "is missing; add it"}.get(
        problem["type"], problem["msg"].removeprefix("Value error, ")
    )
    key = ".".join(map(str, place))
    return " ".join(part for part in (name, f"{key}:" if key else "", message) if part)


def cut_passages(entry: Entry) -> Iterator[Chunk]:
    """The passages of an entry: whole paragraphs, packed up to `PASSAGE_CHARS`."""
    document = DocumentRef(
        id=document_id(entry.id),
        corpus_id=CORPUS_ID,
        title=entry.title,
        file_name=entry.file_name,
        source=entry.source,
        tags=entry.tags,
        content_hash=hashlib.sha256(entry.text.encode()).hexdigest(),
        updated_at=datetime.combine(entry.updated_at or date.min, time.min, tzinfo=UTC),
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


def document_id(entry_id: str) -> UUID:
    """Id under which an entry of the file is known to the API."""
    return uuid5(CORPUS_ID, entry_id)
