"""A conversation as Markdown, with what each answer cites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rag_service.store.accounts.conversations import Conversation, Message

EXPORT_MESSAGES = 5_000  # the latest ones
# They turn the direction of the text around them, also of what follows (UAX #9).
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MARKUP = re.compile(r"([<\\`*_\[\]#])")


def write_markdown(conversation: Conversation, messages: Sequence[Message]) -> str:
    """Title, then each question as a heading, its answer, and one line for each citation with status and quote."""
    parts = [f"# {_line(conversation.title)}"]
    for message in messages:
        if message.role == "user":
            parts.append(f"## {_line(message.content)}")
            continue
        parts.append(message.content.replace("<", "\\<").strip())
        if cited := list(dict.fromkeys(_citations(message.citations))):
            parts.append("\n".join(cited))
    return "\n\n".join(parts) + "\n"


def _citations(citations: Sequence[Any]) -> Iterator[str]:
    for citation in citations:
        source = _line(citation.get("place") or citation.get("title") or "")
        quote = _line(citation.get("quote") or "")
        parts = (f"\\[C{citation['mark']}\\]", source, f"“{quote}”" if quote else "", f"({citation['status']})")
        yield "- " + " ".join(filter(None, parts))


def _line(text: str) -> str:
    """Text of people or documents as one line that is no markup."""
    return _MARKUP.sub(r"\\\1", " ".join(_DIRECTIONS.sub("", text).split()))
