"""50 documents, 20 kills: `python -m tests.soak.kill_workers [documents] [kills]`. Exits with 1 when a bar is missed.

Workers are killed with signal 9 while some document is being parsed, chunked, embedded or stored, the
last transaction included. In the end every document must be indexed, and the chunks and statistics must
equal those of an undisturbed run.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import click
import structlog

from rag_service.store.database import Database
from rag_service.store.embedded import start_embedded_server
from rag_service.store.migrate import migrate
from tests.conftest import DIMENSION, FakeEmbedding
from tests.integration.tenancy.conftest import House
from tests.integration.tenancy.killing import chunk_set, ingest_under_fire, make_documents, statistics


async def main(documents: int, kills: int) -> int:
    with tempfile.TemporaryDirectory(prefix="rag-soak-") as folder:
        server = await start_embedded_server(Path(folder))
        await migrate(server.owner_conninfo, server.service_conninfo, dimension=DIMENSION)
        database = Database(server.service_conninfo, pool_size=4, timeout=5)
        await database.open()
        house = House(server=server, database=database, embedding=FakeEmbedding(model_name="fake"))
        try:
            return await _compare(house, documents, kills)
        finally:
            await database.close()


async def _compare(house: House, count: int, kills: int) -> int:
    user = await house.user("soak")
    documents = make_documents(count)
    calm, stormy = await house.corpus(user, "calm"), await house.corpus(user, "stormy")
    await house.index(user, calm, *documents, within=600)
    outcome = await ingest_under_fire(house, user, stormy, documents, kills=kills, within=600)
    expected, found = chunk_set(house, calm), chunk_set(house, stormy)
    same = found == expected and statistics(house, stormy) == statistics(house, calm)
    click.echo(f"documents {count}, chunks {len(found)} (expected {len(expected)}), equal: {same}")
    click.echo(f"kills by stage {dict(outcome.killed_in)}, claims {outcome.attempts}, {outcome.seconds:.0f} s")
    return 0 if same and sum(outcome.killed_in.values()) == kills else 1


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(asyncio.run(main(*(numbers or [50, 20]))))
