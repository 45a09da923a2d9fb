"""A passage's text made ready to look for claims in it: normalised, cut into sentences, taken apart into statements."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache

from rag_service.query.verification.lexicon import fold_word
from rag_service.query.verification.statement import WORD, Statement, is_negation, take_apart
from rag_service.text.normalise import normalise, strip_accents
from rag_service.text.sentences import read_sentences

_REMEMBERED = 128  # prepared texts

_LIST_MARK = re.compile(r"(?:[\s>#|*•‣▪·–—+-]|\(?\d{1,3}[.)]\s)*")
_CLAUSE_EDGE = re.compile(r"[,;:()|!?]|\.(?!\d)")
_NUMBER_BEFORE = re.compile(r"(?:\d[.,/ -]?|[$€£] ?|(?<!\w)-)\Z")
_NUMBER_AFTER = re.compile(r"[.,/-]?\d| \d{3}(?!\d)| ?[%€$£]")


class PreparedText:
    """A text prepared for comparisons; each part when it is first needed, and kept with it."""

    def __init__(self, original: str, language: str | None, cut: bool) -> None:
        self.text = normalise(original, fold_case=True, markup=True)
        self._original = original
        self._language = language
        self._cut = cut  # whether the text may begin in the middle of a sentence
        self._statements: dict[tuple[int, int], Statement] = {}

    @cached_property
    def folded(self) -> str:
        """The normalised text without accents: the same length, so the same offsets."""
        return strip_accents(self.text.text)

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """Normalised offsets of the sentences, without list marks."""
        bounds = []
        for sentence in read_sentences(self._original, language=self._language):
            if self._cut and sentence.start == 0 and sentence.text[0].islower():
                continue
            mark = _LIST_MARK.match(sentence.text)
            start = self.text.position(sentence.start + (mark.end() if mark else 0))
            end = self.text.position(sentence.end)
            while end > start and self.text.text[end - 1] in " |":
                end -= 1
            while start < end and self.text.text[start] in " |":
                start += 1
            if start < end:
                bounds.append((start, end))
        return bounds

    @cached_property
    def starts(self) -> list[int]:
        return [start for start, _ in self.bounds]

    def state(self, start: int, end: int) -> Statement:
        """What the words between two normalised offsets state."""
        if (start, end) not in self._statements:
            self._statements[start, end] = take_apart(self.text.text[start:end], language=self._language)
        return self._statements[start, end]


# Every answer looks through twenty passages, and those that people ask about come again. A hundred of them,
# read to the last sentence, are 10 MB.
prepare = lru_cache(maxsize=_REMEMBERED)(PreparedText)


def stands_whole(text: str, start: int, end: int) -> bool:
    """Whether the match [start, end) cuts neither a word nor a number in two."""
    first, last = text[start], text[end - 1]
    if first.isalnum() and start and text[start - 1].isalnum():
        return False
    if last.isalnum() and end < len(text) and text[end].isalnum():
        return False
    if first.isdigit() and _NUMBER_BEFORE.search(text[max(0, start - 3) : start]):
        return False
    return not (last.isdigit() and _NUMBER_AFTER.match(text, end))


def negates_around(text: str, start: int, end: int, begin: int, finish: int) -> bool:
    """Whether a negation stands beside the match, in its clause and within [begin, finish)."""
    before = text[max(begin, start - 200) : start]
    edges = [edge.end() for edge in _CLAUSE_EDGE.finditer(before)]
    before = before[edges[-1] if edges else 0 :]
    edge = _CLAUSE_EDGE.search(text, end, min(finish, end + 200))
    after = text[end : edge.start() if edge else min(finish, end + 200)]
    return any(
        is_negation(fold_word(word[0]), part, word.end()) for part in (before, after) for word in WORD.finditer(part)
    )
