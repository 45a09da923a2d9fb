"""The first run on a terminal: ingest with a progress bar, ask, print the proof, serve."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rag_service.app import LOCAL_ADMIN, Components, open_components
from rag_service.domain import Answer, AnswerQuery, CitationStatus
from rag_service.errors import DocumentError, InputError
from rag_service.ingest.pipeline import DocumentInput, Outcome
from rag_service.models.embedding.embeddings import warm_up
from rag_service.query.verification.places import describe_place
from rag_service.settings import Settings

if TYPE_CHECKING:
    from rag_service.ingest.bulk import BulkIngestor

SAMPLE_QUESTION = "¿Qué documentos necesito para empadronarme?"
_SUFFIXES = frozenset({".pdf", ".txt", ".md", ".markdown", ".docx", ".xlsx", ".csv", ".tsv"})


async def run_quickstart(settings: Settings, *, documents: Path | None, question: str | None, serve: bool) -> None:
    """Everything from an empty folder to a served answer.

    Raises:
        InputError: the path holds no document that can be read.
    """
    console = Console()
    started = time.perf_counter()
    console.print("Starting the database …", style="dim")
    async with open_components(settings) as components, asyncio.TaskGroup() as group:
        # The model takes seconds to load: meanwhile documents are read and the API already answers.
        warming = group.create_task(warm_up(components.embedding))

        async def first_steps() -> None:
            paths = [documents] if documents is not None else [components.indices[settings.index].documents_path]
            await _ingest(components, paths, console)
            print_answer(await _ask(components, question or SAMPLE_QUESTION), console)
            console.print(f"Ready after {time.perf_counter() - started:.1f} s.", style="dim")

        if serve:
            await _serve_meanwhile(components, first_steps(), console)
        else:
            await first_steps()
        warming.cancel()


async def _serve_meanwhile(components: Components, work: Coroutine[Any, Any, None], console: Console) -> None:
    """Serve from the start until a signal ends it; a signal during the work ends that, too."""
    from rag_service.app import create_app
    from rag_service.server import serve_application

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
            console.print(f"Serving page and API at [bold]{address.result()}[/] (Ctrl-C ends)")
        await serving
    finally:
        for task in (working, serving):
            task.cancel()
        await asyncio.gather(working, serving, return_exceptions=True)


async def ingest_paths(settings: Settings, paths: Sequence[Path], *, ray: str | None = None) -> int:
    """Ingest files and folders, on the Ray cluster of that address if there is one; returns how many failed.

    Raises:
        InputError: the paths hold no document that can be read, or the address is none.
        ClusterError: the cluster cannot be used; nothing was written.
    """
    if ray is None:
        async with open_components(settings) as components:
            return await _ingest(components, paths, Console())
    from rag_service.ingest.bulk import BulkIngestor
    from rag_service.ingest.ray_cluster import connected

    console = Console()
    console.print("Connecting to the Ray cluster …", style="dim")
    with connected(ray) as cluster:
        console.print(f"Machines: {cluster.machines}, free CPUs: {cluster.cpus}.", style="dim")
        async with open_components(settings) as components:
            corpus = await components.default_corpus(LOCAL_ADMIN)
            transform = cluster.transform(settings, components.indices[corpus.index_name])
            return await _ingest(components, paths, console, BulkIngestor(components.ingestor, transform))


async def ask_once(settings: Settings, question: str) -> None:
    """Ask and print. What is going on is said on stderr, where that is a terminal: the answer alone may be piped."""
    with Console(stderr=True).status("Starting the database …") as status:
        async with open_components(settings) as components:
            status.update("Reading the documents; the first answer loads the model …")
            answer = await _ask(components, question)
            status.stop()
            print_answer(answer, Console())


async def _ingest(
    components: Components, paths: Sequence[Path], console: Console, bulk: BulkIngestor | None = None
) -> int:
    files = await asyncio.to_thread(_find_files, paths)
    if not files:
        raise InputError(
            f"No document found in {', '.join(map(str, paths))}; name PDF, DOCX, XLSX, CSV, MD or TXT files."
        )
    outcomes: list[Outcome] = []
    failures: list[str] = []
    columns = (
        TextColumn("Ingesting"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.description}"),
    )
    started, chunks = time.perf_counter(), 0

    def rate() -> str:
        return f"{chunks / (time.perf_counter() - started):.1f} chunks/s" if chunks else ""

    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(files), rate="")

        async def read_files() -> AsyncIterator[DocumentInput]:
            for name, file in files:
                progress.update(task, description=escape(name))
                yield DocumentInput(data=await asyncio.to_thread(file.read_bytes), file_name=file.name, name=name)

        corpus = await components.default_corpus(LOCAL_ADMIN)
        ingesting = (bulk or components.ingestor).ingest_all(
            read_files(), corpus=corpus, index=components.indices[corpus.index_name], identity=LOCAL_ADMIN
        )
        async for source, outcome in ingesting:
            if isinstance(outcome, DocumentError):
                failures.append(f"{source.name}: {outcome.message}")
            else:
                outcomes.append(outcome.outcome)
                chunks += 0 if outcome.outcome is Outcome.UNCHANGED else outcome.chunk_count
            progress.update(task, advance=1, rate=rate())
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome.value}" for outcome in Outcome if outcome in outcomes)
    console.print(f"Documents: {counts or 'none ingested'}.{f' {chunks} chunks, {rate()}.' if chunks else ''}")
    for failure in failures:
        console.print(f"  not ingested: {escape(failure)}", style="yellow")
    return len(failures)


def _find_files(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """(name in the corpus, file) of every document below the paths."""
    found: list[tuple[str, Path]] = []
    for path in paths:
        if path.is_file():
            found.append((path.name, path))
        else:
            inside = sorted(file for file in path.rglob("*") if file.suffix.lower() in _SUFFIXES and file.is_file())
            found += [(file.relative_to(path).as_posix(), file) for file in inside]
    return found


async def _ask(components: Components, question: str) -> Answer:
    query = AnswerQuery(question=question, top_k=components.settings.topk_default)
    return await components.engine.answer(query, LOCAL_ADMIN)


def print_answer(answer: Answer, console: Console) -> None:
    """Question, answer, and each citation with its place and quote."""
    console.print(f"\n[bold]Q:[/] {escape(answer.question)}")
    console.print(f"[bold]A:[/] {escape(answer.text)}\n")
    titles = {hit.chunk.document.id: hit.chunk.document for hit in (*answer.shown, *answer.sources)}
    for citation in answer.citations:
        if citation.document_id is None or citation.status is CitationStatus.NOT_FOUND:
            console.print(f"  [C{citation.mark}] not found in the documents", style="yellow", markup=False)
            continue
        document = titles.get(citation.document_id)
        place = describe_place(document, citation.location) if document is not None else str(citation.document_id)
        line = f"  [C{citation.mark}] {citation.status.value} · {place} · characters {citation.start}-{citation.end}"
        console.print(line, style="green" if citation.status is CitationStatus.VERIFIED else "yellow", markup=False)
        console.print(f"       “{citation.quote}”", style="dim", markup=False)
    for hit in answer.related:
        start = hit.chunk.spans[0].location if hit.chunk.spans else None
        console.print(f"  near, but no answer: {describe_place(hit.chunk.document, start)}", style="dim", markup=False)
    console.print(
        f"\n  {answer.decision.value}, confidence {answer.confidence.value:.2f}, {answer.latency_ms:.0f} ms",
        style="dim",
    )
