"""What was said before: cut to a budget, made harmless, and leant on by short questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag_service.query.prompt import neutralise
from rag_service.text.tokens import count_tokens
from rag_service.text.words import terms

HISTORY_TURNS = 5  # turns before the question that are kept
HISTORY_TOKENS = 4000  # most tokens of them together
_FEW_TERMS = 4  # a question of fewer content words leans on what was asked before
_BEFORE_CHARS = 600  # of the earlier question that is leant on


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one side said."""

    role: Literal["user", "assistant"]
    content: str


def cut_history(turns: Sequence[Turn], *, most_tokens: int) -> tuple[Turn, ...]:
    """The last five turns, as many of the newest as fit the tokens together."""
    kept: list[Turn] = []
    used = 0
    for turn in reversed(turns[-HISTORY_TURNS:]):
        used += count_tokens(turn.content)
        if used > most_tokens:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def render_history(turns: Sequence[Turn]) -> str:
    """Turns as the model reads them: no citation marks, nothing invisible. "-" when there are none."""
    names = {"user": "User", "assistant": "Assistant"}
    return "\n".join(f"{names[turn.role]}: {neutralise(turn.content)}" for turn in turns) or "-"


def lean_on_history(question: str, history: Sequence[Turn], language: str) -> str:
    """A short question together with the one before it: a rewriting without a model."""
    before = next((turn.content for turn in reversed(history) if turn.role == "user"), "")
    if not before or len(terms(question, language)) >= _FEW_TERMS:
        return question
    return f"{before[:_BEFORE_CHARS].strip()} {question}"
