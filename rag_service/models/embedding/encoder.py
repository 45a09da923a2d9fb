"""An embedding model in this process: its word pieces, its last layer, and the vector that they become.

Texts go through one by one: padding would be computed, and dynamic quantization measures the range of a whole batch, so
that the vector of a text would depend on its neighbours. Everything is computed in the thread that calls; several
threads share one model.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_service.errors import ConfigurationError
from rag_service.models.embedding.model_folder import TOKENIZER, WEIGHTS, ModelFolder
from rag_service.models.local_runtime import import_torch

Precision = Literal["float32", "int8"]  # as RAG_EMBEDDING_PRECISION
Ids = npt.NDArray[np.int64]  # (1, tokens), of one text
States = npt.NDArray[np.float32]  # (tokens, dimension), the last layer

# A window of a long passage: attention costs the square of its length, and questions wait for it.
_LONGEST_WINDOW = 512


class Encoder:
    """The loaded model, for any number of threads."""

    def __init__(self, model: ModelFolder, *, precision: Precision = "float32"):
        """Load it: some tenths of a second, the first time in eight bits some seconds more.

        Raises ConfigurationError if the model cannot be loaded or needs the extra `torch`.
        """
        from tokenizers import Tokenizer

        self._model = model
        self._states = _load(model, precision)
        try:
            self._tokenizer = Tokenizer.from_file(str(model.path / TOKENIZER))
        except Exception as error:  # the package raises nothing narrower
            raise _broken(model, error) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        prefix = max(len(self.offsets(text)) for text in (model.query_prefix, model.passage_prefix))
        added = prefix + self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self.window = min(model.max_tokens, _LONGEST_WINDOW) - added  # word pieces

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each word piece of a text begins and ends."""
        offsets: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    def encode(self, text: str) -> npt.NDArray[np.float32]:
        """A vector of length 1, of as many word pieces as the model reads."""
        ids, limit = self._tokenizer.encode(text).ids, self._model.max_tokens
        if len(ids) > limit:
            ids = [*ids[: limit - 1], ids[-1]]  # the last one marks the end
        states = self._states(np.array([ids], dtype=np.int64))
        match self._model.pooling:
            case "mean":
                vector: npt.NDArray[np.float32] = states.mean(axis=0)
            case "cls":
                vector = states[0]
            case "lasttoken":
                vector = states[-1]
        return vector / np.linalg.norm(vector)


def _load(model: ModelFolder, precision: Precision) -> Callable[[Ids], States]:
    """What computes the last layer: a graph made from the weights, one that comes with them, or torch."""
    try:
        if model.is_bert:
            from rag_service.models.embedding.bert_graph import make_bert_graph
            from rag_service.models.embedding.quantized import quantized_graph

            made = make_bert_graph(model.path).SerializeToString() if precision == "float32" else None
            return _on_onnx_runtime(made or quantized_graph(model.path), folder=(model.path / WEIGHTS).resolve().parent)
        if precision == "int8":
            raise ConfigurationError(
                f"RAG_EMBEDDING_PRECISION=int8 needs the safetensors weights of a BERT model, and {model.name} is "
                "none: set it to float32.",
                field="RAG_EMBEDDING_PRECISION",
            )
        if model.onnx_file is not None:
            return _on_onnx_runtime(str(model.onnx_file))
        return _on_torch(model)
    except ConfigurationError:
        raise
    except Exception as error:  # ONNX Runtime and transformers raise whatever they like
        raise _broken(model, error) from error


def _on_onnx_runtime(graph: bytes | str, *, folder: Path | None = None) -> Callable[[Ids], States]:
    """A session on a graph in memory, whose weights are in a folder, or on a file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    wanted = {entry.name for entry in session.get_inputs()}
    output = session.get_outputs()[0].name  # the last layer, in every export of transformers

    def states(ids: Ids) -> States:
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.arange(ids.shape[1], dtype=np.int64)[None],
        }
        (layer,) = session.run([output], {name: value for name, value in inputs.items() if name in wanted})
        found: States = layer[0]
        return found

    return states


def _on_torch(model: ModelFolder) -> Callable[[Ids], States]:
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            raise ConfigurationError(
                f"RAG_EMBEDDING_MODEL={model.name} has neither an ONNX file nor BERT weights in safetensors, and needs "
                "the extra `torch`: install it with `pip install 'rag-service[torch]'`, or choose another model.",
                field="RAG_EMBEDDING_MODEL",
            )
    torch = import_torch()
    from transformers import AutoModel

    loaded: Any = AutoModel.from_pretrained(model.path, local_files_only=True, dtype=torch.float32).eval()

    def states(ids: Ids) -> States:
        torch.set_num_threads(1)  # the number belongs to the thread
        with torch.inference_mode():
            pieces = torch.from_numpy(ids)
            layer = loaded(input_ids=pieces, attention_mask=torch.ones_like(pieces)).last_hidden_state
        found: States = layer[0].numpy()
        return found

    return states


def _broken(model: ModelFolder, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"RAG_EMBEDDING_MODEL={model.name}: the files in {model.path} cannot be loaded ({type(error).__name__}); "
        "fetch them again with `rag-service models pull`, or choose another model.",
        field="RAG_EMBEDDING_MODEL",
    )
