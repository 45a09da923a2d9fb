"""An embedding that remembers, so that a second run over the same texts costs seconds.

It wraps the configured model and is itself a LlamaIndex embedding: retriever, pipeline and answerer
run unchanged. Questions are embedded ahead in batches; everything is kept in a SQLite file keyed by
model, dimension, role and text (requirement E2), since query and passage vectors may differ.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

BATCH = 64  # texts handed to the model at a time; also the step of the progress bar

# Models that embed a question as they embed a passage: their questions may travel in batches too.
_ONE_ROLE = frozenset({"all-minilm-l6-v2"})

_Role = Literal["query", "text"]


class CachingEmbedding(BaseEmbedding):
    """Looks each text up before it asks the model. For one process and one thread at a time."""

    _inner: BaseEmbedding = PrivateAttr()
    _file: sqlite3.Connection = PrivateAttr()
    _dimension: int = PrivateAttr()

    def __init__(self, inner: BaseEmbedding, file: Path, *, dimension: int):
        super().__init__(model_name=inner.model_name, embed_batch_size=BATCH)
        self._inner = inner
        self._dimension = dimension
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(file, check_same_thread=False, timeout=30)
        self._file.execute("PRAGMA journal_mode = wal")
        self._file.execute("PRAGMA synchronous = off")
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    @classmethod
    def class_name(cls) -> str:
        return "CachingEmbedding"

    def close(self) -> None:
        """Close the file; the model belongs to who made it."""
        self._file.close()

    async def prefetch_queries(self, questions: Sequence[str], advance: Callable[[int], None]) -> None:
        """Embed questions ahead, in batches; `advance` is told how many are done each time."""
        for start in range(0, len(questions), BATCH):
            part = list(questions[start : start + BATCH])
            await self._embed(part, "query")
            advance(len(part))

    async def _embed(self, texts: list[str], role: _Role) -> list[list[float]]:
        keys = [self._key(text, role) for text in texts]
        known = self._read(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            made = await self._ask(list(missing.values()), role)
            fresh = dict(zip(missing, made, strict=True))
            self._write(fresh)
            known |= fresh
        return [known[key] for key in keys]

    async def _ask(self, texts: list[str], role: _Role) -> list[list[float]]:
        if role == "text" or self.model_name in _ONE_ROLE:
            made: list[list[float]] = await self._inner.aget_text_embedding_batch(texts)
            return made
        work: list[Awaitable[list[float]]] = [self._inner.aget_query_embedding(text) for text in texts]
        return list(await asyncio.gather(*work))

    def _key(self, text: str, role: _Role) -> bytes:
        return hashlib.sha256(f"{self.model_name}\0{self._dimension}\0{role}\0{text}".encode()).digest()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, list[float]]:
        marks = ",".join("?" * len(keys))
        rows = self._file.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", list(keys))  # noqa: S608
        return {key: np.frombuffer(vector, np.float32).tolist() for key, vector in rows}

    def _write(self, vectors: dict[bytes, list[float]]) -> None:
        rows = [(key, np.asarray(vector, np.float32).tobytes()) for key, vector in vectors.items()]
        with self._file:
            self._file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return (await self._embed([query], "query"))[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._embed([text], "text"))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await self._embed(texts, "text")

    def _get_query_embedding(self, query: str) -> list[float]:
        raise RuntimeError("The evaluation embeds asynchronously.")

    def _get_text_embedding(self, text: str) -> list[float]:
        raise RuntimeError("The evaluation embeds asynchronously.")
