"""Text of the system prompt in a model's output, found while it streams and left out.

Letters are compared, without case, accents, spaces and punctuation, so that a prompt spelt out letter by
letter or as a list is found as well. Held back is only what might become a leak: the letters at the end
that also stand together in the prompt. A translation or a paraphrase is not found; it carries no verified
citation and is flagged like any other unproved sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from rag_service.text.words import fold

LEAK_LETTERS = 30  # this many letters in a row, five or six words, are no coincidence
_RUN_LETTERS = 120  # letters of a run that are remembered
_SHARED_LETTERS = 3  # letters of a word before a leak that may be the leak's first by chance
_MOST_HELD = 300  # characters, or they would be looked through again with each piece; twice as many for a moment
_SENTENCE_ENDS = ".!?…\n"


class _State(Enum):
    OPEN = 1  # text passes
    LEAKING = 2  # text of a secret arrives
    ENDING = 3  # no more of the secret, but its sentence goes on


class LeakFilter:
    """Takes text in pieces, gives it back with each leak, to the end of its sentence, replaced by a notice."""

    def __init__(self, secrets: Sequence[str], *, notice: str) -> None:
        """
        Args:
            secrets: texts that must not be repeated; short ones (under 30 letters) only as a whole.
            notice: put in the place of what is left out.
        """
        self._secrets = [_Secret(secret) for secret in secrets if any(map(str.isalnum, secret))]
        self._notice = notice
        self._state = _State.OPEN
        self._held = ""  # may become a leak; while leaking: what follows the end of a sentence
        self._sentence_over = False  # a sentence has ended since the leak's last letter
        self._in_word = False  # whether the last character given out belongs to a word
        self._length = 0
        self.changes: list[int] = []  # offsets of the notices in the output

    def feed(self, text: str) -> str:
        """Takes the next piece; returns what is no part of a leak."""
        if not self._secrets:
            self._length += len(text)
            return text
        if self._state is _State.OPEN and self._pass(text):
            self._held += text
            return self._release()
        given = []
        for character in text:
            letters = fold(character)
            if self._state is _State.OPEN and (len(self._held) > 2 * _MOST_HELD or self._may_leak(letters)):
                given.append(self._release())  # now, as what is held then is taken for the leak's own
            given.append(self._take(character, letters))
        if self._state is _State.OPEN:
            given.append(self._release())  # once a piece: where a run begins takes longer to tell than that it goes on
        return "".join(given)

    def flush(self) -> str:
        """The rest."""
        rest = self._held if self._state is _State.OPEN else ""
        self._held = ""
        self._length += len(rest)
        return rest

    def _pass(self, text: str) -> bool:
        """Take a whole piece, if nothing in it comes near to a leak: letter by letter takes ten times as long."""
        letters = fold(text)
        runs = [secret.pass_by(letters) for secret in self._secrets]
        if None in runs:
            return False
        for secret, run in zip(self._secrets, runs, strict=True):
            secret.run = run or ""
        return True

    def _may_leak(self, letters: str) -> bool:
        return any(map(str.isalnum, letters)) and any(secret.may_leak(len(letters)) for secret in self._secrets)

    def _take(self, character: str, letters: str) -> str:
        for letter in letters:
            for secret in self._secrets:
                secret.take(letter)
        leaks = False
        for secret in self._secrets:
            leaks = leaks or secret.leaks
        match self._state:
            case _State.OPEN:
                self._held += character
                return self._begin_leak() if leaks else ""
            case _State.LEAKING if leaks:
                self._continue_leak(character)
            case _State.LEAKING if self._sentence_over:
                self._state = _State.OPEN
                self._held += character
                return self._release()
            case _State.LEAKING:
                self._state = _State.ENDING
            case _State.ENDING if character in _SENTENCE_ENDS:
                self._state = _State.OPEN
                self._held = "\n" if character == "\n" else ""
        return ""

    def _begin_leak(self) -> str:
        rest = self._rest_of_word()
        self._state, self._held, self._sentence_over = _State.LEAKING, "", False
        self._length += len(rest)
        self.changes.append(self._length)
        self._length += len(self._notice)
        return rest + self._notice

    def _rest_of_word(self) -> str:
        """The end of a word that is the answer's own, though its letters are the first of the leak's too."""
        end = next((at for at, character in enumerate(self._held) if not character.isalnum()), 0)
        if not self._in_word or end > _SHARED_LETTERS:
            return ""
        while end < len(self._held) and not self._held[end].isalnum():
            end += 1
        return self._held[:end]

    def _continue_leak(self, character: str) -> None:
        if character.isalnum():
            self._held, self._sentence_over = "", False
        elif character in _SENTENCE_ENDS:
            breaks = self._held if character == "\n" and self._sentence_over else ""
            self._held, self._sentence_over = breaks[-_MOST_HELD:] + character.strip(".!?…"), True
        elif self._sentence_over and len(self._held) < _MOST_HELD:
            self._held += character

    def _release(self) -> str:
        """What is held, but for the end that may be the beginning of a leak."""
        cut = min(secret.beginning(self._held) for secret in self._secrets)
        if self.changes:  # the number of the prompt's next rule may stand before it
            while cut and not self._held[cut - 1].isalpha():
                cut -= 1
        if len(self._held) - cut > 2 * _MOST_HELD:
            cut = len(self._held) - _MOST_HELD  # no leak is spelt so far apart
        ready, self._held = self._held[:cut], self._held[cut:]
        if ready:
            self._in_word = ready[-1].isalnum()
        self._length += len(ready)
        return ready


class _Secret:
    """How many of the last letters stand together in one secret text."""

    def __init__(self, text: str) -> None:
        letters = "".join(filter(str.isalpha, fold(text)))
        # Numbers are left out of a long text: a list may be numbered anew.
        self._counts: Callable[[str], bool] = str.isalpha if len(letters) >= LEAK_LETTERS else str.isalnum
        self._text = "".join(filter(self._counts, fold(text)))
        self._needed = min(LEAK_LETTERS, len(self._text))
        self._block = max(1, self._needed // 2 - 2)  # any run of nearly as many as needed holds such a block whole
        self.run = ""  # the last letters, as many as stand together in the text

    def take(self, letter: str) -> None:
        if not self._counts(letter):
            return
        run = (self.run + letter)[-_RUN_LETTERS:]
        while run not in self._text:
            run = run[1:]
        self.run = run

    def pass_by(self, text: str) -> str | None:
        """The run after a folded text, as `take` would leave it; None if some run in it may come near to a leak."""
        letters = self.run + "".join(filter(self._counts, text))
        block = self._block
        for start in range(0, len(letters) - block + 1, block):
            if letters[start : start + block] in self._text:
                return None
        length = 0
        while length < len(letters) and letters[len(letters) - length - 1 :] in self._text:
            length += 1
        return letters[len(letters) - length :]

    @property
    def leaks(self) -> bool:
        return len(self.run) >= self._needed

    def may_leak(self, more: int) -> bool:
        """Whether so many more letters can make it a leak."""
        return len(self.run) + more >= self._needed

    def beginning(self, text: str) -> int:
        """Where in the text the letters of the run begin."""
        at, letters = len(text), len(self.run)
        while letters > 0 and at:
            at -= 1
            letters -= sum(map(self._counts, fold(text[at])))
        return at
