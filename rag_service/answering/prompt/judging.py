"""The prompt of the judge `llm`: the writer's prompt once more, with another task at its end.

Both begin with the same text, so a server with a prefix cache has read it already. For a text that was written
elsewhere the prompt is made with which it would have been written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.guards.injection import neutralise
from rag_service.answering.prompt.packing import count_prompt
from rag_service.answering.prompt.templates import Prompts, new_boundary, render_context
from rag_service.domain import Hit
from rag_service.language.languages import FALLBACK_LANGUAGE
from rag_service.models.judge.judge import JudgedAnswer, JudgedClaim, WriterPrompt
from rag_service.models.judge.llm import JudgePrompt


def write_judge_prompt(prompts: Prompts, answer: JudgedAnswer, *, is_short: bool = False) -> JudgePrompt:
    """Return the messages that ask for a verdict on each claim, and whether they answer the question.

    Claims are numbered from 1; what stands before them has no number.

    Args:
        is_short: with the passages that the claims name only, for windows that hold no more.
    """
    language = answer.language or FALLBACK_LANGUAGE
    prompt = answer.prompt
    if prompt is None or is_short:
        prompt = _write_prompt(prompts, answer, _cited(answer) if is_short else answer.passages)
    lines = [line for number, claim in enumerate(answer.claims, start=1) for line in _lines(claim, f"{number}.")]
    task = prompts.template("judge", language).user_text(
        {
            "boundary": prompt.boundary,
            "question": _in_one_line(answer.question) or "–",
            "sentences": "\n".join(lines),
        }
    )
    *before, user = prompt.messages
    text = "\n\n".join(filter(None, (user.content, prompt.found, task)))
    messages = [*before, ChatMessage(role=MessageRole.USER, content=text)]
    tokens = count_prompt([message.content or "" for message in messages], boundary=prompt.boundary)
    return JudgePrompt(messages=messages, tokens=tokens + prompt.tools_tokens)


def judge_prompt_revision(prompts: Prompts) -> str:
    """Return a hash of the templates that the judge reads; it changes with them."""
    texts = [
        f"{name}\0{language}\0{template.system}\0{template.user}"
        for (name, language), template in sorted(prompts.templates.items())
        if name in ("judge", "grounded")
    ]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _write_prompt(prompts: Prompts, answer: JudgedAnswer, shown: Sequence[Hit | None]) -> WriterPrompt:
    """Return the prompt with which the answer would have been written from these passages."""
    language, boundary = answer.language or FALLBACK_LANGUAGE, new_boundary()
    system, user = prompts.template("grounded", language).render(
        {
            "boundary": boundary,
            "context": render_context(shown, boundary),
            "question": _in_one_line(answer.question) or "–",
            "refusal": prompts.message("refusal", language),
            "history": "-",
            "instructions": "",
        }
    )
    messages = [ChatMessage(role=MessageRole.SYSTEM, content=system), ChatMessage(role=MessageRole.USER, content=user)]
    return WriterPrompt(messages=messages, boundary=boundary)


def _cited(answer: JudgedAnswer) -> list[Hit | None]:
    """Return the passages, None for those that none of the claims names: the others keep their numbers."""
    marks = {mark for claim in answer.claims for mark, _ in claim.marks}
    return [hit if number in marks else None for number, hit in enumerate(answer.passages, start=1)]


def _lines(claim: JudgedClaim, number: str) -> list[str]:
    """A claim as it was written, after what stands before it and states nothing: that begins like no numbered claim."""
    marks = [" ".join([f"[C{mark}", *(f'"{_in_one_line(words)}"' for words in copied)]) for mark, copied in claim.marks]
    said = " ".join([number, _in_one_line(claim.sentence), *(f"{mark}]" for mark in marks)])
    before = _in_one_line(claim.before)
    return [f"- {before}", said] if before else [said]


def _in_one_line(text: str) -> str:
    return " ".join(neutralise(text).split())
