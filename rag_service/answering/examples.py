"""Example questions over one's own documents, and what to ask next: FAQ entries, and questions made from headings.

Only documents that the asker may read are looked at, in a transaction of theirs. Documents that come with the service
have examples of their own on the page, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from rag_service.answering.guards.injection import find_injections
from rag_service.domain import Answer, Citation, FoundPlace, read_spans
from rag_service.language.languages import load_language
from rag_service.language.words import fold, words

if TYPE_CHECKING:  # loads the database's packages
    from rag_service.store.database import Connection

MAX_EXAMPLES = 4
MAX_FOLLOW_UPS = 3
_DOCUMENTS = 24  # the newest, of which examples are made
_CHUNKS = 3  # the first of each document
_HEADING_WORDS = range(1, 9)
_QUESTION_WORDS = range(4, 21)
_MARKUP = re.compile(r"^[\s#*_>\-–•\d.)]+|[\s*_]+$")


@dataclass(frozen=True, kw_only=True)
class Example:
    question: str
    document_id: UUID
    file_name: str | None


async def has_documents(connection: Connection, names: Collection[str] | None = None) -> bool:
    """Whether there is a document that the asker may ask about, with one of these file names; None: any."""
    cursor = await connection.execute(
        """SELECT EXISTS (SELECT FROM documents n JOIN corpora k ON k.id = n.corpus_id AND k.active
           WHERE n.chunk_count > 0 AND (n.expires_at IS NULL OR n.expires_at > now())
             AND (%(names)s::text[] IS NULL OR n.file_name = ANY(%(names)s)))""",
        {"names": None if names is None else list(names)},
    )
    return bool((await cursor.fetchone() or (False,))[0])


async def find_examples(
    connection: Connection, shipped: Collection[str], *, language: str | None = None
) -> list[Example]:
    """Up to `MAX_EXAMPLES` questions that the documents answer, of as many documents as possible.

    Args:
        connection: in a transaction of the asker.
        shipped: names of files that come with the service.
        language: of the questions; FAQ entries are those of documents in it. None: that of each document.
    """
    cursor = await connection.execute(
        """SELECT d.id, d.file_name, d.title, d.language, c.text, coalesce(c.spans, '[]'::jsonb)
           FROM (SELECT n.* FROM documents n JOIN corpora k ON k.id = n.corpus_id AND k.active
                 WHERE n.chunk_count > 0 AND (n.expires_at IS NULL OR n.expires_at > now())
                   AND NOT coalesce(n.file_name, '') = ANY(%(shipped)s)
                 ORDER BY n.updated_at DESC, n.id LIMIT %(documents)s) d
           JOIN data_chunks c ON c.document_id = d.id AND c.chunk_index < %(chunks)s
           ORDER BY d.updated_at DESC, d.id, c.chunk_index""",
        {"shipped": list(shipped), "documents": _DOCUMENTS, "chunks": _CHUNKS},
    )
    by_document: dict[UUID, list[Example]] = {}
    for document_id, file_name, title, own, text, spans in await cursor.fetchall():
        headings = [span.location.headings for span in read_spans(spans)]
        asked = _find_questions(text) if language in (None, own) else []
        asked += _from_headings(headings, file_name, title, language or own)
        made = [Example(question=one, document_id=document_id, file_name=file_name) for one in asked]
        by_document.setdefault(document_id, []).extend(made)
    return _take_turns(list(by_document.values()))


def find_follow_ups(answer: Answer) -> list[str]:
    """Up to `MAX_FOLLOW_UPS` questions about sections that were found and not cited, in the answer's language."""
    shown: tuple[Citation | FoundPlace, ...] = (*answer.citations, *answer.places)
    cited = {one.chunk_id for one in shown}
    told = {fold(one.location.headings[-1]) for one in shown if one.location and one.location.headings}
    asked = fold(answer.question)
    found: dict[str, None] = {}
    for hit in answer.sources:
        if hit.chunk.id not in cited and len(found) < MAX_FOLLOW_UPS:
            document = hit.chunk.document
            headings = dict.fromkeys(span.location.headings for span in hit.chunk.spans if span.location.headings)
            new = [path for path in headings if fold(path[-1]) not in told]
            made = _from_headings(new, document.file_name, document.title, answer.language)
            found |= dict.fromkeys(question for question in made if fold(question) != asked)
    return list(found)[:MAX_FOLLOW_UPS]


def _find_questions(text: str) -> list[str]:
    """Lines that are a question, as FAQ have them: each is followed by its answer."""
    lines = (_MARKUP.sub("", line) for line in text.splitlines())
    return [line for line in lines if line.endswith("?") and len(words(line)) in _QUESTION_WORDS and _is_safe(line)]


def _from_headings(
    headings: Sequence[tuple[str, ...]], file_name: str | None, title: str, language: str | None
) -> list[str]:
    """Questions about sections."""
    if file_name is None or not _is_safe(file_name):
        return []
    labels = load_language(language).files.labels
    found = dict.fromkeys(path[-1] for path in headings if len(path) > 1 and fold(path[-1]) != fold(title))
    sections = [
        heading
        for heading in found
        if len(words(heading)) in _HEADING_WORDS and not heading.endswith("?") and _is_safe(heading)
    ]
    return [labels["ask_section"].format(name=file_name, heading=heading) for heading in sections]


def _is_safe(text: str) -> bool:
    return text.isprintable() and not find_injections(text)


def _take_turns(examples: Sequence[Sequence[Example]]) -> list[Example]:
    """One of each document, then a second of each."""
    found: dict[str, Example] = {}
    for place in range(max(map(len, examples), default=0)):
        for made in examples:
            if place < len(made) and len(found) < MAX_EXAMPLES:
                found.setdefault(made[place].question, made[place])
    return list(found.values())
