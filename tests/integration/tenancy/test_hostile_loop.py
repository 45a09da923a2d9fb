"""What one account sends keeps the event loop of the service from nobody else, whatever its size and form."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest

from rag_service.app import create_app
from rag_service.components import open_components
from rag_service.store.accounts.conversations import create_conversation
from tests.integration.tenancy.conftest import House
from tests.integration.tenancy.test_transfer import export, fill
from tests.integration.tenancy.web import new_key, web_settings
from tests.loop_watch import watching
from tests.serving import serving_here
from tests.transfer_files import changed

QUESTIONS = {
    "brackets": "(" * 3_900,
    "combining marks": "a" + "\u0301" * 3_900,
    "one number": "1234567890" * 390,
    "quotation marks": '"' * 3_900,
    "names of files": "What is in a.md? " * 220,
    "dates": "in 2024, 2023, 1 May 2022 " * 140,
    "operations": "What is the highest price sold per item in sheet.csv and " * 60,
    "wide signs": "🦙" * 3_900,
    "hyphens": "a-" * 1_950,
    "words": " ".join(f"w{number}" for number in range(800)),
}
TEXTS = {
    "one word": "a" * 199_000,
    "short words": "a " * 99_000,
    "marks": "a [C1]. " * 24_000,
    "numbers": "1.1 " * 49_000,
    "rows": "| a | b |\n" * 19_000,
}
USER = {"role": "user", "content": "x"}
OTHERS: dict[str, tuple[str, Any]] = {
    "brackets of JSON": ("query", b'{"query": ' + b"[" * 500_000),
    "fields": ("query", {f"k{number}": number for number in range(50_000)}),
    "ids": ("query", {"query": "a", "documentIds": ["00000000-0000-4000-8000-000000000001"] * 20_000}),
    "passages": ("check", {"text": "a b.", "passages": [{"text": "b"}] * 9_000}),
    "messages": ("/v1/chat/completions", {"model": "rag-service", "messages": [USER] * 20_000}),
    "tools": (
        "/v1/chat/completions",
        {
            "model": "rag-service",
            "messages": [USER],
            "tools": [{"type": "function", "function": {"name": f"f{n}", "parameters": {}}} for n in range(9_000)],
        },
    ),
    "inputs": ("/v1/embeddings", {"model": "fake-bag-of-words", "input": ["a"] * 50_000}),
}


@dataclass(frozen=True)
class Service:
    """The application on a real socket in the loop of the test; its client sends from a thread."""

    url: str
    key: str
    exported: bytes  # a small corpus

    async def send(self, work: Callable[[httpx.Client], None]) -> list[tuple[float, str]]:
        """The callbacks of the loop that took long meanwhile."""

        def run() -> None:
            with httpx.Client(
                base_url=self.url, headers={"X-API-Key": self.key}, timeout=120, trust_env=False
            ) as client:
                work(client)

        with watching() as watch:
            await asyncio.to_thread(run)
        return watch.slow


@pytest.fixture
async def service(house: House, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    user = await house.user("mallory")
    corpus = await fill(house, user)
    exported = await export(house, user, corpus.id)
    monkeypatch.setattr("rag_service.components.build_embedding", lambda _, **__: house.embedding)
    settings = web_settings(database_url=house.server.service_conninfo)
    async with (
        open_components(settings) as components,
        serving_here(create_app(settings, components=components)) as client,
    ):
        yield Service(str(client.base_url), await new_key(house, user), exported)


async def test_requests(service: Service) -> None:
    def post(client: httpx.Client, url: str, content: bytes) -> None:
        reply = client.post(url, content=content, headers={"Content-Type": "application/json"})
        assert reply.status_code < 500, reply.text

    passages = [{"text": "b c. 1.1 " * 200}]
    bodies: dict[str, tuple[str, Any]] = {
        name: ("query/answer", {"query": question}) for name, question in QUESTIONS.items()
    }
    bodies |= {f"check: {name}": ("check", {"text": text, "passages": passages}) for name, text in TEXTS.items()}
    bodies |= OTHERS
    slow = {}
    for name, (path, body) in bodies.items():
        url = path if path.startswith("/") else f"/api/v1/{path}"
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        slow[name] = await service.send(partial(post, url=url, content=content))
    assert {name: found for name, found in slow.items() if found} == {}


@pytest.mark.slow
async def test_long_conversations(service: Service, house: House) -> None:
    user = await house.user("talker")
    async with house.database.transaction(user) as connection:
        conversation = await create_conversation(connection, user, agent_id=None, project_id=None, title="long")
        citation = {"mark": 1, "status": "verified", "quote": "word " * 40, "documentId": str(uuid4())}
        await connection.execute(
            "INSERT INTO messages (conversation_id, user_id, role, content, citations)"
            " SELECT %s, %s, 'assistant', repeat('word ', 400), %s FROM generate_series(1, 5000)",
            [conversation.id, user.user_id, json.dumps([citation] * 5)],
        )
    key = await new_key(house, user)
    slow = {}
    for path in ("export", "messages?limit=200", "messages?limit=200&offset=4000"):

        def get(client: httpx.Client, path: str = path) -> None:
            reply = client.get(f"/api/v1/conversations/{conversation.id}/{path}", headers={"X-API-Key": key})
            assert reply.status_code == 200, reply.text

        slow[path] = await service.send(get)
    assert {name: found for name, found in slow.items() if found} == {}


@pytest.mark.slow
async def test_imports(service: Service) -> None:
    sentence = "Llamas sleep at noon in the barn. "
    many: dict[str, str] = {f"key{number}": "value" * 10 for number in range(9_999)}
    files = {
        "long chunks": _with_chunks(service.exported, [sentence * 580] * 20),
        "many entries": _with_chunks(service.exported, ["x"], fields=many, metadata=many, tags=list(many)),
        "long names": _with_chunks(service.exported, ["x"], name="n" * 2_999, title="t" * 100_000),
    }

    def use(client: httpx.Client, name: str, file: bytes) -> None:
        reply = client.post("/api/v1/corpora/import", data={"name": name}, files={"file": ("corpus.tar", file)})
        assert reply.status_code == 201, reply.text
        corpus = f"/api/v1/corpora/{reply.json()['corpus']['id']}"
        documents = client.get(f"{corpus}/documents?limit=200").json()["items"]
        for path in [f"/api/v1/documents/{document['id']}" for document in documents]:
            for part in ("", "/chunks?limit=200", "/text"):
                assert client.get(path + part).status_code == 200
        assert client.get(f"{corpus}/export").status_code == 200
        assert client.get("/api/v1/tags").status_code == 200
        for path in ("query", "query/answer"):
            client.post(f"/api/v1/{path}", json={"query": "Where do llamas sleep at noon?"})

    slow = {}
    for name, file in files.items():
        slow[name] = await service.send(partial(use, name=name, file=file))
    assert {name: found for name, found in slow.items() if found} == {}


@pytest.mark.slow
async def test_files(service: Service) -> None:
    files = {
        "a.html": b"<p><b>x</b>" * 40_000,
        "wide.txt": ("word. " * 300_000 + "🦙").encode(),
        "columns.csv": b"\n".join([b",".join(b"c%d" % n for n in range(300))] + [b",".join([b"1"] * 300)] * 200),
        "headings.md": b"# h\n\n" * 40_000,
        "one_word.txt": b"x" * 1_000_000,
        "rows.md": b"| a | b |\n|---|---|\n" + b"| 1 | 2 |\n" * 20_000,
    }

    def upload(client: httpx.Client, name: str, content: bytes) -> None:
        corpus = client.get("/api/v1/corpora").json()["items"][0]["id"]
        reply = client.post(f"/api/v1/corpora/{corpus}/documents", files={"file": (name, content)}).json()
        end = time.monotonic() + 100
        while client.get(f"/api/v1/uploads/{reply['uploadId']}").json()["status"] not in ("indexed", "failed"):
            assert time.monotonic() < end
            time.sleep(0.1)
        client.post("/api/v1/query/answer", json={"query": f"How many rows are in {name}?"})

    slow = {}
    for name, content in files.items():
        slow[name] = await service.send(partial(upload, name=name, content=content))
    assert {name: found for name, found in slow.items() if found} == {}


def _with_chunks(exported: bytes, texts: list[str], **document: Any) -> bytes:
    """The exported corpus, whose first document has these chunks and fields instead."""

    def change(members: dict[str, bytes]) -> None:
        form, lines = "documents/000001/document.json", "documents/000001/chunks-00001.jsonl"
        template, chunks, start = msgspec.json.decode(members[lines]), [], 0
        for index, text in enumerate(texts):
            node = template["node"] | {"id": f"{template['node']['id']}{index}"}
            place = {"index": index, "start": start, "end": start + len(text)}
            chunks.append(template | place | {"spans": [], "node": node})
            start += len(text)
        members[lines] = b"\n".join(map(msgspec.json.encode, chunks))
        members["documents/000001/text.txt"] = "".join(texts).encode()
        values = {"chunks": len(texts), **document}
        members[form] = msgspec.json.encode(msgspec.json.decode(members[form]) | values)
        manifest = msgspec.json.decode(members["manifest.json"])
        manifest["counts"]["chunks"] += len(texts) - 1
        members["manifest.json"] = msgspec.json.encode(manifest)

    return changed(exported, change)
