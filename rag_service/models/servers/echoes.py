"""What a model server says of a failure may repeat what it was sent; our logs must not (requirement A8)."""

from __future__ import annotations

from collections.abc import Sequence

from rag_service.models.servers.resilience import status_of

LEAST_ECHO = 12  # characters; shorter runs in common are words of any error message
MOST_TEXT = 500  # characters of a server's message that are kept
_HIDDEN = "[…]"


class ProviderError(Exception):
    """A client package's error as it goes to the log: its kind, its status, its text without echoes."""

    def __init__(self, error: BaseException, sent: Sequence[str]):
        super().__init__(f"{type(error).__name__}: {hide_echoes(str(error)[:MOST_TEXT], sent)}")
        self.status_code = status_of(error)
        self.__traceback__ = error.__traceback__


def hide_echoes(text: str, sent: Sequence[str]) -> str:
    """The text with every run of `LEAST_ECHO` or more characters that stands in what was sent replaced."""
    whole = "\0".join(sent)
    kept: list[str] = []
    start = 0
    while start < len(text):
        end = start + LEAST_ECHO
        if end > len(text) or text[start:end] not in whole:
            kept.append(text[start])
            start += 1
            continue
        while end < len(text) and text[start : end + 1] in whole:
            end += 1
        kept.append(_HIDDEN)
        start = end
    return "".join(kept)
