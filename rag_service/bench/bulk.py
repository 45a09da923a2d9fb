"""Loads a bench corpus by COPY, as the owner: the floor of writing, and the only way to a million chunks.

The rows are those that ingestion writes; triggers and indexes are replaced by one pass over the finished
tables, which is what a bulk load does. Row-level security does not apply to the owner.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

import psycopg
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from psycopg import sql

from rag_service.bench.corpus import BenchCorpus
from rag_service.bench.load import BENCH_USER, PREFIX, Advance
from rag_service.store.search.dense import vector_literal
from rag_service.store.search.postings import ENTRIES_A_ROW, pack
from rag_service.text.words import frequencies

_TABLES = ("corpora", "documents", "data_chunks", "postings", "term_statistics", "corpus_statistics")
_REBUILT = ("data_chunks_embedding", "postings_term", "postings_document")  # indexes made after the rows
_ROW_BYTES = ENTRIES_A_ROW * 8
_DOCUMENTS_A_BATCH = 400
_MEMORY_SHARE = 4  # of the machine, for building indexes


@dataclass(frozen=True, kw_only=True)
class BulkLoad:
    """Where the corpus lies, and what it took."""

    tenants: dict[str, UUID]  # tenant → corpus
    first_id: int  # of the chunks, which follow each other
    row_seconds: float  # making and writing rows
    index_seconds: float  # indexes, statistics, vacuum


def bulk_load(owner_conninfo: str, corpus: BenchCorpus, advance: Advance) -> BulkLoad:
    """Replace what the bench's database holds by this corpus; `advance` counts chunks."""
    started = time.perf_counter()
    tenants = {tenant: uuid4() for tenant in dict.fromkeys(corpus.tenants)}
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("TRUNCATE {} CASCADE").format(_names(_TABLES)))
        definitions = [_drop_index(connection, index) for index in _REBUILT]
        try:
            _set_triggers(connection, "DISABLE")
            _copy_corpora(connection, tenants)
            first_id = _copy_documents(connection, corpus, tenants, advance)
            rows = time.perf_counter()
            _count(connection)
        finally:
            _set_triggers(connection, "ENABLE")
            _build_indexes(connection, definitions)
        connection.execute("VACUUM (ANALYZE)")
    finished = time.perf_counter()
    return BulkLoad(tenants=tenants, first_id=first_id, row_seconds=rows - started, index_seconds=finished - rows)


def _names(tables: Sequence[str]) -> sql.Composable:
    return sql.SQL(", ").join(sql.Identifier("rag", table) for table in tables)


def _drop_index(connection: psycopg.Connection, index: str) -> str:
    row = connection.execute("SELECT pg_get_indexdef(to_regclass(%s))", [f"rag.{index}"]).fetchone()
    connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier("rag", index)))
    return str(row[0]) if row is not None else ""


def _build_indexes(connection: psycopg.Connection, definitions: Sequence[str]) -> None:
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MEMORY_SHARE // 2**20
    connection.execute("SELECT set_config('maintenance_work_mem', %s, false)", [f"{megabytes}MB"])
    for definition in definitions:
        connection.execute(definition.encode())  # as PostgreSQL wrote it


def _set_triggers(connection: psycopg.Connection, state: str) -> None:
    for table in ("documents", "data_chunks", "postings"):
        statement = sql.SQL("ALTER TABLE {} {} TRIGGER USER")
        connection.execute(statement.format(sql.Identifier("rag", table), sql.SQL(state)))


def _copy_corpora(connection: psycopg.Connection, tenants: dict[str, UUID]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO rag.corpora (id, name, kind, owner_id, index_name) VALUES (%s, %s, 'personal', %s, 'general')",
            [(corpus_id, f"{PREFIX}{tenant}", BENCH_USER.user_id) for tenant, corpus_id in tenants.items()],
        )


def _copy_documents(
    connection: psycopg.Connection, corpus: BenchCorpus, tenants: dict[str, UUID], advance: Advance
) -> int:
    documents = [(uuid4(), tenants[tenant], chunks) for tenant, chunks in corpus.documents()]
    row = connection.execute("SELECT nextval('rag.data_chunks_id_seq')").fetchone()
    first_id = 1 if row is None else int(row[0])
    for start in range(0, len(documents), _DOCUMENTS_A_BATCH):
        batch = documents[start : start + _DOCUMENTS_A_BATCH]
        _copy(
            connection,
            "rag.documents (id, corpus_id, name, title, content_hash, fingerprint, language, chunk_count)",
            (
                f"{document}\t{owner}\t{chunks[0]}\t{chunks[0]}\t\tbench\ten\t{len(chunks)}"
                for document, owner, chunks in batch
            ),
        )
        lines: list[str] = []
        postings: list[str] = []
        for document, owner, chunks in batch:
            counts = [frequencies(corpus.texts[number], "en") for number in chunks]
            lines += _chunk_lines(corpus, chunks, [counter.total() for counter in counts], document, owner, first_id)
            packed = pack([first_id + number for number in chunks], counts)
            postings += _posting_lines(packed, document, owner)
        _copy(
            connection,
            "rag.data_chunks (id, text, metadata_, node_id, embedding, corpus_id, document_id, chunk_index,"
            " char_start, char_end, length)",
            lines,
        )
        _copy(connection, "rag.postings (corpus_id, term, document_id, entries)", postings)
        advance(sum(len(chunks) for _, _, chunks in batch))
    connection.execute("SELECT setval('rag.data_chunks_id_seq', %s)", [first_id + len(corpus.texts)])
    return first_id


def _copy(connection: psycopg.Connection, target: str, lines: Sequence[str] | Iterator[str]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN".encode()) as copy:
        copy.write("".join([line + "\n" for line in lines]))


def _chunk_lines(
    corpus: BenchCorpus, chunks: Sequence[int], lengths: Sequence[int], document: UUID, owner: UUID, first_id: int
) -> Iterator[str]:
    start = 0
    for index, (number, length) in enumerate(zip(chunks, lengths, strict=True)):
        text = corpus.texts[number]
        yield "\t".join(
            (
                str(first_id + number), text, _METADATA, f"{document}-{index}", vector_literal(corpus.vectors[number]),
                str(owner), str(document), str(index), str(start), str(start + len(text)), str(length),
            )
        )  # fmt: skip
        start += len(text) + 1


def _posting_lines(packed: dict[str, bytes], document: UUID, owner: UUID) -> Iterator[str]:
    for term, entries in packed.items():
        for start in range(0, len(entries), _ROW_BYTES):
            yield f"{owner}\t{term}\t{document}\t\\\\x{entries[start : start + _ROW_BYTES].hex()}"


# As long as what LlamaIndex stores of a node. COPY takes a backslash for an escape.
_METADATA = json.dumps(
    node_to_metadata_dict(TextNode(text="", metadata={"language": "en"}), remove_text=True, flat_metadata=False)
).replace("\\", "\\\\")


def _count(connection: psycopg.Connection) -> None:
    """The statistics that the triggers would have kept."""
    connection.execute(
        "INSERT INTO rag.term_statistics (corpus_id, term, chunk_frequency)"
        " SELECT corpus_id, term, sum(length(entries)) / 8 FROM rag.postings GROUP BY corpus_id, term"
    )
    connection.execute(
        "INSERT INTO rag.corpus_statistics (corpus_id, chunk_count, term_count)"
        " SELECT corpus_id, count(*), sum(length) FROM rag.data_chunks GROUP BY corpus_id"
    )
