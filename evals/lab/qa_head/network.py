"""The head as it is trained, in torch.

Two encoder layers, which begin as the last two of the packaged model, over question and passage together, and a rating
of each token of the passage. What is learnt beside it and not shipped: the rating of "none of them", and the weight of
the similarity of tokens, which chooses sentences well without any training (MaxSim: Khattab and Zaharia, "ColBERT",
2020). With that, the head only has to learn what similarity does not tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from evals.lab.qa_head.examples import Example
from rag_service.models.embedding.bert_graph import HEAD_LAYERS

_PREFIX = 4  # special pieces before a question's own
_RATER = 192  # size of the layer that rates
_FAR = -1e4
_SIMILARITY = 27.0  # of the difference between two sentences, in log odds; learnt


@dataclass(frozen=True)
class Batch:
    """Examples side by side; b examples, q and p tokens, s sentences."""

    question: Tensor  # (b, q, dimension): the encoder's states
    asked: Tensor  # (b, q), bool: tokens, not padding
    passage: Tensor  # (b, p, dimension)
    shown: Tensor  # (b, p), bool: tokens, neither padding nor hidden
    sentences: Tensor  # (b, s, p), bool: the tokens of each sentence
    right: Tensor  # (b, s), bool
    answer: Tensor  # (b, p), bool


def put_together(examples: Sequence[Example], states: Mapping[tuple[int, ...], npt.NDArray[np.float32]]) -> Batch:
    """`states`: those of each text's pieces."""
    asked = [states[example.question] for example in examples]
    read = [states[example.window.pieces] for example in examples]
    count, dimension = len(examples), asked[0].shape[1]
    longest_question, longest_passage = max(map(len, asked)), max(map(len, read))
    most = 1 + max(max(example.window.sentence_of) for example in examples)
    question = torch.zeros(count, longest_question, dimension)
    passage = torch.zeros(count, longest_passage, dimension)
    in_question = torch.zeros(count, longest_question, dtype=torch.bool)
    shown = torch.zeros(count, longest_passage, dtype=torch.bool)
    sentences = torch.zeros(count, most, longest_passage, dtype=torch.bool)
    right = torch.zeros(count, most, dtype=torch.bool)
    answer = torch.zeros(count, longest_passage, dtype=torch.bool)
    for row, example in enumerate(examples):
        question[row, : len(asked[row])] = torch.from_numpy(asked[row])
        in_question[row, : len(asked[row])] = True
        passage[row, : len(read[row])] = torch.from_numpy(read[row])
        for place, number in enumerate(example.window.sentence_of):
            if number not in example.hidden:
                shown[row, place] = True
                if number >= 0:
                    sentences[row, number, place] = True
        right[row, list(example.right)] = True
        answer[row, list(example.answer)] = True
    return Batch(question, in_question, passage, shown, sentences, right, answer)


class Head(nn.Module):
    """See the module."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, last_layers: Sequence[Mapping[str, npt.NDArray[np.float32]]], *, heads: int):
        """`last_layers`: the parameters of the encoder's last layers, named as in BERT."""
        super().__init__()
        size = last_layers[0]["attention.output.dense.bias"].shape[0]
        inner = last_layers[0]["intermediate.dense.bias"].shape[0]
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                size, heads, inner, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True
            )
            for _ in range(HEAD_LAYERS)
        )
        for layer, parameters in zip(self.layers, last_layers, strict=True):
            layer.load_state_dict({name: torch.from_numpy(value) for name, value in _as_torch(parameters).items()})
        self.kinds = nn.Parameter(torch.zeros(2, size))  # added to the tokens of the question, and of the passage
        self.rate = _rater(size)
        self.rate_none = _rater(2 * size)
        self.similarity = nn.Parameter(torch.tensor(_SIMILARITY).log())
        # All states share a large component, which hides what differs.
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("deviation", torch.ones(size))

    def read(self, batch: Batch) -> Tensor:
        """(b, q + p, dimension): question and passage after both have been read together."""
        states = torch.cat([batch.question + self.kinds[0], batch.passage + self.kinds[1]], 1)
        padding = ~torch.cat([batch.asked, batch.shown], 1)
        for layer in self.layers:
            states = layer(states, src_key_padding_mask=padding)
        return states.float()

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(b, p): the rating of each token; (b, 1 + s): of "none", and of each sentence."""
        states = (self.read(batch) - self.mean) / self.deviation
        begins = batch.question.shape[1]
        tokens = self.rate(states[:, begins:]).squeeze(-1).float()
        inside = tokens[:, None].masked_fill(~batch.sentences, _FAR)
        sizes = batch.sentences.sum(-1)
        rated = torch.logsumexp(inside, -1) - sizes.clamp(min=1).log() + self.similarity.exp() * _similarity(batch)
        none = self.rate_none(torch.cat([states[:, 0], states[:, begins]], -1)).float()
        return tokens, torch.cat([none, rated.masked_fill(sizes == 0, _FAR)], 1)


def loss_of(tokens: Tensor, rated: Tensor, batch: Batch) -> Tensor:
    """How improbable the right sentence is among all and "none", and the answer among the tokens of the sentence."""
    right = torch.cat([~batch.right.any(1, keepdim=True), batch.right], 1)
    loss = -torch.logsumexp(rated.log_softmax(1).masked_fill(~right, _FAR), 1).mean()
    around = (batch.sentences & batch.right[:, :, None]).any(1)
    answer = batch.answer & around
    known = answer.any(1)
    if known.any():
        shares = tokens[known].masked_fill(~around[known], _FAR).log_softmax(1)
        loss = loss - torch.logsumexp(shares.masked_fill(~answer[known], _FAR), 1).mean()
    return loss


def _rater(size: int) -> nn.Sequential:
    last = nn.Linear(_RATER, 1)
    nn.init.normal_(last.weight, std=0.01)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(size, _RATER), nn.GELU(), last)


def _similarity(batch: Batch) -> Tensor:
    """(b, s): mean over the question's tokens of the cosine to the most similar one of the sentence, less the mean."""
    asked, read = normalize(batch.question, dim=-1), normalize(batch.passage, dim=-1)
    with torch.autocast("cpu", enabled=False):  # bfloat16 would drown the differences
        cosines = torch.einsum("bqd,bpd->bqp", asked, read)
    best = torch.stack([cosines.masked_fill(~one[:, None], -1.0).amax(-1) for one in batch.sentences.unbind(1)], 1)
    own = batch.asked.float()
    own[:, :_PREFIX] = 0.0
    similar = (best * (own / own.sum(1, keepdim=True).clamp(min=1))[:, None]).sum(-1)
    shown = batch.sentences.any(-1).float()
    return similar - (similar * shown).sum(1, keepdim=True) / shown.sum(1, keepdim=True).clamp(min=1)


def _as_torch(parameters: Mapping[str, npt.NDArray[np.float32]]) -> dict[str, npt.NDArray[np.float32]]:
    """The parameters of a layer of BERT under the names of torch's."""
    named = {
        f"self_attn.in_proj_{kind}": np.concatenate(
            [parameters[f"attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
        )
        for kind in ("weight", "bias")
    }
    for name, bert in TORCH_NAMES.items():
        named |= {f"{name}.{kind}": parameters[f"{bert}.{kind}"] for kind in ("weight", "bias")}
    return named


TORCH_NAMES = {
    "self_attn.out_proj": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm2": "output.LayerNorm",
}
