"""Why an answer may not be relied on: stable codes, each with a sentence. The decision follows from them.

An answer without a reason can proceed. Everything that doubts one adds its code here, in the order of what weighs most,
and every channel shows the first sentence or all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rag_service.answering.drafts.doubts import Doubt
from rag_service.domain import Decision, Reason

_NO_ANSWER = frozenset({
    Doubt.NO_QUESTION, Doubt.NO_DOCUMENTS, Doubt.NOTHING_SELECTED, Doubt.NOTHING_FOUND, Doubt.NOT_ANSWERED,
})  # fmt: skip


def decide(doubts: Collection[Doubt]) -> Decision:
    """Return the decision on an answer with these doubts."""
    if not doubts:
        return Decision.CAN_PROCEED
    return Decision.UNCERTAIN if _NO_ANSWER.isdisjoint(doubts) else Decision.OUT_OF_SCOPE


def find_doubts(found: Mapping[Doubt, bool]) -> tuple[Doubt, ...]:
    """Those that hold, in the order of what weighs most; where there is no answer, why there is none."""
    held = [doubt for doubt in Doubt if found.get(doubt)]
    return tuple(doubt for doubt in held if doubt in _NO_ANSWER) or tuple(held)


def make_reasons(
    doubts: Iterable[Doubt], sentences: Mapping[str, Mapping[str, str]], language: str
) -> tuple[Reason, ...]:
    """Each doubt with its sentence in a language, else in English."""
    told = {doubt: sentences[f"reason_{doubt}"] for doubt in dict.fromkeys(doubts)}
    return tuple(Reason(code=doubt.value, text=by.get(language) or by["en"]) for doubt, by in told.items())
