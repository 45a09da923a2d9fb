"""Judges that have passed their examination, so that tests can use them at once."""

from __future__ import annotations

from functools import partial
from typing import Any

from rag_service.answering.prompt.judging import judge_prompt_revision, write_judge_prompt
from rag_service.answering.prompt.templates import load_prompts
from rag_service.domain import LOCAL_ADMIN
from rag_service.fitting.examination import ShippedAnswer, load_examination, mark, revision_of
from rag_service.models.judge.judge import Judgement, Verdict
from rag_service.models.judge.judges import WatchedJudge
from rag_service.models.judge.llm import LLMJudge
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.judge_examinations import Examination, store_examination


def right(shipped: ShippedAnswer) -> Judgement:
    """What a judge that makes no mistake says."""
    return Judgement(verdicts=[Verdict(entailed=entailed) for entailed in shipped.supported], answers=shipped.answers)


def passed(judge: WatchedJudge) -> Examination:
    """The outcome of a judge that makes no mistake."""
    pairs = [(shipped, right(shipped)) for shipped in load_examination()]
    return mark(pairs, judge=judge.name, revision=revision_of(judge))


def llm_judge(model: str) -> WatchedJudge:
    """The judge that a chat model of this name is, as far as its examination is concerned."""
    chat: Any = type("Chat", (), {"model_name": model})()
    prompts = load_prompts()
    write_prompt = partial(write_judge_prompt, prompts)
    return WatchedJudge(LLMJudge(chat, write_prompt, revision=judge_prompt_revision(prompts)), seconds=1)


async def pass_examination(server: EmbeddedServer, judge: WatchedJudge) -> None:
    """Store that a judge has passed."""
    database = Database(server.service_conninfo, pool_size=1, timeout=5)
    await database.open()
    try:
        async with database.transaction(LOCAL_ADMIN) as connection:
            await store_examination(connection, passed(judge))
    finally:
        await database.close()
