"""The model of zero latency: its protocol over a real socket, and the client that the bench asks with."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from evals.benchmarks.model_double import WORDS, answer_from, running_double
from evals.benchmarks.wire import Client
from rag_service.errors import StoreError

PROMPT = "[C1] short\nA line.\n[C2] other\nThe limit is forty euros a day and not a cent more.\nQuestion: which?"


def test_it_repeats_the_longest_line_and_marks_its_passage() -> None:
    assert "".join(answer_from(PROMPT)) == "The limit is forty euros a day and not a cent more. [C2]."
    assert len(answer_from("word " * 500)) == WORDS + 1
    assert answer_from("") == ["[C1]."]


async def test_it_speaks_ollamas_protocol_on_one_connection() -> None:
    async with running_double() as double, Client(urlsplit(double.url).port or 0) as client:
        assert json.loads(await client.get("/api/version")) == {"version": "0"}
        for _ in range(2):
            body = await client.post("/api/chat", {"messages": [{"role": "user", "content": PROMPT}]})
            *words, end = [json.loads(line) for line in body.splitlines()]
            assert "".join(word["message"]["content"] for word in words) == "".join(answer_from(PROMPT))
            assert (end["done"], end["eval_count"]) == (True, len(words))
        assert double.calls == 2


async def test_the_client_says_what_the_service_refused(unused_tcp_port: int) -> None:
    import asyncio

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\nnope")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", unused_tcp_port), Client(unused_tcp_port) as client:
        with pytest.raises(StoreError, match="status 400: nope"):
            await client.get("/")
