"""How many tokens a server counts where we count one.

Prompts are cut to a model's window by our own count, and every model has a tokenizer of its own: one made for English
takes twice as many tokens for Spanish. What a server counts corrects our count, for that model and language.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from rag_service.language.words import count_tokens
from rag_service.models.servers.counts import read_count

RESERVE = 0.15  # share of the window kept free while nothing is known of the model's tokenizer
# Prompts of one language differ: those of four passages of evals/cooperative.* take at most 5 % more tokens of SmolLM2
# than the sample says.
SPREAD = 0.06

CountTokens = Callable[[str], Awaitable[int | None]]  # asks a server; None: it cannot count

_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|size|window)|exceeds? the (?:model's |available )?context", re.IGNORECASE
)
_WINDOW = re.compile(r"(?:maximum context length|context (?:length|size|window))(?: of| is|:)?(?: only)? (\d+)")


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """What a server says of a prompt that it refuses for its length."""

    tokens: int | None  # of the prompt, as it counts; None: it does not say
    window: int | None  # of the model; None: it does not say


@dataclass
class TokenRates:
    """The highest rate seen for each language: tokens of the server for each of ours."""

    rates: dict[str, float] = field(default_factory=dict)

    def learn(self, language: str, *, ours: int, theirs: int) -> None:
        """Take in what a server counted, `theirs`, for a text that is `ours` tokens long.

        A server that cuts prompts, or leaves out what it has in a cache, counts too few: only higher rates count.
        """
        if ours > 0:
            self.rates[language] = max(self.rates.get(language, 0.0), theirs / ours)

    def limit(self, language: str, *, window: int, answer_tokens: int) -> int:
        """How many of our tokens a prompt may have that leaves room for an answer in a window of the server's."""
        limit = int(window * (1 - RESERVE)) - answer_tokens
        if (rate := self.rates.get(language)) is not None:
            limit = min(limit, int((window - answer_tokens) / (rate * (1 + SPREAD))))
        return limit


def read_refusal(status: int | None, body: Any, text: str) -> Refusal | None:
    """What an error says of a prompt's length; None if it is about something else.

    Args:
        status: HTTP status of the reply.
        body: of the reply, as JSON.
        text: of the error.

    llama.cpp tells both numbers in fields of their own; OpenAI and vLLM tell the window in their sentence.
    """
    if status not in (400, 413, 422, 500) or _TOO_LONG.search(text) is None:
        return None
    told = body.get("error", body) if isinstance(body, Mapping) else {}
    told = told if isinstance(told, Mapping) else {}
    stated = _WINDOW.search(text)
    window = read_count(told.get("n_ctx")) or (read_count(stated[1]) if stated else None)
    return Refusal(tokens=read_count(told.get("n_prompt_tokens")), window=window)


def counting_client(client: httpx.AsyncClient, url: str, model: str, key: str) -> CountTokens:
    """Counts by the endpoint `/tokenize` of llama.cpp and vLLM, beside the OpenAI API at `url`.

    https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md,
    https://docs.vllm.ai/en/stable/serving/openai_compatible_server
    """
    address = url.rstrip("/").removesuffix("/v1") + "/tokenize"

    async def count(text: str) -> int | None:
        response = await client.post(
            address,
            json={"content": text, "prompt": text, "model": model},
            headers={"Authorization": f"Bearer {key}"},
        )
        if response.status_code != httpx.codes.OK:
            return None
        said = response.json()
        tokens = said.get("tokens")
        return read_count(said.get("count", len(tokens) if isinstance(tokens, list) else None))

    return count


async def count_samples(rates: TokenRates, samples: Mapping[str, str], count: CountTokens) -> None:
    """Learn the rate of each language from a text in it. Ends at the first that the server does not count."""
    for language, text in samples.items():
        theirs = await count(text)
        if theirs is None:
            return
        rates.learn(language, ours=count_tokens(text), theirs=theirs)
