"""How many tokens a server counts where we count one.

Prompts are cut to a model's window by our own count, and every model has a tokenizer of its own: one made for English
takes twice as many tokens for Spanish. What a server counts corrects our count, for that model and language.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpx

from rag_service.language.words import count_tokens
from rag_service.models.llm.learned import Learned
from rag_service.models.servers.counts import read_count

RESERVE = 0.15  # share of the window kept free while nothing is known of the model's tokenizer
# Prompts of one language differ: those of four passages of evals/cooperative.* take at most 5 % more tokens of SmolLM2
# than the sample says.
SPREAD = 0.06
# A count farther off is that of a cut prompt, of odd text, or a mistake: prose takes up to twice as many tokens.
FARTHEST = 3.0

CountTokens = Callable[[str], Awaitable[int | None]]  # asks a server; None: it cannot count

_refused: ContextVar[float | None] = ContextVar("refused_rate", default=None)

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
    """Tokens of the server for each of ours, by language."""

    rates: dict[str, float] = field(default_factory=dict)  # of texts that the server was asked to count
    # Of its replies.
    _seen: defaultdict[str, Learned[float]] = field(default_factory=lambda: defaultdict(Learned[float]))

    def learn(self, language: str, text: str, *, ours: int, theirs: int) -> None:
        """Take in what a server counted, `theirs`, for a prompt that is `ours` tokens long.

        Only a count of prose that can be true, and for a language that the server was not asked to count.
        """
        if language not in self.rates and ours > 0 and 1 / FARTHEST <= theirs / ours <= FARTHEST and _is_prose(text):
            self._seen[language].add(theirs / ours)

    def refuse(self, *, ours: int, theirs: int) -> None:
        """Take in what a server counted for a prompt that it refused: it holds for the rest of this answer."""
        if ours > 0:
            _refused.set(min(theirs / ours, FARTHEST))

    def limit(self, language: str, *, window: int, answer_tokens: int) -> int:
        """How many of our tokens a prompt may have that leaves room for an answer in a window of the server's."""
        limit = int(window * (1 - RESERVE)) - answer_tokens
        seen = self._seen[language].value() if language in self._seen else None
        for rate in (self.rates.get(language, seen), _refused.get()):
            if rate is not None:
                limit = min(limit, int((window - answer_tokens) / (rate * (1 + SPREAD))))
        return limit


def _is_prose(text: str) -> bool:
    """Whether letters are the most of a text: blanks, figures and rules are counted in ways of their own."""
    sample = text[::8]
    return 2 * sum(map(str.isalpha, sample)) >= len(sample)


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
        rate = theirs / count_tokens(text)
        if 1 / FARTHEST <= rate <= FARTHEST:
            rates.rates[language] = rate
