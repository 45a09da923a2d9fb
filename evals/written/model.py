"""A chat model whose answers were written beforehand: an OpenAI-compatible server, with a judge of known quality.

    model = WrittenModel(answers)
    with ModelServer(model) as server:
        settings = {"chat_provider": "openai_like", "openai_url": server.url, "chat_tools": "on"}

A small model does not write what a capable one does: sentences of its own over several passages, each with the words
that show it. So answers are written by hand, and this server gives them as a model would: it takes the steps, looks for
the passages that hold the evidence among those that it was shown, and copies the words into its marks. What it was not
shown it does not say: it refuses, as the prompt tells it to.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from evals.written.answers import BLOCK, Answer, Evidence, fold, line_with
from evals.written.judge import WrittenJudge, is_judge_call

MODEL = "written"
REFUSAL = "The documents do not answer this question."
DELTA = 24  # characters of a streamed piece
# The sentence that a prompt asks for if nothing answers, in the languages of the prompts.
_REFUSAL_RULE = re.compile(r"(?:nothing else|nada más|rien d['’]autre|nada mais|sonst nichts|nient['’]altro)\s*: (.+)")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A passage, or a result of a tool, that the model was shown."""

    mark: int | None  # of [C3]; None: it has none
    text: str  # with its file, title and section
    from_tool: bool


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """What the model says: a text, or calls of tools."""

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()  # (tool, arguments)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request that the model answered."""

    purpose: str  # "judge", "rewrite", "step", "answer", "refusal"
    request: Mapping[str, Any]
    shown: Sequence[Shown] = ()
    missing: Sequence[str] = ()  # evidence that no shown passage holds: why it refused


@dataclass
class WrittenModel:
    """Gives the answers that were written for its questions, and judges as its judge does."""

    answers: Sequence[Answer] = ()
    judge: WrittenJudge = field(default_factory=WrittenJudge)
    current: Answer | None = None  # the answer to give next; None: found by the question
    calls: list[Call] = field(default_factory=list)  # since `begin`

    def begin(self, answer: Answer) -> None:
        """Give this answer from now on, and forget the calls before it."""
        self.current, self.calls = answer, []

    def reply(self, request: Mapping[str, Any]) -> ModelReply:
        """Return what the model says to a chat completion request."""
        messages = request["messages"]
        if is_judge_call(request):
            judged = [self.current] if self.current is not None else self.answers
            self.calls.append(Call(purpose="judge", request=request))
            return ModelReply(text=self.judge.reply(messages, judged))
        shown = find_shown(messages)
        answer = self.current or self._find_asked(messages)
        if answer is None:
            return self._refuse(request, shown)
        if not shown and not request.get("tools"):
            self.calls.append(Call(purpose="rewrite", request=request))
            return ModelReply(text=answer.standalone or answer.question)
        missing = [piece for piece in _evidence_of(answer) if find_holder(piece, shown) is None]
        taken = sum(message["role"] == "tool" for message in messages)
        # A turn of a conversation takes its steps only for what the turns before do not show already.
        wants = bool(missing) or not answer.conversation
        if request.get("tools") and wants and taken < len(answer.steps):
            step = answer.steps[taken]
            self.calls.append(Call(purpose="step", request=request, shown=shown))
            return ModelReply(calls=[(step.tool, step.arguments)])
        if missing:
            return self._refuse(request, shown, missing)
        self.calls.append(Call(purpose="answer", request=request, shown=shown))
        return ModelReply(text=write_answer(answer, shown))

    def _refuse(
        self, request: Mapping[str, Any], shown: Sequence[Shown], missing: Iterable[Evidence] = ()
    ) -> ModelReply:
        words = [piece.words or piece.computed for piece in missing]
        self.calls.append(Call(purpose="refusal", request=request, shown=shown, missing=words))
        rule = _REFUSAL_RULE.search(_text(request["messages"][0]))
        return ModelReply(text=rule.group(1) if rule else REFUSAL)

    def _find_asked(self, messages: Sequence[Mapping[str, Any]]) -> Answer | None:
        """Return the answer to the longest known question that the last message of the user holds."""
        user = fold(next(_text(message) for message in reversed(messages) if message["role"] == "user"))
        asked = [answer for answer in self.answers if fold(answer.question) in user]
        return max(asked, key=lambda answer: len(answer.question), default=None)


def find_shown(messages: Sequence[Mapping[str, Any]]) -> list[Shown]:
    """Return the passages and results of tools between boundaries, in their order."""
    return [
        Shown(mark=int(mark) if mark else None, text=text, from_tool=message["role"] == "tool")
        for message in messages
        if message["role"] in ("user", "tool")
        for _, mark, text in BLOCK.findall(_text(message))
        if mark or message["role"] == "tool"
    ]


def find_holder(piece: Evidence, shown: Sequence[Shown]) -> Shown | None:
    """Return the passage that holds a piece of evidence, of the right file if it is told; None: it was not shown."""
    if piece.computed:
        results = [one for one in reversed(shown) if one.from_tool and line_with(piece.computed, one.text)]
        return next((one for one in results if one.mark is not None), next(iter(results), None))
    holders = [one for one in shown if fold(piece.words) in fold(one.text)]
    of_file = [one for one in holders if fold(piece.file) in fold(one.text)]
    return next(iter([*(one for one in of_file if one.mark is not None), *of_file, *holders]), None)


def write_answer(answer: Answer, shown: Sequence[Shown]) -> str:
    """Return the answer with its marks, for passages that hold all of its evidence."""
    marks = ["".join(_write_marks(sentence.evidence, shown)) for sentence in answer.sentences]
    if answer.form:
        return answer.form.format(*marks)
    ends = ["" if one.text.endswith((".", "!", "?", ":")) else "." for one in answer.sentences]
    written = zip(answer.sentences, marks, ends, strict=True)
    return " ".join(f"{one.text} {mark}{end}" if mark else f"{one.text}{end}" for one, mark, end in written)


def _write_marks(evidence: Sequence[Evidence], shown: Sequence[Shown]) -> Iterator[str]:
    for piece in evidence:
        holder = find_holder(piece, shown)
        if holder is None:
            continue
        mark = holder.mark
        if mark is None:  # a result without a mark: the model cites the passage of the same file, if it has one
            mark = next((one.mark for one in shown if one.mark and fold(piece.file) in fold(one.text)), None)
            if mark is not None:
                yield f"[C{mark}]"
            continue
        words = line_with(piece.computed, holder.text) if piece.computed else piece.words
        said = words if piece.says is None else piece.says
        yield f'[C{mark} "{said}"]' if said else f"[C{mark}]"


def _evidence_of(answer: Answer) -> list[Evidence]:
    return [piece for sentence in answer.sentences for piece in sentence.evidence]


def _text(message: Mapping[str, Any]) -> str:
    return message.get("content") or ""


class ModelServer:
    """Serves a model at `url` on a free loopback port, between `with` and its end."""

    def __init__(self, model: WrittenModel, *, port: int = 0):
        self.model = model
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler_of(model))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="written-model", daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


def _handler_of(model: WrittenModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "messages" not in request:  # `/tokenize` and the like
                self._send({"error": {"message": "not found"}}, status=404)
                return
            reply = model.reply(request)
            if request.get("stream"):
                events = "".join(f"data: {json.dumps(one)}\n\n" for one in _chunks(request, reply))
                self._write(f"{events}data: [DONE]\n\n".encode(), "text/event-stream")
            else:
                self._send(_completion(request, reply))

        def _send(self, body: object, *, status: int = 200) -> None:
            self._write(json.dumps(body).encode(), "application/json", status=status)

        def _write(self, data: bytes, kind: str, *, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def _completion(request: Mapping[str, Any], reply: ModelReply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    return {**_head(request, "chat.completion"), "choices": [choice], "usage": _usage(request, reply)}


def _chunks(request: Mapping[str, Any], reply: ModelReply) -> Iterator[dict[str, Any]]:
    """Return the events of a streamed reply."""
    head = _head(request, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": reply.text[at : at + DELTA]} for at in range(0, len(reply.text), DELTA)]
    if reply.calls:
        deltas.append({"tool_calls": [{"index": index, **call} for index, call in enumerate(_calls(reply))]})
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]}
    if (request.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _usage(request, reply)}


def _calls(reply: ModelReply) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{time.time_ns()}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        for index, (name, arguments) in enumerate(reply.calls)
    ]


def _finish(reply: ModelReply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _head(request: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "written", "object": kind, "created": int(time.time()), "model": request.get("model", MODEL)}


def _usage(request: Mapping[str, Any], reply: ModelReply) -> dict[str, int]:
    prompt = sum(len(_text(message)) for message in request["messages"]) // 4 + 1
    written = len(reply.text) // 4 + 1
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
