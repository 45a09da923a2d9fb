"""Real documents as a bench corpus: parsed, chunked and embedded as ingestion does it."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import MetadataMode

from rag_service.bench.corpus import BenchCorpus, assign_tenants
from rag_service.bench.load import Advance
from rag_service.definitions import IndexDefinition
from rag_service.errors import DocumentError, InputError
from rag_service.ingest.chunking import Chunker, as_llama_document
from rag_service.ingest.sandbox import parse_in_sandbox

_BATCH = 64
_FEWEST = 1_000  # chunks: the smallest tenant has one in a thousand


async def read_corpus(
    folder: Path, embedding: BaseEmbedding, index: IndexDefinition, *, count: int, advance: Advance
) -> BenchCorpus:
    """At most `count` chunks of the documents below a folder, in the order of their names.

    Raises:
        InputError: they give fewer chunks than the tenants need.
        EmbeddingError: the model fails.
    """
    texts: list[str] = []
    for file in await asyncio.to_thread(_find_files, folder):
        if len(texts) >= count:
            break
        try:
            parsed = await parse_in_sandbox(await asyncio.to_thread(file.read_bytes), file_name=file.name)
        except DocumentError:
            continue  # a folder holds other files too
        nodes = Chunker(index.ingest)([as_llama_document(parsed.text, parsed.spans, {})])
        texts += [node.get_content(MetadataMode.NONE) for node in nodes]
    texts = texts[:count]
    if len(texts) < _FEWEST:
        raise InputError(f"{folder} gives {len(texts)} chunks; the bench needs {_FEWEST} or more.", field="documents")
    vectors: list[list[float]] = []
    for start in range(0, len(texts), _BATCH):
        vectors += await embedding.aget_text_embedding_batch(texts[start : start + _BATCH])
        advance(min(_BATCH, len(texts) - start))
    rows = np.array(vectors, dtype=np.float32)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)
    return BenchCorpus(
        texts=tuple(texts),
        vectors=rows,
        tenants=tuple(assign_tenants(len(texts))),
        seed=zlib.crc32("\0".join(texts).encode()),
    )


def _find_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
