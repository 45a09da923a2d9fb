"""Hostile files sent through the upload route, the queue, a worker and the real sandbox.

Used by a test and, with the files that take long, by `make soak`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding
from tests.integration import hostile
from tests.integration.tenancy.conftest import House, Street
from tests.integration.tenancy.web import client_of, new_key, real_application
from tests.unit.readers import samples

LIMIT_SECONDS = 180.0  # a minute on a quiet machine
GOOD = "Llamas live in the Andes."
UNREADABLE, TOO_LARGE, UNSUPPORTED = "unreadable_document", "too_large", "unsupported_media_type"
PROTECTED = "protected_document"


@dataclass(frozen=True)
class Hostile:
    """A file, and what becomes of it."""

    make: Callable[[], bytes]
    name: str
    code: str | None  # the stable code it fails with; None: it is read after all
    slow: bool = False  # seconds of processor time: for `make soak`


@dataclass(frozen=True, kw_only=True)
class Outcome:
    evil: Mapping[str, Any]  # the upload in the end
    good: Mapping[str, Any]  # the one beside it
    found: list[str]  # passages of a search for the good one
    peak_bytes: int  # of the parsers' resident memory
    seconds: float


def million_short_rows() -> bytes:
    """A million rows that the upload route lets in."""
    return b"id;x\n" + b"".join(b"%d;x\n" % number for number in range(1_000_000))


def image() -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200)


def xml_bomb() -> bytes:
    return samples.with_members(samples.word("x"), {"word/document.xml": samples.BILLION_LAUGHS})


FILES: Mapping[str, Hostile] = {
    "zip bomb": Hostile(hostile.zip_bomb, "a.docx", TOO_LARGE),
    "zip of many members": Hostile(hostile.many_members, "a.docx", TOO_LARGE),
    "XML bomb": Hostile(xml_bomb, "a.docx", UNREADABLE),
    "PDF bomb": Hostile(hostile.pdf_bomb, "a.pdf", TOO_LARGE),
    "PDF of many operations": Hostile(hostile.pdf_of_many_operations, "a.pdf", TOO_LARGE, slow=True),
    "cells A1 and XFD1048576": Hostile(samples.far_corner_xlsx, "a.xlsx", None),
    "1 GB of zeros": Hostile(hostile.gigabyte_of_zeros, "a.xlsx", TOO_LARGE, slow=True),
    "truncated Word file": Hostile(lambda: samples.word("x")[:-200], "a.docx", UNREADABLE),
    "truncated sheet": Hostile(lambda: samples.xlsx([["x"]])[:1000], "a.xlsx", UNREADABLE),
    "truncated PDF": Hostile(lambda: samples.pdf("Hello")[:300], "a.pdf", UNREADABLE),
    "image called a PDF": Hostile(image, "a.pdf", UNSUPPORTED),
    "PDF called a text": Hostile(lambda: samples.pdf("Alpacas hum."), "a.txt", None),
    "macro workbook": Hostile(hostile.macro_workbook, "a.xlsx", UNSUPPORTED),
    "workbook with a password": Hostile(hostile.password_workbook, "a.xlsx", PROTECTED),
    "PDF with a password": Hostile(lambda: samples.pdf("x", password="o", user_password="u"), "a.pdf", PROTECTED),
    "0 bytes": Hostile(lambda: b"", "a.txt", UNREADABLE),
    "deep nesting": Hostile(lambda: samples.deep_word(100_000), "a.docx", UNREADABLE),
    "a million rows": Hostile(million_short_rows, "a.csv", TOO_LARGE, slow=True),
}  # fmt: skip


@asynccontextmanager
async def busy_street(server: EmbeddedServer) -> AsyncIterator[Street]:
    """The service with its own worker, as `serve` runs it."""
    embedding = FakeEmbedding(model_name="fake-bag-of-words", embed_batch_size=32)
    async with real_application(server, embedding, worker_embedded=True) as (application, components):
        house = House(server=server, database=components.database, embedding=embedding)
        yield Street(house=house, application=application)


async def send_beside_a_good_one(street: Street, name: str, data: bytes) -> Outcome:
    """Upload a file and a good one after it, as a new user, and wait for the end of both."""
    user = await street.house.user(f"user-{uuid4().hex[:8]}")
    async with client_of(street.application, await new_key(street.house, user)) as client:
        corpus = (await client.post("/api/v1/corpora", json={"name": "notes"})).json()
        path = f"/api/v1/corpora/{corpus['id']}/documents"
        started = time.monotonic()
        async with hostile.watched_memory() as peaks:
            replies = [
                await client.post(path, files={"file": file}) for file in ((name, data), ("good.txt", GOOD.encode()))
            ]
            evil, good = [await _settled(client, reply.headers["location"]) for reply in replies]
        seconds = time.monotonic() - started
        found = await client.post("/api/v1/query", json={"query": "Where do llamas live?", "similarityThreshold": 0})
    assert peaks, "no sandbox was seen"
    texts = [passage["text"] for passage in found.json()["passages"]]
    return Outcome(evil=evil, good=good, found=texts, peak_bytes=max(peaks), seconds=seconds)


async def _settled(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    limit = time.monotonic() + 2 * LIMIT_SECONDS
    while True:
        upload: dict[str, Any] = (await client.get(path)).json()
        if upload["status"] in ("indexed", "failed"):
            return upload
        assert time.monotonic() < limit, upload
        await asyncio.sleep(0.02)
