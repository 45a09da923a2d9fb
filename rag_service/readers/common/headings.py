"""What a line must look like to be a heading, for formats that do not say which lines are."""

from __future__ import annotations

import re

MAX_CHARACTERS = 150
_MIN_LETTERS = 3
_MAX_SENTENCE_WORDS = 6  # "2. Purpose." is a heading that ends like a sentence
_COLUMN = re.compile(r"\S {2,}\S")
# "2.1", "IV.", "A.", or after a word: "Item 1A.", "Article 3".
NUMBER = re.compile(
    r"(?:[A-ZÀ-Ý][^\W\d_]{1,11}\s+)?(?P<number>\d{1,3}[A-Z]?(?:\.\d{1,3}){0,5}\.?|[IVXLC]{1,6}\.|[A-Z]\.)\s+(?=\S)"
)
_BRACKETS = (("(", ")"), ("[", "]"))


def reads_like_heading(text: str, words: str) -> bool:
    """Whether a line is short and mostly letters, and does not go on. `words`: the text behind its number."""
    letters = sum(char.isalpha() for char in words)
    return (
        len(text) <= MAX_CHARACTERS
        and letters >= max(_MIN_LETTERS, sum(not char.isspace() for char in words) / 2)
        and not _COLUMN.search(words)
        and all(
            text.count(opening) == text.count(closing) for opening, closing in _BRACKETS
        )  # else it is part of a line
        and words[-1] not in ",;"
        and (words[-1] != "." or len(words.split()) <= _MAX_SENTENCE_WORDS)
    )
