"""An import that is killed with signal 9 leaves nothing, and the same file is imported afterwards."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_service.ingest.transfer.importing import ImportOptions
from rag_service.store.database import Database
from rag_service.store.documents.originals import Originals
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import make_fake_embedding
from tests.integration.tenancy.conftest import ADMIN, House
from tests.integration.tenancy.test_transfer import export, fill, load, number_of, transfers_of

pytestmark = pytest.mark.slow

REACHED = "the second document is next"


async def import_and_wait(conninfo: str, file: Path) -> None:
    """In a process of its own: import a file, and stand still in the middle."""
    database = Database(conninfo, pool_size=2, timeout=5)
    await database.open()
    server = EmbeddedServer(owner_conninfo="", service_conninfo=conninfo)
    originals = Originals(f"file://{file.parent}/kept")
    house = House(server=server, database=database, embedding=make_fake_embedding(), originals=originals)

    def progress(done: int, _: int, what: str) -> None:
        if done and what.startswith("storing"):
            print(REACHED, flush=True)  # noqa: T201 - the test waits for it
            time.sleep(600)

    with file.open("rb") as opened:
        transfers = transfers_of(house, data_dir=file.parent)
        await transfers.imports.read(opened, ADMIN, ImportOptions(name="again"), progress)


async def test_a_killed_import_leaves_nothing(house: House, tmp_path: Path) -> None:
    house.originals = Originals(f"file://{tmp_path}/kept")
    corpus = await fill(house, ADMIN)
    file = tmp_path / "barn.tar"
    file.write_bytes(await export(house, ADMIN, corpus.id))
    code = "import asyncio, sys; from pathlib import Path; from tests.integration.tenancy.test_transfer_killed import *"
    code += "; asyncio.run(import_and_wait(sys.argv[1], Path(sys.argv[2])))"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, house.server.service_conninfo, str(file), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert (await process.stdout.readline()).strip() == REACHED.encode()
    assert number_of(house, "corpora") == 1  # nobody sees it
    before = {path.name for path in (tmp_path / "kept").iterdir()}
    process.kill()
    await process.communicate()
    assert len(before) == 3  # of the corpus, of the import, and the note of it
    for _ in range(600):  # until the server has noticed
        async with house.database.transaction(None) as connection:
            if await Originals(f"file://{tmp_path}/kept").end_lost_imports(connection):
                break
        await asyncio.sleep(0.1)
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {str(corpus.id), "imports"}
    assert list((tmp_path / "transfers").iterdir()) == []
    assert (number_of(house, "corpora"), number_of(house, "documents"), number_of(house, "originals")) == (1, 2, 2)
    assert (await load(house, ADMIN, file.read_bytes(), name="again")).documents == 2
