"""Example questions over one's own documents: FAQ entries, and cells of tables.

Only documents that the asker may read are looked at, in a transaction of theirs. An example is asked, in quotes, before
it is shown: only what its document answers with certainty is one. Documents that come with the service have examples of
their own on the page, and are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from rag_service.answering.engine import CitedQueryEngine, by_turns
from rag_service.answering.follow_ups import ASKED_WORDS, find_questions, is_safe
from rag_service.answering.synthesizer import CitedResponse
from rag_service.domain import Decision, Identity
from rag_service.language.languages import load_language
from rag_service.language.words import words
from rag_service.models.llm.model import ChatModel
from rag_service.recent import OwnedValues
from rag_service.retrieval.query import RagQuery
from rag_service.retrieval.question import Question
from rag_service.store.database import Connection, Database
from rag_service.tables.model import StoredTable
from rag_service.tables.storage import find_first_rows, find_tables

MAX_EXAMPLES = 4
_DOCUMENTS = 24  # the newest, of which examples are made
_CHUNKS = 3  # the first of each document
_ASKED = 12  # candidates that are asked, until four are answered
_LETTERS = 3  # of the name of a row
_KEPT = 256  # lists of examples that are kept


@dataclass(frozen=True, kw_only=True)
class Example:
    question: str
    document_id: UUID
    file_name: str | None


class Examples:
    """Finds questions that documents answer with certainty. Source of the kinds: docs/decisions/078-examples.md."""

    def __init__(
        self, engine: CitedQueryEngine, database: Database, quoting: ChatModel, shipped: Collection[str], *, keeps: bool
    ):
        """
        Args:
            quoting: examples are asked of it, whatever model writes answers.
            shipped: names of files that come with the service.
            keeps: whether what was found is kept for the next time.
        """
        self._engine = engine
        self._database = database
        self._quoting = quoting
        self._shipped = shipped
        self._known: OwnedValues[tuple[UUID, tuple[Example, ...]], tuple[Example, ...]] = OwnedValues(
            _KEPT if keeps else 0
        )

    async def find(self, identity: Identity, language: str | None = None) -> Sequence[Example]:
        """Return up to `MAX_EXAMPLES` questions, of as many documents as possible.

        Args:
            language: of the documents that come first.

        Raises:
            StoreError, EmbeddingError, BusyError: as an answer.
        """
        async with self._database.transaction(identity) as connection:
            candidates = await _find_candidates(connection, self._shipped, language)
        key = identity.user_id, tuple(candidates)
        if (known := self._known.get(key)) is not None:
            return known
        found: list[Example] = []
        for candidate in candidates[:_ASKED]:
            if len(found) < MAX_EXAMPLES and await self._is_answered(candidate, identity):
                found.append(candidate)
        self._known.keep(key, tuple(found), owner=identity.user_id)
        return found

    async def _is_answered(self, candidate: Example, identity: Identity) -> bool:
        run = self._engine.begin(Question(candidate.question, identity=identity, recorded=False), self._quoting)
        response = cast("CitedResponse", await self._engine.aquery(RagQuery.of(run)))
        answer = response.answer
        cited = {citation.document_id for citation in answer.citations}
        return answer.decision is Decision.CAN_PROCEED and candidate.document_id in cited


async def _find_candidates(connection: Connection, shipped: Collection[str], language: str | None) -> list[Example]:
    cursor = await connection.execute(
        """SELECT d.id, d.file_name, d.language, array_agg(c.text ORDER BY c.chunk_index)
           FROM (SELECT n.* FROM documents n JOIN corpora k ON k.id = n.corpus_id AND k.active
                 WHERE n.chunk_count > 0 AND (n.expires_at IS NULL OR n.expires_at > now())
                   AND NOT coalesce(n.file_name, '') = ANY(%(shipped)s)
                 ORDER BY n.updated_at DESC, n.id LIMIT %(documents)s) d
           JOIN data_chunks c ON c.document_id = d.id AND c.chunk_index < %(chunks)s
           GROUP BY d.id, d.file_name, d.language, d.updated_at
           ORDER BY coalesce(d.language = %(language)s, false) DESC, d.updated_at DESC, d.id""",
        {"shipped": list(shipped), "language": language, "documents": _DOCUMENTS, "chunks": _CHUNKS},
    )
    rows = await cursor.fetchall()
    tables = await find_tables(connection, [document_id for document_id, *_ in rows])
    cells = await find_first_rows(connection, [table.id for table in tables])
    by_document: list[list[Example]] = []
    for document_id, file_name, own, texts in rows:
        asked = [_ask_cell(table, cells.get(table.id, {}), own) for table in tables if table.document_id == document_id]
        asked += [line for text in texts for line in find_questions(text)]
        made = [Example(question=one, document_id=document_id, file_name=file_name) for one in asked if one]
        by_document.append(made)
    return by_turns(by_document, lambda example: example.question)


def _ask_cell(table: StoredTable, row: Mapping[int, str], language: str | None) -> str | None:
    """A question for the first figure of a row, or for its last cell; None where the row has no name."""
    name, others = row.get(0, ""), [place for place in row if place]
    if sum(map(str.isalpha, name)) < _LETTERS or not others:
        return None
    figures = [place for place in others if any(map(str.isdigit, row[place]))]
    column = table.columns[(figures or others[-1:])[0]].name
    asked = load_language(language).files.labels["ask_cell"].format(column=column, row=name)
    return asked if len(words(asked)) in ASKED_WORDS and is_safe(asked) else None
