"""The sample documents through a Ray cluster of two machines: `python -m tests.soak.ray_cluster [folder]`.

Needs the extra `ray`. Exits with 1 when the chunks differ from those of a single process (texts, places and
statistics exactly, vectors by more than rounding), when a machine had no part in it, when a broken document stops
the others, when a second run sends anything again, when a machine that dies takes a document with it, or when a
cluster that cannot work is found out after something was written.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import structlog

from rag_service.components import Components, open_components
from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import ClusterError, DocumentError
from rag_service.ingest.bulk.bulk import BulkIngestor
from rag_service.ingest.bulk.ray_cluster import RayCluster, connected
from rag_service.ingest.documents import Outcome
from rag_service.ingest.ingestor import Ingestor
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus
from rag_service.store.documents.documents import DocumentInput
from tests.integration.answers.conftest import SAMPLES
from tests.integration.answers.stored import Stored, make_corpus, read_stored

_MEMORY = 200 * 1024**2  # of a machine's object store
_TOLERANCE = 2e-2  # between vectors of length 1: they are made in bfloat16 and kept as half floats, and batches differ
_BROKEN = DocumentInput(data=b"%PDF-1.4 broken", file_name="broken.pdf")


async def main(documents: list[DocumentInput]) -> int:
    checks = [_cluster_that_is_not_there(), _cluster_without_workers()]
    with tempfile.TemporaryDirectory(prefix="rag-soak-") as data:
        async with open_components(Settings(data_dir=Path(data), log_level="ERROR")) as service:
            single = await make_corpus(service, "single")
            started = time.monotonic()
            await _ingest(service, service.ingestor, single, documents)
            expected = await read_stored(service, single)
            click.echo(f"one process: {len(documents)} documents, {len(expected.chunks)} chunks, {_since(started)}")
            checks += [
                await _two_machines(service, documents, expected),
                await _machine_that_dies(service, documents, expected),
            ]
    return 0 if all(checks) else 1


async def _two_machines(service: Components, documents: list[DocumentInput], expected: Stored) -> bool:
    corpus = await make_corpus(service, "two machines")
    machines = _start(cpus=(1, 1))
    try:
        with connected(machines.address) as cluster:
            started = time.monotonic()
            outcomes = await _ingest(service, _bulk(service, cluster), corpus, [_BROKEN, *documents])
            took, hands = _since(started), _machines_at_work()
            again = await _ingest(service, _bulk(service, cluster), corpus, documents)
    finally:
        machines.shutdown()
    broken = outcomes.pop(_BROKEN.file_name)
    found = await read_stored(service, corpus)
    results = {
        f"the chunks of a single process ({len(found.chunks)}), {took}": _same(expected, found),
        f"{hands} machines had part in it": hands == 2,
        f"the broken document is named: {broken}": isinstance(broken, DocumentError),
        "nothing is done twice": set(again.values()) == {Outcome.UNCHANGED},
    }
    return _tell("two machines", results)


async def _machine_that_dies(service: Components, documents: list[DocumentInput], expected: Stored) -> bool:
    """The run goes on with what is left, or ends with an error and is begun again; in the end all is there."""
    corpus = await make_corpus(service, "a machine dies")
    machines = _start(cpus=(1, 1))
    runs, said = 0, "finished by the other"
    try:
        with connected(machines.address) as cluster:
            for runs in (1, 2):
                try:
                    kill = partial(machines.remove_node, machines.list_all_nodes()[-1], allow_graceful=False)
                    await _ingest(
                        service,
                        _bulk(service, cluster),
                        corpus,
                        documents,
                        after_first=kill if runs == 1 else None,
                    )
                    break
                except ClusterError as error:
                    said = error.message
    finally:
        machines.shutdown()
    same = _same(expected, await read_stored(service, corpus))
    return _tell("a machine dies", {f"in the end all is there, runs: {runs}, {said}": same})


def _cluster_that_is_not_there() -> bool:
    return _refused("no cluster", "127.0.0.1:1", "Nothing answers")


def _cluster_without_workers() -> bool:
    machines = _start(cpus=(0,))
    try:
        return _refused("no workers", machines.address, "has no workers")
    finally:
        machines.shutdown()


def _refused(what: str, address: str, words: str) -> bool:
    started, said = time.monotonic(), ""
    try:
        with connected(address):
            pass
    except ClusterError as error:
        said = error.message
    return _tell(what, {f"refused, {_since(started)}: {said}": words in said})


def _start(*, cpus: tuple[int, ...]) -> Any:
    from ray.cluster_utils import Cluster

    first, *others = [{"num_cpus": count, "object_store_memory": _MEMORY} for count in cpus]
    machines = Cluster(initialize_head=True, head_node_args={**first, "include_dashboard": False})
    for machine in others:
        machines.add_node(**machine)
    return machines


def _bulk(service: Components, cluster: RayCluster) -> BulkIngestor:
    return BulkIngestor(service.ingestor, cluster.transform(service.settings, service.indices["general"]))


def _machines_at_work() -> int:
    """On how many machines transformations ran."""
    from ray._private.state import actors  # the public list of them needs the dashboard

    return len({actor["Address"]["NodeID"] for actor in actors().values() if "MapWorker" in actor["ActorClassName"]})


async def _ingest(
    service: Components,
    ingestor: Ingestor | BulkIngestor,
    corpus: Corpus,
    documents: list[DocumentInput],
    *,
    after_first: Callable[[], object] | None = None,
) -> dict[str, Outcome | DocumentError]:
    """What became of each document, by its name."""

    async def one_by_one() -> AsyncIterator[DocumentInput]:
        for document in documents:
            yield document

    outcomes: dict[str, Outcome | DocumentError] = {}
    index = service.indices["general"]
    async for source, outcome in ingestor.ingest_all(one_by_one(), corpus=corpus, index=index, identity=LOCAL_ADMIN):
        outcomes[source.file_name] = outcome if isinstance(outcome, DocumentError) else outcome.outcome
        if after_first is not None and len(outcomes) == 1:
            await asyncio.to_thread(after_first)
    return outcomes


def _same(expected: Stored, found: Stored) -> bool:
    """All but the vectors exactly."""

    def without_vectors(stored: Stored) -> Stored:
        return replace(stored, chunks=[replace(chunk, vector=[]) for chunk in stored.chunks])

    if not expected.chunks or without_vectors(expected) != without_vectors(found):
        return False
    pairs = zip(expected.chunks, found.chunks, strict=True)
    furthest = max(math.dist(one.vector, other.vector) for one, other in pairs)
    click.echo(f"     largest distance of two vectors of the same chunk: {furthest:.1e}")
    return furthest < _TOLERANCE


def _tell(what: str, results: dict[str, bool]) -> bool:
    for said, good in results.items():
        click.echo(f"{'ok  ' if good else 'MISS'} {what}: {said}")
    return all(results.values())


def _since(started: float) -> str:
    return f"{time.monotonic() - started:.0f} s"


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    files = sorted((Path(sys.argv[1]) if sys.argv[1:] else SAMPLES).iterdir())
    sys.exit(asyncio.run(main([DocumentInput(data=file.read_bytes(), file_name=file.name) for file in files])))
