"""20 rounds of `kill -9` while uploads come in: `python -m tests.soak.kill_anything [documents] [rounds]`.

Each round kills, at a random moment, the server, the postmaster, a backend of PostgreSQL or a parser. The client
sends again what was not accepted, as a client would. Exits with 1 when a reply is neither an acceptance nor a
503 with Retry-After, when an accepted document is not indexed in the end, or when chunks and statistics differ
from those of an undisturbed run.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

import click
import httpx
import psycopg

from rag_service.store.embedded import EmbeddedServer, start_embedded_server
from rag_service.store.migrate import migrate
from tests.integration.tenancy.killing import make_documents
from tests.soak.rig import ROOT, Rig, running_server

VICTIMS = ("server", "postmaster", "backend", "parser")
_WITHIN = 300  # seconds in which everything must be indexed after the last kill
_HOLD = """
import asyncio, sys
from pathlib import Path
from rag_service.store.embedded import start_embedded_server
asyncio.run(start_embedded_server(Path(sys.argv[1])))
print("joined", flush=True)
sys.stdin.read()
"""
_BACKEND = "SELECT pid FROM pg_stat_activity WHERE usename = 'rag_service' ORDER BY random() LIMIT 1"
_COUNTED = (
    "SELECT d.name, c.chunk_index, c.text FROM rag.data_chunks c JOIN rag.documents d ON d.id = c.document_id"
    " WHERE c.corpus_id = %s ORDER BY 1, 2",
    "SELECT chunk_count, term_count FROM rag.corpus_statistics WHERE corpus_id = %s",
    "SELECT term, chunk_frequency FROM rag.term_statistics WHERE corpus_id = %s ORDER BY 1",
)


@dataclass(kw_only=True)
class Storm:
    """The service and its database, each started again after its death."""

    folder: Path
    stack: AsyncExitStack
    database: EmbeddedServer
    rig: Rig | None = None
    killed: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.rig.port}/api/v1" if self.rig else "http://127.0.0.1:9"

    async def serve(self) -> None:
        started = running_server(
            self.folder / f"server-{self.killed['server']}.log",
            data_dir=self.folder,
            database_url=self.database.service_conninfo,
            fit_relevance=False,
            upload_keep_mb=64,
        )
        self.rig = await self.stack.enter_async_context(started)

    async def kill(self, victim: str) -> None:
        assert self.rig is not None
        match victim:
            case "server":
                self.rig.server.kill()
                await self.rig.server.wait()
                self.killed[victim] += 1
                await self.serve()
                return
            case "postmaster":
                os.kill(_postmaster(self.folder), signal.SIGKILL)
                await self._start_database()
            case "backend":
                while not (backends := await self._query(_BACKEND)):  # noqa: ASYNC110 - of another process
                    await asyncio.sleep(0.1)
                os.kill(backends[0][0], signal.SIGKILL)
            case "parser":
                os.kill(await self._parser(), signal.SIGKILL)
        self.killed[victim] += 1

    async def _start_database(self) -> None:
        """As an init system would, from another process; the backends of the killed one need a moment to end."""
        async with asyncio.timeout(60):
            while True:
                command = [sys.executable, "-c", _HOLD, str(self.folder)]
                holder = await asyncio.create_subprocess_exec(
                    *command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
                )
                assert holder.stdout is not None
                if await holder.stdout.readline():
                    self.stack.callback(holder.kill)
                    return
                await holder.wait()

    async def _parser(self) -> int:
        assert self.rig is not None
        async with asyncio.timeout(60):
            while True:
                if found := _parsers_of(self.rig.server.pid):
                    return found[0]
                await asyncio.sleep(0.003)

    async def create_corpus(self, name: str) -> str:
        async with httpx.AsyncClient() as client:
            reply = await client.post(f"{self.url}/corpora", json={"name": name})
        reply.raise_for_status()
        return str(reply.json()["id"])

    async def upload(self, corpus: str, name: str, data: bytes) -> None:
        """Until the service has accepted it."""
        while True:
            try:
                async with httpx.AsyncClient(timeout=30) as client:
                    reply = await client.post(
                        f"{self.url}/corpora/{corpus}/documents", files={"file": (name, data, "text/plain")}
                    )
            except httpx.TransportError:
                self.replies["no reply"] += 1
            else:
                self.replies[str(reply.status_code)] += 1
                if reply.status_code == 202:
                    return
                if reply.status_code != 503 or "retry-after" not in reply.headers:
                    self.faults.append(reply.text)
                    return
            await asyncio.sleep(0.2)

    async def states(self, corpus: str) -> Counter[str]:
        rows = await self._query("SELECT status, code FROM rag.uploads WHERE corpus_id = %s", corpus)
        return Counter(" ".join(filter(None, row)) for row in rows)

    async def counted(self, corpus: str) -> list[list[Any]]:
        return [await self._query(question, corpus) for question in _COUNTED]

    async def _query(self, question: LiteralString, *values: str) -> list[Any]:
        """As the owner, who sees everything; again while the database recovers."""
        async with asyncio.timeout(60):
            while True:
                with suppress(psycopg.OperationalError):
                    async with await psycopg.AsyncConnection.connect(self.database.owner_conninfo) as owner:
                        return await (await owner.execute(question, values)).fetchall()
                await asyncio.sleep(0.1)

    async def indexed(self, corpus: str, count: int) -> bool:
        """Wait until that many documents are stored and no upload is under way."""
        until = time.monotonic() + _WITHIN
        while time.monotonic() < until:
            states = await self.states(corpus)
            stored = await self._query("SELECT name FROM rag.documents WHERE corpus_id = %s", corpus)
            if len(stored) == count and set(states) <= {"indexed"}:
                return True
            await asyncio.sleep(0.5)
        return False


async def main(count: int, rounds: int) -> int:
    with tempfile.TemporaryDirectory(prefix="rag-soak-") as name:
        folder = Path(name)
        await asyncio.to_thread(folder.chmod, 0o755)  # the database may run as another user
        database = await start_embedded_server(folder)
        await migrate(database.owner_conninfo, database.service_conninfo, dimension=384)
        try:
            async with AsyncExitStack() as stack:
                storm = Storm(folder=folder, stack=stack, database=database)
                await storm.serve()
                return await _compare(storm, count, rounds)
        finally:
            os.kill(_postmaster(folder), signal.SIGQUIT)


async def _compare(storm: Storm, count: int, rounds: int) -> int:
    documents = [(document.file_name, document.data) for document in make_documents(count)]
    calm, stormy = await storm.create_corpus("calm"), await storm.create_corpus("stormy")
    for name, data in documents:
        await storm.upload(calm, name, data)
    assert await storm.indexed(calm, count), await storm.states(calm)
    storm.replies.clear()

    started = time.monotonic()
    uploads = asyncio.create_task(_upload_slowly(storm, stormy, documents, seconds=rounds * 4.0))
    draw = random.Random()  # noqa: S311 - the moments
    for number in range(rounds):
        await asyncio.sleep(draw.uniform(0.2, 3))
        victim = VICTIMS[number % len(VICTIMS)]
        await storm.kill(victim)
        click.echo(f"{time.monotonic() - started:5.0f} s: {victim} killed, uploads {dict(await storm.states(stormy))}")
    await uploads
    click.echo(f"{time.monotonic() - started:5.0f} s: everything accepted")
    complete = await storm.indexed(stormy, count)
    click.echo(f"{time.monotonic() - started:5.0f} s: everything done: {complete}")
    same = await storm.counted(stormy) == await storm.counted(calm)
    click.echo(f"kills {dict(storm.killed)}, replies to uploads {dict(storm.replies)}")
    click.echo(f"documents {count}, states {dict(await storm.states(stormy))}, chunks and statistics equal: {same}")
    for fault in storm.faults:
        click.echo(fault)
    return 0 if complete and same and not storm.faults else 1


async def _upload_slowly(storm: Storm, corpus: str, documents: list[tuple[str, bytes]], *, seconds: float) -> None:
    """Two clients; the kills fall between the first and the last document."""
    waiting = iter(documents)

    async def send() -> None:
        for name, data in waiting:
            await storm.upload(corpus, name, data)
            await asyncio.sleep(2 * seconds / len(documents) * 0.5)

    await asyncio.gather(send(), send())


def _postmaster(folder: Path) -> int:
    return int((folder / "postgres" / "postmaster.pid").read_text().split()[0])


def _parsers_of(server: int) -> list[int]:
    children = [child for file in Path(f"/proc/{server}/task").glob("*/children") for child in file.read_text().split()]
    return [int(child) for child in children if b"sandbox_child" in _command(child)]


def _command(process: str) -> bytes:
    with suppress(OSError):  # ended meanwhile
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(asyncio.run(main(*(numbers or [100, 20]))))
