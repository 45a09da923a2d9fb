"""Training in one pass over the examples, on the processor: some 50 ms a question and core."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from evals.lab.qa_head.examples import Example
from evals.lab.qa_head.network import Head, loss_of, put_together

SEED = 45
_TOGETHER = 400  # questions whose examples are sorted by length, and their batches shuffled
_BATCH = 24
_RATES = (3e-4, 2e-3)  # of the layers that begin as the encoder's, and of what is new
_WARM_UP = 100  # steps
_AVERAGED = 0.995  # share of the average of the weights that a step keeps
_SAMPLED = 8  # batches from which the states' mean and deviation are taken

Encode = Callable[[tuple[int, ...]], npt.NDArray[np.float32]]  # word pieces → states, (pieces, dimension)


def train(
    head: Head, questions: Sequence[Sequence[Example]], encode: Encode, report: Callable[[int, float], None]
) -> Head:
    """The head after one pass, with weights averaged over the steps.

    `questions`: the examples of each; `report` gets the number of questions read, and the mean loss since the last
    call.
    """
    torch.manual_seed(SEED)
    states: dict[tuple[int, ...], npt.NDArray[np.float32]] = {}
    layers = list(head.layers.parameters())
    new = [parameter for name, parameter in head.named_parameters() if not name.startswith("layers.")]
    optimizer = torch.optim.AdamW(
        [{"params": layers, "lr": _RATES[0]}, {"params": new, "lr": _RATES[1]}], weight_decay=0.01, betas=(0.9, 0.98)
    )
    average = {name: value.detach().clone() for name, value in head.state_dict().items()}
    step = 0
    for start in range(0, len(questions), _TOGETHER):
        some = [example for examples in questions[start : start + _TOGETHER] for example in examples]
        states = {pieces: states[pieces] if pieces in states else encode(pieces) for pieces in _texts(some)}
        losses = []
        for examples in _batches(some, random.Random(SEED + start)):  # noqa: S311 - no secret
            if step == 0:
                _standardise(head, some, states)
                average = {name: value.detach().clone() for name, value in head.state_dict().items()}
            step += 1
            pace = min(1.0, step / _WARM_UP) * (1 - 0.95 * start / len(questions))
            for group, rate in zip(optimizer.param_groups, _RATES, strict=True):
                group["lr"] = rate * pace
            batch = put_together(examples, states)
            with torch.autocast("cpu", torch.bfloat16):
                tokens, rated = head(batch)
            loss = loss_of(tokens, rated, batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimizer.step()
            kept = min(_AVERAGED, (1 + step) / (20 + step))
            with torch.no_grad():
                for name, value in head.state_dict().items():
                    average[name].lerp_(value, 1 - kept)
            losses.append(loss.item())
        report(min(len(questions), start + _TOGETHER), float(np.mean(losses)))
    head.load_state_dict(average)
    return head


def _texts(examples: Sequence[Example]) -> set[tuple[int, ...]]:
    return {pieces for example in examples for pieces in (example.question, example.window.pieces)}


def _batches(examples: Sequence[Example], chance: random.Random) -> Iterator[list[Example]]:
    """Examples of about one length together, in an order that is not theirs."""
    by_length = sorted(examples, key=lambda example: len(example.window.pieces) + 12 * chance.random())
    batches = [by_length[start : start + _BATCH] for start in range(0, len(by_length), _BATCH)]
    chance.shuffle(batches)
    yield from batches


def _standardise(
    head: Head, examples: Sequence[Example], states: dict[tuple[int, ...], npt.NDArray[np.float32]]
) -> None:
    """Take the mean and the deviation of what the rater sees from some examples, before training."""
    seen = []
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for start in range(0, _SAMPLED * _BATCH, _BATCH):
            if some := examples[start : start + _BATCH]:
                batch = put_together(some, states)
                seen.append(head.read(batch)[torch.cat([batch.asked, batch.shown], 1)])
    every = torch.cat(seen)
    head.mean.copy_(every.mean(0))
    head.deviation.copy_(every.std(0).clamp(min=1e-3))
