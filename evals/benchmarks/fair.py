"""One account does its worst, in each of many ways, while another asks, uploads and signs in every second.

Each way has its control: what the other account saw right before. The service is one process with its worker, as
`rag-service serve` starts it, without a chat model; the attacker is one account with one key, from one network.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import psycopg

from evals.benchmarks.answer import make_questions, serve_settings
from evals.benchmarks.database import BENCH_USER
from evals.benchmarks.ingest import IngestBench, ingest_folder
from evals.benchmarks.timing import Row
from evals.benchmarks.wire import served
from rag_service.auth.passwords import hash_password
from rag_service.domain import Role
from rag_service.store.accounts.keys import ALL_SCOPES, create_key
from rag_service.store.accounts.users import create_user

_PASSWORD = "correct horse battery staple"  # noqa: S105 - of accounts in the database of the benchmarks
_SIGNERS = 20  # accounts that sign in: each may try ten times a minute
_QUIET_SECONDS = 60.0  # for the service to become quiet after an attack
_SLOW, _RATIO, _HEALTH = 2.0, 3.0, 0.3  # seconds, times the control, seconds
_GIVE_UP = 60.0  # seconds of a request of the other account

_Words = Sequence[str]


@dataclass(frozen=True, kw_only=True)
class FairOptions:
    """How long each way takes."""

    seconds: float = 10.0  # of each attack
    control: float = 4.0  # seconds before it
    ways: tuple[str, ...] = ()  # names; none: all


@dataclass(kw_only=True)
class _Seen:
    seconds: dict[str, list[float]] = field(default_factory=dict)  # by what the other account did
    failures: Counter[str] = field(default_factory=Counter)

    def p95(self, name: str) -> float:
        times = self.seconds.get(name, [])
        return float(np.percentile(times, 95)) if times else 0.0


@dataclass(frozen=True, kw_only=True)
class _Accounts:
    attacker: UUID
    keys: Mapping[str, str]  # "attacker", "other" → key
    corpora: Mapping[str, UUID]


@dataclass
class _Attack:
    """What an attack can do. Its requests are repeated until it ends."""

    client: httpx.AsyncClient
    port: int
    key: str
    corpus: UUID
    words: _Words
    chance: random.Random
    statuses: Counter[int] = field(default_factory=Counter)
    document: str = ""  # of a large original

    def text(self, characters: int) -> str:
        """Sentences of the language of the documents."""
        found: list[str] = []
        length = 0
        while length < characters:
            sentence = " ".join(self.chance.choices(self.words, k=12)).capitalize() + ". "
            found.append(sentence)
            length += len(sentence)
        return "".join(found)[:characters].strip()

    async def post(self, path: str, body: Any, **options: Any) -> None:
        """Send a request; what comes is counted."""
        try:
            reply = await self.client.post(path, json=body, **options)
            self.statuses[reply.status_code] += 1
            if reply.status_code == 429:
                await asyncio.sleep(0.2)  # an attacker who takes no notice of Retry-After
        except httpx.HTTPError:
            self.statuses[0] += 1

    async def get(self, path: str) -> None:
        try:
            self.statuses[(await self.client.get(path)).status_code] += 1
        except httpx.HTTPError:
            self.statuses[0] += 1

    async def upload(self, name: str, data: bytes) -> None:
        files = {"file": (name, data)}
        with suppress(httpx.HTTPError):
            reply = await self.client.post(f"/api/v1/corpora/{self.corpus}/documents", files=files)
            self.statuses[reply.status_code] += 1

    async def drip(self, head: str, *, every: float) -> None:
        """A request whose body never ends."""
        _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(head.encode())
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(every)
        except ConnectionError:
            self.statuses[0] += 1
        finally:
            writer.close()

    async def ignore(self, path: str, body: bytes) -> None:
        """A request whose reply is never read."""
        _, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1)
        try:
            writer.write(self.head("POST", path, len(body)).encode() + body)
            await asyncio.sleep(3600)
        finally:
            writer.close()

    def head(self, method: str, path: str, length: int, media_type: str = "application/json") -> str:
        return (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n"
        )


async def _at_once(count: int, work: Callable[[], Awaitable[None]]) -> None:
    """Do the same in so many tasks, again and again, until cancelled."""

    async def repeat() -> None:
        while True:
            await work()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            tasks.create_task(repeat())


async def _check(attack: _Attack, count: int, *, background: bool = False) -> None:
    passages = [{"text": attack.text(2_000)} for _ in range(10)]
    body = {"text": attack.text(199_000), "passages": passages, "background": background}
    await _at_once(count, lambda: attack.post("/api/v1/check", body))


async def _ask(attack: _Attack, count: int, path: str, characters: int = 3_900, **more: Any) -> None:
    await _at_once(count, lambda: attack.post(path, {"query": attack.text(characters), **more}))


async def _upload(attack: _Attack, count: int, megabytes: float, suffix: str = "txt") -> None:
    for number in range(count):
        text = attack.text(int(megabytes * 1e6))
        if suffix == "csv":
            text = "\n".join(",".join(line.split()) for line in text.split(". "))
        await attack.upload(f"long {number}.{suffix}", text.encode())
    await asyncio.sleep(3600)


async def _upload_small(attack: _Attack) -> None:
    await _at_once(30, lambda: attack.upload(f"{attack.chance.random()}.txt", attack.text(400).encode()))


async def _unread_streams(attack: _Attack) -> None:
    body = b'{"query": "%s"}' % attack.text(200).encode()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(500):
            tasks.create_task(attack.ignore("/api/v1/query/answer/stream", body))


async def _dripped_imports(attack: _Attack) -> None:
    head = attack.head("POST", "/api/v1/corpora/import", 10**8, "multipart/form-data; boundary=b")
    head += '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    async with asyncio.TaskGroup() as tasks:
        for _ in range(10):
            tasks.create_task(attack.drip(head, every=2.0))


async def _dripped_questions(attack: _Attack) -> None:
    async with asyncio.TaskGroup() as tasks:
        for _ in range(200):
            tasks.create_task(attack.drip(attack.head("POST", "/api/v1/query", 10_000), every=0.5))


async def _sign_ins(attack: _Attack) -> None:
    async def sign_in() -> None:
        body = {"name": f"made up {attack.chance.random()}", "password": _PASSWORD}
        await attack.post("/api/v1/session", body, headers={"X-Forwarded-For": "192.0.2.1"})

    await _at_once(60, sign_in)


async def _embed(attack: _Attack) -> None:
    body = {"model": "multilingual-e5-small", "input": [attack.text(3_800) for _ in range(250)]}
    await _at_once(20, lambda: attack.post("/v1/embeddings", body))


async def _leave(attack: _Attack) -> None:
    async def ask_and_leave() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await attack.post("/api/v1/query/answer", {"query": attack.text(2_000)})

    await _at_once(40, ask_and_leave)


async def _originals(attack: _Attack) -> None:
    await _at_once(30, lambda: attack.get(f"/api/v1/documents/{attack.document}/original"))


async def _chunks(attack: _Attack) -> None:
    await _at_once(60, lambda: attack.get(f"/api/v1/documents/{attack.document}/chunks?limit=200"))


async def _history(attack: _Attack) -> None:
    turns = [{"role": role, "content": attack.text(1_900)} for _ in range(10) for role in ("user", "assistant")]
    messages = [*turns, {"role": "user", "content": attack.text(1_900)}]
    await _at_once(40, lambda: attack.post("/v1/chat/completions", {"model": "rag-service", "messages": messages}))


async def _junk(attack: _Attack) -> None:
    body = {"text": "x", "passages": [{"text": "a", "chunkId": "b"}] * 9_000}
    await _at_once(30, lambda: attack.post("/api/v1/check", body))


# K1 of the attack on effb47fd, then others of the same kinds.
WAYS: Mapping[str, Callable[[_Attack], Awaitable[None]]] = {
    "12 checks": partial(_check, count=12),
    "60 checks": partial(_check, count=60),
    "30 long searches": partial(_ask, count=30, path="/api/v1/query"),
    "60 long searches": partial(_ask, count=60, path="/api/v1/query"),
    "12 heavy questions": partial(_ask, count=12, path="/api/v1/query/answer"),
    "60 heavy questions": partial(_ask, count=60, path="/api/v1/query/answer"),
    "2 files of 3 MB": partial(_upload, count=2, megabytes=3),
    "500 unread streams": _unread_streams,
    "dripped imports": _dripped_imports,
    "background checks": partial(_check, count=6, background=True),
    "60 made-up sign-ins": _sign_ins,
    "embeddings": _embed,
    "many small uploads": _upload_small,
    "3 tables of 2 MB": partial(_upload, count=3, megabytes=2, suffix="csv"),
    "20 exports": lambda attack: _at_once(20, lambda: attack.get(f"/api/v1/corpora/{attack.corpus}/export")),
    "originals": _originals,
    "lists of chunks": _chunks,
    "300 lists of documents": lambda attack: _at_once(
        300, lambda: attack.get(f"/api/v1/corpora/{attack.corpus}/documents?limit=200")
    ),
    "questions that are left": _leave,
    "long conversations": _history,
    "200 dripped questions": _dripped_questions,
    "wrong bodies of 1 MB": _junk,
}


async def measure_fairness(bench: IngestBench, folder: Path, options: FairOptions) -> list[Row]:
    """Ingest the documents, serve them, and attack in each way."""
    texts = await ingest_folder(bench, folder)
    questions, words = make_questions(texts, 300), sorted({word for text in texts for word in text.split()})
    accounts = await _make_accounts(bench)
    settings = serve_settings(bench, "", cached=0)
    settings = {name: value for name, value in settings.items() if name not in ("ollama_url", "model_name")} | {
        "chat_provider": "extractive",
        "auth": "required",
        "public_url": "http://127.0.0.1",
        "trusted_proxies": "127.0.0.1",
    }
    rows: list[Row] = []
    async with served(settings) as service, _client(service.port, accounts.keys["attacker"], 2_000) as client:
        for name in options.ways or WAYS:
            attack = _Attack(
                client, service.port, accounts.keys["attacker"], accounts.corpora["attacker"], words,
                random.Random(name),  # noqa: S311
            )  # fmt: skip
            attack.document = await _store_original(attack)
            rows.append(await _attack(attack, name, accounts, questions, options))
            print("  ".join(f"{key}: {value}" for key, value in rows[-1].items()), flush=True)  # noqa: T201
            await _become_quiet(bench, accounts)
    return rows


async def _attack(
    attack: _Attack, name: str, accounts: _Accounts, questions: Sequence[str], options: FairOptions
) -> Row:
    before = await _use(attack.port, accounts, questions, options.control)
    attacking = asyncio.ensure_future(WAYS[name](attack))
    await asyncio.sleep(1.0)
    during = await _use(attack.port, accounts, questions, options.seconds)
    attacking.cancel()
    await asyncio.wait({attacking})
    row: Row = {"way": name}
    fine = not during.failures
    for what in ("ask", "upload", "sign in"):
        control, p95 = before.p95(what), during.p95(what)
        fine &= p95 <= max(_SLOW, _RATIO * control)
        row |= {f"{what} before s": round(control, 2), f"{what} p95 s": round(p95, 2)}
    health = before.p95("health"), during.p95("health")
    fine &= health[1] <= max(_HEALTH, _RATIO * health[0])
    statuses = ", ".join(f"{status or 'cut'}: {count}" for status, count in sorted(attack.statuses.items()))
    return row | {
        "health before s": round(health[0], 2),
        "health p95 s": round(health[1], 2),
        "failed": str(dict(during.failures)) if during.failures else "",
        "attacker": statuses,
        "holds": "yes" if fine else "NO",
    }


async def _use(port: int, accounts: _Accounts, questions: Sequence[str], seconds: float) -> _Seen:
    """What another account sees: every second a question, a short upload and a sign-in, each beside the others.

    Like a person, it does nothing again before the reply has come: on a machine that others use as well, requests
    would pile up without an attack.
    """
    seen, chance = _Seen(), random.Random(seconds)  # noqa: S311
    end = time.perf_counter() + seconds
    documents = f"/api/v1/corpora/{accounts.corpora['other']}/documents"
    signers = itertools.cycle(range(_SIGNERS))

    async def repeat(name: str, expected: int, work: Callable[[], Awaitable[httpx.Response]]) -> None:
        while (began := time.perf_counter()) < end:
            try:
                status = (await work()).status_code
                if status != expected:
                    seen.failures[f"{name}: {status}"] += 1
            except httpx.HTTPError as error:
                seen.failures[f"{name}: {type(error).__name__}"] += 1
            took = time.perf_counter() - began
            seen.seconds.setdefault(name, []).append(took)
            await asyncio.sleep(max(0.0, 1.0 - took))

    def ask() -> Awaitable[httpx.Response]:
        return client.post("/api/v1/query/answer", json={"query": chance.choice(questions)})

    def upload() -> Awaitable[httpx.Response]:
        text = f"The shop opens at nine. {chance.random()}"[:40]
        return client.post(documents, json={"fileName": f"{chance.random()}.txt", "text": text})

    def sign_in() -> Awaitable[httpx.Response]:
        body = {"name": f"signer {next(signers)}", "password": _PASSWORD}
        return client.post("/api/v1/session", json=body, headers={"X-Forwarded-For": "198.51.100.7"})

    async with _client(port, accounts.keys["other"], 100) as client, asyncio.TaskGroup() as tasks:
        tasks.create_task(repeat("ask", 200, ask))
        tasks.create_task(repeat("upload", 202, upload))
        tasks.create_task(repeat("sign in", 204, sign_in))
        tasks.create_task(repeat("health", 200, lambda: client.get("/health")))
    return seen


@asynccontextmanager
async def _client(port: int, key: str, connections: int) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}",
        headers={"Authorization": f"Bearer {key}"},
        timeout=_GIVE_UP,
        limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        trust_env=False,
    ) as client:
        yield client


async def _make_accounts(bench: IngestBench) -> _Accounts:
    owner, database = bench.database.owner_conninfo, bench.database.database
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("DELETE FROM rag.users WHERE name IN ('attacker', 'other') OR name LIKE 'signer %'")
    keys, users = dict[str, str](), dict[str, UUID]()
    async with database.transaction(BENCH_USER) as opened:
        for name in ("attacker", "other", *(f"signer {number}" for number in range(_SIGNERS))):
            users[name] = (await create_user(opened, name=name, role=Role.USER)).id
        for name in ("attacker", "other"):
            _, keys[name] = await create_key(opened, user_id=users[name], name="bench", scopes=ALL_SCOPES)
    corpora = {}
    with psycopg.connect(owner, autocommit=True) as connection:
        hashed = hash_password(_PASSWORD)
        for number in range(_SIGNERS):
            connection.execute(
                "INSERT INTO rag.passwords (user_id, hash) VALUES (%s, %s)", [users[f"signer {number}"], hashed]
            )
        # Both ask the same documents: those of the benchmark, which everybody may read now.
        connection.execute("UPDATE rag.corpora SET kind = 'global', owner_id = NULL, shared = true")
        for name in keys:
            row = connection.execute(
                "INSERT INTO rag.corpora (name, kind, owner_id, index_name) VALUES (%s, 'personal', %s, 'general')"
                " RETURNING id",
                [f"of {name}", users[name]],
            ).fetchone()
            corpora[name] = row[0] if row else UUID(int=0)
    return _Accounts(attacker=users["attacker"], keys=keys, corpora=corpora)


async def _store_original(attack: _Attack) -> str:
    """A document of the attacker's own, whose text needs no long embedding."""
    data = ("word " * 400 + "\n\n").encode() * 5
    reply = await attack.client.post(
        f"/api/v1/corpora/{attack.corpus}/documents", files={"file": ("original.txt", data)}
    )
    return str(reply.json()["documentId"])


async def _become_quiet(bench: IngestBench, accounts: _Accounts) -> None:
    """Delete what the attacker left, and wait until nothing of it is in work."""
    with psycopg.connect(bench.database.owner_conninfo, autocommit=True) as connection:
        connection.execute(
            "DELETE FROM rag.documents WHERE corpus_id = ANY(%s) AND name <> 'original.txt'",
            [list(accounts.corpora.values())],
        )
        connection.execute("DELETE FROM rag.procrastinate_jobs WHERE status = 'todo'")
        end = time.monotonic() + _QUIET_SECONDS
        while time.monotonic() < end:
            left = connection.execute("SELECT count(*) FROM rag.procrastinate_jobs").fetchone()
            if left is None or not left[0]:
                break
            await asyncio.sleep(0.5)
    await asyncio.sleep(2.0)
