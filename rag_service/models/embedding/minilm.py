"""all-MiniLM-L6-v2 from the packaged wheel: embeddings without a model server or a download.

The model reads 256 word pieces and drops the rest of a text in silence. A longer text is therefore
read in windows, and its vector is the normalised mean of the windows' vectors. `WINDOW` says what
that gives and costs.

It is an English model: in other languages the keyword search matters more.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from rag_service.models.embedding.minilm_weights import MODEL_NAME, checked_folder
from rag_service.models.local_runtime import (
    ModelThreads,
    TorchPrecision,
    cores,
    import_torch,
    is_awaited,
    reduce_precision,
)

DIMENSION = 384

# Word pieces of a window, and of two neighbours in common. The model could read 254, but it was
# trained on 128. The choice gives 0.004 in English paragraphs for a lot elsewhere. Measured on XQuAD,
# 1,190 questions each, MRR of the vectors alone on paragraphs | on passages of four paragraphs (403
# word pieces in English, 695 in Spanish):
#   cut at 254 without a word          en 0.928 | 0.783    es 0.594 | 0.471
#   mean of windows of 250, overlap 32 en 0.929 | 0.879    es 0.603 | 0.626
#   mean of windows of 128, overlap 16 en 0.924 | 0.880    es 0.625 | 0.655
#   mean of windows of 64, overlap 8   en 0.915 | 0.884    es 0.646 | 0.667
# Short windows cost no more: the English paragraphs went through at 29 a second cut and 30 in windows.
# A text that is longer costs in proportion. (The best window alone would find more, 0.964 | 0.774 on
# the long passages with windows of 64, but needs a vector for each window in the store.)
WINDOW = 128
OVERLAP = 16

# Windows encoded in one go, and what a question waits for at most while documents are embedded.
# On two cores with other work a question then takes 145 ms (median), with 8 windows 400 ms; on quiet
# ones 4 and 8 embed alike, 30.1 and 30.8 texts of 215 word pieces a second.
SUB_BATCH = 4

FloatMatrix = npt.NDArray[np.float32]  # one row per text or window
Offsets = Sequence[tuple[int, int]]  # where each word piece of a text begins and ends
Precision = Literal["auto", "float32", "bfloat16", "int8"]  # as RAG_EMBEDDING_PRECISION


class Engine(Protocol):
    """The loaded model."""

    def offsets(self, text: str) -> Offsets:
        """Where each word piece of a text begins and ends."""
        ...

    def encode(self, texts: Sequence[str], *, threads: int) -> FloatMatrix:
        """One row of length 1 per text, of which 256 word pieces are read; computed by so many threads."""
        ...


@dataclass(frozen=True, kw_only=True)
class _Window:
    passage: int  # index of the text that it is cut from
    text: str
    tokens: int


class MiniLMEmbedding(BaseEmbedding):
    """LlamaIndex embedding of 384 dimensions, every vector of length 1.

    Nothing is loaded before the first use or `warm_up`; then the model is loaded once. Questions and what
    `somebody_waits` for overtake other passages. A missing or altered package is a ConfigurationError.

    On torch there are as many streams of passages as cores, each on one of them: two threads that share every
    product of a small model wait for each other most of the time. On two cores two streams embed 1.3 times as many
    windows as one with two threads, and more where other work wants a core. A question is computed by all cores.
    """

    _threads: ModelThreads = PrivateAttr()
    _precision: Precision = PrivateAttr()
    _loading: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _engine: Engine | None = PrivateAttr(default=None)  # once loaded

    def __init__(self, *, embed_batch_size: int = 32, precision: Precision = "auto"):
        """Vectors of different precisions may be compared: cosine to float32 0.9999 for bfloat16, 0.99 for int8."""
        super().__init__(model_name=MODEL_NAME, embed_batch_size=embed_batch_size)
        self._precision = precision
        # ONNX Runtime has threads of its own, for all who call it.
        self._threads = ModelThreads("minilm", count=1 if precision == "int8" else cores())

    @classmethod
    def class_name(cls) -> str:
        return "MiniLMEmbedding"

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return DIMENSION

    async def warm_up(self) -> None:
        """Load the model now: some seconds, most of them the import of torch."""
        await self._aget_query_embedding("warm up")

    async def aclose(self) -> None:
        """End the model's threads after the work that is queued."""
        self._threads.stop()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        # In one job: each waits for a thread to end what it is at.
        return (await self._threads.run(partial(self._encode_all, [query]), urgent=True))[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aget_text_embeddings([text]))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        """Vectors in the order of the texts. Between two sub-batches other callers get their turn."""
        if not texts:
            return []
        urgent = is_awaited()
        if urgent and len(texts) == 1:
            return [await self._aget_query_embedding(texts[0])]
        batches = await self._threads.run(partial(self._cut, texts), urgent=urgent)
        rows: list[FloatMatrix] = []
        queued: deque[asyncio.Future[FloatMatrix]] = deque()
        try:
            for batch in batches:
                if len(queued) > self._threads.count:  # one waits while every thread has one
                    rows.append(await queued.popleft())
                job = partial(self._encode, batch)
                queued.append(asyncio.wrap_future(self._threads.submit(job, urgent=urgent)))
            while queued:
                rows.append(await queued.popleft())
        finally:
            for future in queued:
                future.cancel()
        return _join(batches, rows, len(texts))

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed_now([query], urgent=True)[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed_now([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embed_now(texts) if texts else []

    def _embed_now(self, texts: Sequence[str], *, urgent: bool = False) -> list[list[float]]:
        """For LlamaIndex code that is not async (a notebook)."""
        return self._threads.submit(partial(self._encode_all, texts), urgent=urgent).result()

    # -- below: in one of the model's threads

    def _loaded(self) -> Engine:
        with self._loading:
            if self._engine is None:
                self._engine = load_engine(self._precision)
            return self._engine

    def _cut(self, texts: Sequence[str]) -> list[Sequence[_Window]]:
        """The windows of all texts in sub-batches, shortest first, so that each holds little padding."""
        offsets = self._loaded().offsets
        windows: list[_Window] = []
        for number, text in enumerate(texts):
            windows += cut_windows(offsets, text, passage=number)
        windows.sort(key=attrgetter("tokens"))
        return [windows[start : start + SUB_BATCH] for start in range(0, len(windows), SUB_BATCH)]

    def _encode(self, windows: Sequence[_Window], *, threads: int = 1) -> FloatMatrix:
        """One row of length 1 per window."""
        if self._threads.count == 1:
            threads = cores()
        return self._loaded().encode([window.text for window in windows], threads=threads)

    def _encode_all(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts, computed by all cores."""
        batches = self._cut(texts)
        return _join(batches, [self._encode(batch, threads=cores()) for batch in batches], len(texts))


def _join(batches: Sequence[Sequence[_Window]], rows: Sequence[FloatMatrix], count: int) -> list[list[float]]:
    """One vector per text: the mean of its windows' vectors, brought to length 1."""
    vectors = np.zeros((count, DIMENSION), dtype=np.float32)
    passages = [window.passage for batch in batches for window in batch]
    np.add.at(vectors, passages, np.concatenate(rows))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    joined: list[list[float]] = vectors.tolist()
    return joined


def cut_windows(find_offsets: Callable[[str], Offsets], text: str, *, passage: int = 0) -> list[_Window]:
    """The text itself if it fits one window, else overlapping windows of nearly equal length.

    Equal lengths make the mean weigh every part of the text alike.
    """
    offsets = find_offsets(text)
    total = len(offsets)
    if total <= WINDOW:
        return [_Window(passage=passage, text=text, tokens=total)]
    count = math.ceil((total - OVERLAP) / (WINDOW - OVERLAP))
    length = math.ceil((total + (count - 1) * OVERLAP) / count)
    starts = [round(i * (total - length) / (count - 1)) for i in range(count)]
    return [
        _Window(passage=passage, text=text[offsets[start][0] : offsets[start + length - 1][1]], tokens=length)
        for start in starts
    ]


def load_engine(precision: Precision) -> Engine:
    """Check the weights and load them. Blocks for a second, where torch has to be imported for several.

    Raises ConfigurationError if an extra is not installed or the weights are not the known ones.
    """
    folder = checked_folder()
    # Imported here, so that nothing heavy is before there is need.
    if precision == "int8":
        from rag_service.models.embedding.minilm_int8 import Int8Engine

        return Int8Engine(folder, threads=cores())
    return TorchEngine(folder, precision=precision)


class TorchEngine:
    """The model, loaded on the CPU, for any number of threads."""

    def __init__(self, folder: Path, *, precision: TorchPrecision):
        """Load the weights in a folder: seconds at the first call in a process (import of torch), 0.5 s later."""
        import_torch()
        from sentence_transformers import SentenceTransformer

        with _no_progress_bar():
            self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        self._reduced = reduce_precision(self._model, precision)
        self._tokenizing = threading.Lock()  # each call sets the tokenizer's padding, which it refuses while it works

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each word piece of a text begins and ends."""
        with self._tokenizing:
            pieces = self._model.tokenizer(
                text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
            )
        offsets: list[tuple[int, int]] = pieces["offset_mapping"]
        return offsets

    def encode(self, texts: Sequence[str], *, threads: int) -> npt.NDArray[np.float32]:
        """One row of length 1 per text, of which 256 word pieces are read; computed by so many threads."""
        torch = import_torch(threads=threads)
        # What the model's own `encode` does beside this takes 1 ms, a tenth of a question.
        with self._tokenizing:
            features = self._model.tokenizer(
                list(texts), padding=True, truncation=True, max_length=self._model.max_seq_length, return_tensors="pt"
            )
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._reduced):
            rows: npt.NDArray[np.float32] = self._model(dict(features))["sentence_embedding"].numpy()
        return rows


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """transformers draws one on stderr while it loads, into the middle of the logs."""
    from transformers.utils import logging

    hide: Any = logging.disable_progress_bar
    show: Any = logging.enable_progress_bar
    shown = logging.is_progress_bar_enabled()
    hide()
    try:
        yield
    finally:
        if shown:
            show()
