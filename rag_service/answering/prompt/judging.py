"""The prompt of the judge `llm`: passages and sentences as data, between lines that hold a boundary."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.guards.injection import find_injections, neutralise
from rag_service.answering.prompt.templates import Prompts, new_boundary
from rag_service.language.languages import FALLBACK_LANGUAGE
from rag_service.models.judge.judge import JudgedClaim


def write_judge_prompt(prompts: Prompts, claims: Sequence[JudgedClaim]) -> list[ChatMessage]:
    """The messages that ask for a verdict on each claim; claims are numbered from 1, each names its passage."""
    boundary = new_boundary()
    numbers: dict[str, int] = {}  # passage → its number; several sentences may cite one
    for claim in claims:
        numbers.setdefault(claim.passage, len(numbers) + 1)
    passages = [f"{boundary} [P{number}]\n{_make_harmless(text)}\n{boundary}" for text, number in numbers.items()]
    sentences = [
        f"{number}. [P{numbers[claim.passage]}] {' '.join(neutralise(claim.sentence).split())}"
        for number, claim in enumerate(claims, start=1)
    ]
    template = prompts.template("judge", (claims[0].language if claims else None) or FALLBACK_LANGUAGE)
    system, user = template.render(
        {"boundary": boundary, "passages": "\n\n".join(passages), "sentences": "\n".join(sentences)}
    )
    return [ChatMessage(role=MessageRole.SYSTEM, content=system), ChatMessage(role=MessageRole.USER, content=user)]


def _make_harmless(passage: str) -> str:
    """The passage without injections: what tells the model how to judge is no evidence."""
    for start, end in reversed(find_injections(passage)):
        passage = passage[:start] + passage[end:]
    return neutralise(passage)
