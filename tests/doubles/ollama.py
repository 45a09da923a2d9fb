"""A protocol double of Ollama on a real socket.

It speaks the wire format of Ollama's `/api/chat`, `/api/embed`, `/api/pull`, `/api/tags`,
`/api/show` and `/api/version` (https://github.com/ollama/ollama/blob/main/docs/api.md) and fails in every way that
the real one does, when told to. It runs in a thread with its own event loop, so that a blocked loop
in the code under test shows as what it is.

    def test_it(ollama):
        ollama.script("/api/chat", failure(429, retry_after="1"), chat(Say("Hello"), Reset()))

Each scripted reply serves one request to its path, in order; after the last one the double answers
normally again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import struct
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest

from tests.doubles.vectors import embed_words

CHAT, EMBED, PULL = "/api/chat", "/api/embed", "/api/pull"

# What a pull reports, by default.
PULLED = (
    {"status": "pulling manifest"},
    {"status": "pulling aa11", "digest": "sha256:aa11", "total": 1_200_000_000, "completed": 300_000_000},
    {"status": "pulling aa11", "digest": "sha256:aa11", "total": 1_200_000_000, "completed": 1_200_000_000},
    {"status": "verifying sha256 digest"},
    {"status": "success"},
)


# -- what a chat stream consists of


@dataclass(frozen=True)
class Say:
    """One content delta."""

    text: str


@dataclass(frozen=True)
class Think:
    """A delta of a thinking model: `content` is empty."""

    text: str


@dataclass(frozen=True)
class Call:
    """A call of a tool, in one object as Ollama sends it."""

    name: str
    arguments: Any  # an object, unless the test is about others


@dataclass(frozen=True)
class Wait:
    """Silence, in seconds. Ends early when the client leaves."""

    seconds: float


@dataclass(frozen=True)
class Hang:
    """Silence until the client leaves."""


@dataclass(frozen=True)
class ErrorLine:
    """An error after the status 200 has gone out; the stream then ends properly."""

    message: str


@dataclass(frozen=True)
class Raw:
    """Bytes as they are: half a line, garbage."""

    data: bytes


@dataclass(frozen=True)
class Reset:
    """The connection is reset (RST), as when the server process dies."""


@dataclass(frozen=True)
class Break:
    """The connection closes without the end of the chunked body."""


@dataclass(frozen=True)
class End:
    """The body ends properly, here and without a final object."""


@dataclass(frozen=True)
class Done:
    """The final object. Counts left None are estimated from the request, as Ollama would."""

    prompt_eval_count: int | None = None
    eval_count: int | None = None
    done_reason: str = "stop"
    counts: bool = True  # older servers leave the counts out for a cached prompt


Step = Say | Think | Call | Wait | Hang | ErrorLine | Raw | Reset | Break | End | Done


@dataclass(frozen=True)
class Reply:
    """What one request gets. `steps` apply to chat, `dimension` and `count` to embed."""

    status: int = 200
    body: bytes = b""  # for a status other than 200
    headers: dict[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    delay: float = 0.0  # seconds before the status line
    reset: bool = False  # RST instead of an answer
    dimension: int | None = None
    count: int | None = None
    tokens: int | None = None  # prompt_eval_count; None: estimated


def chat(*steps: Step, delay: float = 0.0) -> Reply:
    """A stream of these steps; `Done` is added unless the steps end the stream themselves."""
    ends = (Done, ErrorLine, Reset, Break, End, Hang)
    return Reply(steps=steps if steps and isinstance(steps[-1], ends) else (*steps, Done()), delay=delay)


def failure(status: int, message: str = "it failed", *, retry_after: str | None = None) -> Reply:
    """An error before the first byte, with the JSON body that Ollama sends."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Reply(status=status, body=json.dumps({"error": message}).encode(), headers=headers)


def embed(
    *, dimension: int | None = None, count: int | None = None, tokens: int | None = None, delay: float = 0.0
) -> Reply:
    """An embed answer with a wrong dimension, a wrong number of vectors, cut input, or late."""
    return Reply(dimension=dimension, count=count, tokens=tokens, delay=delay)


def refused() -> Reply:
    """The connection is reset before any answer."""
    return Reply(reset=True)


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: Any  # decoded JSON, {} when there was none
    at: float  # time.monotonic()


class _ClientLeftError(Exception):
    pass


def vector(text: str, dimension: int) -> list[float]:
    """A unit vector that depends on the text alone; texts that share words are similar."""
    return embed_words(re.findall(r"\w+", text.lower()) or [text], dimension)


class OllamaDouble:
    """The running double. Attributes may be changed by a test before it makes its request."""

    def __init__(self, *, dimension: int = 384):
        self.requests: list[Request] = []
        self.dimension = dimension
        self.vector_of: Callable[[str, int], Sequence[float]] = vector
        self.answer: str | Callable[[dict[str, Any]], str] = "The answer stands in the first source [C1]."
        # What the judge of citations is told; by default it gets no verdicts. Its requests take no scripted reply.
        self.verdicts: Reply | Callable[[dict[str, Any]], str] = lambda body: '{"verdicts": []}'
        self.judge_requests: list[Request] = []  # they are not among `requests`
        self.capabilities = ["completion"]
        self.installed = {"llama3.2:latest"}
        self.digest = ""  # of the weights of its models
        self.missing: set[str] = set()  # models that this server does not have
        self.token_delay = 0.0  # seconds before each word of the normal answer
        self.open_streams = 0  # chat streams being sent at this moment
        self.most_open_streams = 0
        self.disconnects: list[float] = []  # time.monotonic() at which a client left a stream
        self._scripts: dict[str, deque[Reply]] = defaultdict(deque)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ollama-double", daemon=True)
        self._handlers: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    # -- for tests

    def script(self, path: str, *replies: Reply) -> None:
        """Queue replies for the next requests to this path."""
        self._scripts[path].extend(replies)

    def unscript(self, path: str) -> None:
        """Forget the queued replies to this path."""
        self._scripts[path].clear()

    def bodies(self, path: str) -> list[dict[str, Any]]:
        """Decoded bodies of the requests to a path, in order."""
        return [request.body for request in self.requests if request.path == path]

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(timeout=60)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result(timeout=60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=60)
        self._loop.close()

    # -- the server

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    async def _shut_down(self) -> None:
        assert self._server is not None
        self._server.close()
        for handler in tuple(self._handlers):
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            # Cancelled is what `stop` does to connections that a client's pool keeps open.
            with contextlib.suppress(
                ConnectionError, asyncio.IncompleteReadError, _ClientLeftError, asyncio.CancelledError
            ):
                while request := await _read_request(reader):
                    (self.judge_requests if _asks_for_verdicts(request) else self.requests).append(request)
                    await self._respond(request, reader, writer)
        finally:
            self._handlers.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _respond(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue = self._scripts[request.path]
        if _asks_for_verdicts(request):
            told = self.verdicts
            reply = told if isinstance(told, Reply) else chat(Say(told(request.body)))
        else:
            reply = queue.popleft() if queue else None
        if reply and reply.delay:
            await self._wait(reply.delay, reader)
        if reply and reply.reset:
            _reset(writer)
            raise _ClientLeftError
        if reply and reply.status != HTTPStatus.OK:
            await _send(writer, reply.status, reply.body, reply.headers)
        elif request.path == PULL:
            await self._pull(request.body["model"], reply, reader, writer)
        elif request.body.get("model") in self.missing:
            error = {"error": f"model '{request.body['model']}' not found"}
            await _send(writer, 404, json.dumps(error).encode())
        elif request.path == CHAT:
            await self._chat(request, reply or self._normal_chat(request.body), reader, writer)
        else:
            status, body = self._plain(request, reply or Reply())
            await _send(writer, status, json.dumps(body).encode())

    async def _pull(
        self, model: str, reply: Reply | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Progress as Ollama reports it, one object a line; the model is installed then."""
        steps = reply.steps if reply else (*(Raw(_line(step)) for step in PULLED), End())
        await self._stream({"model": model}, steps, reader, writer)
        if reply is None:
            self.installed.add(model if ":" in model else f"{model}:latest")
            self.missing.discard(model)

    def _plain(self, request: Request, reply: Reply) -> tuple[int, dict[str, Any]]:
        match request.path:
            case "/api/embed":
                return 200, self._embed(request.body, reply)
            case "/api/tags":
                listed = [{"name": name, "model": name, "digest": self.digest} for name in sorted(self.installed)]
                return 200, {"models": listed}
            case "/api/version":
                return 200, {"version": "0.13.0"}
            case "/api/show":
                return 200, {"model_info": {"llama.context_length": 131072}, "capabilities": self.capabilities}
        return 404, {"error": "not found"}

    def _embed(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [list(self.vector_of(text, reply.dimension or self.dimension)) for text in texts]
        if reply.count is not None:
            vectors = (vectors * (reply.count + 1))[: reply.count]
        count = sum(_tokens(text) for text in texts) if reply.tokens is None else reply.tokens
        return {"model": body["model"], "embeddings": vectors, "prompt_eval_count": count, **_DURATIONS}

    def _normal_chat(self, body: dict[str, Any]) -> Reply:
        text = self.answer if isinstance(self.answer, str) else self.answer(body)
        words = re.findall(r"\s*\S+", text)
        pauses = [Wait(self.token_delay)] if self.token_delay else []
        return chat(*(step for word in words for step in (*pauses, Say(word))))

    # -- chat

    async def _chat(
        self, request: Request, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if not request.body.get("stream", True):
            text = "".join(step.text for step in reply.steps if isinstance(step, Say))
            await _send(writer, 200, json.dumps(_final(request.body, Done(), text)).encode())
            return
        self.open_streams += 1
        self.most_open_streams = max(self.most_open_streams, self.open_streams)
        try:
            await self._stream(request.body, reply.steps, reader, writer)
        except (_ClientLeftError, ConnectionError):
            self.disconnects.append(time.monotonic())
            raise _ClientLeftError from None
        finally:
            self.open_streams -= 1

    async def _stream(
        self,
        body: dict[str, Any],
        steps: Sequence[Step],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        # Ollama sends the status line with the first line of the body, not before.
        head: bytes = _head(200, {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked"})
        for step in steps:
            match step:
                case Wait(seconds):
                    await self._wait(seconds, reader)
                    continue
                case Hang():
                    await self._wait(3600, reader)
                    continue
                case Reset():
                    _reset(writer)
                    raise _ClientLeftError
                case Break():
                    raise _ClientLeftError
                case End():
                    break
                case Raw(data):
                    line = data
                case ErrorLine(message):
                    line = _line({"error": message})
                case Say(text):
                    line = _line(_delta(body, content=text))
                case Think(text):
                    line = _line(_delta(body, content="", thinking=text))
                case Call(name, arguments):
                    called = [{"function": {"name": name, "arguments": arguments}}]
                    line = _line(_delta(body, content="", tool_calls=called))
                case Done():
                    line = _line(_final(body, step))
            writer.write(head + f"{len(line):x}\r\n".encode() + line + b"\r\n")
            head = b""
            await writer.drain()
        writer.write(head + b"0\r\n\r\n")
        await writer.drain()

    async def _wait(self, seconds: float, reader: asyncio.StreamReader) -> None:
        """Sleep; raises when the client closes its side meanwhile. Clients here do not pipeline."""
        try:
            async with asyncio.timeout(seconds):
                await reader.read(1)
        except TimeoutError:
            return
        raise _ClientLeftError


def _asks_for_verdicts(request: Request) -> bool:
    """Whether this is the structured call of the judge `llm`."""
    schema = request.body.get("format")
    return isinstance(schema, dict) and not {"verdicts", "answers"}.isdisjoint(schema.get("properties", {}))


# -- wire format

_DURATIONS = {"total_duration": 5_000_000, "load_duration": 1_000_000}


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def _delta(body: dict[str, Any], **message: Any) -> dict[str, Any]:
    message = {"role": "assistant", **message}
    return {"model": body["model"], "created_at": _now(), "message": message, "done": False}


def _final(body: dict[str, Any], done: Done, text: str = "") -> dict[str, Any]:
    prompt = sum(_tokens(message["content"]) for message in body["messages"])
    counts = {
        "prompt_eval_count": prompt if done.prompt_eval_count is None else done.prompt_eval_count,
        "prompt_eval_duration": 2_000_000,
        "eval_count": 7 if done.eval_count is None else done.eval_count,
        "eval_duration": 2_000_000,
    }
    return {
        **_delta(body, content=text),
        "done": True,
        "done_reason": done.done_reason,
        **_DURATIONS,
        **(counts if done.counts else {}),
    }


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


async def _send(writer: asyncio.StreamWriter, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    head = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    writer.write(_head(status, head) + body)
    await writer.drain()


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    body = json.loads(raw) if raw else {}
    return Request(method=method, path=path, headers=headers, body=body, at=time.monotonic())


def _reset(writer: asyncio.StreamWriter) -> None:
    # Linger of zero seconds makes close() send RST instead of FIN.
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.fixture
def ollama() -> Iterator[OllamaDouble]:
    """A double of Ollama, listening on loopback for this test alone."""
    double = OllamaDouble()
    double.start()
    yield double
    double.stop()
