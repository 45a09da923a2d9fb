"""What the judge's prompt costs right after the writer's, beside what it costs alone, on a llama.cpp server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import httpx
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.prompt.judging import write_judge_prompt
from rag_service.answering.prompt.templates import Prompts, load_prompts, new_boundary, render_context
from rag_service.domain import Chunk, DocumentRef, Hit, Scores
from rag_service.models.judge.judge import JudgedAnswer, JudgedClaim, WriterPrompt
from rag_service.models.llm.gguf import LlamaServer
from rag_service.settings import Settings

_PASSAGE = 900  # characters, as chunks have them
_TIMEOUT = 600.0  # seconds: a prompt alone may take minutes on a processor
_QUESTION = "How many days of vacation are there, and when do they expire?"
_SENTENCES = ("There are 25 days of vacation a year", "What is left expires on 31 March of the next year")


@dataclass(frozen=True, kw_only=True)
class PromptCost:
    """What a server read of a prompt."""

    tokens: int  # that were not in its cache
    milliseconds: float


@dataclass(frozen=True, kw_only=True)
class JudgeCost:
    """The judge's prompt in one round."""

    alone: PromptCost
    after_writer: PromptCost


def measure_judge_prompt(model: Path, documents: Path, *, passages: int, rounds: int) -> Iterator[JudgeCost]:
    """Send prompts of a writer and a judge to a server with one slot; each round has passages of its own boundary."""
    settings = Settings().replace(
        {
            "chat_provider": "gguf", "model_name": str(model), "context_window": 8192, "model_concurrency": 1,
            "chat_options": '{"threads": 2}',
        }
    )  # fmt: skip
    shown, prompts = _read_passages(documents, passages), load_prompts()
    with closing(LlamaServer.of(settings)) as server:
        url = f"{server.wait_for_address()}/v1/chat/completions"
        headers = {"Authorization": f"Bearer {server.key}"}
        with httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=False) as client:
            for _ in range(rounds):
                _, judge = _write_prompts(prompts, shown)
                alone = _read(client, url, judge)
                writer, judge = _write_prompts(prompts, shown)
                _read(client, url, writer)
                yield JudgeCost(alone=alone, after_writer=_read(client, url, judge))


def _write_prompts(prompts: Prompts, shown: Sequence[Hit]) -> tuple[Sequence[ChatMessage], Sequence[ChatMessage]]:
    """The prompts of a writer and of the judge of its answer, with a boundary that no cache knows."""
    boundary = new_boundary()
    system, user = prompts.template("grounded", "en").render(
        {
            "boundary": boundary,
            "context": render_context(shown, boundary),
            "question": _QUESTION,
            "refusal": prompts.message("refusal", "en"),
            "history": "-",
            "instructions": "",
        }
    )
    system = f"{boundary}\n{system}"  # so that nothing is left of the round before
    written = [ChatMessage(role=MessageRole.SYSTEM, content=system), ChatMessage(role=MessageRole.USER, content=user)]
    claims = [JudgedClaim(sentence=one, evidence="", passage="", language="en", marks=[(1, ())]) for one in _SENTENCES]
    answer = JudgedAnswer(
        question=_QUESTION,
        claims=claims,
        passages=shown,
        prompt=WriterPrompt(messages=written, boundary=boundary),
        language="en",
    )
    return written, write_judge_prompt(prompts, answer).messages


def _read(client: httpx.Client, url: str, messages: Sequence[ChatMessage]) -> PromptCost:
    sent = [{"role": message.role.value, "content": message.content} for message in messages]
    reply = client.post(url, json={"messages": sent, "max_tokens": 1, "temperature": 0}).raise_for_status().json()
    return PromptCost(tokens=reply["timings"]["prompt_n"], milliseconds=reply["timings"]["prompt_ms"])


def _read_passages(documents: Path, count: int) -> list[Hit]:
    texts = [file.read_text(encoding="utf-8") for file in sorted(documents.glob("*.md"))]
    parts = [text[start : start + _PASSAGE] for text in texts for start in range(0, len(text), _PASSAGE)]
    return [_hit(number, text) for number, text in enumerate(parts[:count], start=1)]


def _hit(number: int, text: str) -> Hit:
    document = DocumentRef(
        id=UUID(int=number), corpus_id=UUID(int=0), title=f"Document {number}", file_name=None, source=None, tags=(),
        content_hash="", updated_at=datetime.now(UTC),
    )  # fmt: skip
    chunk = Chunk(id=f"passage {number}", document=document, index=0, text=text, start=0, end=len(text))
    return Hit(chunk=chunk, scores=Scores(relevance=1.0))
