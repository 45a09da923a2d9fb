"""Kills worker processes at every stage of an ingest; used by a test and by `make soak`."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess

from rag_service.domain import Identity
from rag_service.store.corpora import Corpus
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.documents.uploads import UploadStatus
from tests.integration.tenancy import worker_process
from tests.integration.tenancy.conftest import House

STAGES = ("parsing", "chunking", "embedding", "storing")
# Workers are forked from a process that has loaded everything: a start takes milliseconds, not seconds.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.integration.tenancy.worker_process"])


@dataclass(kw_only=True)
class Outcome:
    killed_in: Counter[str] = field(default_factory=Counter)  # stage → workers killed while a document was in it
    attempts: int = 0  # claims of all documents together
    seconds: float = 0.0


def make_documents(count: int, *, paragraphs: int = 40) -> list[DocumentInput]:
    """Texts of several chunks each, all different."""
    draw = random.Random(11)  # noqa: S311 - the same texts every time
    vocabulary = [f"word{number}" for number in range(400)]
    documents = []
    for number in range(count):
        text = "\n\n".join(
            f"Document {number}, paragraph {paragraph}. " + " ".join(draw.choices(vocabulary, k=60)) + "."
            for paragraph in range(paragraphs)
        )
        documents.append(DocumentInput(data=text.encode(), file_name=f"document-{number}.txt"))
    return documents


async def start_worker(conninfo: str) -> ForkServerProcess:
    ready, theirs = _FORKS.Pipe(duplex=False)
    process = _FORKS.Process(target=worker_process.run, args=(conninfo, theirs), daemon=True)
    await asyncio.to_thread(process.start)
    theirs.close()
    assert await asyncio.to_thread(ready.poll, 180), "the worker did not start"
    ready.recv()  # EOFError: it died instead
    ready.close()
    return process


async def kill(process: ForkServerProcess) -> None:
    process.kill()
    await asyncio.to_thread(process.join, 60)
    process.close()


async def ingest_under_fire(
    house: House, identity: Identity, corpus: Corpus, documents: list[DocumentInput], *, kills: int, within: float
) -> Outcome:
    """Upload documents, kill all workers again and again, each time in the next stage, and wait for the end."""
    outcome = Outcome()
    started = time.monotonic()
    uploads = [await house.uploads.accept(document, corpus_id=corpus.id, identity=identity) for document in documents]
    conninfo = house.server.service_conninfo
    workers = list(await asyncio.gather(start_worker(conninfo), start_worker(conninfo)))
    try:
        for _, stage in zip(range(kills), itertools.cycle(STAGES), strict=False):
            if not await _wait_for(house, stage):
                break  # all done
            outcome.killed_in[stage] += 1
            # Both at once: whoever holds the document in this stage dies in it.
            await asyncio.gather(*(kill(worker) for worker in workers))
            workers = list(await asyncio.gather(start_worker(conninfo), start_worker(conninfo)))
        done = await house.settled(identity, *uploads, within=within)
    finally:
        await asyncio.gather(*(kill(worker) for worker in workers))
    assert {upload.status for upload in done} == {UploadStatus.INDEXED}
    outcome.attempts = sum(upload.attempts for upload in done)
    outcome.seconds = time.monotonic() - started
    return outcome


async def _wait_for(house: House, stage: str) -> bool:
    """Until a document is in the stage; False when none can be any more."""
    started = time.monotonic()
    with house.owner() as owner:
        while True:
            assert time.monotonic() - started < 180, f"no document came to be {stage}"
            states = {row[0] for row in owner.execute("SELECT DISTINCT status FROM rag.uploads").fetchall()}
            if stage in states:
                return True
            if not states - {"indexed", "failed"}:
                return False
            await asyncio.sleep(0.004)


def chunk_set(house: House, corpus: Corpus) -> list[tuple[str, int, str]]:
    """Every chunk of a corpus: (document name, index, text)."""
    with house.owner() as owner:
        return owner.execute(
            "SELECT d.name, c.chunk_index, c.text FROM rag.data_chunks c JOIN rag.documents d ON d.id = c.document_id"
            " WHERE c.corpus_id = %s ORDER BY 1, 2",
            [corpus.id],
        ).fetchall()


def statistics(house: House, corpus: Corpus) -> tuple[object, ...]:
    """What BM25 counts in a corpus, to be equal however it came about."""
    with house.owner() as owner:
        row = owner.execute(
            "SELECT (SELECT (chunk_count, term_count)::text FROM rag.corpus_statistics WHERE corpus_id = %(c)s),"
            " (SELECT md5(string_agg(term || chunk_frequency, ',' ORDER BY term)) FROM rag.term_statistics"
            "  WHERE corpus_id = %(c)s)",
            {"c": corpus.id},
        ).fetchone()
    assert row is not None
    return row
