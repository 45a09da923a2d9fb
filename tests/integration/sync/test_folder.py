"""A corpus is kept equal to a folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest

from rag_service.domain import CorpusKind
from rag_service.errors import ConflictError, InputError, NotFoundError, RagError, SourceError
from rag_service.sources import folder as folder_source
from rag_service.sources.folder import FolderSource
from rag_service.sources.report import SyncReport
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.documents.synced import lock_target, read_synced
from tests.integration.sync.conftest import Desk
from tests.integration.tenancy.conftest import ADMIN, INDEX, load_indices


async def test_new_changed_renamed_and_deleted_files(desk: Desk) -> None:
    desk.write(a="Apples are red.", b="Bananas are yellow.", deep__c="Cherries are small.")
    first = await desk.sync()
    assert (sorted(first.added), first.unchanged) == (["a.txt", "b.txt", "deep/c.txt"], 0)
    assert desk.stored() == desk.there()
    embedded = len(desk.embedding.texts)

    assert (await desk.sync()).unchanged == 3
    desk.write(a="Apples are green.")
    (desk.folder / "b.txt").rename(desk.folder / "deep" / "yellow.txt")
    (desk.folder / "deep" / "c.txt").unlink()
    second = await desk.sync()
    assert (second.added, second.changed, second.renamed, second.deleted, second.unchanged) == (
        [], ["a.txt"], [("b.txt", "deep/yellow.txt")], ["deep/c.txt"], 0,
    )  # fmt: skip
    assert desk.stored() == desk.there()
    assert len(desk.embedding.texts) == embedded + 1  # the changed one alone
    with desk.house.owner() as owner:
        renamed = owner.execute("SELECT title, file_name FROM rag.documents WHERE name = 'deep/yellow.txt'").fetchone()
    assert renamed == ("yellow", "yellow.txt")


async def test_an_unchanged_file_is_not_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write(a="Apples are red.")
    os.utime(desk.folder / "a.txt", (1_700_000_000, 1_700_000_000))
    await desk.sync()
    monkeypatch.setattr(folder_source, "_read", None)
    assert (await desk.sync()).unchanged == 1
    monkeypatch.undo()
    os.utime(desk.folder / "a.txt", (1_700_000_009, 1_700_000_009))  # touched: read, and found to be the same
    assert (await desk.sync()).unchanged == 1
    monkeypatch.setattr(folder_source, "_read", None)
    assert (await desk.sync()).unchanged == 1
    assert len(desk.embedding.texts) == 1


async def test_a_file_that_changed_within_the_resolution_of_its_time_is_seen(desk: Desk) -> None:
    desk.write(a="Apples are red.")
    stat = (desk.folder / "a.txt").stat()
    await desk.sync()
    desk.write(a="Apples are old.")
    os.utime(desk.folder / "a.txt", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (await desk.sync()).changed == ["a.txt"]


async def test_files_that_swap_their_names_or_share_their_content(desk: Desk) -> None:
    desk.write(a="Apples are red.", b="Bananas are yellow.", copy="Apples are red.")
    await desk.sync()
    assert desk.stored() == desk.there()
    files = {name: (desk.folder / name).read_bytes() for name in ("a.txt", "b.txt")}
    (desk.folder / "a.txt").write_bytes(files["b.txt"] + b" Very.")
    (desk.folder / "b.txt").write_bytes(files["a.txt"])
    await desk.sync()
    assert desk.stored() == desk.there()
    (desk.folder / "b.txt").unlink()
    await desk.sync()
    assert desk.stored() == desk.there()
    (desk.folder / "a.txt").unlink()
    await desk.sync()
    assert desk.stored() == desk.there() == {"copy.txt": "Apples are red."}


async def test_only_what_a_sync_brought_in_is_deleted(desk: Desk) -> None:
    async def ingest(name: str, text: str) -> None:
        source = DocumentInput(data=text.encode(), file_name=name)
        await desk.house.ingestor().ingest(source, corpus=desk.corpus, index=load_indices()[INDEX], identity=ADMIN)

    await ingest("hand.txt", "By hand.")
    await ingest("both.txt", "Both ways.")
    desk.write(both="Both ways.", mine="Mine alone.")
    await desk.sync()
    for name in ("both.txt", "mine.txt"):
        (desk.folder / name).unlink()
    kept = await desk.sync(delete=False)
    assert (kept.kept, kept.deleted) == (["both.txt", "mine.txt"], [])
    emptied = await desk.sync()
    assert (emptied.kept, emptied.deleted) == (["both.txt", "mine.txt"], [])  # all of a sudden: it may be unmounted
    assert "--delete" in str(emptied)
    assert "mine.txt" in (await desk.sync(delete=True)).deleted
    assert desk.stored() == {"hand.txt": "By hand.", "both.txt": "Both ways."}


async def test_a_document_that_somebody_deleted_comes_back(desk: Desk) -> None:
    desk.write(a="Apples are red.", b="Bananas are yellow.")
    await desk.sync()
    with desk.house.owner() as owner:
        owner.execute("DELETE FROM rag.documents WHERE name = 'a.txt'")
    await desk.sync()
    assert desk.stored() == desk.there()


async def test_two_folders_do_not_overwrite_each_other(desk: Desk, tmp_path: Path) -> None:
    desk.write(a="Apples are red.")
    await desk.sync()
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("Apples are blue.")
    report = await desk.sync(FolderSource(other))
    assert [name for name, _ in report.left] == ["a.txt"]
    assert desk.stored() == {"a.txt": "Apples are red."}


async def test_what_is_not_taken_is_told_and_deletes_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.write(good="Good.", broken="Fine so far.", closed__in="Inside.")
    await desk.sync()
    before = desk.stored()
    (desk.folder / "broken.txt").write_bytes(b"\x00\x01\x02\xff" * 400)
    (tmp_path / "secret.txt").write_text("Secret.")
    (desk.folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (desk.folder / "film.mp4").write_bytes(b"x")
    (desk.folder / ".DS_Store").write_bytes(b"x")
    (desk.folder / "copy.md").symlink_to(desk.folder / "good.txt")
    desk.folder.joinpath(os.fsdecode(b"a\xf1o.txt")).write_text("A year.")
    desk.write(año="Another year.")
    report = await desk.sync()
    left = dict(report.left)
    assert set(left) == {"broken.txt", "link.txt", "film.mp4", "año.txt"}
    assert "leads out of the folder" in left["link.txt"]
    assert "another encoding" in left["año.txt"]
    assert report.litter == 1
    assert before.items() <= desk.stored().items()  # the old version of the broken one stays
    assert "Secret." not in desk.stored().values()


async def test_a_folder_that_cannot_be_listed_keeps_its_documents(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write(a="Apples are red.", deep__c="Cherries are small.")
    await desk.sync()
    scandir = os.scandir

    def denied(path: str) -> object:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    report = await desk.sync(delete=True)
    assert (report.deleted, [name for name, _ in report.left]) == ([], ["deep"])


async def test_a_file_that_changes_while_it_is_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write(a="Apples are red.")
    log = desk.folder / "log.txt"
    log.write_text("A line.")
    fstat = os.fstat

    def growing(descriptor: int) -> os.stat_result:
        with log.open("a") as file:
            file.write(" Another line.")
        return fstat(descriptor)

    monkeypatch.setattr(os, "fstat", growing)
    monkeypatch.setattr(folder_source, "_PAUSE", 0.01)
    report = await desk.sync()
    assert "changed while it was read" in dict(report.left)["log.txt"]
    monkeypatch.undo()
    await desk.sync()
    assert desk.stored() == desk.there()


@pytest.mark.slow
async def test_a_thousand_unchanged_files_take_a_fraction_of_the_time_and_no_embedding(desk: Desk) -> None:
    for number in range(1000):
        path = desk.folder / f"{number}.txt"
        path.write_text(f"Text number {number}.")
        os.utime(path, (1_700_000_000, 1_700_000_000))
    started = time.monotonic()
    assert len((await desk.sync()).added) == 1000
    first = time.monotonic() - started
    embedded = len(desk.embedding.texts)
    started = time.monotonic()
    assert (await desk.sync()).unchanged == 1000
    assert time.monotonic() - started < first / 4
    assert len(desk.embedding.texts) == embedded


@pytest.mark.slow
async def test_a_watch_sees_changes_and_a_folder_that_goes(desk: Desk) -> None:
    desk.write(a="Apples are red.")
    events: asyncio.Queue[SyncReport | RagError] = asyncio.Queue()

    async def watch() -> None:
        async for event in desk.open().watch():
            events.put_nowait(event)

    async def next_report() -> SyncReport | RagError:
        return await asyncio.wait_for(events.get(), 120)

    watching = asyncio.create_task(watch())
    try:
        await next_report()
        ready = desk.folder.with_name("b.txt")
        ready.write_text("Bananas are yellow.")
        ready.rename(desk.folder / "b.txt")  # it comes whole
        report = await next_report()
        assert isinstance(report, SyncReport) and report.added == ["b.txt"]
        away = desk.folder.with_name("away")
        desk.folder.rename(away)
        error = await next_report()
        assert isinstance(error, SourceError) and "Nothing was deleted" in error.message
        assert len(desk.stored()) == 2
        away.rename(desk.folder)
        report = await next_report()
        assert isinstance(report, SyncReport) and (report.deleted, report.unchanged) == ([], 2)
        (desk.folder / "b.txt").unlink()
        report = await next_report()
        assert isinstance(report, SyncReport) and report.deleted == ["b.txt"]
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_one_sync_of_a_target_at_a_time(desk: Desk) -> None:
    desk.write(a="Apples are red.")
    source = FolderSource(desk.folder)
    async with desk.house.database.transaction(ADMIN) as connection:
        await lock_target(connection, desk.corpus.id, source.target)
        with pytest.raises(ConflictError, match="Another sync"):
            await desk.sync(source)


async def test_progress_and_targets_that_are_of_no_use(desk: Desk) -> None:
    desk.write(a="Apples are red.", b="Bananas are yellow.")
    await desk.sync()
    assert [(step.done, step.total) for step in desk.told] == [(0, 2), (1, 2), (2, 2)]
    assert [step.seconds_left for step in desk.told] == [None, None, 0]
    with pytest.raises(InputError, match="not a folder"):
        FolderSource(desk.folder / "a.txt")
    source = FolderSource(desk.folder)
    shutil.rmtree(desk.folder)
    with pytest.raises(SourceError, match="Nothing was deleted"):
        await desk.sync(source, delete=True)
    assert len(desk.stored()) == 2


async def test_nobody_else_sees_what_was_synced(desk: Desk) -> None:
    desk.write(a="Apples are red.")
    await desk.sync()
    target = FolderSource(desk.folder).target
    stranger = await desk.house.user("stranger")
    async with desk.house.database.transaction(stranger) as connection:
        assert await read_synced(connection, desk.corpus.id, target) == {}
    async with desk.house.database.transaction(ADMIN) as connection:
        assert list(await read_synced(connection, desk.corpus.id, target)) == ["a.txt"]
    own = await desk.house.corpus(stranger, "own", CorpusKind.PERSONAL)
    with pytest.raises(NotFoundError):
        await desk.open(corpus=own).run()  # another user's corpus
