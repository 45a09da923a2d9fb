"""all-MiniLM-L6-v2 on PyTorch, in float32 or bfloat16."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_service.models.torch_runtime import Precision, import_torch, inference, reduce_precision


class TorchEngine:
    """The model, loaded on the CPU; see `rag_service.models.embedding.minilm.Engine`. For any number of threads."""

    def __init__(self, folder: Path, *, precision: Precision):
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
        import_torch(threads=threads)
        # What the model's own `encode` does beside this takes 1 ms, a tenth of a question.
        with self._tokenizing:
            features = self._model.tokenizer(
                list(texts), padding=True, truncation=True, max_length=self._model.max_seq_length, return_tensors="pt"
            )
        with inference(reduced=self._reduced):
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
