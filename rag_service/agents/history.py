"""Conversation history: cut to a budget, made safe for the prompt, and used to complete short questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag_service.answering.guards.injection import neutralise
from rag_service.language.detection import guess_language
from rag_service.language.languages import language_codes, load_language
from rag_service.language.words import count_tokens, terms, words
from rag_service.retrieval.planner import find_names

HISTORY_TURNS = 5  # turns before the question that are kept
HISTORY_TOKENS = 4000  # maximum of these turns together
_FEW_TERMS = 4  # a question with fewer content words may depend on the one before
_MIN_TERMS = 2  # with fewer than these it always does
_BEFORE_CHARS = 600  # characters of the earlier questions that are added


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One message of the conversation."""

    role: Literal["user", "assistant"]
    content: str


def cut_history(turns: Sequence[Turn], *, max_tokens: int) -> tuple[Turn, ...]:
    """The newest of the last five turns that fit into the tokens."""
    kept: list[Turn] = []
    used = 0
    for turn in reversed(turns[-HISTORY_TURNS:]):
        used += count_tokens(turn.content)
        if used > max_tokens:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def render_history(turns: Sequence[Turn]) -> str:
    """Turns as the model reads them, without citation marks or invisible characters; "-" if there are none."""
    names = {"user": "User", "assistant": "Assistant"}
    return "\n".join(f"{names[turn.role]}: {neutralise(turn.content)}" for turn in turns) or "-"


def lean_on_history(question: str, history: Sequence[Turn], language: str) -> str:
    """A follow-up question together with the questions it depends on: rewriting without a model."""
    asked = [turn.content for turn in history if turn.role == "user"] + [question]
    first = len(asked) - 1
    while first > 0 and not _stands_alone(asked[first], asked[first - 1], language):
        first -= 1
    before = " ".join(part.strip() for part in asked[first:-1])
    return f"{before[:_BEFORE_CHARS].strip()} {question}" if before else question


def _stands_alone(question: str, before: str, language: str) -> bool:
    """Whether a question can be understood without the one before."""
    content = len(terms(question, language))
    if content >= _FEW_TERMS:
        return True
    asked = words(question)
    every = [load_language(code).questions for code in language_codes()]
    is_whole = any(asked[:1] and asked[0] in questions.question_words for questions in every)
    if content < _MIN_TERMS or not is_whole:
        return False
    if any(not questions.references.isdisjoint(asked) or _begins(asked, questions.follow_ups) for questions in every):
        return False
    languages = guess_language(question), guess_language(before)
    return bool(find_names(question)) or (None not in languages and languages[0] != languages[1])


def _begins(asked: Sequence[str], phrases: Sequence[str]) -> bool:
    return any(" ".join([*asked, ""]).startswith(f"{phrase} ") for phrase in phrases)
