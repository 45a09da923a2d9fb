"""Hits for reranker tests, with only what a reranker looks at."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from rag_service.domain import Chunk, DocumentRef, Hit, Location, Scores, Span


def make_hit(
    text: str,
    *,
    relevance: float = 0.5,
    fused: float | None = None,
    headings: tuple[str, ...] = (),
    title: str = "",
    id: str = "",
    document: int = 1,
) -> Hit:
    """A hit on a chunk of the numbered document; the id defaults to the text."""
    reference = DocumentRef(
        id=UUID(int=document),
        corpus_id=UUID(int=2),
        title=title,
        file_name=None,
        source=None,
        tags=(),
        content_hash="0" * 64,
        updated_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    span = Span(start=0, end=len(text), location=Location(headings=headings))
    chunk = Chunk(
        id=id or text, document=reference, index=0, text=text, start=0, end=len(text), spans=(span,), metadata={}
    )
    return Hit(chunk=chunk, scores=Scores(relevance=relevance, bm25=3.0, fused=fused))
