"""What each half of each set has to reach: its figures when they were last saved, less a little slack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from math import ceil
from pathlib import Path

from evals.sets.measure import Figures

FILE = Path(__file__).with_name("thresholds.json")
AT_LEAST = ("right", "green_right")
AT_MOST = ("green_wrong", "green_doubtful", "unanswerable_green")
# The arithmetic of a processor may shift a cosine, and so a reply that is near a limit.
SHARE = 0.03  # of the questions: how many fewer may be right, at least one
MORE = 1  # how many more may be green although they must not

Saved = Mapping[str, Mapping[str, Mapping[str, int]]]  # set → half → figure


def read_thresholds() -> Saved:
    saved: Saved = json.loads(FILE.read_text(encoding="utf-8"))
    return saved


def save_thresholds(measured: Mapping[str, Mapping[str, Figures]]) -> None:
    """Keep the figures of these sets as what they have to reach; those of other sets stay."""
    kept = dict(read_thresholds()) if FILE.exists() else {}
    for name, halves in measured.items():
        kept[name] = {
            half: {key: value for key, value in asdict(figures).items() if key in (*AT_LEAST, *AT_MOST)}
            for half, figures in halves.items()
        }
    FILE.write_text(json.dumps(dict(sorted(kept.items())), indent=2) + "\n", encoding="utf-8")


def missed(name: str, half: str, figures: Figures) -> list[str]:
    """The thresholds that the half of a set does not keep, one line each."""
    saved, measured = read_thresholds().get(name, {}).get(half), asdict(figures)
    if saved is None:
        return [f"{name}, {half}: has none; run it with --save"]
    fewer = max(1, ceil(SHARE * figures.questions))
    low = [key for key in AT_LEAST if measured[key] < saved[key] - fewer]
    high = [key for key in AT_MOST if measured[key] > saved[key] + MORE]
    return [
        *(f"{name}, {half}: {key} {measured[key]}, at least {saved[key] - fewer}" for key in low),
        *(f"{name}, {half}: {key} {measured[key]}, at most {saved[key] + MORE}" for key in high),
    ]
