"""A model server that takes no time: speaks Ollama's chat protocol and repeats a passage of the prompt.

The bench does not use the extractive answerer, because that one works for its answers (it embeds
sentences), which would hide what the service adds around a model. Here the service's real client speaks
over a real socket; each word comes as a line of its own, as tokens do, and the answer ends with a mark,
so that a citation is looked up and checked.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

MODEL = "bench-double"
WORDS = 30  # of an answer


_MARK = re.compile(r"\[C\d+\]")


def answer_from(prompt: str) -> list[str]:
    """Words of the longest line of a prompt, which stands in a passage, and the mark of that passage.

    A prompt without passages asks to rewrite its last question: it is repeated.
    """
    lines = prompt.splitlines()
    if lines and ": " in lines[-1] and not _MARK.search(prompt):
        return [f"{word} " for word in lines[-1].partition(": ")[2].split()]
    longest = max(range(len(lines)), key=lambda number: len(lines[number]), default=0)
    marks = _MARK.findall("\n".join(lines[:longest]))
    words = lines[longest].split()[:WORDS] if lines else []
    return [*(word + " " for word in words), f"{marks[-1] if marks else '[C1]'}."]


@dataclass
class ModelDouble:
    """The running server."""

    url: str = ""
    calls: int = 0  # that were answered

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                await self._answer_next(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has left, or the server ends
        finally:
            writer.close()

    async def _answer_next(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        body = await reader.readexactly(length)
        reply = b'{"version": "0"}\n'
        if head.startswith(b"post /api/chat "):
            reply = _chat(msgspec.json.decode(body))
            self.calls += 1
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%b"
            % (len(reply), reply)
        )
        await writer.drain()


@asynccontextmanager
async def running_double() -> AsyncIterator[ModelDouble]:
    """Serve on a free loopback port."""
    double = ModelDouble()
    server = await asyncio.start_server(double.talk, "127.0.0.1", 0)
    async with server:
        double.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield double


def _chat(request: dict[str, Any]) -> bytes:
    prompt = request["messages"][-1]["content"]
    words = answer_from(prompt)
    common = {"model": MODEL, "created_at": "2026-01-01T00:00:00Z"}
    lines = [{**common, "message": {"role": "assistant", "content": word}, "done": False} for word in words]
    end = {
        **common,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": sum(len(message["content"]) for message in request["messages"]) // 4,
        "eval_count": len(words),
    }
    return b"".join(msgspec.json.encode(line) + b"\n" for line in [*lines, end])
