"""What a corpus holds, without the numbers that differ from run to run: for comparing two ways to fill one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, CorpusKind
from rag_service.store.corpora import Corpus, create_corpus


@dataclass(frozen=True, kw_only=True)
class StoredChunk:
    document: str  # its name
    index: int
    text: str
    start: int
    end: int
    spans: Any
    length: int
    node: str  # as LlamaIndex stores it, its ids replaced
    vector: list[float]


@dataclass(frozen=True, kw_only=True)
class Stored:
    documents: dict[str, dict[str, Any]]  # columns by name of the document
    chunks: list[StoredChunk]
    statistics: list[tuple[Any, ...]]  # of BM25: terms with the chunks that hold them


async def make_corpus(service: Components, name: str) -> Corpus:
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        return await create_corpus(connection, LOCAL_ADMIN, name=name, kind=CorpusKind.GLOBAL, index_name="general")


async def read_stored(service: Components, corpus: Corpus) -> Stored:
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        cursor = await connection.execute(
            """SELECT d.id, d.name, to_jsonb(d) - '{id,corpus_id,created_at,updated_at}'::text[], t.text,
                      o.data
               FROM documents d JOIN document_texts t ON t.document_id = d.id
               LEFT JOIN originals o ON o.document_id = d.id WHERE d.corpus_id = %s ORDER BY d.name""",
            [corpus.id],
        )
        documents = await cursor.fetchall()
        names = {str(row[0]): row[1] for row in documents}
        cursor = await connection.execute(
            """SELECT document_id, chunk_index, text, char_start, char_end, spans, length, metadata_,
                      embedding::vector::real[], node_id
               FROM data_chunks WHERE corpus_id = %s""",
            [corpus.id],
        )
        chunks = []
        for row in await cursor.fetchall():
            assert row[9] == f"{row[0]}:{row[1]}"
            node = str(row[7]).replace(str(row[0]), names[str(row[0])]).replace(str(corpus.id), "corpus")
            chunks.append(
                StoredChunk(
                    document=names[str(row[0])], index=row[1], text=row[2], start=row[3], end=row[4], spans=row[5],
                    length=row[6], node=node, vector=list(row[8]),
                )
            )  # fmt: skip
        statistics = await connection.execute(
            "SELECT term, chunk_frequency FROM term_statistics WHERE corpus_id = %s ORDER BY term", [corpus.id]
        )
        return Stored(
            documents={row[1]: {**row[2], "text": row[3], "data": bytes(row[4] or b"")} for row in documents},
            chunks=sorted(chunks, key=lambda chunk: (chunk.document, chunk.index)),
            statistics=await statistics.fetchall(),
        )
