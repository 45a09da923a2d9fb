"""Processor time of quoted answers: what an answer without a chat model costs this process, with all its threads.

Each question is asked twice, one after the other: as a new one, and as one that was just asked. Time spent waiting, and
that of the database's processes, is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.benchmarks.timing import Row, summarise
from rag_service.domain import LOCAL_ADMIN, Answer, Filters
from rag_service.evaluation.run import RunOptions, find_set
from rag_service.evaluation.workspace import open_workspace
from rag_service.retrieval.question import Question
from rag_service.settings import Settings

_QUOTING = {"chat_provider": "extractive", "embedding_provider": "local", "judge": "none"}
_WARM_UP = "What is this about?"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question of a set, the reply, and the milliseconds of each time that it was asked."""

    set_name: str
    key: str
    reply: Answer
    milliseconds: tuple[float, ...]


async def ask_twice(settings: Settings, paths: Sequence[Path]) -> list[Asked]:
    """Ingest the documents of the sets and ask every question of theirs twice.

    Raises ConfigurationError if a set cannot be used, StoreError if the database does not start.
    """
    settings = settings.replace(_QUOTING)
    found = [find_set(path, RunOptions(), settings) for path in paths]
    asked: list[Asked] = []
    async with open_workspace(settings) as workspace:
        for loaded, index_name in found:
            corpus = await workspace.load(loaded, workspace.index_named(index_name), lambda _: None)
            filters = Filters(corpus_ids=(corpus.id,))
            engine, top_k = workspace.components.engine, workspace.settings.retrieval.top_k
            await engine.answer(Question(_WARM_UP, identity=LOCAL_ADMIN, filters=filters, top_k=top_k))
            for question in loaded.questions:
                times = []
                for _ in range(2):
                    query = Question(question.text, identity=LOCAL_ADMIN, filters=filters, top_k=top_k)
                    started = time.process_time()
                    reply = await engine.answer(query)
                    times.append((time.process_time() - started) * 1000)
                asked.append(Asked(set_name=loaded.name, key=question.key, reply=reply, milliseconds=tuple(times)))
    return asked


def summarise_quotes(asked: Sequence[Asked]) -> list[Row]:
    """Median and 95th percentile of each set, and of all."""
    rows: list[Row] = []
    names = list(dict.fromkeys(one.set_name for one in asked))
    for name in (*names, "all"):
        own = [one for one in asked if name in (one.set_name, "all")]
        first, second = (summarise([one.milliseconds[number] for one in own]) for number in (0, 1))
        rows.append(
            {
                "set": name,
                "questions": len(own),
                "new: p50 ms": first.p50,
                "p95 ms": first.p95,
                "again: p50 ms": second.p50,
                "again: p95 ms": second.p95,
            }
        )
    return rows
