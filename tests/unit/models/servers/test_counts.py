"""Counts that servers send are read by one function, whatever they send."""

from __future__ import annotations

import pytest

from rag_service.models.llm.token_rates import read_refusal
from rag_service.models.servers.counts import MAX_COUNT, read_count


@pytest.mark.parametrize(("value", "count"), [(7, 7), ("120", 120), (7.0, 7), (MAX_COUNT, MAX_COUNT)])
def test_a_count_is_read(value: object, count: int) -> None:
    assert read_count(value) == count


@pytest.mark.parametrize(
    "value",
    [
        0, -1, True, False, None, 10**12, MAX_COUNT + 1, 1.5, float("inf"), float("nan"), "-3", "1e9", "²", "٣٤",
        "9" * 4500, "", [], {}, b"7",
    ],
)  # fmt: skip
def test_what_is_no_count_is_none(value: object) -> None:
    assert read_count(value) is None


def test_a_refusal_with_a_window_of_4500_digits_names_none() -> None:
    refusal = read_refusal(400, {}, "This model's maximum context length is " + "9" * 4500)
    assert refusal is not None
    assert (refusal.window, refusal.tokens) == (None, None)


def test_a_refusal_with_impossible_fields_names_none() -> None:
    body = {"error": {"n_ctx": -5, "n_prompt_tokens": 10**30}}
    refusal = read_refusal(400, body, "the request exceeds the available context size")
    assert refusal is not None
    assert (refusal.window, refusal.tokens) == (None, None)
