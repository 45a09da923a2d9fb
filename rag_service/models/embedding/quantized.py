"""A BERT model in eight bits, made once from its weights and kept in the cache folder."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from rag_service.models.embedding.model_folder import WEIGHTS

_MADE_AS = 4  # changes with how the graph is made


def cache_folder() -> Path:
    """Where models that were downloaded or made are kept: `rag_service` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rag_service"


def quantized_graph(folder: Path) -> bytes:
    """The graph in eight bits with its weights, from the cache folder or newly made, which takes seconds."""
    weights = (folder / WEIGHTS).resolve()
    known = weights.stat()
    key = hashlib.sha256(f"{_MADE_AS} {weights} {known.st_size} {known.st_mtime_ns}".encode()).hexdigest()
    file = cache_folder() / f"{key[:16]}.int8.onnx"
    if file.is_file():
        return file.read_bytes()
    with tempfile.TemporaryDirectory(prefix="rag-int8-") as work:
        made = Path(work) / file.name
        _quantize(folder, made)
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


def _quantize(folder: Path, target: Path) -> None:
    """Weights have a scale per column and seven bits: x86 processors without VNNI add two products in 16 bits, which
    eight bits can overflow. https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
    """
    from onnx.external_data_helper import load_external_data_for_model
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.quant_utils import add_pre_process_metadata

    from rag_service.models.embedding.bert_graph import make_bert_graph

    model = make_bert_graph(folder)
    load_external_data_for_model(model, str((folder / WEIGHTS).resolve().parent))
    add_pre_process_metadata(model)  # there is nothing to prepare, and without the note a warning is printed
    quantize_dynamic(
        model, target, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True,
        extra_options={"DefaultTensorType": 1},  # float32, where ONNX infers no type after an operator of Microsoft's
    )  # fmt: skip
