"""Passages that change what was found: an amendment has other words than a question, and is found far below."""

from __future__ import annotations

from collections.abc import Sequence

from rag_service.domain import Chunk, DocumentRef, Hit
from rag_service.language.amendments import Opening, changes, names_document


def find_amendments(hits: Sequence[Hit], found: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the passages among those found that change one of the hits and are not among them."""
    known = {hit.chunk.id for hit in hits}
    others = [hit for hit in found if hit.chunk.id not in known]
    return tuple(hit for hit in others if _changes_any(hit.chunk, [old.chunk for old in hits]))


def amends(chunk: Chunk, old: Chunk) -> bool:
    """Return whether a passage of a later document changes an old one."""
    return _changes_any(chunk, [old])


def _changes_any(chunk: Chunk, chunks: Sequence[Chunk]) -> bool:
    document = chunk.document
    opening = Opening(document.title, chunk.text)
    titles = {old.document.title for old in chunks if _may_change(document, old.document)}
    named = {title for title in titles if names_document(title, opening)}
    return any(
        changes(chunk.text, old.text, title=old.document.title)
        for old in chunks
        if old.document.title in named and _may_change(document, old.document)
    )


def _may_change(document: DocumentRef, old: DocumentRef) -> bool:
    is_older = document.dated is not None and old.dated is not None and document.dated < old.dated
    return document.id != old.id and not is_older
