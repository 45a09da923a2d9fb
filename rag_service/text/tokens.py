"""Token counts. The tokenizer is the one LlamaIndex ships with; for other models it is an estimate."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

_PASSAGE = 20_000  # characters; whole documents are counted once and must not stay in memory


@lru_cache(maxsize=1)
def _encode() -> Callable[[str], list[int]]:
    from llama_index.core.utils import get_tokenizer

    tokenizer: Callable[[str], list[int]] = get_tokenizer()
    return tokenizer


def count_tokens(text: str) -> int:
    """Tokens of a text under the counting tokenizer."""
    return _count_passage(text) if len(text) <= _PASSAGE else len(_encode()(text))


@lru_cache(maxsize=256)  # a request counts its passages for the budget, the prompt and the metrics
def _count_passage(text: str) -> int:
    return len(_encode()(text))
