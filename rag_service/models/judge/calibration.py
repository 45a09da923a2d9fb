"""From which probability on a judge's verdict counts, by model and language.

{"<model>": {"en": {"threshold": 0.93, "run": "claims-20261123", ...}, ...}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_service.errors import ConfigurationError
from rag_service.settings import Settings

UNCALIBRATED = 0.5  # more likely entailed than not; not measured


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The least probability of entailment that counts, in one language."""

    threshold: float  # 0..1; above 1: none counts
    run: str  # the evaluation that set it
    claims: int = 0  # measured on so many
    precision: float | None = None  # share of what counts that is true
    recall: float | None = None  # share of what is true that counts


def calibration_file(settings: Settings) -> Path:
    """Where the thresholds are kept: RAG_JUDGE_CALIBRATION, else judge.json in RAG_DATA_DIR."""
    return settings.judge.calibration or settings.database.data_dir / "judge.json"


def read_thresholds(file: Path, model: str) -> dict[str, Threshold]:
    """Language → threshold of a model; empty where none was measured.

    Raises ConfigurationError if the file is not one of ours.
    """
    try:
        return {
            language: Threshold(**{**entry, "threshold": float(entry["threshold"])})
            for language, entry in _read(file).get(model, {}).items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(file) from error


def write_thresholds(file: Path, model: str, thresholds: Mapping[str, Threshold]) -> None:
    """Store the thresholds of a model; other models and languages keep theirs."""
    stored = _read(file)
    stored[model] = {**stored.get(model, {}), **{language: vars(entry) for language, entry in thresholds.items()}}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(file) from error
    if not isinstance(stored, dict):
        raise _unreadable(file)
    return stored


def _unreadable(file: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{file} does not contain thresholds for judges: delete or correct it.",
        field="RAG_JUDGE_CALIBRATION",
    )
