"""Questions about something that they do not name: "Who is the mayor of the town where the museum stands?"

One passage names the town, another its mayor. Such a question is told by its vector, with weights that were learnt from
questions of one and of several steps (`evals/hops.py`). A second search, with the words that the best passage lacks and
the names that are new in it, finds what one search cannot.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_service.domain import Hit
from rag_service.language.words import fold, index_term, word_forms, words
from rag_service.retrieval.planner import QueryPlan, find_names

_WEIGHTS = Path(__file__).with_name("hops.json")
_MAX_NAMES = 6


def asks_chain(vector: Sequence[float]) -> bool:
    """Whether a question needs several steps, by its vector of the packaged model."""
    weights, intercept, least = _weights()
    given = np.asarray(vector, dtype=np.float64)
    given = given / (np.linalg.norm(given) or 1.0)
    return float(given @ weights + intercept) >= least


@cache
def _weights() -> tuple[npt.NDArray[np.float64], float, float]:
    read = json.loads(_WEIGHTS.read_text(encoding="utf-8"))
    return np.array(read["weights"]), float(read["intercept"]), float(read["least"])


def next_search(question: str, plan: QueryPlan, best: Hit) -> str | None:
    """What to search for after the best passage: what it leaves open of the question, and the names new in it.

    None if it holds all words of the question, or names nothing new.
    """
    text = f"{best.chunk.document.title}\n{best.chunk.text}"
    held = word_forms(text)
    groups = {term.group for term in plan.terms if term.term in held}
    open_terms = {term.term for term in plan.terms if term.group not in groups}
    left = [word for word in words(question) if index_term(word, plan.language) in open_terms]
    names = list(dict.fromkeys(name for line in text.splitlines() for name in _names(line, question)))[:_MAX_NAMES]
    return " ".join(dict.fromkeys([*left, *names])) if left and names else None


def _names(line: str, question: str) -> list[str]:
    asked = set(words(question))
    found = find_names(f"- {line}")
    return [name.text for name in found if not asked.issuperset(words(fold(name.text)))]
