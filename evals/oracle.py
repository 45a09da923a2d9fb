"""`python -m evals.oracle FOLDER --save FILE`, `--compare FILE`: whether the service still answers as before.

All events of each answer are kept, one answer a line, without times and with ids by number: the sample questions and
the questions of evals/written without a chat model, conversations without one, and written answers and conversations
with the model that writes them, with a judge and without.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import msgspec

from evals.conversations.measure import hold
from evals.conversations.turns import read_half as read_conversations
from evals.written.answers import Answer, read_half
from evals.written.measure import WITHOUT, Bench, open_bench
from rag_service.answering.drafts.events import AnswerEvent
from rag_service.answering.engine import CitedQueryEngine
from rag_service.api.http.schemas import AnswerRequest, MessageRequest
from rag_service.domain import LOCAL_ADMIN
from rag_service.indices import shipped_folder

HALF = "developed"
SAMPLES = "samples"  # name of their corpus
# Nothing is left out because a machine is busy, and no calibration comes in between.
PATIENT = {"first_token_timeout": 600.0, "answer_timeout": 600.0, "fit_relevance": False}
QUOTED = PATIENT | {"chat_provider": "extractive", "chat_tools": "auto"}
_TIMES = frozenset({"timings_ms", "latency_ms", "retrieval_ms", "milliseconds", "first_token_ms", "total_ms",
                    "updated_at"})  # fmt: skip
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


class Recording:
    """Lines of answers, of each `stride`-th question."""

    def __init__(self, folder: Path, stride: int):
        self._folder = folder  # with the files ingested
        self._stride = stride
        self._events: list[AnswerEvent] = []
        self.lines: list[str] = []

    async def run(self) -> None:
        """Ask everything, each part with a copy of the same database."""
        with self._listening(), tempfile.TemporaryDirectory() as copies:
            for name, settings in (("quoted", QUOTED), (WITHOUT, PATIENT), ("right", PATIENT)):
                copied, judge = Path(copies) / name, WITHOUT if name == "quoted" else name
                shutil.copytree(self._folder, copied)
                async with open_bench(judge, copied, settings=settings) as bench:
                    await bench.examine()
                    await ingest(bench)
                    await (self._ask_quoted(bench) if name == "quoted" else self._ask_model(bench, name))

    async def _ask_quoted(self, bench: Bench) -> None:
        for question in self._some(read_samples()):
            await self._ask(bench, "quoted", bench.corpora[SAMPLES], question)
        for answer in self._some(read_right()):
            await self._ask(bench, "quoted", bench.corpora[answer.set_name], answer.question)
        for one in self._some(read_conversations(HALF)):
            said: list[MessageRequest] = []
            for turn in one.turns:
                asked = turn.answer.question
                text = await self._ask(bench, "quoted", bench.corpora[one.set_name], asked, said)
                said += [MessageRequest(role="user", content=asked), MessageRequest(role="assistant", content=text)]

    async def _ask_model(self, bench: Bench, part: str) -> None:
        for answer in self._some(read_half(HALF)):
            await bench.ask(answer)
            self._write(part)
        for one in self._some(read_conversations(HALF)):
            await hold(bench, one)
            self._write(part)

    async def _ask(
        self, bench: Bench, part: str, corpus_id: UUID, question: str, said: Sequence[MessageRequest] = ()
    ) -> str:
        request = AnswerRequest(query=question, corpus_ids=[corpus_id], messages=list(said))
        text = (await bench.backend.answer(request)).answer
        self._write(part)
        return text

    def _some(self, every: Sequence[Any]) -> Sequence[Any]:
        return every[:: self._stride]

    def _write(self, part: str) -> None:
        events = [[type(event).__name__, _plain(msgspec.to_builtins(event))] for event in self._events]
        self._events.clear()
        line, numbers = json.dumps([part, *events], ensure_ascii=False, sort_keys=True), dict[str, str]()
        self.lines.append(_ID.sub(lambda found: numbers.setdefault(found[0], f"id-{len(numbers)}"), line))

    @contextmanager
    def _listening(self) -> Iterator[None]:
        stream, heard = CitedQueryEngine.stream, self._events

        async def listen(engine: CitedQueryEngine, query: Any) -> AsyncGenerator[AnswerEvent]:
            async with aclosing(stream(engine, query)) as events:
                async for event in events:
                    heard.append(event)
                    yield event

        CitedQueryEngine.stream = listen  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            CitedQueryEngine.stream = stream  # type: ignore[method-assign]


def read_samples() -> list[str]:
    """Return the sample questions."""
    lines = Path(__file__).with_name("samples.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


def read_right() -> list[Answer]:
    """Return one answer to each question of the developed half."""
    return list({answer.question: answer for answer in read_half(HALF) if answer.right}.values())


async def ingest(bench: Bench) -> None:
    """Ingest all files that are asked about, unless they are there."""
    names = {answer.set_name for answer in read_half(HALF)} | {one.set_name for one in read_conversations(HALF)}
    await bench.ingest(names)
    samples = shipped_folder("indices") / "general" / "documents"
    sync = await bench.backend.components.open_sync(str(samples), LOCAL_ADMIN, corpus_name=SAMPLES)
    await sync.run()
    bench.corpora[SAMPLES] = sync.corpus.id


def _plain(value: Any) -> Any:
    """Return a value without times, passages by their ids and texts."""
    if isinstance(value, Mapping):
        if {"chunk", "scores"} <= value.keys():
            value = {**value, "chunk": [value["chunk"]["id"], value["chunk"]["text"][:40]]}
        return {key: _plain(one) for key, one in value.items() if key not in _TIMES}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def find_difference(before: str, after: str) -> str:
    """Return where two lines begin to differ."""
    at = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0)
    place = slice(max(0, at - 60), at + 200)
    return f"{before[:120]}\n  before … {before[place]}\n  after  … {after[place]}"


async def _record(folder: Path, stride: int, *, is_new: bool) -> list[str]:
    if is_new:
        async with open_bench(WITHOUT, folder, settings=QUOTED) as bench:
            await ingest(bench)
    recording = Recording(folder, stride)
    await recording.run()
    return recording.lines


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--save", type=click.Path(path_type=Path), help="Write the answers to this file.")
@click.option("--compare", type=click.Path(exists=True, path_type=Path), help="Compare with the answers in this file.")
@click.option("--stride", default=1, help="Ask every so many of the questions; the same for both.")
def main(folder: Path, save: Path | None, compare: Path | None, stride: int) -> None:
    """Record all answers, or compare them with those recorded; FOLDER keeps the database with the files."""
    lines = asyncio.run(_record(folder, stride, is_new=not folder.exists()))
    if save is not None:
        save.write_text("\n".join(lines), encoding="utf-8")
    if compare is not None:
        before = compare.read_text(encoding="utf-8").split("\n")
        changed = [pair for pair in zip(before, lines, strict=True) if pair[0] != pair[1]]
        for pair in changed[:20]:
            click.echo(find_difference(*pair))
        click.echo(f"{len(lines)} answers, {len(changed)} differ")
        raise SystemExit(bool(changed))


if __name__ == "__main__":
    main()
