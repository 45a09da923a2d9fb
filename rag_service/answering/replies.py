"""Replies without passages: small talk, tasks of chat programs, and why a question is not answered."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import structlog
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.decision.conclusion import decide, make_reasons
from rag_service.answering.decision.confidence import NO_CONFIDENCE
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.drafts.events import AnswerDelta, SourcesFound
from rag_service.answering.prompt.templates import Prompts
from rag_service.domain import Answer, Purpose, TokenCount
from rag_service.errors import ModelError
from rag_service.language.detection import choose_language
from rag_service.language.words import count_tokens
from rag_service.models.llm.model import collect
from rag_service.retrieval.postprocessors import find_related
from rag_service.retrieval.query import AnswerRun
from rag_service.retrieval.question import Task

NO_MODEL = "small-talk"  # `Answer.model` of a reply to a message that asks for nothing

log = structlog.get_logger(__name__)


async def say(run: AnswerRun, text: str, language: str, doubt: Doubt, prompts: Prompts) -> Answer:
    """Emit and return an answer that the service itself gives, because of a doubt."""
    found = run.retrieved
    await run.emit(SourcesFound(sources=(), shown=(), timings_ms={} if found is None else found.timings_ms))
    await run.emit(AnswerDelta(text=text))
    return Answer(
        id=uuid4(),
        question=run.question.text,
        language=language,
        text=text,
        sources=(),
        shown=(),
        citations=(),
        decision=decide([doubt]),
        reasons=make_reasons([doubt], prompts.messages, language),
        confidence=NO_CONFIDENCE,
        tokens=TokenCount(prompt=0, completion=0, estimated=False),
        latency_ms=0.0,
        model=run.model.model_name,
        searched_for=run.question.searched_for,
        related=() if found is None else find_related(found.hits),
    )


async def reply(run: AnswerRun, text: str, *, language: str, prompts: Prompts) -> Answer:
    """Reply to a message that asks for nothing: no retrieval, no model."""
    return replace(await say(run, text, language, Doubt.NO_QUESTION, prompts), model=NO_MODEL)


async def do_task(run: AnswerRun, task: Task, prompts: Prompts) -> Answer:
    """Do what a program wants of the model alone; what the task says where there is none, or it fails."""
    language = choose_language(run.question.text, run.question.languages)
    if run.model.only_quotes:
        return await reply(run, task.otherwise, language=language, prompts=prompts)
    messages = [ChatMessage(role=MessageRole.USER, content=task.prompt)]
    try:
        text, last = await collect(run.model.stream(messages, purpose=Purpose.TASK))
    except ModelError as error:
        log.warning("task_not_done", exc_info=error)
        return await reply(run, task.otherwise, language=language, prompts=prompts)
    answer = await say(run, text, language, Doubt.NO_QUESTION, prompts)
    tokens = last.count(text, prompt_estimate=count_tokens(task.prompt))
    return replace(answer, tokens=tokens, incomplete=last.is_cut, finish_reason=last.reported_reason)
