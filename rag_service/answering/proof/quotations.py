"""Explicit quotations of an answer: words between quotation marks, which may run over several sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_service.language.normalise import normalise

QUOTE_SIGN = re.compile('[“«„‘"]')
_WORD = re.compile(r"\w+")
_CLOSING = {"“": "”", "«": "»", "„": "“", "‘": "’", '"': '"'}
# A straight quote opens only before a word, and not after one: 5" is a length.
_OPENER = re.compile(r"[“«„]|(?<!\w)‘(?=\w)|(?<![\w.,;:!?)»”])\"(?=[\w¿¡(\[«“*_])")
_SINGLE_CLOSER = re.compile(r"’(?!\w)")
_ELISION = re.compile(r"(?:(?<!\s)\s++)?(?:[\[(]\.\.\.[\])]|(?<=\s)\.\.\.(?=\s))\s*+")
_FEWEST_QUOTED = 4  # shorter ones are names and terms in quotation marks
_QUOTE_EDGE = " \t.,;:!?\"'|"


@dataclass
class Quotations:
    """Reads the quotations of one piece of a paragraph after another; one may run over several pieces."""

    closer: str | None = None  # the character that closes the quotation still open

    def read(self, text: str) -> tuple[str, ...]:
        """Return the quotations in `text`, normalised, in lower case, without outer punctuation."""
        found: list[str] = []
        position = 0
        while position <= len(text):
            if self.closer is None:
                opener = _OPENER.search(text, position)
                if opener is None:
                    break
                position = opener.end()
                self.closer = _CLOSING[opener[0]]
            end = self._find_closer(text, position)
            found.append(text[position : end if end >= 0 else len(text)])
            if end < 0:
                if self.closer == "’":
                    self.closer = None  # an apostrophe after all
                    found.pop()
                    continue
                break
            self.closer = None
            position = end + 1
        plain = (normalise(quotation, fold_case=True, markup=True).text.strip(_QUOTE_EDGE) for quotation in found)
        return tuple(quotation for quotation in plain if len(_WORD.findall(quotation)) >= _FEWEST_QUOTED)

    def _find_closer(self, text: str, position: int) -> int:
        if self.closer == "’":
            closer = _SINGLE_CLOSER.search(text, position)
            return closer.start() if closer else -1
        return text.find(self.closer or '"', position)


def split_elisions(quotation: str) -> list[str]:
    """Return the parts of a normalised quotation around its elisions, "[...]" or " ... "."""
    return [part.strip(_QUOTE_EDGE) for part in _ELISION.split(quotation) if part.strip(_QUOTE_EDGE)]
