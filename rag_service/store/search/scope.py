"""What a search may look at: corpora and documents, as filters and row-level security leave them; and their chunks.

Filters restrict before anything is ranked, every value is a bound parameter, and expired documents are
excluded by the queries themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal
from uuid import UUID

import msgspec

from rag_service.domain import Chunk, DocumentRef, Filters, Location, Span
from rag_service.errors import InputError, NotFoundError
from rag_service.store.database import BigIntegers, Connection
from rag_service.store.search.conditions import BUILT_IN, conditions_of, tree_sql

WILDCARD = "any"  # a filter field with this value matches every request, as does a missing one
_LISTED_DOCUMENTS = 2_000  # up to here a filter's documents are passed by id: the planner then knows their number


@dataclass(frozen=True, kw_only=True)
class SearchScope:
    """What a search may look at, resolved against the database."""

    corpus_ids: tuple[UUID, ...]  # active corpora that the identity may read and the request names
    index_names: tuple[str, ...]  # definitions that rule them
    chunk_count: int  # N of BM25: chunks of these corpora
    mean_length: float  # mean chunk length of these corpora, in index terms
    reachable: int  # chunks left after the document filters
    document_ids: tuple[UUID, ...] | None  # the documents left, when a filter names few; None: not listed
    expired: tuple[UUID, ...]  # documents to leave out
    filters: Filters

    @property
    def prepare(self) -> bool | None:
        """`prepare` of psycopg's `execute` for statements with `chunk_conditions`."""
        return None if self.document_ids is not None else keeps_plan(self.filters)


def keeps_plan(filters: Filters) -> bool | None:
    """Whether a connection may keep the plans of statements with `document_conditions`; None: of frequent ones.

    Each filter tree makes another statement. A plan of fifty conditions takes 2 MB, and psycopg keeps a hundred.
    """
    return None if filters.where is None else False


def document_conditions(filters: Filters) -> tuple[list[str], dict[str, Any]]:
    """Conditions on `documents d` for the filters, with their parameters."""
    conditions: list[str] = []
    parameters: dict[str, Any] = {}

    def add(condition: str, **values: Any) -> None:
        conditions.append(condition)
        parameters.update(values)

    if filters.document_ids:
        add("d.id = ANY(%(document_ids)s)", document_ids=list(filters.document_ids))
    if filters.file_name is not None:
        add("d.file_key = %(file_key)s", file_key=filters.file_name.lower())
    if filters.source is not None:
        add("d.source = %(source)s", source=filters.source)
    if filters.tags:
        add("d.tags @> %(tags)s::text[]", tags=list(filters.tags))
    if filters.territory is not None:
        add("(d.territory IS NULL OR d.territory = %(territory)s)", territory=filters.territory)
    for number, (key, value) in enumerate(filters.fields.items()):
        add(
            f"coalesce(d.fields ->> %(key{number})s, %(wildcard)s) IN (%(value{number})s, %(wildcard)s)",
            **{f"key{number}": key, f"value{number}": value, "wildcard": WILDCARD},
        )
    if filters.where is not None:
        conditions.append(tree_sql(filters.where, parameters))
    return conditions, parameters


def corpora_condition(column: str, corpus_ids: Sequence[UUID]) -> tuple[str, dict[str, Any]]:
    """Condition that a column names one of some corpora, with its parameter.

    A single corpus is compared by `=`, of which the planner knows the number without looking: it then keeps
    its plan, where for a list of unknown length it makes another at every search, in half a millisecond.
    """
    if len(corpus_ids) == 1:
        return f"{column} = %(corpora)s", {"corpora": corpus_ids[0]}
    return f"{column} = ANY(%(corpora)s)", {"corpora": list(corpus_ids)}


async def resolve_scope(connection: Connection, filters: Filters) -> SearchScope:
    """Find out which corpora and documents a search may look at."""
    named, parameters = corpora_condition("c.id", filters.corpus_ids) if filters.corpus_ids else ("true", {})
    cursor = await connection.execute(
        f"""SELECT c.id, c.index_name, coalesce(s.chunk_count, 0), coalesce(s.term_count, 0),
                  ARRAY(SELECT d.id FROM documents d WHERE d.corpus_id = c.id AND d.expires_at <= now())
           FROM corpora c LEFT JOIN corpus_statistics s ON s.corpus_id = c.id
           WHERE c.active AND {named}""",  # noqa: S608 - fixed text
        parameters,
    )
    columns = zip(*await cursor.fetchall(), strict=True)
    corpora, index_names, chunk_counts, term_counts, expired = tuple(columns) or ((),) * 5
    chunk_count, term_count = int(sum(chunk_counts)), int(sum(term_counts))
    reachable, listed = chunk_count, None
    conditions, values = document_conditions(filters)
    if conditions:
        within, parameters = corpora_condition("d.corpus_id", corpora)
        cursor = await connection.execute(
            f"""SELECT count(*), coalesce(sum(d.chunk_count), 0),
                       (array_agg(d.id))[1:{_LISTED_DOCUMENTS + 1}]
                FROM documents d WHERE {" AND ".join([within, *conditions])}""",  # noqa: S608 - fixed text
            parameters | values,
            prepare=keeps_plan(filters),
        )
        row = await cursor.fetchone()
        documents, reachable, ids = row if row is not None else (0, 0, None)
        listed = tuple(ids or ()) if documents <= _LISTED_DOCUMENTS else None
    return SearchScope(
        corpus_ids=tuple(corpora),
        index_names=tuple(sorted(set(index_names))),
        chunk_count=chunk_count,
        mean_length=term_count / chunk_count if chunk_count else 0.0,
        reachable=int(reachable),
        document_ids=listed,
        expired=tuple(chain.from_iterable(expired)),
        filters=filters,
    )


async def check_ids(connection: Connection, scope: SearchScope) -> None:
    """Make sure that what the filters name by id is there to be searched.

    Raises NotFoundError if a corpus or document does not exist, is deactivated or expired, or is another user's.
    """
    filters = scope.filters
    if unknown := set(filters.corpus_ids) - set(scope.corpus_ids):
        raise not_searchable("corpus", unknown)
    if filters.document_ids:
        cursor = await connection.execute(
            "SELECT id FROM documents WHERE id = ANY(%s) AND (expires_at IS NULL OR expires_at > now())",
            [list(filters.document_ids)],
        )
        if unknown := set(filters.document_ids) - {row[0] for row in await cursor.fetchall()}:
            raise not_searchable("document", unknown)


def check_fields(filters: Filters, declared: Collection[str]) -> None:
    """Make sure that the fields which the filters name are declared or built in: others would restrict nothing.

    Raises InputError if one is neither.
    """
    where = () if filters.where is None else conditions_of(filters.where)
    unknown = [(name, "fields") for name in filters.fields if name not in declared]
    unknown += [(item.field, "filter") for item in where if item.field not in {*declared, *BUILT_IN}]
    if unknown:
        name, at = unknown[0]
        usable = {*declared, *(field for field in BUILT_IN if "_" not in field and at == "filter")}
        known = ", ".join(sorted(usable)) or "none; the index declares them under `filter_fields`"
        raise InputError(f"There is no filter field {name!r}. The filter fields are: {known}.", field=at)


def not_searchable(what: Literal["corpus", "document"], ids: Collection[UUID]) -> NotFoundError:
    """The error that names one of some ids which a search cannot look at."""
    return NotFoundError(f"There is no {what} {min(ids)} that can be searched.", field=f"{what}Ids")


def chunk_conditions(
    scope: SearchScope, alias: str, *, with_type: bool, keep_plan: bool = False
) -> tuple[str, dict[str, Any]]:
    """Conditions on a table with corpus_id and document_id that keep a search inside its scope.

    `with_type`: apply the filter's chunk types. `keep_plan`: hide from the planner which corpora these are; for a
    corpus much smaller than average it would otherwise make a new plan at every search.
    """
    within, parameters = corpora_condition(f"{alias}.corpus_id", scope.corpus_ids)
    if keep_plan and len(scope.corpus_ids) == 1:
        within = f"{alias}.corpus_id = (SELECT %(corpora)s)"
    conditions = [within]
    if scope.document_ids is not None:
        conditions.append(f"{alias}.document_id = ANY(%(documents)s)")
        parameters["documents"] = list(scope.document_ids)
    else:
        document, values = document_conditions(scope.filters)
        if document:
            parameters.update(values)
            within, _ = corpora_condition("d.corpus_id", scope.corpus_ids)
            conditions.append(
                f"{alias}.document_id IN (SELECT d.id FROM documents d"  # noqa: S608 - fixed text
                f" WHERE {' AND '.join([within, *document])})"
            )
    if scope.expired:
        conditions.append(f"{alias}.document_id <> ALL(%(expired)s)")
        parameters["expired"] = list(scope.expired)
    if with_type and scope.filters.chunk_types:
        conditions.append(f"{alias}.chunk_type = ANY(%(chunk_types)s)")
        parameters["chunk_types"] = list(scope.filters.chunk_types)
    return " AND ".join(conditions), parameters


# -- what was found

ChunkRow = tuple[Any, ...]  # a chunk as it is stored, with its document


async def read_rows(connection: Connection, chunk_ids: Sequence[int]) -> list[ChunkRow]:
    """Chunks by id with the documents they belong to, for `to_chunks`; expired ones are left out."""
    cursor = await connection.execute(
        """SELECT c.id, c.node_id, c.chunk_index, c.text, c.char_start, c.char_end, c.chunk_type,
                  c.spans, d.id, d.corpus_id, d.title, d.file_name, d.source, d.tags,
                  d.content_hash, d.updated_at, d.language, d.fields
           FROM data_chunks c JOIN documents d ON d.id = c.document_id
           WHERE c.id = ANY(%s) AND (d.expires_at IS NULL OR d.expires_at > now())""",
        [BigIntegers(chunk_ids)],
    )
    return await cursor.fetchall()


def read_spans(stored: Sequence[Any] | None) -> tuple[Span, ...]:
    """The inverse of `domain.write_span` for the spans of a text."""
    return tuple(
        Span(start=start, end=end, location=msgspec.convert(location, Location), words="".join(words))
        for start, end, location, *words in stored or ()
    )


def to_chunks(rows: Sequence[ChunkRow]) -> dict[int, Chunk]:
    """Chunks by id."""
    chunks = {}
    for row in rows:
        number, node_id, index, text, start, end, chunk_type, spans, document_id, corpus_id, *rest = row
        title, file_name, source, tags, content_hash, updated_at, language, fields = rest
        document = DocumentRef(
            id=document_id, corpus_id=corpus_id, title=title, file_name=file_name, source=source,
            tags=tuple(tags), content_hash=content_hash, updated_at=updated_at, language=language,
        )  # fmt: skip
        chunks[number] = Chunk(
            id=node_id, document=document, index=index, text=text, start=start, end=end,
            spans=read_spans(spans), type=chunk_type, metadata=fields or {},
        )  # fmt: skip
    return chunks
