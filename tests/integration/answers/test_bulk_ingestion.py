"""Bulk ingestion without a cluster: what goes out, what comes back, and what is stored of it.

The transformations run in threads of this process, and every node crosses as JSON, as LlamaIndex's integration of
Ray sends it. `python -m tests.soak.ray_cluster` does the same on machines.
"""

from __future__ import annotations

import asyncio
import pickle
import random
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import msgspec
import pytest
from llama_index.core.schema import BaseNode, Document, TextNode

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import ClusterError, DocumentError, EmbeddingError
from rag_service.ingest.bulk import bulk
from rag_service.ingest.bulk.bulk import BulkIngestor, EmbedChunks, ReadDocuments, travelling_settings
from rag_service.ingest.documents import Ingested, Outcome
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus
from rag_service.store.documents.documents import DocumentInput
from tests.conftest import FakeEmbedding
from tests.integration.answers.conftest import SAMPLES
from tests.integration.answers.stored import Stored, make_corpus, read_stored

Found = list[tuple[str, Ingested | DocumentError]]


@pytest.fixture(autouse=True)
def _fake_model(monkeypatch: pytest.MonkeyPatch, fake_embedding: FakeEmbedding) -> None:
    monkeypatch.setattr(bulk, "build_embedding", lambda *_, **__: fake_embedding)


def samples() -> list[DocumentInput]:
    return [DocumentInput(data=file.read_bytes(), file_name=file.name) for file in sorted(SAMPLES.glob("*.md"))]


def text(name: str, content: str) -> DocumentInput:
    return DocumentInput(data=content.encode(), file_name=name)


async def one_by_one(sources: Sequence[DocumentInput]) -> AsyncIterator[DocumentInput]:
    for source in sources:
        yield source


class Elsewhere:
    """Runs the transformations as a cluster would: in any order, in batches across documents."""

    def __init__(self, service: Components, *, dies_before_last: int = 0):
        self.sent: list[str] = []  # names of the documents that were sent
        self._service = service
        self._dies_before_last = dies_before_last  # nodes that never come back

    async def run(self, nodes: Sequence[BaseNode]) -> AsyncGenerator[BaseNode]:
        index = self._service.indices["general"]
        embed = EmbedChunks(travelling_settings(self._service.settings))
        try:
            read = await asyncio.to_thread(ReadDocuments(index), [self._out(node) for node in nodes])
            random.Random(4).shuffle(read)  # noqa: S311 - the same order every time
            for number, node in enumerate(read):
                if number == len(read) - self._dies_before_last:
                    raise ClusterError("The machines are gone.")
                for embedded in await asyncio.to_thread(embed, [node]):
                    yield TextNode.from_json(embedded.to_json())
        finally:
            await asyncio.to_thread(embed.close)

    def _out(self, node: BaseNode) -> Document:
        crossed = Document.from_json(node.to_json())
        self.sent.append(msgspec.json.decode(crossed.get_content())["name"])
        return crossed


async def ingest(
    service: Components, corpus: Corpus, sources: Sequence[DocumentInput], elsewhere: Elsewhere, *, wave: int = 100
) -> Found:
    found = BulkIngestor(service.ingestor, elsewhere.run, wave_documents=wave).ingest_all(
        one_by_one(sources), corpus=corpus, index=service.indices["general"], identity=LOCAL_ADMIN
    )
    return [(source.file_name, outcome) async for source, outcome in found]


async def ingest_here(service: Components, corpus: Corpus, sources: Sequence[DocumentInput]) -> Found:
    found = service.ingestor.ingest_all(
        one_by_one(sources), corpus=corpus, index=service.indices["general"], identity=LOCAL_ADMIN, at_once=1
    )
    return [(source.file_name, outcome) async for source, outcome in found]


async def test_it_stores_what_the_single_process_stores(service: Components) -> None:
    here, there = await make_corpus(service, "here"), await make_corpus(service, "there")
    await ingest_here(service, here, samples())
    elsewhere = Elsewhere(service)
    outcomes = await ingest(service, there, samples(), elsewhere, wave=4)
    assert sorted(elsewhere.sent) == sorted(source.file_name for source in samples())
    assert {outcome.outcome for _, outcome in outcomes if isinstance(outcome, Ingested)} == {Outcome.ADDED}
    expected, found = await read_stored(service, here), await read_stored(service, there)
    assert len(expected.chunks) > len(expected.documents) == len(samples())
    assert found == expected


async def test_a_broken_document_is_named_and_the_others_go_on(service: Components) -> None:
    corpus = await make_corpus(service, "there")
    broken = DocumentInput(data=b"%PDF-1.4 broken", file_name="broken.pdf")
    blank = text("blank.md", "  \n")
    outcomes = dict(await ingest(service, corpus, [broken, text("a.md", "Gate 4 opens."), blank], Elsewhere(service)))
    assert isinstance(outcomes["a.md"], Ingested)
    for name in ("broken.pdf", "blank.md"):
        error = outcomes[name]
        assert isinstance(error, DocumentError)
        assert name in error.message
    assert list((await read_stored(service, corpus)).documents) == ["a.md"]


async def test_an_interrupted_run_goes_on_where_it_stopped(service: Components) -> None:
    whole, corpus = await make_corpus(service, "whole"), await make_corpus(service, "there")
    await ingest_here(service, whole, samples())
    with pytest.raises(ClusterError):
        await ingest(service, corpus, samples(), Elsewhere(service, dies_before_last=8))
    before = await read_stored(service, corpus)
    assert 0 < len(before.documents) < len(samples())
    of_each = Counter(chunk.document for chunk in before.chunks)  # nothing of a document before all of it is there
    assert of_each == {name: document["chunk_count"] for name, document in before.documents.items()}
    second = Elsewhere(service)
    outcomes = await ingest(service, corpus, samples(), second)
    assert set(second.sent) == {source.file_name for source in samples()} - set(before.documents)
    unchanged = {name for name, outcome in outcomes if getattr(outcome, "outcome", None) is Outcome.UNCHANGED}
    assert unchanged == set(before.documents)
    assert await read_stored(service, corpus) == await read_stored(service, whole)


async def test_names_and_contents_that_repeat_end_as_one_by_one(service: Components) -> None:
    sources = [
        text("rules.txt", "Pallets are stacked four high."),
        text("copy.txt", "Pallets are stacked four high."),
        text("rules.txt", "Pallets are stacked five high."),
        text("gates.txt", "Gate 4 opens at six."),
        text("rules.txt", "Pallets are stacked six high."),
        text("again.txt", "Gate 4 opens at six."),
    ]

    def named(found: Found) -> list[tuple[str, Outcome]]:
        return sorted((name, outcome.outcome) for name, outcome in found if isinstance(outcome, Ingested))

    here = await make_corpus(service, "here")
    expected = named(await ingest_here(service, here, sources))
    assert len(expected) == len(sources)
    for wave in (100, 2):
        corpus = await make_corpus(service, f"waves of {wave}")
        assert named(await ingest(service, corpus, sources, Elsewhere(service), wave=wave)) == expected
        assert await read_stored(service, corpus) == await read_stored(service, here)


async def test_a_changed_document_keeps_its_id(service: Components) -> None:
    corpus = await make_corpus(service, "there")
    [(_, first)] = await ingest(service, corpus, [text("rules.txt", "Four high.")], Elsewhere(service))
    [(_, changed)] = await ingest(service, corpus, [text("rules.txt", "Five high.")], Elsewhere(service))
    assert isinstance(first, Ingested) and isinstance(changed, Ingested)
    assert (changed.outcome, changed.document_id) == (Outcome.REPLACED, first.document_id)
    assert [chunk.text for chunk in (await read_stored(service, corpus)).chunks] == ["Five high."]


async def test_what_somebody_else_stored_meanwhile_is_replaced_not_doubled(service: Components) -> None:
    corpus = await make_corpus(service, "there")

    class Slow(Elsewhere):
        async def run(self, nodes: Sequence[BaseNode]) -> AsyncGenerator[BaseNode]:
            await ingest_here(service, corpus, [text("rules.txt", "Three high.")])
            async for node in super().run(nodes):
                yield node

    [(_, outcome)] = await ingest(service, corpus, [text("rules.txt", "Four high.")], Slow(service))
    assert isinstance(outcome, Ingested) and outcome.outcome is Outcome.REPLACED
    stored = await read_stored(service, corpus)
    assert ([*stored.documents], [chunk.text for chunk in stored.chunks]) == (["rules.txt"], ["Four high."])


async def test_a_model_that_fails_elsewhere_ends_the_run_as_it_does_here(
    service: Components, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> list[list[float]]:
        raise EmbeddingError("The embedding service cannot be reached.")

    monkeypatch.setattr(FakeEmbedding, "aget_text_embedding_batch", fail)
    corpus = await make_corpus(service, "there")
    with pytest.raises(EmbeddingError, match="cannot be reached"):
        await ingest(service, corpus, samples(), Elsewhere(service))
    assert await read_stored(service, corpus) == Stored(documents={}, chunks=[], statistics=[])


@pytest.mark.parametrize(("provider", "travels"), [("local", False), ("openai_like", True)])
def test_no_password_travels_but_the_one_of_the_embedding_model(provider: str, travels: bool) -> None:
    settings = Settings(
        database_url="postgresql://rag:swordfish-1@db/rag",  # type: ignore[arg-type]  # pydantic makes it a secret
        database_owner_url="postgresql://owner:swordfish-2@db/rag",  # type: ignore[arg-type]
        jwt_secret="swordfish-3" * 4,  # type: ignore[arg-type]
        metrics_token="swordfish-4",  # type: ignore[arg-type]
        originals_url="s3://key:swordfish-5@bucket",
        openai_api_key="sesame",  # type: ignore[arg-type]
        embedding_provider=provider,  # type: ignore[arg-type]
        embedding_batch_size=7,
    )
    packed = pickle.dumps(travelling_settings(settings))
    assert b"swordfish" not in packed
    assert (b"sesame" in packed) == travels
    assert pickle.loads(packed).embedding.batch_size == 7  # noqa: S301 - our own bytes
