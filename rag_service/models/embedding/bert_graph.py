"""The ONNX graph of a BERT or XLM-RoBERTa model, made from its configuration in milliseconds.

The weights stay in `model.safetensors`.

An ONNX graph may keep its weights in another file, as raw numbers at an offset. That is what a safetensors file is, so
ONNX Runtime maps it into memory: nothing is exported, copied or cached, and no torch is needed.
https://huggingface.co/docs/safetensors/index#format, https://onnx.ai/onnx/repo-docs/ExternalData.html
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto, helper

from rag_service.models.embedding.model_folder import WEIGHTS

_TYPES = {"F32": TensorProto.FLOAT, "F16": TensorProto.FLOAT16, "BF16": TensorProto.BFLOAT16}
OPSET, IR_VERSION = 20, 9  # the first with Gelu; ONNX Runtime 1.17 and newer read both

OUTPUTS = ("last_hidden_state", "shared_states")  # the last layer, and the one that the question-answering head reads
HEAD_LAYERS = 2  # of the model, that the head has of its own: see `qa_head.py`


def make_bert_graph(folder: Path) -> ModelProto:
    """The graph of a model: see `BertGraph.model`. Raises OSError, ValueError or KeyError if the folder holds none."""
    return _SafetensorsGraph(folder).model()


class BertGraph(ABC):
    """The graph of a BERT model. A subclass says where its weights are and how they are multiplied."""

    def __init__(self, config: dict[str, Any]):
        """`config`: what the model's config.json says."""
        self._config = config
        self._hidden: int = config["hidden_size"]
        self._nodes: list[NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}

    @abstractmethod
    def _weight(self, name: str) -> str:
        """The name of a float32 value: a parameter that is not a matrix, or the table of positions or types."""

    @abstractmethod
    def _words(self) -> str:
        """The rows of the word embeddings for `input_ids`, (1, n, hidden size)."""

    @abstractmethod
    def _linear(self, states: str, name: str) -> str:
        """A linear layer, weights and bias, over (n, inputs)."""

    def model(self) -> ModelProto:
        """From `input_ids` and `position_ids`, (1, n) int64, to the layers of `OUTPUTS`, (1, n, hidden size) float32.

        One text at a time needs neither padding nor a mask.
        """
        states = self._embeddings()
        layers = self._config["num_hidden_layers"]
        for layer in range(layers):
            if layer == max(0, layers - HEAD_LAYERS):
                self._name_output(states, OUTPUTS[1])
            states = self._layer(states, f"encoder.layer.{layer}")
        self._name_output(states, OUTPUTS[0])
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, [1, "n"]) for name in ("input_ids", "position_ids")
        ]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, "n", self._hidden]) for name in OUTPUTS]
        graph = helper.make_graph(self._nodes, "bert", inputs, outputs, list(self._initializers.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def _name_output(self, states: str, name: str) -> None:
        self._node("Reshape", states, self._constant("text", [1, -1, self._hidden]))
        self._nodes[-1].output[0] = name

    def _embeddings(self) -> str:
        words = self._words()
        # XLM-RoBERTa counts from the number after that of the padding token.
        first = self._config["pad_token_id"] + 1 if self._config["model_type"] == "xlm-roberta" else 0
        positions = self._node("Add", "position_ids", self._constant("first_position", [first]))
        places = self._node("Gather", self._weight("embeddings.position_embeddings.weight"), positions)
        first_type = self._constant("first_type", [0])
        types = self._node("Gather", self._weight("embeddings.token_type_embeddings.weight"), first_type)
        summed = self._node("Add", self._node("Add", words, places), types)
        rows = self._node("Reshape", summed, self._constant("rows", [-1, self._hidden]))
        return self._normalised(rows, "embeddings.LayerNorm")

    def _layer(self, states: str, name: str) -> str:
        text = self._constant("text", [1, -1, self._hidden])
        projected = [
            self._node("Reshape", self._linear(states, f"{name}.attention.self.{part}"), text)
            for part in ("query", "key", "value")
        ]
        heads = self._config["num_attention_heads"]
        attended = self._node("MultiHeadAttention", *projected, domain="com.microsoft", attributes={"num_heads": heads})
        rows = self._node("Reshape", attended, self._constant("rows", [-1, self._hidden]))
        mixed = self._node("Add", self._linear(rows, f"{name}.attention.output.dense"), states)
        states = self._normalised(mixed, f"{name}.attention.output.LayerNorm")
        inner = self._node("Gelu", self._linear(states, f"{name}.intermediate.dense"))
        return self._normalised(
            self._node("Add", self._linear(inner, f"{name}.output.dense"), states), f"{name}.output.LayerNorm"
        )

    def _normalised(self, states: str, name: str) -> str:
        scale, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        small = {"epsilon": self._config["layer_norm_eps"]}
        return self._node("LayerNormalization", states, scale, bias, attributes=small)

    def _node(self, operator: str, *inputs: str, domain: str = "", attributes: dict[str, Any] | None = None) -> str:
        output = f"{operator}_{len(self._nodes)}"
        self._nodes.append(
            helper.make_node(operator, inputs, [output], name=output, domain=domain, **(attributes or {}))
        )
        return output

    def _constant(self, name: str, values: list[int]) -> str:
        self._initializers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name


class _SafetensorsGraph(BertGraph):
    """In float32, over the weights of a safetensors file."""

    def __init__(self, folder: Path):
        super().__init__(json.loads((folder / "config.json").read_text(encoding="utf-8")))
        # In Hugging Face's cache the file is a link, which ONNX Runtime does not follow out of its folder.
        self._file = (folder / WEIGHTS).resolve()
        self._start, self._tensors = _read_header(self._file)
        # Models saved with a head have their encoder's name before every tensor.
        words = "embeddings.word_embeddings.weight"
        self._prefix = next(name.removesuffix(words) for name in self._tensors if name.endswith(words))

    def _words(self) -> str:
        return self._node("Gather", self._weight("embeddings.word_embeddings.weight"), "input_ids")

    def _linear(self, states: str, name: str) -> str:
        return self._node(
            "Gemm", states, self._weight(f"{name}.weight"), self._weight(f"{name}.bias"), attributes={"transB": 1}
        )

    def _weight(self, name: str) -> str:
        entry = self._tensors[self._prefix + name]
        begin, end = entry["data_offsets"]
        kind = _TYPES[entry["dtype"]]
        tensor = TensorProto(name=name, data_type=kind, dims=entry["shape"], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self._file.name), ("offset", self._start + begin), ("length", end - begin)):
            tensor.external_data.add(key=key, value=str(value))
        self._initializers[name] = tensor
        return name if kind == TensorProto.FLOAT else self._node("Cast", name, attributes={"to": TensorProto.FLOAT})


def _read_header(file: Path) -> tuple[int, dict[str, Any]]:
    """(where the numbers begin, the tensors by name with type, shape and offsets)."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        return 8 + length, json.loads(stream.read(length))
