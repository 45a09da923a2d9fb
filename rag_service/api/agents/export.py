"""A conversation as Markdown: each answer with its decision, and how far each citation proves its sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from rag_service.api.agents.history import SourceChanges
from rag_service.store.accounts.conversations import Conversation, Message

EXPORT_MESSAGES = 5_000  # the latest ones
# They turn the direction of the text around them, also of what follows (UAX #9).
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SINCE = {
    "changed": "**The document has since changed.**",
    "gone": "**The document has since been deleted, or you may no longer read it.**",
}
_MARKUP = re.compile(r"([<\\`*_\[\]#])")


def write_markdown(conversation: Conversation, messages: Sequence[Message], changes: Sequence[SourceChanges]) -> str:
    """Title, then each question as a heading, its answer, the decision, and one line for each citation with place,
    quote and status, and for each sentence without one. `changes`: what has become of the documents that each message
    cites."""
    parts = [f"# {_line(conversation.title)}"]
    for message, changed in zip(messages, changes, strict=True):
        if message.role == "user":
            parts.append(f"## {_line(message.content)}")
            continue
        parts.append(message.content.replace("<", "\\<").strip())
        if decision := message.details.get("decision"):
            reasons = [_line(reason["text"]) for reason in message.details.get("reasons", ())]
            parts.append(" ".join([f"*{_line(decision)}*", *reasons[:1]]))
        if cited := list(dict.fromkeys((*_citations(message.citations, changed), *_unmarked(message)))):
            parts.append("\n".join(cited))
    return "\n\n".join(parts) + "\n"


def _citations(citations: Sequence[Any], changes: SourceChanges) -> Iterator[str]:
    for citation in citations:
        source = _line(citation.get("place") or citation.get("title") or "")
        words = citation.get("evidence") or [citation]
        quotes = [f"“{_line(one['quote'])}”" for one in words if one.get("quote")]
        proof = ", ".join(
            filter(None, (citation["status"], citation.get("method"), _line(citation.get("reason") or "")))
        )
        change = changes.get(UUID(citation["documentId"])) if citation.get("documentId") else None
        parts = (
            f"\\[C{citation['mark']}\\]",
            source,
            " … ".join(quotes),
            f"({proof})",
            _SINCE[change] if change else "",
        )
        yield "- " + " ".join(filter(None, parts))


def _unmarked(message: Message) -> Iterator[str]:
    """Sentences that state something and cite nothing."""
    cited = [(citation.get("sentenceStart", 0), citation.get("sentenceEnd", 0)) for citation in message.citations]
    for flagged in message.details.get("flagged", ()):
        start, end = flagged["start"], flagged["end"]
        if not any(first < end and last > start for first, last in cited):
            yield f"- “{_line(message.content[start:end])}” (no citation)"


def _line(text: str) -> str:
    """Text of people or documents as one line that is no markup."""
    return _MARKUP.sub(r"\\\1", " ".join(_DIRECTIONS.sub("", text).split()))
