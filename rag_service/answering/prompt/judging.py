"""The prompt of the judge `llm`: question, answer, passages and sentences as data, between lines with a boundary."""

from __future__ import annotations

import hashlib

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.guards.injection import find_injections, neutralise
from rag_service.answering.prompt.templates import Prompts, new_boundary
from rag_service.language.languages import FALLBACK_LANGUAGE
from rag_service.models.judge.judge import JudgedAnswer

_NONE = "–"


def write_judge_prompt(prompts: Prompts, answer: JudgedAnswer) -> list[ChatMessage]:
    """The messages that ask for a verdict on each claim, and whether the answer answers the question.

    Claims are numbered from 1, and each names its passage.
    """
    boundary = new_boundary()
    numbers: dict[str, int] = {}  # passage → its number; several sentences may cite one
    for claim in answer.claims:
        numbers.setdefault(claim.passage, len(numbers) + 1)
    passages = [f"{boundary} [P{number}]\n{_make_harmless(text)}\n{boundary}" for text, number in numbers.items()]
    sentences = [
        f"{number}. [P{numbers[claim.passage]}] {_in_one_line(claim.sentence)}"
        for number, claim in enumerate(answer.claims, start=1)
    ]
    template = prompts.template("judge", answer.language or FALLBACK_LANGUAGE)
    system, user = template.render(
        {
            "boundary": boundary,
            "question": _in_one_line(answer.question) or _NONE,
            "answer": _make_harmless(answer.text).strip() or _NONE,
            "passages": "\n\n".join(passages) or _NONE,
            "sentences": "\n".join(sentences) or _NONE,
        }
    )
    return [ChatMessage(role=MessageRole.SYSTEM, content=system), ChatMessage(role=MessageRole.USER, content=user)]


def judge_prompt_revision(prompts: Prompts) -> str:
    """A hash of the templates, which changes with them."""
    texts = [
        f"{language}\0{template.system}\0{template.user}"
        for (name, language), template in sorted(prompts.templates.items())
        if name == "judge"
    ]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _in_one_line(text: str) -> str:
    return " ".join(neutralise(text).split())


def _make_harmless(text: str) -> str:
    """The text without injections: what tells the model how to judge is no evidence."""
    for start, end in reversed(find_injections(text)):
        text = text[:start] + text[end:]
    return neutralise(text)
