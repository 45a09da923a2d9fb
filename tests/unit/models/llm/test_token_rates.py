"""What servers say of the length of prompts."""

from __future__ import annotations

from typing import Any

import pytest

from rag_service.models.llm.token_rates import Refusal, TokenRates, read_refusal

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


def test_only_a_higher_count_corrects_ours() -> None:
    rates = TokenRates()
    usual = rates.limit("es", window=4096, answer_tokens=200)
    assert usual == int(4096 * 0.85) - 200
    rates.learn("es", ours=1000, theirs=600)  # of a server that leaves out what it has in its cache
    assert rates.limit("es", window=4096, answer_tokens=200) == usual
    rates.learn("es", ours=1000, theirs=2000)
    rates.learn("es", ours=1000, theirs=1500)
    halved = rates.limit("es", window=4096, answer_tokens=200)
    assert halved < (4096 - 200) / 2
    assert halved > (4096 - 200) / 2.5
    assert rates.limit("fr", window=4096, answer_tokens=200) == usual
