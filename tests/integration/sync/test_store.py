"""A corpus is kept equal to a folder of an object store."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from rag_service.errors import InputError, SourceError
from rag_service.settings import Settings
from rag_service.sources.folder import FolderSource
from rag_service.sources.opening import open_source
from rag_service.sources.store import StoreSource
from tests.integration.sync.conftest import Desk


@pytest.fixture
def bucket() -> Iterator[str]:
    """A URL below which the test writes."""
    url = f"memory://{uuid.uuid4().hex}"
    yield url
    files, root = fsspec.url_to_fs(url)
    if files.exists(root):
        files.rm(root, recursive=True)


def put(bucket: str, **texts: str) -> None:
    for name, text in texts.items():
        with fsspec.open(f"{bucket}/{name.replace('__', '/')}.txt", "w") as file:
            file.write(text)


def opened(bucket: str, *, max_bytes: int = 1000) -> StoreSource:
    return StoreSource(bucket, max_bytes=max_bytes)


async def test_new_changed_renamed_and_deleted_objects(desk: Desk, bucket: str) -> None:
    put(bucket, a="Apples are red.", b="Bananas are yellow.", deep__c="Cherries are small.")
    first = await desk.sync(opened(bucket))
    assert sorted(first.added) == ["a.txt", "b.txt", "deep/c.txt"]
    embedded = len(desk.embedding.texts)
    assert (await desk.sync(opened(bucket))).unchanged == 3
    put(bucket, a="Apples are green.")
    files, root = fsspec.url_to_fs(bucket)
    files.mv(f"{root}/b.txt", f"{root}/deep/yellow.txt")
    files.rm(f"{root}/deep/c.txt")
    second = await desk.sync(opened(bucket))
    assert (second.changed, second.renamed, second.deleted) == (
        ["a.txt"], [("b.txt", "deep/yellow.txt")], ["deep/c.txt"],
    )  # fmt: skip
    assert desk.stored() == {"a.txt": "Apples are green.", "deep/yellow.txt": "Bananas are yellow."}
    assert len(desk.embedding.texts) == embedded + 1


async def test_an_etag_tells_that_an_object_is_unchanged(
    desk: Desk, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, a="Apples are red.")
    source = opened(bucket)
    find = source._files.find
    monkeypatch.setattr(
        source._files,
        "find",
        lambda *given, **named: {path: {**info, "ETag": '"1"'} for path, info in find(*given, **named).items()},
    )
    await desk.sync(source)
    monkeypatch.setattr(source._files, "cat_file", None)  # nobody reads it again
    report = await desk.sync(source)
    assert (report.unchanged, report.left) == (1, [])


async def test_what_is_not_taken_is_told(desk: Desk, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bucket, a="Apples are red.", b="Bananas are yellow.", large="x" * 2000)
    files, root = fsspec.url_to_fs(bucket)
    files.pipe(f"{root}/film.mp4", b"x")
    files.pipe(f"{root}/.DS_Store", b"x")
    cat = files.cat_file

    def read(path: str, *given: Any, **named: Any) -> bytes:
        if path.endswith("b.txt"):
            raise PermissionError(path)
        data: bytes = cat(path, *given, **named)
        return data

    monkeypatch.setattr(type(files), "cat_file", lambda _, path, *given, **named: read(path, *given, **named))
    report = await desk.sync(opened(bucket))
    assert (report.added, report.litter) == (["a.txt"], 1)
    assert dict(report.left) == {
        "b.txt": "access was denied",
        "film.mp4": ".mp4 files are not supported",
        "large.txt": "is larger than 0 MB (RAG_UPLOAD_MAX_MB)",
    }


@pytest.mark.parametrize("error", [PermissionError("no rights"), OSError("down"), RuntimeError("its own")])
async def test_a_store_that_fails_or_is_gone_deletes_nothing(
    desk: Desk, bucket: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, a="Apples are red.")
    source = opened(bucket)
    await desk.sync(source)

    def fail(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(source._files, "find", fail)
        with pytest.raises(SourceError, match="Nothing was deleted"):
            await desk.sync(source, delete=True)
    source._files.rm(source._root, recursive=True)
    with pytest.raises(SourceError, match="missing or empty"):
        await desk.sync(source, delete=True)
    assert len(desk.stored()) == 1


def test_a_target_names_its_source(tmp_path: Path) -> None:
    settings = Settings()
    folder = open_source(tmp_path.as_uri(), settings)
    assert isinstance(folder, FolderSource) and folder.target == str(tmp_path.resolve())
    assert isinstance(open_source("memory://papers", settings), StoreSource)
    for target, why in (
        ("simplecache::http://169.254.169.254/", "not a folder"),
        ("memory://x::http://127.0.0.1/", "not a folder"),
        ("generic://http://127.0.0.1/", "not a folder"),
        ("gopher://example.org/", "gopher://"),
        ("sftp://user:secret@example.org/papers", "password"),
    ):
        with pytest.raises(InputError, match=why) as refused:
            open_source(target, settings)
        assert "secret" not in refused.value.message


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise ImportError("s3fs")

    monkeypatch.setattr(fsspec, "url_to_fs", missing)
    with pytest.raises(InputError, match=r"rag-service\[s3\]"):
        opened("s3://bucket/papers")


def test_a_server_that_cannot_be_reached_is_named() -> None:
    with socket.socket() as silent:  # it does not listen, and nobody else gets its port
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        with pytest.raises(SourceError, match=f"ftp://127.0.0.1:{port}/papers cannot be reached"):
            opened(f"ftp://127.0.0.1:{port}/papers")


async def test_a_watch_looks_without_reading(bucket: str) -> None:
    put(bucket, a="Apples are red.")
    source = opened(bucket)
    before = await source.look()
    assert await source.look() == before
    await asyncio.to_thread(put, bucket, a="Apples are green.")
    assert await source.look() != before
