"""A folder, a corpus, and an embedding that counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import PrivateAttr

from rag_service.domain import CorpusKind
from rag_service.sources.folder import FolderSource
from rag_service.sources.report import SyncReport
from rag_service.sources.source import Source
from rag_service.sources.sync import Sync
from rag_service.store.corpora import Corpus
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding
from tests.integration.tenancy.conftest import ADMIN, INDEX, House, load_indices


class CountingEmbedding(FakeEmbedding):
    _texts: list[str] = PrivateAttr(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """What it has embedded."""
        return self._texts

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self._texts += texts
        return self._get_text_embeddings(texts)


@dataclass(kw_only=True)
class Desk:
    """A folder and the corpus that is to be equal to it."""

    house: House
    corpus: Corpus
    folder: Path
    embedding: CountingEmbedding
    told: list[Any] = field(default_factory=list)

    def write(self, **files: str) -> None:
        """Text files; `__` in a name is a slash."""
        for name, text in files.items():
            path = self.folder / f"{name.replace('__', '/')}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def open(self, source: Source | None = None, *, delete: bool | None = None, corpus: Corpus | None = None) -> Sync:
        return Sync(
            source or FolderSource(self.folder),
            database=self.house.database,
            ingestor=self.house.ingestor(),
            corpus=corpus or self.corpus,
            index=load_indices()[INDEX],
            identity=ADMIN,
            delete=delete,
            on_progress=self.told.append,
        )

    async def sync(self, source: Source | None = None, *, delete: bool | None = None) -> SyncReport:
        return await self.open(source, delete=delete).run()

    def stored(self) -> dict[str, str]:
        """Name → text of every document in the corpus."""
        with self.house.owner() as owner:
            return dict(
                owner.execute(
                    "SELECT d.name, t.text FROM rag.documents d JOIN rag.document_texts t ON t.document_id = d.id"
                    " WHERE d.corpus_id = %s",
                    [self.corpus.id],
                ).fetchall()
            )

    def there(self) -> dict[str, str]:
        """Name → text of every file in the folder."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.read_text("utf-8") for path in files}


@pytest.fixture
async def desk(database_server: EmbeddedServer, database: Database, tmp_path: Path) -> AsyncIterator[Desk]:
    embedding = CountingEmbedding(model_name="fake")
    house = House(server=database_server, database=database, embedding=embedding)
    folder = tmp_path / "papers"
    folder.mkdir()
    corpus = await house.corpus(ADMIN, "papers", CorpusKind.GLOBAL)
    yield Desk(house=house, corpus=corpus, folder=folder, embedding=embedding)
