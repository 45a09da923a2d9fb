"""The words of evidence that a model gives with its marks: `… twelve months [C1 "at most 12 months"]`.

Readers see `[C1]`; the words are kept for the check. They prove nothing: they show where in the passage to look.
A model that leaves them out, forgets to close them or puts marks inside loses nothing but that help.
"""

from __future__ import annotations

import re
from collections import Counter

from rag_service.language.normalise import MARK, OPENING

_S = "[ \t\u00a0\u202f]"
_QUOTES = "\"“”„«»'‘’"
_OPEN = rf"[{re.escape(OPENING)}]"
_OPENING = re.compile(_OPEN)
_CLOSE = r"[\]］】]"
_BEGIN = re.compile(rf"{_OPEN}{_S}?[Cc]{_S}?(?P<number>[0-9]{{1,9}}){_S}?[:,;(–-]?{_S}?[\"“„«'‘]")
# What may still become such a beginning, or a mark.
_PARTIAL = re.compile(rf"{_OPEN}(?:{_S}?(?:[Cc](?:{_S}?[0-9,;Cc –-]{{0,40}}{_S}?[:,;(–-]?{_S}?)?)?)?\Z")
_END = re.compile(rf"[{_QUOTES}]{_S}?[.,;]?\)?{_S}?(?:(?P<close>{_CLOSE})|[,;]{_S}?(?=[Cc]{_S}?[0-9]))")
_FIRST_QUOTE = re.compile(rf"[\"”»“’](?!\w)(?:{_S}?{_CLOSE})?")
_LONGEST = 6_000  # characters of evidence that are hidden; nobody closes a longer one
_NUMBERS = re.compile(r"(?P<dash>[–-]?)[ \t\u00a0\u202fCc]*(?P<number>[0-9]+)")
_LONGEST_RANGE = 20  # [C1-3] means three chunks; a longer range is taken as its two ends


def read_numbers(mark: str) -> tuple[int, ...]:
    """The chunk numbers that a mark names, each once."""
    numbers: dict[int, None] = {}
    previous = 0
    for match in _NUMBERS.finditer(mark):
        number = int(match["number"])
        if match["dash"] and previous < number <= previous + _LONGEST_RANGE:
            numbers |= dict.fromkeys(range(previous, number))
        numbers[number] = None
        previous = number
    return tuple(numbers)


class NamedEvidence:
    """Takes the model's text in pieces, gives it back without the words of evidence, and keeps those."""

    def __init__(self) -> None:
        self._held = ""  # may become a mark with evidence, or is the evidence so far
        self._number: int | None = None  # of the mark whose evidence arrives
        self._seen: Counter[int] = Counter()  # marks so far, by number
        self._texts: dict[tuple[int, int], str] = {}  # (number, how many marks of it came before) → evidence
        self._taken: Counter[int] = Counter()

    def feed(self, text: str) -> str:
        """Take the next piece; returns what readers may see of it."""
        if not self._held and self._number is None and not _OPENING.search(text):
            return text
        return self._scan(self._held + text, final=False)

    def finish(self) -> str:
        """The rest. Evidence that was never closed ends at its first quotation mark."""
        return self._scan(self._held, final=True)

    def take(self, number: int) -> str:
        """The evidence of the next mark of that number, in the order of the text; "" if it has none."""
        self._taken[number] += 1
        return self._texts.get((number, self._taken[number] - 1), "")

    def _scan(self, text: str, *, final: bool) -> str:
        shown: list[str] = []
        while text:
            if self._number is not None:
                rest = self._hide(text, final=final)
                if rest is None:
                    break
                text = rest
                continue
            opening = _OPENING.search(text)
            at = opening.start() if opening else len(text)
            shown.append(text[:at])
            text = text[at:]
            if begin := _BEGIN.match(text):
                self._number = int(begin["number"])
                shown.append(f"[C{self._number}]")
                text = text[begin.end() :]
            elif mark := re.match(MARK, text):
                self._seen.update(read_numbers(mark[0]))
                shown.append(mark[0])
                text = text[mark.end() :]
            elif text and not final and _PARTIAL.match(text):
                break
            else:
                shown.append(text[:1])
                text = text[1:]
        self._held = text
        return "".join(shown)

    def _hide(self, text: str, *, final: bool) -> str | None:
        """What follows the evidence that `text` begins with; None while it goes on."""
        head = text[:_LONGEST]
        paragraph = head.find("\n\n")
        cut = paragraph if paragraph >= 0 else len(head)
        end = _END.search(head, 0, cut)
        forgotten = _FIRST_QUOTE.search(head, 0, cut)
        following = _BEGIN.search(head, forgotten.end(), cut) if forgotten else None
        if end is not None and (following is None or following.start() > end.start()):
            self._keep(text[: end.start()])
            return text[end.end() :] if end["close"] else f"[{text[end.end() :]}"
        if end is None and not final and paragraph < 0 and len(text) <= _LONGEST:
            return None
        if forgotten is not None:
            self._keep(text[: forgotten.start()])
            return text[forgotten.end() :]
        self._keep("")
        return text[cut:]

    def _keep(self, evidence: str) -> None:
        number = self._number or 0
        self._texts[number, self._seen[number]] = evidence
        self._seen[number] += 1
        self._number = None
