"""A turn of a conversation by how much was said before it: what the code takes beside the search and the model.

The model is a double that takes no time. The conversation is held once, by a client that keeps it; then its 2nd, 50th
and 100th turn are asked by turns, each time with another question, so that a busy machine is as slow for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from evals.benchmarks.answer import make_questions, serve_settings
from evals.benchmarks.ingest import IngestBench, ingest_folder
from evals.benchmarks.model_double import running_double
from evals.benchmarks.timing import Row, milliseconds_of, summarise
from evals.benchmarks.wire import Client, served

_PATH = "/api/v1/query/answer"
_TURNS = (2, 50, 100)
_WARM = 5  # rounds before those that count


async def measure_conversation(bench: IngestBench, folder: Path, *, rounds: int) -> list[Row]:
    """Ingest the documents, serve them, hold a conversation, ask its turns."""
    held, asked = max(_TURNS) - 1, (rounds + _WARM) * len(_TURNS)
    questions = make_questions(await ingest_folder(bench, folder), held + asked)
    async with AsyncExitStack() as stack:
        double = await stack.enter_async_context(running_double())
        settings = serve_settings(bench, double.url, cached=10_000) | {"context_window": 8192}
        service = await stack.enter_async_context(served(settings))
        client = await stack.enter_async_context(Client(service.port))
        said: list[dict[str, str]] = []
        for question in questions[:held]:
            _, answer = await _ask(client, question, said)
            said += [{"role": "user", "content": question}, {"role": "assistant", "content": answer["answer"]}]
        beside: dict[int, list[float]] = {turn: [] for turn in _TURNS}
        tokens: dict[int, list[int]] = {turn: [] for turn in _TURNS}
        for number, question in enumerate(questions[held:]):
            turn = _TURNS[number % len(_TURNS)]
            milliseconds, answer = await _ask(client, question, said[: 2 * (turn - 1)])
            if number >= _WARM * len(_TURNS):
                beside[turn].append(milliseconds - _elsewhere(answer["timings"]))
                tokens[turn].append(answer["promptTokens"])
    return [_describe(turn, beside, tokens) for turn in _TURNS]


async def _ask(client: Client, question: str, said: Sequence[dict[str, str]]) -> tuple[float, dict[str, Any]]:
    """Return (milliseconds, the answer)."""
    bodies: list[bytes] = []

    async def post() -> None:
        bodies.append(await client.post(_PATH, {"query": question, "messages": said}))

    return await milliseconds_of(post()), msgspec.json.decode(bodies[0])


def _elsewhere(timings: dict[str, Any]) -> float:
    """Return what search and model took."""
    taken: float = timings["retrievalMs"] + sum(call["totalMs"] for call in timings["modelCalls"])
    return taken


def _describe(turn: int, beside: dict[int, list[float]], tokens: dict[int, list[int]]) -> Row:
    times, first = summarise(beside[turn]), summarise(beside[_TURNS[0]])
    return {
        "turn": turn,
        "p50 beside search and model ms": times.p50,
        "p95 ms": times.p95,
        "p95, times turn 2": round(times.p95 / first.p95, 2),
        "tokens of the prompt, p95": round(summarise(tokens[turn]).p95),
    }
