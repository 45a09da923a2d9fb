"""Text of the system prompt in a model's output, found while it streams and left out.

Letters are compared, without case, accents, spaces and punctuation, so that a prompt spelt out letter by
letter or as a list is found as well. Held back is only what might become a leak: the letters at the end
that also stand together in the prompt. A translation or a paraphrase is not found; it carries no verified
citation and is flagged like any other unproved sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_service.text.words import fold

LEAK_LETTERS = 30  # this many letters in a row, five or six words, are no coincidence
_SENTENCE_END = re.compile(r"[.!?…](?=[\s\"'”»)\]*]|$)|\n")


class LeakFilter:
    """Takes text in pieces, gives it back without leaks, each replaced by a notice."""

    def __init__(self, secrets: Sequence[str], *, notice: str) -> None:
        """
        Args:
            secrets: texts that must not be repeated; short ones (under 30 letters) only as a whole.
            notice: put in the place of a sentence that was left out.
        """
        self._secrets = [_Secret(secret) for secret in secrets if _letters(secret)]
        self._notice = notice
        self._held = ""
        self._leaking = False
        self._ending = False  # a leak's letters have ended, its sentence has not
        self._length = 0
        self.changes: list[int] = []  # offsets of the notices in the output

    def feed(self, text: str) -> str:
        """Takes the next piece; returns what is no part of a leak."""
        given: list[str] = []
        for character in text:
            self._take(character, given)
        return "".join(given)

    def flush(self) -> str:
        """The rest."""
        rest, self._held = ("" if self._leaking else self._held), ""
        return rest

    def _take(self, character: str, given: list[str]) -> None:
        if self._ending:
            if _is_end(character):
                self._ending = self._leaking = False
                self._give("\n" if character == "\n" else " ", given)
            for letter in fold(character):
                if letter.isalnum():
                    for secret in self._secrets:
                        secret.take(letter)
            return
        for letter in fold(character):
            if letter.isalnum():
                for secret in self._secrets:
                    secret.take(letter)
        if self._leaking:
            if not any(secret.matched for secret in self._secrets):
                self._leaking, self._ending = True, not _is_end(character)
            return
        self._held += character
        if any(secret.leaks for secret in self._secrets):
            self._give(self._drop_leak(), given)
            return
        longest = max((secret.matched for secret in self._secrets), default=0)
        cut = _tail_start(self._held, longest)
        ready, self._held = self._held[:cut], self._held[cut:]
        self._give(ready, given)

    def _drop_leak(self) -> str:
        self._held, self._leaking = "", True
        self.changes.append(self._length)
        return self._notice

    def _give(self, text: str, given: list[str]) -> None:
        if text:
            given.append(text)
            self._length += len(text)


class _Secret:
    """How many of the last letters stand together in one secret text."""

    def __init__(self, text: str) -> None:
        self._text = _letters(text)
        self._run = ""
        self._needed = min(LEAK_LETTERS, len(self._text))

    def take(self, letter: str) -> None:
        run = (self._run + letter)[-4 * LEAK_LETTERS :]
        while run and run not in self._text:
            run = run[1:]
        self._run = run

    @property
    def matched(self) -> int:
        return len(self._run)

    @property
    def leaks(self) -> bool:
        return len(self._run) >= self._needed


def _letters(text: str) -> str:
    return "".join(character for character in fold(text) if character.isalnum())


def _is_end(character: str) -> bool:
    return character in ".!?…\n"


def _tail_start(text: str, letters: int) -> int:
    """Where the last `letters` letters of the text begin."""
    at = len(text)
    while letters and at:
        at -= 1
        letters -= len(_letters(text[at]))
    return at
