"""A tiny BERT with random weights in the file format of the packaged model, and the same model on torch."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 64, 2, 2, 128, 64
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", *"abcdefghijklmnopqrstuvwxyz", "▁the", "▁de", "▁la", "é", "tion"]

_Floats = npt.NDArray[np.float32]
_LAYER = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "fi": "intermediate.dense", "fo": "output.dense",
    "aln": "attention.output.LayerNorm", "oln": "output.LayerNorm",
}  # fmt: skip


def make_e5_file(seed: int = 7) -> tuple[bytes, Any]:
    """(the file, a `BertModel` of transformers with the same weights as the four bits say them)."""
    import torch
    from transformers import BertConfig, BertModel

    generator = np.random.default_rng(seed)
    tensors: dict[str, bytes] = {}
    state: dict[str, _Floats] = {}

    def add(name: str, theirs: str, shape: tuple[int, ...], *, around: float = 0.0) -> None:
        values = (around + generator.normal(0, 0.3, shape)).astype(np.float32)
        tensors[name], state[theirs] = values.tobytes(), values

    def add_matrix(name: str, theirs: str, shape: tuple[int, int]) -> None:
        tensors[name], state[theirs] = _in_four_bits(generator.normal(0, 0.3, shape).astype(np.float32))

    words = len(PIECES) + 3  # models have rows that no piece has
    add_matrix("emb.word", "embeddings.word_embeddings.weight", (words, HIDDEN))
    add("emb.pos", "embeddings.position_embeddings.weight", (POSITIONS, HIDDEN))
    add("emb.type", "embeddings.token_type_embeddings.weight", (2, HIDDEN))
    add("emb.ln.w", "embeddings.LayerNorm.weight", (HIDDEN,), around=1)
    add("emb.ln.b", "embeddings.LayerNorm.bias", (HIDDEN,))
    for number in range(LAYERS):
        for short, name in _LAYER.items():
            outputs, inputs = {"fi": (INNER, HIDDEN), "fo": (HIDDEN, INNER)}.get(short, (HIDDEN, HIDDEN))
            theirs = f"encoder.layer.{number}.{name}"
            if short.endswith("ln"):
                add(f"l{number}.{short}.w", f"{theirs}.weight", (HIDDEN,), around=1)
            else:
                add_matrix(f"l{number}.{short}.w", f"{theirs}.weight", (outputs, inputs))
            add(f"l{number}.{short}.b", f"{theirs}.bias", (outputs,))
    config = BertConfig(
        vocab_size=words, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=INNER, max_position_embeddings=POSITIONS, layer_norm_eps=1e-12,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False).eval()
    model.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in state.items()})
    return _write(tensors, words), model


def _in_four_bits(values: _Floats) -> tuple[bytes, _Floats]:
    """(blocks of 32: a float16 scale and two numbers a byte, what they stand for)."""
    blocks = values.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1) / 7).astype(np.float16)
    numbers = np.clip(np.rint(blocks / scales[:, None].astype(np.float32)), -8, 7).astype(np.int8)
    packed = (numbers[:, :16] + 8) | ((numbers[:, 16:] + 8) << 4)
    rows = np.zeros(len(blocks), dtype=[("scale", "<f2"), ("bytes", "u1", 16)])
    rows["scale"], rows["bytes"] = scales, packed.astype(np.uint8)
    return rows.tobytes(), (numbers * scales[:, None].astype(np.float32)).astype(np.float32).reshape(values.shape)


def _write(tensors: dict[str, bytes], words: int) -> bytes:
    pieces = [piece.encode() for piece in PIECES]
    starts = np.cumsum([0, *map(len, pieces)]).astype("<u4")
    scores = np.array([0.0 if number < 4 else -1.0 - number / 10 for number in range(len(pieces))], dtype="<f4")
    head = b"E5S1" + struct.pack("<I7ifi", 1, HIDDEN, LAYERS, HEADS, INNER, words, POSITIONS, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, int(starts[-1]))
    head += starts.tobytes() + scores.tobytes() + b"".join(pieces)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 0x2007, 1, 0x20)  # one normalised character
    head += struct.pack("<i", len(tensors))
    size = len(head) + sum(2 + len(name) + 21 for name in tensors)
    directory, place = b"", size
    for name, data in tensors.items():
        directory += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", 0, 0, place, len(data))
        place += len(data)
    return head + directory + b"".join(tensors.values())
