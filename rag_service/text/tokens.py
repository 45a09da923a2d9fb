"""Token counts. The tokenizer is the one LlamaIndex ships with; for other models it is an estimate."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_PASSAGE = 20_000  # characters; whole documents are counted once and must not stay in memory
_LINE_START = re.compile(r"(?<=\n)(?=\S)")  # no token reaches over it


@lru_cache(maxsize=1)
def _encode() -> Callable[[str], list[int]]:
    from llama_index.core.utils import get_tokenizer

    tokenizer: Callable[[str], list[int]] = get_tokenizer()
    return tokenizer


def count_tokens(text: str) -> int:
    """Tokens of a text under the counting tokenizer.

    A prompt is counted as a whole, with the numbers and the boundary of its request in it, but most of its
    lines were counted before: for the budget, or for another question that the same passage answers.
    """
    if len(text) > _PASSAGE:
        return len(_encode()(text))
    return sum(map(_count_line, _LINE_START.split(text)))


@lru_cache(maxsize=4096)
def _count_line(line: str) -> int:
    return len(_encode()(line))
