"""What a server repeats of a request does not reach the log."""

from __future__ import annotations

import httpx
from hypothesis import given
from hypothesis import strategies as st

from rag_service.models.servers.failures import MIN_ECHO, ProviderError, hide_echoes, status_of

PROMPT = "You answer from the passages alone. Patient Anna Pérez, ward 7."


def test_what_was_sent_is_hidden_and_the_rest_stays() -> None:
    text = "400: model runner stopped: input 'Patient Anna Pérez, ward 7.' is too long"
    assert hide_echoes(text, [PROMPT]) == "400: model runner stopped: input '[…]' is too long"


def test_a_message_of_the_servers_own_stays_whole() -> None:
    assert hide_echoes("model requires more system memory", [PROMPT]) == "model requires more system memory"


@given(st.text(alphabet="ab ", max_size=80), st.text(alphabet="ab ", max_size=80))
def test_no_long_run_of_what_was_sent_is_left(text: str, sent: str) -> None:
    hidden = hide_echoes(text, [sent])
    for run in hidden.split("[…]"):
        assert not any(run[i : i + MIN_ECHO] in sent for i in range(len(run) - MIN_ECHO + 1))


def test_status_and_kind_are_kept() -> None:
    response = httpx.Response(503, request=httpx.Request("POST", "http://model"))
    error = httpx.HTTPStatusError("overloaded", request=response.request, response=response)
    kept = ProviderError(error, ["overloaded"])
    assert status_of(kept) == 503
    assert str(kept) == "HTTPStatusError: overloaded"
