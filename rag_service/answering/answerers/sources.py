"""The passages that an answer may come from."""

from __future__ import annotations

from rag_service.answering.prompt.notices import mentioning
from rag_service.domain import Hit
from rag_service.retrieval.found import Found


def mentioned_sources(found: Found) -> tuple[Hit, ...]:
    """Return the passages chosen; of a question about a file that is missing only those that mention it."""
    files = found.files
    if files is not None and files.missing and not files.found:
        return mentioning(files.missing[0], found.passages)
    return found.passages


def unique(*hits: Hit) -> tuple[Hit, ...]:
    """Return passages in their order, each once."""
    by_id: dict[str, Hit] = {}
    for hit in hits:
        by_id.setdefault(hit.chunk.id, hit)
    return tuple(by_id.values())
