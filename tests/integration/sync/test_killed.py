"""A sync that was killed goes on, and the corpus is equal to the folder in the end."""

from __future__ import annotations

import pytest

from tests.integration.sync.conftest import Desk
from tests.integration.sync.killing import sync_under_fire

pytestmark = pytest.mark.slow


async def test_a_killed_sync_goes_on(desk: Desk) -> None:
    desk.write(**{f"file{number}": f"Text number {number}." for number in range(60)})
    assert await sync_under_fire(desk, kills=2) == 2
    await desk.sync()
    assert desk.stored() == desk.there()
    with desk.house.owner() as owner:
        brought = owner.execute("SELECT count(*) FROM rag.synced_files WHERE brought").fetchone()
    assert brought == (len(desk.there()),)  # and none stays for ever
