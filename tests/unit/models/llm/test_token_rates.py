"""What servers say of the length of prompts."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import uuid4

import pytest

from rag_service.language.words import count_tokens
from rag_service.models.llm.token_rates import SPREAD, Refusal, TokenRates, count_samples, read_refusal
from rag_service.recent import keep_for

# llama.cpp, vLLM, OpenAI, LM Studio, Ollama, text-generation-inference
LLAMA = {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 4235, "n_ctx": 4096}


@pytest.mark.parametrize(
    ("body", "text", "expected"),
    [
        (LLAMA, "request (4235 tokens) exceeds the available context size (4096 tokens)",
         Refusal(tokens=4235, window=4096)),
        ({"error": LLAMA}, "the request exceeds the available context size", Refusal(tokens=4235, window=4096)),
        (None, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
         Refusal(tokens=None, window=8192)),
        ({"code": "context_length_exceeded"}, "Error code: 400 - context_length_exceeded",
         Refusal(tokens=None, window=None)),
        (None, "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with"
         " context length of only 4096 tokens", Refusal(tokens=None, window=4096)),
        (None, "the input length exceeds the context length", Refusal(tokens=None, window=None)),
        ({"n_prompt_tokens": "many", "n_ctx": True}, "exceeds the context size", Refusal(tokens=None, window=None)),
        (None, "Unrecognized request argument: chat_template_kwargs", None),
        (None, "it failed", None),
    ],
)  # fmt: skip
def test_a_refusal_for_length_is_told_from_others(body: Any, text: str, expected: Refusal | None) -> None:
    assert read_refusal(400, body, text) == expected


def test_a_lost_connection_is_no_refusal() -> None:
    assert read_refusal(None, None, "context length") is None


PROSE = "La cooperativa compra el trigo en junio y lo vende en otoño."
USUAL = int(4096 * 0.85) - 200


def limit(rates: TokenRates, language: str = "es") -> int:
    return rates.limit(language, window=4096, answer_tokens=200)


def test_what_a_server_counts_corrects_our_count_for_that_language() -> None:
    rates = TokenRates()
    assert limit(rates) == USUAL
    rates.learn("es", PROSE, ours=1000, theirs=2000)
    assert (4096 - 200) / 2.5 < limit(rates) < (4096 - 200) / 2
    assert limit(rates, "fr") == USUAL


def test_the_median_of_several_counts_holds() -> None:
    rates = TokenRates()
    for theirs in (2000, 2900, 2100, 1900, 2000):
        rates.learn("es", PROSE, ours=1000, theirs=theirs)
    assert limit(rates) == int((4096 - 200) / (2.0 * (1 + SPREAD)))


@pytest.mark.parametrize("theirs", [-5, 0, 300, 3001, 10**12])
def test_a_count_that_cannot_be_true_teaches_nothing(theirs: int) -> None:
    rates = TokenRates()
    rates.learn("es", PROSE, ours=1000, theirs=theirs)
    assert limit(rates) == USUAL


@pytest.mark.parametrize("odd", [" " * 5_000, "0123456789" * 390, "-+" * 3_000])
def test_odd_text_teaches_nothing(odd: str) -> None:
    rates = TokenRates()
    rates.learn("es", PROSE + odd, ours=1000, theirs=2900)
    assert limit(rates) == USUAL


def test_what_one_user_teaches_holds_for_others_once_three_agree() -> None:
    rates = TokenRates()
    for theirs in (2000, 2900, 2000):
        assert limit(rates) == USUAL
        with keep_for(uuid4()):
            rates.learn("es", PROSE, ours=1000, theirs=theirs)
    assert limit(rates) == int((4096 - 200) / (2.0 * (1 + SPREAD)))


def test_what_was_taught_ends_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = TokenRates()
    rates.learn("es", PROSE, ours=1000, theirs=2000)
    assert limit(rates) < USUAL
    now = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: now + 86_401)
    assert limit(rates) == USUAL


async def test_a_refusal_holds_for_its_answer_alone() -> None:
    rates = TokenRates()

    async def answer() -> int:
        rates.refuse(ours=1000, theirs=10**12)
        return limit(rates)

    assert await asyncio.create_task(answer()) < USUAL / 2
    assert limit(rates) == USUAL


async def test_samples_outweigh_what_replies_show() -> None:
    rates = TokenRates()

    async def count(text: str) -> int:
        return 2 * count_tokens(text)

    await count_samples(rates, {"es": PROSE}, count)
    rates.learn("es", PROSE, ours=1000, theirs=2900)
    assert limit(rates) == int((4096 - 200) / (2.0 * (1 + SPREAD)))
