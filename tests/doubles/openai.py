"""A protocol double of an OpenAI-compatible server on a real socket.

It speaks `/v1/chat/completions` (streamed), `/v1/embeddings` and `/v1/models`
(https://platform.openai.com/docs/api-reference). Like the double of Ollama it runs in a thread with
its own event loop, and each scripted reply serves one request to its path.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn

from rag_service.models.llm.providers import PROBED_TOOL
from tests.doubles.ollama import vector

CHAT, EMBED, MODELS, TOKENIZE = "/v1/chat/completions", "/v1/embeddings", "/v1/models", "/tokenize"
LENGTH_OF_TOKENS = 2  # characters, where the double counts


@dataclass(frozen=True)
class Reply:
    """What one request gets instead of the normal answer."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    deltas: tuple[str, ...] = ()  # of a streamed answer; one empty text is an answer without any
    calls: tuple[tuple[str, str], ...] = ()  # of tools, after the deltas: (name, arguments as they are written)
    finish_reason: str = "stop"
    cut: bool = False  # the stream ends without a reason or `[DONE]`
    hang: bool = False  # silence after the deltas
    dimension: int | None = None


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: Any


class OpenAIDouble:
    """The running double; an ASGI application below uvicorn."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.dimension = 384
        self.answer: str | Callable[[dict[str, Any]], str] = "The contract ends in May [C1]."
        self.unknown: str | None = None  # field of a chat request that is refused
        self.key: str | None = None  # refused otherwise
        self.window: int | None = None  # tokens of prompt and answer: it counts, and refuses more; None: no limit
        self.tells_count = True  # whether a refusal tells both numbers, as llama.cpp's, or the window, as OpenAI's
        self.tokenizes = False  # whether it counts when asked
        self.calls_tools = False  # what a probe for tools is answered with; it is not among `requests`
        self.probes = 0
        self.models = ["llama3.2", "nomic-embed-text"]
        self.disconnects: list[float] = []
        self._scripts: dict[str, deque[Reply]] = defaultdict(deque)
        self._server = uvicorn.Server(
            uvicorn.Config(self, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="off")
        )
        self._thread = threading.Thread(target=self._server.run, name="openai-double", daemon=True)
        self.url = ""

    def script(self, path: str, *replies: Reply) -> None:
        self._scripts[path].extend(replies)

    def bodies(self, path: str) -> list[Any]:
        return [request.body for request in self.requests if request.path == path]

    def start(self) -> None:
        self._thread.start()
        limit = time.monotonic() + 60
        while not self._server.started:
            assert time.monotonic() < limit
            time.sleep(0.005)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}/v1"

    def stop(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(60)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        raw = b""
        while True:
            message = await receive()
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        body = json.loads(raw) if raw else {}
        if _is_probe(body):
            self.probes += 1
            reply = Reply(deltas=("",), calls=((PROBED_TOOL, '{"word": "ready"}'),) if self.calls_tools else ())
            await self._chat(body, reply, receive, send)
            return
        self.requests.append(Request(scope["path"], headers, body))
        queue = self._scripts[scope["path"]]
        reply = queue.popleft() if queue else Reply()
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            reply = Reply(status=401)
        if reply.status != 200:
            error = {"error": {"message": "it failed", "type": "server_error", "code": None}}
            await _send(send, reply.status, error, reply.headers)
        elif scope["path"] == CHAT and self.unknown in body:
            await _send(send, 400, {"error": {"message": f"Unrecognized request argument: {self.unknown}"}})
        elif scope["path"] == CHAT and self._is_too_long(body):
            await _send(send, 400, self._refusal(body))
        elif scope["path"] == TOKENIZE:
            said = {"tokens": [0] * (len(body["content"]) // LENGTH_OF_TOKENS)}
            await _send(send, *((200, said) if self.tokenizes else (404, {"error": "not found"})))
        elif scope["path"] == CHAT:
            await self._chat(body, reply, receive, send)
        elif scope["path"] == EMBED:
            await _send(send, 200, self._embed(body, reply))
        else:
            listed = [{"id": name, "object": "model", "created": 0, "owned_by": "test"} for name in self.models]
            await _send(send, 200, {"object": "list", "data": listed})

    def _is_too_long(self, body: dict[str, Any]) -> bool:
        return self.window is not None and count_prompt(body) + body["max_tokens"] > self.window

    def _refusal(self, body: dict[str, Any]) -> dict[str, Any]:
        """llama.cpp: tools/server/server-context.cpp; OpenAI and vLLM have the window in their sentence."""
        told: dict[str, Any] = {"type": "exceed_context_size_error", "code": 400, "n_ctx": self.window}
        told["n_prompt_tokens"] = count_prompt(body)
        told["message"] = "the request exceeds the available context size, try increasing it"
        if not self.tells_count:
            told = {"type": "invalid_request_error", "code": "context_length_exceeded"}
            told["message"] = f"This model's maximum context length is {self.window} tokens. Reduce the messages."
        return {"error": told}

    def _embed(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        data = [
            {"object": "embedding", "index": index, "embedding": vector(text, reply.dimension or self.dimension)}
            for index, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "model": body["model"], "data": data[::-1], "usage": usage}  # no order is promised

    async def _chat(self, body: dict[str, Any], reply: Reply, receive: Any, send: Any) -> None:
        text = self.answer if isinstance(self.answer, str) else self.answer(body)
        deltas = reply.deltas or () if reply.calls else reply.deltas or tuple(f"{word} " for word in text.split())
        events = [_chunk(body, {"role": "assistant", "content": ""})]
        events += [_chunk(body, {"content": delta}) for delta in deltas]
        for index, (name, arguments) in enumerate(reply.calls):
            half = len(arguments) // 2
            for part, head in ((arguments[:half], {"id": f"call_{index}", "type": "function"}), (arguments[half:], {})):
                function = {"arguments": part} | ({"name": name} if head else {})
                events.append(_chunk(body, {"tool_calls": [{"index": index, **head, "function": function}]}))
        if not (reply.cut or reply.hang):
            events.append(_chunk(body, {}, finish_reason=reply.finish_reason))
            if body.get("stream_options", {}).get("include_usage"):
                counted = 42 if self.window is None else count_prompt(body)
                usage = {"prompt_tokens": counted, "completion_tokens": 7, "total_tokens": counted + 7}
                events.append({**_chunk(body, {}), "choices": [], "usage": usage})
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for event in events:
            await _send_part(send, b"data: " + json.dumps(event).encode() + b"\n\n")
        if reply.hang:
            assert (await receive())["type"] == "http.disconnect"
            self.disconnects.append(time.monotonic())
            return
        await _send_part(send, b"" if reply.cut else b"data: [DONE]\n\n", more=False)


def count_prompt(body: dict[str, Any]) -> int:
    """Tokens of the messages of a request, as the double counts."""
    return sum(len(message["content"] or "") for message in body["messages"]) // LENGTH_OF_TOKENS


def _is_probe(body: Any) -> bool:
    return any(tool["function"]["name"] == PROBED_TOOL for tool in (body.get("tools") or ()))


def _chunk(body: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": body["model"], "choices": [choice]}


async def _send(send: Any, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
    head = {"content-type": "application/json", **(headers or {})}
    lines = [(name.lower().encode(), value.encode()) for name, value in head.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await _send_part(send, json.dumps(body).encode(), more=False)


async def _send_part(send: Any, data: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


@pytest.fixture
def openai_server() -> Iterator[OpenAIDouble]:
    """A double of an OpenAI-compatible server, listening on loopback for this test alone."""
    double = OpenAIDouble()
    double.start()
    yield double
    double.stop()
