"""What to ask next: questions that a text asks and answers itself, as FAQ do."""

from __future__ import annotations

import re

from rag_service.answering.guards.injection import find_injections
from rag_service.domain import Answer, Citation, FoundPlace
from rag_service.language.words import fold, words

MAX_FOLLOW_UPS = 3
ASKED_WORDS = range(4, 21)  # of a question that is suggested
_MAX_CHARACTERS = 200  # of one: a cell may hold a page without a blank
_MARKUP = re.compile(r"^[\s#*_>\-–•\d.)]+|[\s*_]+$")


def find_follow_ups(answer: Answer) -> list[str]:
    """Up to `MAX_FOLLOW_UPS` questions of FAQ entries that were found and not shown, in the answer's language."""
    shown: tuple[Citation | FoundPlace, ...] = (*answer.citations, *answer.places)
    cited = {one.chunk_id for one in shown}
    found: dict[str, None] = {}
    for hit in answer.sources:
        if hit.chunk.id not in cited and hit.chunk.document.language in (None, answer.language):
            found |= dict.fromkeys(one for one in find_questions(hit.chunk.text) if fold(one) != fold(answer.question))
    return list(found)[:MAX_FOLLOW_UPS]


def find_questions(text: str) -> list[str]:
    """Lines that are a question, as FAQ have them: each is followed by its answer."""
    lines = (_MARKUP.sub("", line) for line in text.splitlines())
    return [line for line in lines if line.endswith("?") and len(words(line)) in ASKED_WORDS and is_safe(line)]


def is_safe(text: str) -> bool:
    """Whether a text may stand as a question on the page."""
    return len(text) <= _MAX_CHARACTERS and text.isprintable() and not find_injections(text)
