"""A hostile file is refused or handled, within a minute and its parser's memory, and says why.

A good document that was sent beside it is indexed and found. The files that take seconds of processor
time come with `make soak`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from rag_service.readers.sandbox import ParseLimits
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import cloned_database
from tests.integration.tenancy import hostile_uploads
from tests.integration.tenancy.conftest import Street
from tests.integration.tenancy.hostile_uploads import FILES, GOOD, LIMIT_SECONDS, send_beside_a_good_one

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def busy_street(postgres: EmbeddedServer) -> AsyncIterator[Street]:
    with cloned_database(postgres) as server:
        async with hostile_uploads.busy_street(server) as street:
            yield street


@pytest.mark.slow
@pytest.mark.parametrize("what", [name for name, file in FILES.items() if not file.slow])
async def test_a_hostile_file_harms_nobody(busy_street: Street, what: str) -> None:
    file = FILES[what]
    outcome = await send_beside_a_good_one(busy_street, file.name, file.make())
    evil = outcome.evil
    assert (evil["status"], evil["code"]) == ("indexed" if file.code is None else "failed", file.code), evil
    if file.code is not None:
        assert file.name in evil["reason"]
        assert evil["attempts"] == 1  # trying again would change nothing
    assert outcome.good["status"] == "indexed", outcome.good
    assert GOOD in outcome.found
    assert outcome.peak_bytes < ParseLimits().memory_bytes
    assert outcome.seconds < LIMIT_SECONDS
