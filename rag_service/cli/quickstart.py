"""The first run on a terminal: ingest with a progress bar, ask, print the proof, serve."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from rag_service.api.agents.history import keep_answer
from rag_service.api.http.presenters import present_answer
from rag_service.api.http.queries import read_question
from rag_service.api.http.schemas import AnswerBody, SearchRequest
from rag_service.cli.asking import Asked, complete, print_answer
from rag_service.cli.models import pull_models
from rag_service.cli.progress import show_progress
from rag_service.components import Components, open_components
from rag_service.domain import LOCAL_ADMIN, Turn
from rag_service.errors import DocumentError, InputError, UnsupportedMediaError
from rag_service.indices import find_index
from rag_service.ingest.documents import Ingested, Outcome
from rag_service.language.words import count_tokens
from rag_service.models.embedding.guarded import warm_up
from rag_service.settings import Settings
from rag_service.sources.files import find_files
from rag_service.sources.report import Pace, SyncProgress
from rag_service.store.accounts.conversations import Conversation, list_conversations, read_history
from rag_service.store.corpora import Corpus, select_corpora
from rag_service.store.database import Connection, Database
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.rows import LIMIT_MAX, Slice
from rag_service.tasks import end_tasks

if TYPE_CHECKING:
    from rag_service.ingest.bulk.bulk import BulkIngestor

SAMPLE_QUESTION = "What fees does a loan have?"  # the samples answer it, with proof


async def run_quickstart(settings: Settings, *, documents: Path | None, question: str | None, serve: bool) -> None:
    """Fetch missing models, start the database, ingest, ask, print the answer, and serve."""
    console = Console()
    await pull_models(settings)
    started = time.perf_counter()
    console.print("Starting the database …", style="dim")
    async with open_components(settings) as components:
        gc.enable()  # see `begin_start`
        # While the models are loaded, documents are read and the API is up. If that fails, the question tells.
        components.chat.start()
        warming = asyncio.create_task(warm_up(components.embedding))

        async def first_steps() -> None:
            folder = documents or components.indices[settings.indices.default].documents_path
            stored, _ = await ingest_files(components, [folder], console)
            if not (stored or serve):
                raise InputError(f"None of the documents in {folder} could be read.")
            asked = question or (await _example(components) if documents else SAMPLE_QUESTION)
            if asked:
                print_answer(asked, await _ask(components, asked), console)
            console.print(f"Ready after {time.perf_counter() - started:.1f} s.", style="dim")

        try:
            if serve:
                await _serve_meanwhile(components, first_steps(), console)
            else:
                await first_steps()
        finally:
            await end_tasks(warming)


async def _example(components: Components) -> str | None:
    """A question that the documents of this folder answer with certainty; None if none is found."""
    found = await components.examples.find(LOCAL_ADMIN)
    return found[0].question if found else None


async def _serve_meanwhile(components: Components, work: Coroutine[Any, Any, None], console: Console) -> None:
    """Serve until a signal arrives, which also cancels unfinished work."""
    from rag_service.app import create_app
    from rag_service.cli.server import serve_application

    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    app = create_app(components.settings, components=components)
    serving = asyncio.create_task(serve_application(app, components.settings, announce=address.set_result))
    working = asyncio.create_task(work)
    try:
        await asyncio.wait({serving, working}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            await working
            either: set[asyncio.Future[Any]] = {serving, address}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if address.done() and not serving.done():
            console.print(f"Serving page and API at [bold]{address.result()}[/] (press Ctrl-C to stop)")
        await serving
    finally:
        await end_tasks(working, serving)


async def ingest_paths(settings: Settings, paths: Sequence[Path], *, ray: str | None) -> int:
    """Ingest files and folders, on the Ray cluster of an address if given; returns the number of failures."""
    if ray is None:
        async with open_components(settings) as components:
            return (await ingest_files(components, paths, Console()))[1]
    from rag_service.ingest.bulk.bulk import BulkIngestor
    from rag_service.ingest.bulk.ray_cluster import connected

    console = Console()
    console.print("Connecting to the Ray cluster …", style="dim")
    with connected(ray) as cluster:
        console.print(f"Machines: {cluster.machines}, free CPUs: {cluster.cpus}.", style="dim")
        async with open_components(settings) as components:
            corpus = await components.default_corpus(LOCAL_ADMIN)
            transform = cluster.transform(settings, find_index(components.indices, corpus.index_name))
            bulk = BulkIngestor(components.ingestor, transform)
            return (await ingest_files(components, paths, console, bulk))[1]


@dataclass(frozen=True)
class _Administrator:
    """Writes conversations."""

    database: Database
    identity = LOCAL_ADMIN

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        return self.database.transaction(LOCAL_ADMIN)


async def ask_once(settings: Settings, asked: Asked) -> AnswerBody:
    """Ask. Progress goes to stderr, so that the answer can be piped."""
    read_question(SearchRequest(query=asked.question), settings, LOCAL_ADMIN)  # what is wrong with it is said first
    with Console(stderr=True).status("Starting the database …") as status:
        async with open_components(settings) as components:
            status.update("Searching the documents; the first question also loads the model …")
            counting = asyncio.create_task(
                asyncio.to_thread(count_tokens, asked.question)
            )  # loads its tables meanwhile
            try:
                return await _answer(components, asked)
            finally:
                await asyncio.gather(counting, return_exceptions=True)


async def _answer(components: Components, asked: Asked) -> AnswerBody:
    administrator = _Administrator(components.database)
    said: tuple[Turn, ...] = ()
    corpora: tuple[Corpus, ...] = ()
    kept: tuple[Conversation, ...] = ()
    if asked.corpora or asked.follow:
        async with administrator.transaction() as connection:
            corpora = await select_corpora(connection, "TRUE", {})
            kept = (await list_conversations(connection, Slice(limit=LIMIT_MAX))).items
    request = complete(asked, corpora, kept)
    going_on = request.conversation_id
    if going_on is not None:
        async with administrator.transaction() as connection:
            said = await read_history(connection, going_on)
    question = replace(read_question(request, components.settings, LOCAL_ADMIN), turns=said)
    answer = present_answer(await components.engine.answer(question))
    if not asked.keep and going_on is None:
        return answer
    return await keep_answer(answer, administrator, asked.question.strip(), going_on)


async def ingest_files(
    components: Components, paths: Sequence[Path], console: Console, bulk: BulkIngestor | None = None
) -> tuple[int, int]:
    """Ingest files and folders, and print what became of each; returns the numbers of documents and of failures."""
    found = await asyncio.to_thread(find_files, paths, components.reader_suffixes)
    files = found.files
    stored: dict[str, Ingested] = {}
    failures: list[str] = []
    started, done, pace = time.monotonic(), 0, Pace()

    with show_progress(console, "Ingesting") as show:

        def step(name: str, advance: int = 0) -> None:
            nonlocal done
            done += advance
            left = pace.seconds_left(done, len(files))
            show(SyncProgress(done=done, total=len(files), name=name, seconds_left=left))

        async def read_files() -> AsyncIterator[DocumentInput]:
            for name, file in files:
                step(name)
                try:
                    data = await asyncio.to_thread(file.read_bytes)
                except OSError as error:
                    failures.append(f"{name}: cannot be opened: {error.strerror}")
                    step(name, 1)
                    continue
                yield DocumentInput(data=data, file_name=file.name, name=name)

        corpus = await components.default_corpus(LOCAL_ADMIN)
        index = find_index(components.indices, corpus.index_name)
        ingesting = (bulk or components.ingestor).ingest_all(
            read_files(), corpus=corpus, index=index, identity=LOCAL_ADMIN
        )
        async for source, outcome in ingesting:
            name = str(source.name)
            if isinstance(outcome, UnsupportedMediaError) and name not in found.named:
                found.left.append((name, outcome.message.removeprefix(f'"{source.file_name}" ')))
            elif isinstance(outcome, DocumentError):
                failures.append(f"{name}: {outcome.message}")
            else:
                stored[name] = outcome
            step(name, 1)
    outcomes = [outcome.outcome for outcome in stored.values()]
    chunks = sum(outcome.chunk_count for outcome in stored.values() if outcome.outcome is not Outcome.UNCHANGED)
    speed = f" {chunks} chunks, {chunks / (time.monotonic() - started):.1f} chunks/s." if chunks else ""
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome.value}" for outcome in Outcome if outcome in outcomes)
    console.print(f"Documents: {counts or 'none ingested'}.{speed}")
    for failure in failures:
        console.print(f"  not ingested: {escape(failure)}", style="yellow")
    for name, reason in found.left:
        console.print(f"  skipped: {escape(name)}: {escape(reason)}", style="yellow")
    for name, outcome in stored.items():
        for warning in outcome.warnings:
            console.print(f"  note: {escape(name)}: {escape(warning)}", style="dim")
    if found.litter:
        console.print(f"  hidden, lock and temporary files skipped: {len(found.litter)}", style="dim")
    return len(stored), len(failures)


async def _ask(components: Components, question: str) -> AnswerBody:
    asked = read_question(SearchRequest(query=question), components.settings, LOCAL_ADMIN)
    return present_answer(await components.engine.answer(asked))
