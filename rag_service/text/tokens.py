"""Token counts. The tokenizer is the one LlamaIndex ships with; for other models it is an estimate."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache


@lru_cache(maxsize=1)
def _encode() -> Callable[[str], list[int]]:
    from llama_index.core.utils import get_tokenizer

    tokenizer: Callable[[str], list[int]] = get_tokenizer()
    return tokenizer


@lru_cache(maxsize=256)  # a request counts its passages for the budget, the prompt and the metrics
def count_tokens(text: str) -> int:
    """Tokens of a text under the counting tokenizer."""
    return len(_encode()(text))
