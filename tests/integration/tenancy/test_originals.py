"""Original bytes outside the database: same rights, same lifetime."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rag_service.errors import ConfigurationError, NotFoundError, StoreError
from rag_service.store.documents.catalogue import remove_document
from rag_service.store.documents.originals import Originals
from tests.integration.tenancy.conftest import House, text_file


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


async def test_files_are_kept_in_a_folder_and_go_with_their_document(house: House, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    house.originals = Originals(tmp_path.as_uri())
    ana, ben = await house.user("ana"), await house.user("ben")
    corpus = await house.corpus(ana)
    (first,) = await house.index(ana, corpus, text_file("a.txt", "Llamas."))
    key = first.document_id, first.content_hash
    assert len(_files(tmp_path)) == 1
    async with house.database.transaction(ana) as connection:
        assert await house.originals.read(connection, *key) == b"Llamas."
        with pytest.raises(StoreError, match="RAG_ORIGINALS_URL"):
            await Originals().read(connection, *key)
    async with house.database.transaction(ben) as connection:
        with pytest.raises(NotFoundError):
            await house.originals.read(connection, *key)
    await house.index(ana, corpus, text_file("a.txt", "Alpacas."))  # the old version is discarded
    async with house.database.transaction(ana) as connection:
        await remove_document(connection, first.document_id)
    async with house.working():
        for _ in range(200):
            if not _files(tmp_path):
                break
            await asyncio.sleep(0.03)
    assert _files(tmp_path) == []
    with house.owner() as owner:
        assert owner.execute("SELECT count(*) FROM rag.discarded_originals").fetchone() == (0,)


def test_a_url_that_nothing_serves_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="RAG_ORIGINALS_URL"):
        Originals("carrier-pigeon://loft")
