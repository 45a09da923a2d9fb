"""A sync that was killed goes on, and the corpus is equal to the folder in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.sync.conftest import Desk
from tests.integration.sync.killing import open_reader, sync_under_fire

pytestmark = pytest.mark.slow


async def test_a_killed_sync_goes_on(desk: Desk) -> None:
    # Small files are written 32 at a time: enough for some batches after each kill.
    desk.write(**{f"file{number}": f"Text number {number}." for number in range(400)})
    assert await sync_under_fire(desk, kills=2) == 2
    await desk.sync()
    assert desk.stored() == desk.there()
    with desk.house.owner() as owner:
        brought = owner.execute("SELECT count(*) FROM rag.synced_files WHERE brought").fetchone()
    assert brought == (len(desk.there()),)  # and none stays for ever


async def test_500_documents_of_a_killed_reader_are_equal_in_the_end_and_then_only_changes_are_ingested(
    desk: Desk,
) -> None:
    desk.write(**{f"file{number}": f"Text number {number}." for number in range(500)})
    assert await sync_under_fire(desk, kills=3, open_source=open_reader) == 3
    await desk.sync(open_reader(desk.folder))
    there = {f"papers/{desk.folder}/{name}": text for name, text in desk.there().items()}
    assert desk.stored() == there

    for name in sorted(there)[:5]:
        (Path("/") / name.removeprefix("papers//")).write_text(f"Changed: {name[-20:]}.")
    desk.embedding.texts.clear()
    report = await desk.sync(open_reader(desk.folder))
    assert (sorted(report.changed), report.unchanged) == (sorted(there)[:5], len(there) - 5)
    assert len(desk.embedding.texts) == 5
