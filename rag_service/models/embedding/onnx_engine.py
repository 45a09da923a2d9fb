"""all-MiniLM-L6-v2 on ONNX Runtime, in float32 or in eight bits.

Texts go through one by one: padding would be computed, and dynamic quantization measures the range of a whole batch, so
that the vector of a text would depend on its neighbours. Each session computes in the thread that calls it; several
threads share it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_service.errors import ConfigurationError

Precision = Literal["float32", "int8"]  # as RAG_EMBEDDING_PRECISION

_MAX_TOKENS = 256  # the model's own limit
_INT8_FILE = "all-minilm-l6-v2.int8.2.onnx"  # its last number changes with how the graph is made


class OnnxEngine:
    """The loaded model, for any number of threads."""

    def __init__(self, folder: Path, *, precision: Precision):
        """Load the weights in a folder: 0.3 s; the first time in eight bits some seconds more."""
        import onnxruntime
        from tokenizers import Tokenizer

        from rag_service.models.embedding.bert_graph import make_bert_graph

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
        graph = make_bert_graph(folder).SerializeToString() if precision == "float32" else _quantized(folder)
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each word piece of a text begins and ends."""
        offsets: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    def encode(self, text: str) -> npt.NDArray[np.float32]:
        """A vector of length 1, of the first 256 word pieces."""
        ids = self._tokenizer.encode(text).ids
        if len(ids) > _MAX_TOKENS:
            ids = [*ids[: _MAX_TOKENS - 1], ids[-1]]  # the last one marks the end
        places = np.arange(len(ids), dtype=np.int64)
        (states,) = self._session.run(None, {"input_ids": np.array(ids, dtype=np.int64), "positions": places})
        vector: npt.NDArray[np.float32] = states.mean(axis=0)
        vector /= np.linalg.norm(vector)
        return vector


def _quantized(folder: Path) -> bytes:
    """The graph in eight bits with its weights, from the cache folder or newly made."""
    file = cache_folder() / _INT8_FILE
    if file.is_file():
        return file.read_bytes()
    with tempfile.TemporaryDirectory(prefix="rag-int8-") as work:
        made = Path(work) / _INT8_FILE
        try:
            _quantize(folder, made)
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"The model cannot be quantized: {error}", field="RAG_EMBEDDING_PRECISION"
            ) from error
        graph = made.read_bytes()
    _keep(graph, file)
    return graph


def cache_folder() -> Path:
    """Where models that were downloaded or made are kept: `rag_service` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rag_service"


def _keep(graph: bytes, file: Path) -> None:
    """Write into the cache folder at once or not at all; where it is read-only the next start makes the graph again."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(graph)
        part.replace(file)
    except OSError:
        return


def _quantize(folder: Path, target: Path) -> None:
    """Weights have a scale per column and seven bits: x86 processors without VNNI add two products in 16 bits, which
    eight bits can overflow. https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
    """
    from onnx.external_data_helper import load_external_data_for_model
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.quant_utils import add_pre_process_metadata

    from rag_service.models.embedding.bert_graph import make_bert_graph

    model = make_bert_graph(folder)
    load_external_data_for_model(model, str(folder))
    add_pre_process_metadata(model)  # there is nothing to prepare, and without the note a warning is printed
    quantize_dynamic(
        model, target, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True,
        extra_options={"DefaultTensorType": 1},  # float32, where ONNX infers no type after an operator of Microsoft's
    )  # fmt: skip
