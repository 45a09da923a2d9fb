"""The ONNX graph of a trained head: layers in seven bits, as in the packaged model's graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, helper, numpy_helper

from evals.lab.qa_head.network import TORCH_NAMES, Head
from rag_service.models.embedding.bert_graph import HEAD_LAYERS, IR_VERSION, OPSET, BertGraph

_BERT = {bert: name for name, bert in TORCH_NAMES.items()}
_STEPS = 63  # seven bits: x86 processors without VNNI add two products in 16 bits, which eight bits can overflow
_END = 2**31 - 1


def write_graph(head: Head, file: Path, *, config: dict[str, Any], run: str) -> None:
    """Write the file that `QuestionAnsweringHead` loads. `config`: the encoder's; `run`: stored with the graph."""
    parameters = {name: value.float().numpy() for name, value in head.state_dict().items()}
    model = _HeadGraph(config, parameters).model()
    helper.set_model_props(model, {"run": run})
    file.write_bytes(model.SerializeToString())


class _HeadGraph(BertGraph):
    """From `question` (q, dimension) and `passage` (p, dimension) to `ratings` (p,)."""

    def __init__(self, config: dict[str, Any], parameters: Mapping[str, npt.NDArray[np.float32]]):
        super().__init__(config)
        self._parameters = parameters

    def model(self) -> ModelProto:
        kinds = self._parameters["kinds"]
        question = self._node("Add", "question", self._keep("question_kind", kinds[0]))
        passage = self._node("Add", "passage", self._keep("passage_kind", kinds[1]))
        states = self._node("Concat", question, passage, attributes={"axis": 0})
        for layer in range(HEAD_LAYERS):
            states = self._layer(states, str(layer))
        begins = self._node("Shape", "question", attributes={"start": 0, "end": 1})
        states = self._node("Slice", states, begins, self._constant("end", [_END]))
        # Subtracting the mean and dividing by the deviation are part of the first layer.
        deviation = self._parameters["deviation"]
        weight = self._parameters["rate.0.weight"] / deviation
        bias = self._parameters["rate.0.bias"] - weight @ self._parameters["mean"]
        inner = self._node("Gemm", states, self._keep("rate.0", weight.T), self._keep("rate.0.bias", bias))
        last = [self._keep("rate.2", self._parameters["rate.2.weight"].T), self._keep_own("rate.2.bias")]
        self._node("Reshape", self._node("Gemm", self._node("Gelu", inner), *last), self._constant("flat", [-1]))
        self._nodes[-1].output[0] = "ratings"
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [name, self._hidden])
            for name in ("question", "passage")
        ]
        output = helper.make_tensor_value_info("ratings", TensorProto.FLOAT, ["passage"])
        graph = helper.make_graph(self._nodes, "qa_head", inputs, [output], list(self._initializers.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def _words(self) -> str:
        raise NotImplementedError("The head reads states, not words.")

    def _weight(self, name: str) -> str:
        return self._keep(name, self._values(name))

    def _linear(self, states: str, name: str) -> str:
        weight = self._values(f"{name}.weight").T
        steps = np.abs(weight).max(axis=0) / _STEPS
        rounded = self._keep(name, np.rint(weight / steps).astype(np.int8))
        zero = self._keep(f"{name}.zero", np.zeros(len(steps), np.int8))
        inputs = (states, rounded, self._keep(f"{name}.scale", steps), zero, self._weight(f"{name}.bias"))
        return self._node("DynamicQuantizeMatMul", *inputs, domain="com.microsoft")

    def _values(self, name: str) -> npt.NDArray[np.float32]:
        """A parameter of a layer, named as in BERT after the number of the layer."""
        layer, _, bert = name.partition(".")
        part, _, kind = bert.rpartition(".")
        if part in _BERT:
            return self._parameters[f"layers.{layer}.{_BERT[part]}.{kind}"]
        together = self._parameters[f"layers.{layer}.self_attn.in_proj_{kind}"]
        number = ("query", "key", "value").index(part.rpartition(".")[2])
        return together[number * self._hidden : (number + 1) * self._hidden]

    def _keep_own(self, name: str) -> str:
        return self._keep(name, self._parameters[name])

    def _keep(self, name: str, values: npt.NDArray[Any]) -> str:
        self._initializers[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name
