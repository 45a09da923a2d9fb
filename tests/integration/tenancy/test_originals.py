"""Original bytes outside the database: same rights, same lifetime."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rag_service.errors import ConfigurationError, NotFoundError, StoreError
from rag_service.store.documents.catalogue import remove_document
from rag_service.store.documents.originals import Originals
from tests.integration.tenancy.conftest import House, text_file
from tests.integration.tenancy.web import build_application, client_of, new_key, web_settings


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def _discarded(house: House) -> int:
    """Notes of files whose documents are gone."""
    with house.owner() as owner:
        row = owner.execute("SELECT count(*) FROM rag.discarded_originals").fetchone()
    assert row is not None
    return int(row[0])


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
        assert await house.originals.read_part(connection, *key, 2, 3) == (b"ama", 7)
        with pytest.raises(StoreError, match="RAG_ORIGINALS_URL"):
            await Originals().read(connection, *key)
    async with house.database.transaction(ben) as connection:
        with pytest.raises(NotFoundError):
            await house.originals.read(connection, *key)
    await house.index(ana, corpus, text_file("a.txt", "Alpacas."))  # the old version is discarded
    async with house.database.transaction(ana) as connection:
        await remove_document(connection, first.document_id)
    async with house.working():
        for _ in range(1000):
            if not _files(tmp_path) and not _discarded(house):  # files go first; a worker that is stopped may not go on
                break
            await asyncio.sleep(0.03)
    assert (_files(tmp_path), _discarded(house)) == ([], 0)


async def test_a_part_is_sent_to_whoever_may_read_the_whole(house: House) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    (llamas,) = await house.index(ana, await house.corpus(ana), text_file("a.txt", "Llamas."))
    url = f"/api/v1/documents/{llamas.document_id}/original"
    application = build_application(house, web_settings())
    async with client_of(application, await new_key(house, ana)) as client:
        for wanted, status, data, told in (
            ("bytes=2-4", 206, b"ama", "bytes 2-4/7"),
            ("bytes=5-", 206, b"s.", "bytes 5-6/7"),
            ("bytes=5-999", 206, b"s.", "bytes 5-6/7"),
            ("bytes=7-9", 416, b"", "bytes */7"),
            ("bytes=99999999-", 416, b"", "bytes */7"),
            ("bytes=4-2", 200, b"Llamas.", None),
            ("bytes=-2", 200, b"Llamas.", None),
            ("bytes=0-1,3-4", 200, b"Llamas.", None),
            ("lines=1-2", 200, b"Llamas.", None),
        ):
            reply = await client.get(url, headers={"Range": wanted})
            assert (reply.status_code, reply.content) == (status, data), wanted
            assert reply.headers.get("content-range") == told
        etag = reply.headers["etag"]
        for condition, status in ((etag, 206), ('"another"', 200)):
            headers = {"Range": "bytes=0-0", "If-Range": condition}
            assert (await client.get(url, headers=headers)).status_code == status
    async with client_of(application, await new_key(house, ben)) as client:
        assert (await client.get(url, headers={"Range": "bytes=0-1"})).status_code == 404


def test_a_url_that_nothing_serves_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="RAG_ORIGINALS_URL"):
        Originals("carrier-pigeon://loft")
