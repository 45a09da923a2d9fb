"""Passages that change what was found: an amendment has other words than a question, and is found far below."""

from __future__ import annotations

from collections.abc import Sequence

from rag_service.domain import Chunk, Hit
from rag_service.language.amendments import changes, names_document


def find_amendments(hits: Sequence[Hit], found: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the passages among those found that change one of the hits and are not among them."""
    known = {hit.chunk.id for hit in hits}
    return tuple(
        hit for hit in found if hit.chunk.id not in known and any(amends(hit.chunk, old.chunk) for old in hits)
    )


def amends(chunk: Chunk, old: Chunk) -> bool:
    """Return whether a passage of a later document changes an old one."""
    document, of = chunk.document, old.document
    if document.id == of.id or (document.dated is not None and of.dated is not None and document.dated < of.dated):
        return False
    named = names_document(of.title, opening=chunk.text, own_title=document.title)
    return named and changes(chunk.text, old.text, title=of.title)
