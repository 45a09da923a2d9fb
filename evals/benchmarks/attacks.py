"""Ways in which one account does its worst, for `evals.benchmarks.fair`. Each runs in a process of its own.

Its work is not the service's, and does not delay what the other account measures.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

PASSWORD = "correct horse battery staple"  # noqa: S105 - of accounts in the database of the benchmarks
_GIVE_UP = 60.0  # seconds of a request


@dataclass
class Attack:
    """What an attack can do. Its requests are repeated until it ends."""

    client: httpx.AsyncClient
    port: int
    key: str
    corpus: str
    words: Sequence[str]
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


async def _check(attack: Attack, count: int, *, background: bool = False) -> None:
    passages = [{"text": attack.text(2_000)} for _ in range(10)]
    body = {"text": attack.text(199_000), "passages": passages, "background": background}
    await _at_once(count, lambda: attack.post("/api/v1/check", body))


async def _ask(attack: Attack, count: int, path: str, characters: int = 3_900, **more: Any) -> None:
    await _at_once(count, lambda: attack.post(path, {"query": attack.text(characters), **more}))


async def _upload(attack: Attack, count: int, megabytes: float, suffix: str = "txt") -> None:
    for number in range(count):
        text = attack.text(int(megabytes * 1e6))
        if suffix == "csv":
            text = "\n".join(",".join(line.split()) for line in text.split(". "))
        await attack.upload(f"long {number}.{suffix}", text.encode())
    await asyncio.sleep(3600)


async def _upload_small(attack: Attack) -> None:
    await _at_once(30, lambda: attack.upload(f"{attack.chance.random()}.txt", attack.text(400).encode()))


async def _unread_streams(attack: Attack) -> None:
    body = b'{"query": "%s"}' % attack.text(200).encode()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(500):
            tasks.create_task(attack.ignore("/api/v1/query/answer/stream", body))


async def _dripped_imports(attack: Attack) -> None:
    head = attack.head("POST", "/api/v1/corpora/import", 10**8, "multipart/form-data; boundary=b")
    head += '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    async with asyncio.TaskGroup() as tasks:
        for _ in range(10):
            tasks.create_task(attack.drip(head, every=2.0))


async def _dripped_questions(attack: Attack) -> None:
    async with asyncio.TaskGroup() as tasks:
        for _ in range(200):
            tasks.create_task(attack.drip(attack.head("POST", "/api/v1/query", 10_000), every=0.5))


async def _sign_ins(attack: Attack) -> None:
    async def sign_in() -> None:
        body = {"name": f"made up {attack.chance.random()}", "password": PASSWORD}
        await attack.post("/api/v1/session", body, headers={"X-Forwarded-For": "192.0.2.1"})

    await _at_once(60, sign_in)


async def _embed(attack: Attack) -> None:
    body = {"model": "multilingual-e5-small", "input": [attack.text(3_800) for _ in range(250)]}
    await _at_once(20, lambda: attack.post("/v1/embeddings", body))


async def _leave(attack: Attack) -> None:
    async def ask_and_leave() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await attack.post("/api/v1/query/answer", {"query": attack.text(2_000)})

    await _at_once(40, ask_and_leave)


async def _originals(attack: Attack) -> None:
    await _at_once(30, lambda: attack.get(f"/api/v1/documents/{attack.document}/original"))


async def _chunks(attack: Attack) -> None:
    await _at_once(60, lambda: attack.get(f"/api/v1/documents/{attack.document}/chunks?limit=200"))


async def _history(attack: Attack) -> None:
    turns = [{"role": role, "content": attack.text(1_900)} for _ in range(10) for role in ("user", "assistant")]
    messages = [*turns, {"role": "user", "content": attack.text(1_900)}]
    await _at_once(40, lambda: attack.post("/v1/chat/completions", {"model": "rag-service", "messages": messages}))


async def _junk(attack: Attack) -> None:
    body = {"text": "x", "passages": [{"text": "a", "chunkId": "b"}] * 9_000}
    await _at_once(30, lambda: attack.post("/api/v1/check", body))


# K1 of the attack on effb47fd, then others of the same kinds.
WAYS: Mapping[str, Callable[[Attack], Awaitable[None]]] = {
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


@asynccontextmanager
async def open_client(port: int, key: str, connections: int) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}",
        headers={"Authorization": f"Bearer {key}"},
        timeout=_GIVE_UP,
        limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        trust_env=False,
    ) as client:
        yield client


@asynccontextmanager
async def attacking(
    name: str, *, port: int, key: str, corpus: str, document: str, words: Sequence[str]
) -> AsyncIterator[Counter[str]]:
    """Attack in one of the ways. What the attacker got, by status, is complete at the end."""
    seen: Counter[str] = Counter()
    given = {"name": name, "port": port, "key": key, "corpus": corpus, "document": document, "words": list(words)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    try:
        process.stdin.write(json.dumps(given).encode())
        process.stdin.close()
        await process.stdout.readline()  # it begins
        yield seen
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        told = await process.stdout.read()
        await process.wait()
        seen.update(json.loads(told or b"{}"))


async def _run(given: Mapping[str, Any]) -> None:
    async with open_client(given["port"], given["key"], 2_000) as client:
        name = given["name"]
        attack = Attack(
            client, given["port"], given["key"], given["corpus"], given["words"],
            random.Random(name), document=given["document"],  # noqa: S311
        )  # fmt: skip
        sys.stdout.write("begins\n")
        sys.stdout.flush()
        running = asyncio.ensure_future(WAYS[name](attack))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        await asyncio.wait({running})
        json.dump(attack.statuses, sys.stdout)
        if not running.cancelled() and (error := running.exception()):
            raise error


if __name__ == "__main__":
    asyncio.run(_run(json.load(sys.stdin)))
