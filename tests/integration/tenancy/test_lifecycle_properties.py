"""Random lives of documents: whatever happens in whatever order, a search finds what it should and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_service.domain import Identity
from rag_service.store.corpora import Corpus
from rag_service.store.database import Database
from rag_service.store.documents.catalogue import list_documents, remove_document, set_expiry
from rag_service.store.documents.uploads import ClaimLostError, Upload, claim_upload
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.rows import Slice
from tests.conftest import FakeEmbedding
from tests.integration.tenancy.conftest import House, text_file

NAMES = ("a.txt", "b.txt")
Step = tuple[str, str, int]  # what, to which file, which version

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["upload", "work", "claim", "late", "expire", "delete", "purge"]),
        st.sampled_from(NAMES),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=14,
)


@dataclass
class Expected:
    """What we know of a file without looking."""

    indexed: int | None = None  # version that a search must find
    waiting: int | None = None  # version that waits for a worker
    expired: bool = False


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
@pytest.mark.slow
def test_a_search_finds_exactly_what_should_be_there(database_server: EmbeddedServer, steps: Sequence[Step]) -> None:
    asyncio.run(_check_life(database_server, steps))


async def _check_life(server: EmbeddedServer, steps: Sequence[Step]) -> None:
    database = Database(server.service_conninfo, pool_size=2, timeout=5)
    await database.open()
    try:
        house = House(server=server, database=database, embedding=FakeEmbedding(model_name="fake"))
        identity = await house.user(f"user-{datetime.now(UTC).timestamp()}")
        life = _Life(house, identity, await house.corpus(identity))
        for what, name, version in steps:
            await life.take(what, name, version)
            await life.check(f"after {what} {name} {version} in {steps}")
    finally:
        await database.close()


class _Life:
    def __init__(self, house: House, identity: Identity, corpus: Corpus):
        self._house = house
        self._identity = identity
        self._corpus = corpus
        self._files = {name: Expected() for name in NAMES}
        self._uploads: dict[str, Upload] = {}
        self._late: list[Upload] = []  # claims that somebody may have taken over

    async def take(self, what: str, name: str, version: int) -> None:
        file = self._files[name]
        match what:
            case "upload":
                await self._upload(name, version)
            case "work" if file.waiting is not None:
                claimed = await self._claim(name)
                assert claimed is not None
                await self._house.job().process(claimed, self._identity)
                self._files[name] = Expected(indexed=file.waiting, expired=file.expired)
            case "claim" if file.waiting is not None:  # a worker takes it, and falls silent
                claimed = await self._claim(name)
                assert claimed is not None
                self._late.append(claimed)
            case "late":  # all the silent ones come back; at most the newest claim still holds
                for upload in self._late:
                    await self._come_back(upload)
                self._late.clear()
            case "expire" if file.indexed is not None or file.waiting is not None:
                if not file.expired:
                    await self._expire(name)
                    file.expired = True
            case "delete":
                if (document_id := await self._find(name)) is not None:
                    async with self._house.database.transaction(self._identity) as connection:
                        await remove_document(connection, document_id)
                    self._files[name] = Expected()
            case "purge":
                async with self._house.database.transaction(None) as connection:
                    await connection.execute("SELECT rag.purge_expired(100)")
                for gone in [name for name, file in self._files.items() if file.expired]:
                    self._files[gone] = Expected()

    async def _upload(self, name: str, version: int) -> None:
        file = self._files[name]
        if file.expired:
            file = self._files[name] = Expected()
        self._uploads[name] = await self._house.uploads.accept(
            text_file(name, _text(name, version)), corpus_id=self._corpus.id, identity=self._identity
        )
        file.waiting = None if version == file.indexed else version

    async def _claim(self, name: str) -> Upload | None:
        async with self._house.database.transaction(self._identity) as connection:
            return await claim_upload(connection, self._uploads[name].id)

    async def _come_back(self, upload: Upload) -> None:
        file = self._files[upload.file_name]
        try:
            await self._house.job().process(upload, self._identity)
        except ClaimLostError:
            return
        # It may only have succeeded where it was the newest claim of what waits.
        assert file.waiting is not None
        assert upload.content_hash == self._uploads[upload.file_name].content_hash
        self._files[upload.file_name] = Expected(indexed=file.waiting, expired=file.expired)

    async def _expire(self, name: str) -> None:
        document_id = await self._find(name)
        assert document_id is not None
        async with self._house.database.transaction(self._identity) as connection:
            await set_expiry(connection, document_id, datetime.now(UTC) - timedelta(seconds=1))

    async def _find(self, name: str) -> UUID | None:
        async with self._house.database.transaction(self._identity) as connection:
            page = await list_documents(connection, self._corpus.id, Slice())
        return next((document.id for document in page.items if document.name == name), None)

    async def check(self, context: str) -> None:
        expected = {
            _text(name, file.indexed)
            for name, file in self._files.items()
            if file.indexed is not None and not file.expired
        }
        assert await self._house.ask(self._identity, "version") == expected, context


def _text(name: str, version: int) -> str:
    return f"This is {name}, version {version}."
