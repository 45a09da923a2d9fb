"""Words without plural and gender, the same for all languages: cells and names of columns seldom tell theirs."""

from __future__ import annotations

import re
from functools import lru_cache

from rag_service.language.words import words
from rag_service.recent import kept_apart

_PLURALS = ((re.compile(r"(?:oes|aes)$"), "ao"), (re.compile(r"ies$"), "y"), (re.compile(r"[sx]$"), ""))
_ENDING = re.compile(r"[aeo]$")  # gender and the rest of a plural: roja, rojo; boxe(s), box
_MIN_LETTERS = 4  # shorter words are compared as they are


@lru_cache(maxsize=50_000)
def fold_word(word: str) -> str:
    """Return a word of `words` without plural and gender."""
    if len(word) < _MIN_LETTERS or not word.isalpha():
        return word
    for pattern, singular in _PLURALS:
        word, changed = pattern.subn(singular, word)
        if changed:
            break
    return _ENDING.sub("", word) if len(word) >= _MIN_LETTERS else word


@kept_apart(100_000)
def fold_words(text: str) -> str:
    """Return the words of a text as cells are compared: folded, without plurals, one space between them."""
    return " ".join(map(fold_word, words(text)))
