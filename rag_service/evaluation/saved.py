"""Saved runs: numbers, settings and hashes as JSON, and the comparison of two of them, question by question.

A saved run contains no text of its set: questions are identified by their order and a hash of their ids. p values are
from a paired randomisation test (Smucker, Allan and Carterette, "A comparison of statistical significance tests for
information retrieval evaluation", CIKM 2007), intervals from a paired bootstrap. Both are seeded.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from rag_service import __version__
from rag_service.errors import EvalSetError, InputError
from rag_service.evaluation.metrics import Measured, by_category
from rag_service.evaluation.run import RunOptions, SetResult
from rag_service.settings import Settings, load_settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_DIGITS = 4  # of stored figures


class SavedSet(Struct, kw_only=True, frozen=True):
    """One set of a saved run, as far as comparisons and plots need it."""

    set: str  # name of the set, and what was left out
    questions: str = msgspec.field(name="questions_sha256")  # hash of the questions' ids, in order
    passage_format: str = msgspec.field(name="passages", default="")  # see EvalSet
    measures: dict[str, Measured] = msgspec.field(name="per_question")


class SavedRun(Struct, kw_only=True, frozen=True):
    name: str
    sets: tuple[SavedSet, ...]


def runs_folder() -> Path:
    """Where runs are saved: `evals/runs` of a checkout, elsewhere `eval/runs` in the data folder."""
    checkout = Path("evals") / "runs"
    return checkout if checkout.is_dir() else load_settings().database.data_dir / "eval" / "runs"


def describe_run(
    name: str, results: Sequence[SetResult], options: RunOptions, settings: Settings, *, moment: datetime
) -> dict[str, Any]:
    """A run as saved and as printed by `--json`."""
    return {
        "name": name,
        "created": moment.isoformat(timespec="seconds"),
        "version": __version__,
        "settings": {
            "mode": options.mode,
            "alpha": options.alpha,
            "rerank": options.rerank or settings.rerank.strategy,
            "limit": options.limit,
            "k": list(options.ks),
            "answers": options.answers,
            "embedding_model": settings.embedding.model,
            "chat_provider": settings.chat.provider,
        },
        "sets": [_describe_set(result, options) for result in results],
    }


def _describe_set(result: SetResult, options: RunOptions) -> dict[str, Any]:
    questions = result.loaded.questions[: options.first]
    times = sorted(result.milliseconds)
    return {
        "set": title_of(result),
        "set_sha256": result.loaded.digest,
        "passages": result.loaded.passage_format,
        "questions_sha256": hashlib.sha256("\0".join(q.key for q in questions).encode()).hexdigest()[:32],
        "questions": len(questions),
        "answerable": sum(question.answerable for question in questions),
        "chunks": result.chunk_count,
        "index": result.index.name,
        "definition": result.definition,
        "alpha": result.index.query.alpha if options.alpha is None else options.alpha,
        "threshold": result.threshold,
        "total": means_of(result.measures),
        "by_category": {
            category: {**means_of(result.measures, members), "questions": len(members)}
            for category, members in by_category(questions).items()
        },
        "reliability": [asdict(part) for part in result.bins],
        "search_ms": {"p50": _quantile(times, 0.5), "p95": _quantile(times, 0.95)},
        "per_question": {name: _write(measured) for name, measured in result.measures.items()},
    }


def title_of(result: SetResult) -> str:
    """The set's name, and what was left out of its corpus."""
    left_out = result.loaded.left_out
    return result.loaded.name + (f" without {left_out}" if left_out else "")


def means_of(measures: Mapping[str, Measured], chosen: Sequence[int] | None = None) -> dict[str, float]:
    """Name → mean over the chosen questions, without measures that apply to none of them."""
    means = {name: measured.mean(chosen) for name, measured in measures.items()}
    return {name: round(mean, _DIGITS) for name, mean in means.items() if mean is not None}


def _quantile(ordered: Sequence[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2) if ordered else 0.0


def _write(measured: Measured) -> dict[str, Any]:
    values = [None if value is None else round(value, _DIGITS) for value in measured.values]
    return {"values": values} if measured.weights is None else {"values": values, "weights": list(measured.weights)}


def save_run(described: Mapping[str, Any], *, folder: Path | None = None) -> Path:
    """Write a run under its name; returns the file. InputError if the name or the folder cannot be used."""
    name = str(described["name"])
    if not _NAME.fullmatch(name):
        raise InputError(f"--save {name!r}: use letters, digits, '.', '_' and '-' only.", field="save")
    file = (folder or runs_folder()) / f"{name}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(described, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.", field="save") from error
    return file


def read_run(name: str, *, folder: Path | None = None) -> SavedRun:
    """A saved run by name or path; EvalSetError if there is none."""
    directory = folder or runs_folder()
    file = Path(name) if name.endswith(".json") else directory / f"{name}.json"
    if not file.is_file():
        there = ", ".join(sorted(path.stem for path in directory.glob("*.json"))) or "none"
        raise EvalSetError(f"{file}: there is no such run; saved runs: {there}.")
    try:
        return msgspec.json.decode(file.read_bytes(), type=SavedRun)
    except msgspec.DecodeError as error:
        raise EvalSetError(f"{file}: is not a saved run ({error}); make it with `eval run --save`.") from error


SAMPLES = 10_000
_SEED = 20_07


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The change of one measure of one set."""

    set: str
    measure: str
    questions: int  # with a value in both runs
    before: float
    after: float
    low: float  # 95 % interval of the difference
    high: float
    p_value: float

    @property
    def difference(self) -> float:
        return self.after - self.before


def compare_runs(before: SavedRun, after: SavedRun) -> list[Difference]:
    """Compare what both runs have; EvalSetError if they share no set, or its questions differ."""
    others = {part.set: part for part in after.sets}
    shared = [(part, others[part.set]) for part in before.sets if part.set in others]
    if not shared:
        raise EvalSetError(f"The runs {before.name} and {after.name} have no set in common; run both over one set.")
    for first, second in shared:
        if first.questions != second.questions:
            raise EvalSetError(f"{first.set}: its questions differ between the runs; run it again on both sides.")
        if first.passage_format != second.passage_format:
            raise EvalSetError(
                f"{first.set}: passages are {first.passage_format or 'text alone'!r} in {before.name} and"
                f" {second.passage_format or 'text alone'!r} in {after.name}; run it again on both sides."
            )
    return [difference for first, second in shared for difference in _compare_set(first, second)]


def _compare_set(before: SavedSet, after: SavedSet) -> Iterator[Difference]:
    for name, first in before.measures.items():
        second = after.measures.get(name)
        if second is None:
            continue
        both = [
            number for number, pair in enumerate(zip(first.values, second.values, strict=False)) if None not in pair
        ]
        if not both:
            continue
        left, right = (np.array([one.values[number] for number in both], np.float64) for one in (first, second))
        weights = (_weights(first, both), _weights(second, both))
        low, high = _bootstrap(left, right, weights)
        yield Difference(
            set=before.set,
            measure=name,
            questions=len(both),
            before=float(np.average(left, weights=weights[0])),
            after=float(np.average(right, weights=weights[1])),
            low=low,
            high=high,
            p_value=_randomisation(left, right),
        )


_Column = npt.NDArray[np.float64]


def _weights(measured: Measured, chosen: list[int]) -> _Column:
    return np.array([1 if measured.weights is None else measured.weights[number] for number in chosen], np.float64)


def _randomisation(before: _Column, after: _Column) -> float:
    difference = after - before
    seen = abs(difference.mean())
    if seen == 0:
        return 1.0
    moved = difference[difference != 0]
    signs = np.random.default_rng(_SEED).choice(np.array([-1, 1], np.int8), size=(SAMPLES, len(moved)))
    by_chance = np.abs(signs @ moved) / len(difference)
    return float((1 + np.sum(by_chance >= seen - 1e-12)) / (1 + SAMPLES))


def _bootstrap(before: _Column, after: _Column, weights: tuple[_Column, _Column]) -> tuple[float, float]:
    generator = np.random.default_rng(_SEED)
    samples = np.empty(SAMPLES)
    for start in range(0, SAMPLES, 500):  # bounded memory: thousands of questions times 500 samples
        drawn = generator.integers(0, len(before), size=(min(500, SAMPLES - start), len(before)))
        first, second = weights[0][drawn], weights[1][drawn]
        samples[start : start + len(drawn)] = (after[drawn] * second).sum(1) / second.sum(1) - (
            before[drawn] * first
        ).sum(1) / first.sum(1)
    low, high = np.quantile(samples, [0.025, 0.975])
    return float(low), float(high)
