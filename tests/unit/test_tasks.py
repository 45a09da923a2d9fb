"""Tasks that lose a cancellation end all the same."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from types import SimpleNamespace

import pytest

from rag_service.answering.engine import CitedQueryEngine
from rag_service.domain import LOCAL_ADMIN
from rag_service.retrieval.query import AnswerRun, RagQuery
from rag_service.retrieval.question import Question
from rag_service.tasks import end_tasks, run_together


async def lose_a_cancellation() -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    await asyncio.sleep(60)


async def fail() -> None:
    raise RuntimeError("as expected")


async def test_a_task_that_loses_a_cancellation_ends_all_the_same() -> None:
    ending = [asyncio.create_task(lose_a_cancellation()), asyncio.create_task(fail())]
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await end_tasks(*ending, patience=0.01)
    assert all(task.done() for task in ending)


async def test_who_waits_for_the_end_of_tasks_is_cancelled_afterwards() -> None:
    running = asyncio.create_task(lose_a_cancellation())
    waiting = asyncio.create_task(end_tasks(running, patience=0.01))
    await asyncio.sleep(0)
    waiting.cancel()
    async with asyncio.timeout(30):
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert running.done()


async def test_what_runs_together_ends_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(end_tasks.__kwdefaults__, "patience", 0.01)
    with pytest.raises(RuntimeError, match="as expected"):
        async with asyncio.timeout(30):
            await run_together(lose_a_cancellation(), fail())
    together = asyncio.create_task(run_together(lose_a_cancellation(), lose_a_cancellation()))
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await end_tasks(together)
    assert together.done()


async def test_an_answer_that_loses_its_cancellation_ends_when_its_client_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(end_tasks.__kwdefaults__, "patience", 0.01)
    question, ended = Question("When?", identity=LOCAL_ADMIN), asyncio.Event()
    run = AnswerRun(question=question, model=None)  # type: ignore[arg-type]

    async def answer(query: RagQuery) -> None:
        try:
            with suppress(asyncio.CancelledError):
                await query.run.emit("first")
                await asyncio.sleep(60)
            while True:  # goes on, although nobody reads
                await query.run.emit("more")
        finally:
            ended.set()

    events = CitedQueryEngine.stream(SimpleNamespace(aquery=answer), run)  # type: ignore[arg-type]
    async with asyncio.timeout(30), aclosing(events):
        await anext(events)
    assert ended.is_set()
