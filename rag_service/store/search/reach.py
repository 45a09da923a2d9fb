"""What can be reached by name: the documents that filters leave, and their passages in order.

Row-level security and the filters of a request decide, as in a search (`scope.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_service.domain import Chunk, Filters
from rag_service.store.database import Connection
from rag_service.store.search.passages import read_chunk_rows, to_chunks
from rag_service.store.search.scope import corpora_condition, document_conditions, keeps_plan

_MAX_FOUND = 20  # documents with one of the names
_MAX_CHUNKS = 2_000  # of a document that are looked through


@dataclass(frozen=True, kw_only=True)
class ReachedDocument:
    id: UUID
    title: str
    file_name: str | None
    source: str | None
    language: str | None
    index_name: str


async def find_documents(connection: Connection, filters: Filters, names: Sequence[str]) -> list[ReachedDocument]:
    """The documents within reach with one of these ids, file names, titles or names, newest first."""
    corpora, values = corpora_condition("d.corpus_id", filters.corpus_ids) if filters.corpus_ids else ("true", {})
    conditions, parameters = document_conditions(filters)
    cursor = await connection.execute(
        f"""SELECT d.id, d.title, d.file_name, d.source, d.language, c.index_name
            FROM documents d JOIN corpora c ON c.id = d.corpus_id AND c.active
            WHERE (d.expires_at IS NULL OR d.expires_at > now()) AND {" AND ".join([corpora, *conditions])}
              AND (d.id::text = ANY(%(wanted)s) OR d.file_key = ANY(%(wanted)s) OR lower(d.title) = ANY(%(wanted)s)
                   OR lower(d.name) = ANY(%(wanted)s))
            ORDER BY d.updated_at DESC, d.id LIMIT {_MAX_FOUND}""",  # noqa: S608 - fixed text
        {**values, **parameters, "wanted": [name.strip().lower() for name in names]},
        prepare=keeps_plan(filters),
    )
    return [
        ReachedDocument(id=id_, title=title, file_name=file_name, source=source, language=language, index_name=index)
        for id_, title, file_name, source, language, index in await cursor.fetchall()
    ]


async def read_chunks(
    connection: Connection, document_id: UUID, *, types: Collection[str], hidden: Collection[str]
) -> list[Chunk]:
    """The passages of a document in order: of these types only, or if there are none, all but the hidden ones."""
    cursor = await connection.execute(
        f"""SELECT id FROM data_chunks WHERE document_id = %(document)s
              AND CASE WHEN %(all)s THEN chunk_type IS NULL OR chunk_type <> ALL(%(hidden)s)
                       ELSE chunk_type = ANY(%(types)s) END
            ORDER BY chunk_index LIMIT {_MAX_CHUNKS}""",  # noqa: S608 - fixed text
        {"document": document_id, "all": not types, "types": list(types), "hidden": list(hidden)},
    )
    ids = [row[0] for row in await cursor.fetchall()]
    chunks = to_chunks(await read_chunk_rows(connection, ids))
    return sorted(chunks.values(), key=lambda chunk: chunk.index)
