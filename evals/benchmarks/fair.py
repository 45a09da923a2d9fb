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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

import httpx
import numpy as np
import psycopg

from evals.benchmarks.answer import make_questions, serve_settings
from evals.benchmarks.attacks import PASSWORD, WAYS, attacking, open_client
from evals.benchmarks.database import BENCH_USER
from evals.benchmarks.ingest import IngestBench, ingest_folder
from evals.benchmarks.timing import Row
from evals.benchmarks.wire import Service, served
from rag_service.auth.passwords import hash_password
from rag_service.domain import Role
from rag_service.store.accounts.keys import ALL_SCOPES, create_key
from rag_service.store.accounts.users import create_user

_SIGNERS = 20  # accounts that sign in: each may try ten times a minute
_QUESTIONS = 4  # asked again and again: one takes three times as long as another, and the control must ask the same
_QUIET_SECONDS = 60.0  # for the service to become quiet after an attack
_SLOW, _RATIO, _HEALTH = 2.0, 3.0, 0.3  # seconds, times the control, seconds


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
    processors: float = 0.0  # that the service kept busy, without its database

    def p95(self, name: str) -> float:
        times = self.seconds.get(name, [])
        return float(np.percentile(times, 95)) if times else 0.0


@dataclass(frozen=True, kw_only=True)
class _Accounts:
    attacker: UUID
    keys: Mapping[str, str]  # "attacker", "other" → key
    corpora: Mapping[str, UUID]


async def measure_fairness(bench: IngestBench, folder: Path, options: FairOptions) -> list[Row]:
    """Ingest the documents, serve them, and attack in each way."""
    texts = await ingest_folder(bench, folder)
    questions, words = make_questions(texts, _QUESTIONS), sorted({word for text in texts for word in text.split()})
    accounts = await _make_accounts(bench)
    settings = serve_settings(bench, "", cached=0)
    settings = {name: value for name, value in settings.items() if name not in ("ollama_url", "model_name")} | {
        "chat_provider": "extractive",
        "auth": "required",
        "public_url": "http://127.0.0.1",
        "trusted_proxies": "127.0.0.1",
    }
    rows: list[Row] = []
    async with served(settings) as service, open_client(service.port, accounts.keys["attacker"], 10) as client:
        for name in options.ways or WAYS:
            document = await _store_original(client, accounts.corpora["attacker"])
            attack = partial(
                attacking,
                name,
                port=service.port,
                key=accounts.keys["attacker"],
                corpus=str(accounts.corpora["attacker"]),
                document=document,
                words=words,
            )
            rows.append(await _attack(name, attack, service, accounts, questions, options))
            print("  ".join(f"{key}: {value}" for key, value in rows[-1].items()), flush=True)  # noqa: T201
            await _become_quiet(bench, accounts)
    return rows


async def _attack(
    name: str,
    attack: Callable[[], AbstractAsyncContextManager[Counter[str]]],
    service: Service,
    accounts: _Accounts,
    questions: Sequence[str],
    options: FairOptions,
) -> Row:
    before = await _use(service, accounts, questions, options.control)
    async with attack() as statuses:
        await asyncio.sleep(1.0)
        during = await _use(service, accounts, questions, options.seconds)
    row: Row = {"way": name}
    fine = not during.failures
    for what in ("ask", "upload", "sign in"):
        control, p95 = before.p95(what), during.p95(what)
        fine &= p95 <= max(_SLOW, _RATIO * control)
        row |= {f"{what} before s": round(control, 2), f"{what} p95 s": round(p95, 2)}
    health = before.p95("health"), during.p95("health")
    fine &= health[1] <= max(_HEALTH, _RATIO * health[0])
    got = ", ".join(f"{'cut' if status == '0' else status}: {count}" for status, count in sorted(statuses.items()))
    return row | {
        "health before s": round(health[0], 2),
        "health p95 s": round(health[1], 2),
        "processors": round(during.processors, 2),
        "failed": str(dict(during.failures)) if during.failures else "",
        "attacker": got,
        "holds": "yes" if fine else "NO",
    }


async def _use(service: Service, accounts: _Accounts, questions: Sequence[str], seconds: float) -> _Seen:
    """What another account sees: every second a question, a short upload and a sign-in, each beside the others.

    Like a person, it does nothing again before the reply has come: on a machine that others use as well, requests
    would pile up without an attack.
    """
    seen, chance = _Seen(), random.Random(seconds)  # noqa: S311
    began, used = time.perf_counter(), service.processor_seconds()
    end = began + seconds
    documents = f"/api/v1/corpora/{accounts.corpora['other']}/documents"
    signers, asked = itertools.cycle(range(_SIGNERS)), itertools.cycle(questions)

    async def repeat(name: str, expected: int, work: Callable[[], Awaitable[httpx.Response]]) -> None:
        while (sent := time.perf_counter()) < end:
            try:
                status = (await work()).status_code
                if status != expected:
                    seen.failures[f"{name}: {status}"] += 1
            except httpx.HTTPError as error:
                seen.failures[f"{name}: {type(error).__name__}"] += 1
            took = time.perf_counter() - sent
            seen.seconds.setdefault(name, []).append(took)
            await asyncio.sleep(max(0.0, 1.0 - took))

    def ask() -> Awaitable[httpx.Response]:
        return client.post("/api/v1/query/answer", json={"query": next(asked)})

    def upload() -> Awaitable[httpx.Response]:
        text = f"The shop opens at nine. {chance.random()}"[:40]
        return client.post(documents, json={"fileName": f"{chance.random()}.txt", "text": text})

    def sign_in() -> Awaitable[httpx.Response]:
        body = {"name": f"signer {next(signers)}", "password": PASSWORD}
        return client.post("/api/v1/session", json=body, headers={"X-Forwarded-For": "198.51.100.7"})

    async with open_client(service.port, accounts.keys["other"], 100) as client, asyncio.TaskGroup() as tasks:
        tasks.create_task(repeat("ask", 200, ask))
        tasks.create_task(repeat("upload", 202, upload))
        tasks.create_task(repeat("sign in", 204, sign_in))
        tasks.create_task(repeat("health", 200, lambda: client.get("/health")))
    seen.processors = (service.processor_seconds() - used) / (time.perf_counter() - began)
    return seen


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
        hashed = hash_password(PASSWORD)
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


async def _store_original(client: httpx.AsyncClient, corpus: UUID) -> str:
    """A document of the attacker's own, whose text needs no long embedding."""
    data = ("word " * 400 + "\n\n").encode() * 5
    reply = await client.post(f"/api/v1/corpora/{corpus}/documents", files={"file": ("original.txt", data)})
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
