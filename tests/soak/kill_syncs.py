"""300 files, 10 kills: `python -m tests.soak.kill_syncs [files] [kills] [reader]`. Exits with 1 when a bar is missed.

Syncs of a folder, or of a LlamaIndex reader of it, are killed with signal 9 while they work, and the folder changes in
between. In the end the corpus must be equal to the folder, and everything must belong to the sync.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from pathlib import Path

import click
import structlog

from rag_service.domain import CorpusKind
from rag_service.sources.folder import FolderSource
from rag_service.store.database import Database
from rag_service.store.embedded import start_embedded_server
from rag_service.store.migrate import migrate
from tests.conftest import DIMENSION
from tests.integration.sync.conftest import CountingEmbedding, Desk
from tests.integration.sync.killing import open_reader, sync_under_fire
from tests.integration.tenancy.conftest import ADMIN, House


async def main(files: int, kills: int, *, by_reader: bool = False) -> int:
    with tempfile.TemporaryDirectory(prefix="rag-soak-") as place:
        server = await start_embedded_server(Path(place))
        await migrate(server.owner_conninfo, server.service_conninfo, dimension=DIMENSION)
        database = Database(server.service_conninfo, pool_size=4, timeout=5)
        await database.open()
        embedding = CountingEmbedding(model_name="fake")
        house = House(server=server, database=database, embedding=embedding)
        folder = Path(place) / "papers"
        folder.mkdir()
        corpus = await house.corpus(ADMIN, "papers", CorpusKind.GLOBAL)
        desk = Desk(house=house, corpus=corpus, folder=folder, embedding=embedding)
        try:
            return await _compare(desk, files, kills, by_reader=by_reader)
        finally:
            await database.close()


async def _compare(desk: Desk, files: int, kills: int, *, by_reader: bool) -> int:
    open_source = open_reader if by_reader else FolderSource
    prefix = f"papers/{desk.folder}/" if by_reader else ""
    desk.write(**{f"file{number}": f"Text number {number}." for number in range(files)})
    started = time.monotonic()
    died = await sync_under_fire(desk, kills=kills, open_source=open_source)
    report = await desk.sync(open_source(desk.folder))
    same = desk.stored() == {f"{prefix}{name}": text for name, text in desk.there().items()}
    with desk.house.owner() as owner:
        brought = owner.execute("SELECT count(*) FROM rag.synced_files WHERE brought").fetchall()[0][0]
    click.echo(f"killed {died}, files {len(desk.there())}, documents {len(desk.stored())}, brought {brought}")
    click.echo(f"equal: {same}; {time.monotonic() - started:.0f} s; the last sync: {report}"[:400])
    return 0 if same and died == kills and brought == len(desk.there()) else 1


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    numbers = [int(argument) for argument in sys.argv[1:] if argument != "reader"]
    sys.exit(asyncio.run(main(*(numbers or [300, 10]), by_reader="reader" in sys.argv[1:])))
