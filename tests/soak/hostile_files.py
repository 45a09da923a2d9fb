"""Every hostile file through upload, queue and sandbox: `python -m tests.soak.hostile_files`.

Prints what became of each, in how long and with how much memory. Exits with 1 when one is not handled as
expected, takes more than a minute or more memory than a parser may have, or harms the document beside it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import click
import structlog

from rag_service.readers.sandbox import ParseLimits
from rag_service.store.embedded import start_embedded_server
from rag_service.store.migrate import migrate
from tests.conftest import DIMENSION
from tests.integration.tenancy.hostile_uploads import FILES, GOOD, LIMIT_SECONDS, busy_street, send_beside_a_good_one


async def main() -> int:
    missed = 0
    with tempfile.TemporaryDirectory(prefix="rag-soak-") as folder:
        server = await start_embedded_server(Path(folder))
        await migrate(server.owner_conninfo, server.service_conninfo, dimension=DIMENSION)
        async with busy_street(server) as street:
            for what, file in FILES.items():
                data = file.make()
                outcome = await send_beside_a_good_one(street, file.name, data)
                harmless = outcome.good["status"] == "indexed" and GOOD in outcome.found
                cheap = outcome.seconds < LIMIT_SECONDS and outcome.peak_bytes < ParseLimits().memory_bytes
                good = outcome.evil["code"] == file.code and harmless and cheap
                missed += not good
                click.echo(
                    f"{'ok  ' if good else 'MISS'} {what:26} {len(data) / 1e6:6.2f} MB  {outcome.seconds:5.1f} s "
                    f"{outcome.peak_bytes / 2**20:5.0f} MiB  {outcome.evil['status']} {outcome.evil['code'] or ''}"
                )
    return 1 if missed else 0


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    sys.exit(asyncio.run(main()))
