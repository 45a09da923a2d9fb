"""What was said before a question: cut to a budget, made safe for the prompt, and used to make the question standalone.

With a chat model one call rewrites the question, as LlamaIndex's condense engines do, with our prompt and limits;
without one, a question that leans on the one before is joined to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.guards.injection import neutralise
from rag_service.answering.prompt.templates import Prompts, new_boundary
from rag_service.domain import Purpose, Turn
from rag_service.errors import ModelError
from rag_service.language.detection import guess_language
from rag_service.language.languages import FALLBACK_LANGUAGE, Questions, languages_of
from rag_service.language.words import count_tokens, terms, words
from rag_service.models.llm.model import ChatModel, collect
from rag_service.retrieval.planner import find_names

log = structlog.get_logger(__name__)

HISTORY_TURNS = 5  # turns before the question that are kept
HISTORY_TOKENS = 4000  # maximum of these turns together
HISTORY_SHARE = 0.3  # maximum share of the window for the history: the passages need room, too
_REWRITE_TOKENS = 60  # a question has 10 to 30
_REWRITE_CHARS = 600
_FEW_TERMS = 4  # a question with fewer content words may depend on the one before
_MIN_TERMS = 2  # with fewer than these it always does
_BEFORE_CHARS = 600  # characters of the earlier questions that are added


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
    """A follow-up question after the questions it depends on, a line each: rewriting without a model."""
    asked = [turn.content for turn in history if turn.role == "user"] + [question]
    first = len(asked) - 1
    while first > 0 and not _stands_alone(asked[first], asked[first - 1], language):
        first -= 1
    before = "\n".join(part.strip() for part in asked[first:-1])
    return f"{before[:_BEFORE_CHARS].strip()}\n{question}" if before else question


def _stands_alone(question: str, before: str, language: str) -> bool:
    """Whether a question can be understood without the one before.

    A whole question that shares no word with the one before is on another subject: leaning on it would find the old
    passages. On the held-out half of evals/follow_ups.json, with the packaged model, the right passage is first for 10
    of 13 questions on another subject (2 where they were joined) and, as before, for 10 of 13 that go on.
    """
    content = set(terms(question, language))
    if len(content) >= _FEW_TERMS:
        return True
    asked = words(question)
    every = [data.questions for data in languages_of(None)]
    if len(content) < _MIN_TERMS:
        return False
    if any(not questions.references.isdisjoint(asked) or _goes_on(asked, questions) for questions in every):
        return False
    return content.isdisjoint(terms(before, language)) or bool(find_names(question))


def _goes_on(asked: Sequence[str], questions: Questions) -> bool:
    """Whether a question begins with "and" or "what about"."""
    begins = any(" ".join([*asked, ""]).startswith(f"{phrase} ") for phrase in questions.follow_ups)
    return begins or not questions.conjunctions.isdisjoint(asked[:1])


async def make_standalone(question: str, history: Sequence[Turn], chat: ChatModel, prompts: Prompts) -> str:
    """The question rewritten to be understood without the conversation; if the model fails, by simple rules."""
    if not history:
        return question
    language = guess_language(question) or FALLBACK_LANGUAGE
    if chat.provider == "extractive":  # it quotes, it does not write
        return lean_on_history(question, history, language)
    limit = min(HISTORY_TOKENS, int(chat.context_window * HISTORY_SHARE))
    context = render_history(cut_history(history, max_tokens=limit))
    values = {"boundary": new_boundary(), "context": context, "question": neutralise(question)}
    system, user = prompts.template("rewrite", language).render(values)
    messages = [ChatMessage(role=MessageRole.SYSTEM, content=system), ChatMessage(role=MessageRole.USER, content=user)]
    try:
        text, last = await collect(chat.stream(messages, purpose=Purpose.REWRITE, max_tokens=_REWRITE_TOKENS))
    except ModelError as error:
        log.warning("question_not_rewritten", exc_info=error)
        return lean_on_history(question, history, language)
    if last.finish_reason == "length":  # it thought aloud, or explained itself
        log.warning("question_not_rewritten", reason="cut")
        return lean_on_history(question, history, language)
    lines = [line.strip(" \t\"'«»“”") for line in text.splitlines()]
    rewritten = next((line for line in lines if line), "")
    return rewritten if 0 < len(rewritten) <= _REWRITE_CHARS else question
