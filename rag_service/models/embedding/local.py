"""Embeddings without a model server: the packaged multilingual-e5-small, or a model from Hugging Face.

A model reads so many word pieces and drops the rest of a text in silence. A longer text is therefore read in windows,
and its vector is the normalised mean of the windows' vectors.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from rag_service.machine import cores
from rag_service.models.embedding.model_folder import ModelFolder
from rag_service.models.local_runtime import ModelThreads, somebody_waits, user_waits
from rag_service.recent import Recent, keep_for
from rag_service.unpicklable import Unpicklable

FloatVector = npt.NDArray[np.float32]
Offsets = Sequence[tuple[int, int]]  # where each word piece of a text begins and ends


_SHORT = 2_000  # characters of a text that takes one thread not much longer than a window
_KEPT_WINDOWS = 100  # some 450 kB each


@dataclass(frozen=True)
class TokenVectors:
    """The last layer of a model over a text, for late interaction (Khattab and Zaharia, "ColBERT", 2020)."""

    vectors: FloatVector  # (tokens, dimension), each of length 1; the prefix has none
    places: npt.NDArray[np.int64]  # (tokens, 2): where each begins and ends in the text
    before: int = 0  # tokens of the prefix, and the one that marks the beginning
    shared: npt.NDArray[np.float16] | None = None  # (all tokens, dimension): what a question-answering head reads
    answers: FloatVector | None = None  # (tokens,): how much each looks like the answer to a question, in log odds


class Engine(Protocol):
    """The loaded model, for any number of threads."""

    window: int  # word pieces in which longer texts are read

    def offsets(self, text: str) -> Offsets:
        """Where each word piece of a text begins and ends."""

    def encode(self, text: str) -> FloatVector:
        """A vector of length 1, of as many word pieces as the model reads; computed in the calling thread."""

    def encode_tokens(self, text: str, prefix: str) -> TokenVectors:
        """The vectors of as many word pieces as the model reads; computed in the calling thread."""

    def find_answer(self, question: TokenVectors, passage: TokenVectors) -> FloatVector | None:
        """How much each token of a passage looks like the answer; None without a head; in the calling thread."""


class LocalEmbedding(Unpicklable, BaseEmbedding):
    """LlamaIndex embedding that is computed in this process, every vector of length 1.

    Nothing is loaded before the first use or `warm_up`; then the model is loaded once. Questions and what
    `somebody_waits` for overtake other passages.

    There are as many threads as cores, and each computes a window of its own: two threads that share every product of a
    small model wait for each other most of the time. On two cores with other work a question takes 3.0 ms on one thread
    and 9.4 ms on both.
    """

    _threads: ModelThreads = PrivateAttr()
    _query_prefix: str = PrivateAttr()
    _passage_prefix: str = PrivateAttr()
    _load: Callable[[], Engine] = PrivateAttr()
    _removed: FloatVector | None = PrivateAttr()
    _loading: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _engine: Engine | None = PrivateAttr(default=None)  # once loaded
    _read: Recent[TokenVectors] = PrivateAttr(default_factory=lambda: Recent(_KEPT_WINDOWS))

    def __init__(
        self,
        model: ModelFolder,
        load: Callable[[], Engine],
        *,
        embed_batch_size: int = 32,
        removed: FloatVector | None = None,
    ):
        """
        Args:
            load: called once, in one of the model's threads. What it raises reaches every caller.
            removed: orthonormal directions (number, dimension) that are taken out of every vector.
        """
        super().__init__(model_name=model.name, embed_batch_size=embed_batch_size)
        self._query_prefix, self._passage_prefix = model.query_prefix, model.passage_prefix
        self._load = load
        self._removed = removed
        self._threads = ModelThreads("embedding", count=cores())

    @classmethod
    def class_name(cls) -> str:
        return "LocalEmbedding"

    @property
    def threads(self) -> ModelThreads:
        """Where it is computed."""
        return self._threads

    async def warm_up(self) -> None:
        """Load the model now."""
        await self._aget_query_embedding("warm up")

    async def aclose(self) -> None:
        """End the model's threads after the work that is queued."""
        self._threads.stop()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        if len(query) > _SHORT:
            with somebody_waits():
                return (await self._embed_texts([query], self._query_prefix))[0]
        # In one job: each waits for a thread to end what it is at.
        return (await self._threads.run(partial(self._encode_all, [query], self._query_prefix), urgent=True))[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aget_text_embeddings([text]))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        """Vectors in the order of the texts. Between two windows other callers get their turn."""
        if not texts:
            return []
        with keep_for(None):
            return await self._embed_texts(texts, self._passage_prefix)

    async def _embed_texts(self, texts: list[str], prefix: str) -> list[list[float]]:
        urgent = user_waits.get()
        if urgent and len(texts) == 1 and len(texts[0]) <= _SHORT:
            return await self._threads.run(partial(self._encode_all, texts, prefix), urgent=True)
        cut = await self._threads.run(partial(self._cut, texts, prefix), urgent=urgent)
        rows: list[FloatVector] = []
        queued: deque[asyncio.Future[FloatVector]] = deque()
        try:
            for window in itertools.chain.from_iterable(cut):
                if len(queued) > self._threads.count:  # one waits while every thread has one
                    rows.append(await queued.popleft())
                queued.append(asyncio.wrap_future(self._threads.submit(partial(self._encode, window), urgent=urgent)))
            while queued:
                rows.append(await queued.popleft())
        finally:
            for future in queued:
                future.cancel()
        return _join(cut, rows, self._removed)

    async def aget_token_vectors(self, query: str, texts: Sequence[str]) -> list[TokenVectors]:
        """The token vectors of a question, then those of passages, for a user who waits.

        Tokens of a passage beyond what the model reads have none. With a head, those of passages say how much they look
        like the answer.
        """
        question, *passages = await asyncio.gather(
            self._threads.run(partial(self._encode_tokens, query, self._query_prefix), urgent=True),
            *map(self._read_tokens, texts),
        )
        jobs = (partial(self._find_answer, question, passage) for passage in passages)
        return [question, *await asyncio.gather(*(self._threads.run(job, urgent=True) for job in jobs))]

    async def _read_tokens(self, text: str) -> TokenVectors:
        """The token vectors of a passage, of which those used last are kept."""
        found = self._read.get(text)
        if found is None:
            found = await self._threads.run(partial(self._encode_tokens, text, self._passage_prefix), urgent=True)
            self._read.keep(text, found)
        return found

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._threads.submit(partial(self._encode_all, [query], self._query_prefix), urgent=True).result()[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        with keep_for(None):
            return self._threads.submit(partial(self._encode_all, texts, self._passage_prefix)).result()

    # -- below: in one of the model's threads

    def _loaded(self) -> Engine:
        with self._loading:
            if self._engine is None:
                self._engine = self._load()
            return self._engine

    def _cut(self, texts: Sequence[str], prefix: str) -> list[list[str]]:
        engine = self._loaded()
        return [list(map(prefix.__add__, cut_windows(engine.offsets, text, engine.window))) for text in texts]

    def _encode(self, window: str) -> FloatVector:
        return self._loaded().encode(window)

    def _encode_tokens(self, text: str, prefix: str) -> TokenVectors:
        return self._loaded().encode_tokens(text, prefix)

    def _find_answer(self, question: TokenVectors, passage: TokenVectors) -> TokenVectors:
        return replace(passage, answers=self._loaded().find_answer(question, passage))

    def _encode_all(self, texts: Sequence[str], prefix: str) -> list[list[float]]:
        """The vectors of texts, computed in this thread."""
        cut = self._cut(texts, prefix)
        return _join(cut, [self._encode(window) for windows in cut for window in windows], self._removed)


def _join(cut: Sequence[Sequence[str]], rows: Sequence[FloatVector], removed: FloatVector | None) -> list[list[float]]:
    """One vector per text: the mean of its windows' vectors, without some directions, brought to length 1."""
    joined: list[list[float]] = []
    left = iter(rows)
    for windows in cut:
        vector = np.sum(list(itertools.islice(left, len(windows))), axis=0)
        if removed is not None:
            vector = vector - (removed @ vector) @ removed
        joined.append((vector / np.linalg.norm(vector)).tolist())
    return joined


def cut_windows(find_offsets: Callable[[str], Offsets], text: str, length: int) -> list[str]:
    """The text itself if it fits one window of so many word pieces, else windows of nearly equal length.

    Neighbours have an eighth in common. Equal lengths make the mean weigh every part of the text alike.
    """
    offsets = find_offsets(text)
    total = len(offsets)
    if total <= length:
        return [text]
    overlap = length // 8
    count = math.ceil((total - overlap) / (length - overlap))
    length = math.ceil((total + (count - 1) * overlap) / count)
    starts = [round(i * (total - length) / (count - 1)) for i in range(count)]
    return [text[offsets[start][0] : offsets[start + length - 1][1]] for start in starts]
