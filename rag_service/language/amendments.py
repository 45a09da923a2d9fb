"""Whether a text changes another one: it names the other document, and a figure or an article that stands there.

Amendments say what they replace ("in article 4 of regulation 12, the words “180 days” …"), in any language, so no word
list is needed. A question finds the old text first: it has the question's words, and the amendment does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_service.language.designations import read_designations
from rag_service.language.words import fold, words
from rag_service.recent import kept_apart

_FIGURE = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")
_YEAR = re.compile(r"(?:19|20)\d\d")
_OPENING = 400  # characters in which a document says what it changes


@dataclass(frozen=True)
class Opening:
    """The beginning of a passage below its document's title, read once for all titles that it may name."""

    own_title: str
    text: str

    @cached_property
    def words(self) -> str:
        """Its words, folded, with a space around each."""
        return _spaced(_words_of(self._begins))

    @cached_property
    def designations(self) -> frozenset[tuple[str, str]]:
        """Its numbers, each with the word that it stands beside."""
        return _designations(self._begins)

    @property
    def _begins(self) -> str:
        return f"{self.own_title}\n{self.text[:_OPENING]}"


def names_document(title: str, opening: Opening) -> bool:
    """Return whether a document that begins so names another: by its title, or its number in it.

    The number is that of "regulation 12"; a title of one word is the name of anything.
    """
    if title == opening.own_title:
        return False
    named, whole = _designations(title), _words_of(title)
    if len(whole) > 1 and _spaced(whole) in opening.words:
        return True
    return bool(named) and named <= opening.designations


def changes(text: str, old: str, *, title: str) -> bool:
    """Return whether a text names a figure or an article of an old one, whose document has this title."""
    of_title = {number for _, number in _designations(title)}
    figures = {figure for figure in _FIGURE.findall(old) if not _YEAR.fullmatch(figure)} - of_title
    articles = _designations(old) - _designations(title)
    return not figures.isdisjoint(_FIGURE.findall(text)) or not articles.isdisjoint(_designations(text))


@kept_apart(1_000)
def _designations(text: str) -> frozenset[tuple[str, str]]:
    return frozenset((fold(word), one) for word, one in read_designations(text) if one.isdigit())


@kept_apart(1_000)
def _words_of(text: str) -> tuple[str, ...]:
    return tuple(words(fold(text)))


def _spaced(whole: Sequence[str]) -> str:
    return f" {' '.join(whole)} "
