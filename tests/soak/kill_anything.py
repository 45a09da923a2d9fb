"""20 rounds of `kill -9` while the service is used: `python -m tests.soak.kill_anything [documents] [rounds]`.

Each round kills, at a random moment, the server, the postmaster, a backend of PostgreSQL or a parser, during uploads,
questions, sign-ins, exports and syncs of a folder that changes. The client sends again what was not accepted, as a
client would. Exits with 1 when a reply to an upload is neither an acceptance nor a 503 with Retry-After, when another
reply is no result and no failure that may pass, when an accepted document is not indexed in the end, when chunks and
statistics differ from those of an undisturbed run, when the synced corpus is not equal to its folder, when a complete
export cannot be read, or when a session was lost.
"""

from __future__ import annotations

import asyncio
import io
import os
import random
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import click
import httpx
import psutil
import psycopg

from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import ArchiveError
from rag_service.ingest.transfer.reading import read_parts
from rag_service.store.accounts.keys import Scope, create_key
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer, start_embedded_server
from rag_service.store.migrate import migrate
from rag_service.tasks import end_tasks
from tests.integration.tenancy.killing import make_documents
from tests.soak.rig import ROOT, Rig, paced_embedder, running_server

VICTIMS = ("server", "postmaster", "backend", "parser")
_PASSWORD = "correct horse battery staple"
_MAY_PASS = {"store_unavailable", "embedding_unavailable", "llm_busy", "rate_limited"}
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
_SYNCED = (
    "SELECT d.name, t.text FROM rag.documents d JOIN rag.document_texts t ON t.document_id = d.id"
    " WHERE d.corpus_id = %s"
)
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
    embedder: str  # URL of a double: what is killed is the service, not a model
    headers: dict[str, str] = field(default_factory=dict)  # an administrator's key
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
            auth="required",
            public_url="http://127.0.0.1",
            embedding_provider="ollama",
            embedding_model="llama3.2",
            ollama_url=self.embedder,
            similarity_threshold=0.05,
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
        return str((await self.post("corpora", name=name))["id"])

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        """As the administrator, while nothing is killed."""
        async with httpx.AsyncClient(timeout=60, headers=self.headers) as client:
            reply = (await client.post(f"{self.url}/{path}", json=body)).raise_for_status()
        made: dict[str, Any] = reply.json() if reply.content else {}
        return made

    async def again_and_again(self, what: str, use: Callable[[httpx.AsyncClient], Awaitable[str | None]]) -> None:
        """Use the service until cancelled. `use` returns what is wrong; a failure that may pass is only counted."""
        while True:
            await self.once(what, use)
            await asyncio.sleep(0.5)

    async def once(self, what: str, use: Callable[[httpx.AsyncClient], Awaitable[str | None]]) -> bool:
        """Whether it succeeded."""
        try:
            async with httpx.AsyncClient(timeout=60) as client:
                wrong = await use(client)
        except httpx.TransportError:
            self.replies[f"{what}: no reply"] += 1
            return False
        except httpx.HTTPStatusError as error:
            problem = error.response.json()
            self.replies[f"{what}: {problem['code']}"] += 1
            if problem["code"] not in _MAY_PASS:
                self.faults.append(f"{what}: {problem}")
            return False
        self.replies[f"{what}: done"] += 1
        if wrong:
            self.faults.append(f"{what}: {wrong}")
        return not wrong

    async def upload(self, corpus: str, name: str, data: bytes) -> None:
        """Until the service has accepted it."""
        while True:
            try:
                async with httpx.AsyncClient(timeout=30, headers=self.headers) as client:
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
                embedder = await stack.enter_async_context(paced_embedder(0.05))
                storm = Storm(folder=folder, stack=stack, database=database, embedder=embedder)
                storm.headers = {"X-API-Key": await _administrators_key(database)}
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
    user = await User.made(storm)
    papers = await Papers.made(storm)
    uses = {
        "question": partial(_ask, storm),
        "sign-in": user.sign_in,
        "session": user.look,
        "export": partial(_export, storm, calm),
        "sync": papers.change_and_sync,
    }

    started = time.monotonic()
    using = [asyncio.create_task(storm.again_and_again(what, use)) for what, use in uses.items()]
    uploads = asyncio.create_task(_upload_slowly(storm, stormy, documents, seconds=rounds * 4.0))
    draw = random.Random()  # noqa: S311 - the moments
    for number in range(rounds):
        await asyncio.sleep(draw.uniform(0.2, 3))
        victim = VICTIMS[number % len(VICTIMS)]
        await storm.kill(victim)
        click.echo(f"{time.monotonic() - started:5.0f} s: {victim} killed, uploads {dict(await storm.states(stormy))}")
    await uploads
    click.echo(f"{time.monotonic() - started:5.0f} s: everything accepted")
    await end_tasks(*using)
    for what, use in uses.items():  # by now without a hand
        if not await storm.once(what, use):
            storm.faults.append(f"{what} does not work in the end")
    synced = await papers.is_synced()
    complete = await storm.indexed(stormy, count)
    click.echo(f"{time.monotonic() - started:5.0f} s: everything done: {complete}")
    same = await storm.counted(stormy) == await storm.counted(calm)
    click.echo(f"kills {dict(storm.killed)}, replies to uploads {dict(storm.replies)}")
    click.echo(f"documents {count}, states {dict(await storm.states(stormy))}, chunks and statistics equal: {same}")
    click.echo(f"the synced corpus is equal to its folder of {len(papers.files())}: {synced}")
    for fault in storm.faults:
        click.echo(fault)
    return 0 if complete and same and synced and not storm.faults else 1


async def _administrators_key(database: EmbeddedServer) -> str:
    service = Database(database.service_conninfo, pool_size=1, timeout=10)
    await service.open()
    try:
        async with service.transaction(LOCAL_ADMIN) as connection:
            _, secret = await create_key(connection, user_id=LOCAL_ADMIN.user_id, name="storm", scopes=frozenset(Scope))
    finally:
        await service.close()
    return secret


async def _ask(storm: Storm, client: httpx.AsyncClient) -> str | None:
    body = {"query": "What does document 3 say about word17?"}
    reply = await client.post(f"{storm.url}/query/answer", json=body, headers=storm.headers)
    answer = reply.raise_for_status().json()
    return None if answer["answer"] else f"an empty answer: {answer}"


async def _export(storm: Storm, corpus: str, client: httpx.AsyncClient) -> str | None:
    """Whoever gets an export to its end can read it."""
    reply = await client.get(f"{storm.url}/corpora/{corpus}/export", headers=storm.headers)
    data = reply.raise_for_status().content
    try:
        parts = await asyncio.to_thread(list, read_parts(io.BytesIO(data), max_document=2**30))
    except ArchiveError as error:
        return error.message
    return None if parts else "an empty export"


@dataclass(kw_only=True)
class User:
    """Signs in with a password, and has a session from before the first kill."""

    storm: Storm
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)

    @classmethod
    async def made(cls, storm: Storm) -> User:
        created = await storm.post("users", name="eva", role="user")
        link = (await storm.post(f"users/{created['id']}/invitation"))["link"]
        token = link.partition("#invitation=")[2].partition("&name=")[0]
        user = cls(storm=storm)
        async with httpx.AsyncClient(timeout=60) as client:
            body = {"invitation": token, "password": _PASSWORD}
            (await client.post(f"{storm.url}/session/invitation", json=body)).raise_for_status()
            user.cookies = client.cookies
        return user

    async def sign_in(self, client: httpx.AsyncClient) -> str | None:
        reply = await client.post(f"{self.storm.url}/session", json={"name": "eva", "password": _PASSWORD})
        reply.raise_for_status()
        await asyncio.sleep(8)  # ten attempts a minute
        return None

    async def look(self, client: httpx.AsyncClient) -> str | None:
        client.cookies = self.cookies
        token = next(value for name, value in self.cookies.items() if "csrf" in name)
        reply = await client.get(f"{self.storm.url}/users/me", headers={"X-CSRF-Token": token})
        return None if reply.raise_for_status().json()["name"] == "eva" else "another user"


@dataclass(kw_only=True)
class Papers:
    """A folder that changes and is synced."""

    storm: Storm
    folder: Path
    corpus: str
    source: str
    changes: int = 0

    @classmethod
    async def made(cls, storm: Storm) -> Papers:
        folder = storm.folder / "papers"
        folder.mkdir()
        for number in range(20):
            (folder / f"paper{number}.txt").write_text(f"Paper {number} was written first.")
        corpus = await storm.create_corpus("papers")
        made = await storm.post(f"corpora/{corpus}/sources", target=str(folder), everySeconds=86_400)
        return cls(storm=storm, folder=folder, corpus=corpus, source=made["id"])

    def files(self) -> dict[str, str]:
        return {file.name: file.read_text() for file in self.folder.iterdir()}

    async def change_and_sync(self, client: httpx.AsyncClient) -> str | None:
        """One file is changed, one is new."""
        self.changes += 1
        for number in (self.changes % 20, 20 + self.changes):
            (self.folder / f"paper{number}.txt").write_text(f"Paper {number} has change {self.changes}.")
        await self.run_now(client)
        await asyncio.sleep(5)
        return None

    async def run_now(self, client: httpx.AsyncClient) -> None:
        reply = await client.post(f"{self.storm.url}/sources/{self.source}/run", headers=self.storm.headers)
        reply.raise_for_status()

    async def is_synced(self) -> bool:
        """Wait until the documents are the files, each once."""
        until, query = time.monotonic() + _WITHIN, _SYNCED
        while time.monotonic() < until:
            stored = await self.storm._query(query, self.corpus)
            if sorted(stored) == sorted(self.files().items()):
                return True
            async with httpx.AsyncClient(timeout=60) as client:
                await self.run_now(client)
            await asyncio.sleep(5)
        return False


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
    children = psutil.Process(server).children()
    return [child.pid for child in children if b"sandbox_child" in _command(child.pid)]


def _command(process: int) -> bytes:
    with suppress(OSError):  # ended meanwhile
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(asyncio.run(main(*(numbers or [100, 20]))))
