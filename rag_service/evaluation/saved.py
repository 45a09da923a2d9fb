"""Saved runs: numbers, settings and hashes as JSON, so that a later run can be compared in pairs.

A saved run holds no text of its set: questions are known by their order and a hash over their ids.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_service import __version__
from rag_service.definitions import shipped_folder
from rag_service.errors import InputError
from rag_service.evaluation.eval_set import EvalSetError
from rag_service.evaluation.metrics import Measured, by_category
from rag_service.evaluation.run import RunOptions, SetResult
from rag_service.settings import Settings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_DIGITS = 4  # of stored figures


@dataclass(frozen=True, kw_only=True)
class SavedSet:
    """One set of a saved run, as far as comparison and plot need it."""

    set: str  # name of the set, with what was left out
    questions: str  # hash over the questions' ids, in order
    measures: Mapping[str, Measured]


@dataclass(frozen=True, kw_only=True)
class SavedRun:
    name: str
    sets: tuple[SavedSet, ...]


def runs_folder() -> Path:
    """Where runs are saved: evals/runs in the checkout, or inside the installed package."""
    return shipped_folder("evals") / "runs"


def describe_run(
    name: str, results: Sequence[SetResult], options: RunOptions, settings: Settings, *, moment: datetime | None = None
) -> dict[str, Any]:
    """A run as it is saved and as `--json` prints it."""
    return {
        "name": name,
        "created": (moment or datetime.now(UTC)).isoformat(timespec="seconds"),
        "version": __version__,
        "settings": {
            "mode": options.mode,
            "alpha": options.alpha,
            "rerank": options.rerank or settings.rerank_strategy,
            "limit": options.limit,
            "k": list(options.ks),
            "answers": options.answers,
            "embedding_model": settings.embedding_model,
            "chat_provider": settings.chat_provider,
        },
        "sets": [_describe_set(result, options) for result in results],
    }


def _describe_set(result: SetResult, options: RunOptions) -> dict[str, Any]:
    questions = result.loaded.questions[: options.first]
    times = sorted(result.milliseconds)
    return {
        "set": title_of(result),
        "set_sha256": result.loaded.digest,
        "questions_sha256": _hash_of_ids([question.key for question in questions]),
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
    """The set's name, with what was left out of its corpus."""
    left_out = result.loaded.left_out
    return result.loaded.name + (f" without {left_out}" if left_out else "")


def means_of(measures: Mapping[str, Measured], chosen: Sequence[int] | None = None) -> dict[str, float]:
    """Name → mean over the chosen questions, of the measures that apply to any of them."""
    means = {name: measured.mean(chosen) for name, measured in measures.items()}
    return {name: round(mean, _DIGITS) for name, mean in means.items() if mean is not None}


def _hash_of_ids(keys: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(keys).encode()).hexdigest()[:32]


def _quantile(ordered: Sequence[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2) if ordered else 0.0


def _write(measured: Measured) -> dict[str, Any]:
    values = [None if value is None else round(value, _DIGITS) for value in measured.values]
    return {"values": values} if measured.weights is None else {"values": values, "weights": list(measured.weights)}


def save_run(described: Mapping[str, Any], *, folder: Path | None = None) -> Path:
    """Write a run under its name; returns the file.

    Raises:
        InputError: the name is no plain file name, or the folder cannot be written.
    """
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
    """A saved run by its name or its path.

    Raises:
        EvalSetError: there is no such run, or the file is no saved run.
    """
    directory = folder or runs_folder()
    file = Path(name) if name.endswith(".json") else directory / f"{name}.json"
    if not file.is_file():
        there = ", ".join(sorted(path.stem for path in directory.glob("*.json"))) or "none"
        raise EvalSetError(f"{file}: there is no such run; saved are: {there}.")
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
        return SavedRun(
            name=raw["name"],
            sets=tuple(
                SavedSet(
                    set=part["set"],
                    questions=part["questions_sha256"],
                    measures={key: _read(column) for key, column in part["per_question"].items()},
                )
                for part in raw["sets"]
            ),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EvalSetError(f"{file}: is no saved run ({error!r}); make it with `eval run --save`.") from error


def _read(column: Mapping[str, Any]) -> Measured:
    weights = column.get("weights")
    return Measured(values=tuple(column["values"]), weights=None if weights is None else tuple(weights))
