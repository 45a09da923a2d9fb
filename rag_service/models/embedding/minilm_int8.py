"""all-MiniLM-L6-v2 in eight bits on ONNX Runtime: the extra `int8`.

The graph is made once by torch and ONNX Runtime's own tools, in a process of its own, and kept in the user's cache
folder; later starts load the file in half a second and need no torch.

Texts go through one by one: dynamic quantization measures the range of a whole batch, so that in a batch the vector of
a text would depend on its neighbours, and padding would be computed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_service.errors import ConfigurationError

_MAX_TOKENS = 256  # the model's own limit
_FILE_NAME = "all-minilm-l6-v2.int8.1.onnx"  # its last number changes with how the graph is made
_OPSET = 17


class Int8Engine:
    """The loaded model; see `rag_service.models.embedding.minilm.Engine`."""

    def __init__(self, folder: Path, *, threads: int):
        """Load the quantized graph of the weights in a folder; make it at the first start, within a minute.

        Raises ConfigurationError if the graph cannot be made.
        """
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # Threads that spin while they wait take the cores from the database beside them.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(_quantized(folder), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each word piece of a text begins and ends."""
        offsets: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    def encode(self, texts: Sequence[str], *, threads: int) -> npt.NDArray[np.float32]:
        """One row of length 1 per text, of which 256 word pieces are read; by the session's threads, not `threads`."""
        rows = np.stack([self._states(text).mean(axis=0) for text in texts])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def _states(self, text: str) -> npt.NDArray[np.float32]:
        """The last layer, a row per word piece."""
        ids = self._tokenizer.encode(text).ids
        if len(ids) > _MAX_TOKENS:
            ids = [*ids[: _MAX_TOKENS - 1], ids[-1]]  # the last one marks the end
        (states,) = self._session.run(None, {"input_ids": np.array([ids], dtype=np.int64)})
        found: npt.NDArray[np.float32] = states[0]
        return found


def _quantized(folder: Path) -> bytes:
    """The quantized graph, from the cache folder or newly made."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rag_service"
    file = cache / _FILE_NAME
    if file.is_file():
        return file.read_bytes()
    with tempfile.TemporaryDirectory(prefix="rag-int8-") as work:
        made = Path(work) / _FILE_NAME
        done = subprocess.run(  # noqa: S603 - ourselves; torch stays out of the memory of this process
            [sys.executable, "-m", __name__, str(folder), str(made)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ConfigurationError(
                f"The model cannot be quantized: {done.stderr.strip()[-300:]}", field="RAG_EMBEDDING_PRECISION"
            )
        graph = made.read_bytes()
    _keep(graph, file)
    return graph


def _keep(graph: bytes, file: Path) -> None:
    """Write into the cache folder at once or not at all; where it is read-only the next start makes the graph again."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(graph)
        part.replace(file)
    except OSError:
        return


def make_graph(folder: Path, target: Path) -> None:
    """Export the model in a folder, fuse its operators for BERT and quantize it.

    Weights have a scale per column and seven bits: x86 processors without VNNI add two products in 16 bits, which
    eight bits can overflow. https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
    """
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers.optimizer import optimize_model
    from transformers import BertModel

    class WithoutPadding(torch.nn.Module):
        """From ids to the last layer; every word piece counts."""

        def __init__(self) -> None:
            super().__init__()
            self.bert = BertModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.bert(input_ids, attention_mask=torch.ones_like(input_ids)).last_hidden_state
            return states

    exported, fused = target.with_suffix(".float32.onnx"), target.with_suffix(".fused.onnx")
    torch.onnx.export(
        WithoutPadding().eval(), (torch.arange(16)[None],), str(exported),
        input_names=["input_ids"], output_names=["states"],
        dynamic_axes={"input_ids": {1: "length"}, "states": {1: "length"}},
        opset_version=_OPSET, dynamo=False,  # the fusions below know the graph of the older exporter
    )  # fmt: skip
    optimize_model(str(exported), model_type="bert", num_heads=12, hidden_size=384).save_model_to_file(str(fused))
    quantize_dynamic(
        fused, target, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True,
        extra_options={"DefaultTensorType": 1},  # float32, of the outputs of fused operators
    )  # fmt: skip


if __name__ == "__main__":
    make_graph(Path(sys.argv[1]), Path(sys.argv[2]))
