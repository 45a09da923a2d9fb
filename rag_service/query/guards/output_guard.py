"""What a model wrote, made safe to show while it streams: no foreign links, no text of the prompt.

See `rag_service.query.guards.links` and `rag_service.query.guards.leaks`. Everything that is changed is noted by its
place, so that the sentence can be flagged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from rag_service.domain import Hit
from rag_service.query.guards.leaks import LeakFilter
from rag_service.query.guards.links import LinkFilter, find_urls
from rag_service.query.guards.orders import without_orders


class OutputGuard:
    """A filter over the pieces of an answer."""

    def __init__(
        self, shown: Iterable[Hit], *, secrets: Sequence[str] = (), notice: str = "", language: str = "en"
    ) -> None:
        """
        Args:
            shown: the passages put before the model. A URL that stands in one of them, and not in an
                order to the model, may stand in the answer.
            secrets: texts of the prompt that must not be repeated, without the sentences it asks to say.
            notice: said in the place of a repeated one.
            language: of the words that replace a link.
        """
        self._shown = tuple(shown)
        self._leaks = LeakFilter(secrets, notice=notice)
        self._links = LinkFilter(lambda url: url in self._allowed, language=language)

    @cached_property
    def _allowed(self) -> frozenset[str]:
        """Looked for when the first URL comes: most answers have none."""
        return frozenset(url for hit in self._shown for url in find_urls(without_orders(hit).chunk.text))

    def feed(self, text: str) -> str:
        """Takes the next piece; returns what is safe to show by now."""
        return self._links.feed(self._leaks.feed(text))

    def flush(self) -> str:
        """The rest, after the last piece."""
        return self._links.feed(self._leaks.flush()) + self._links.flush()

    @property
    def leaks(self) -> int:
        """How many times text of the prompt was left out."""
        return len(self._leaks.changes)

    @property
    def changes(self) -> list[int]:
        """Offsets in the safe text at which a link or HTML was changed."""
        return list(self._links.changes)


def guard_text(guard: OutputGuard, text: str) -> str:
    """A whole text at once."""
    return guard.feed(text) + guard.flush()
