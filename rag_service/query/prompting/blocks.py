"""Passages of everybody and passages of the asker's own, in a block each (requirement C4)."""

from __future__ import annotations

from collections.abc import Sequence, Set
from uuid import UUID

from rag_service.domain import Hit
from rag_service.query.prompting.prompt import render_context, render_passage

_SHARED = "Shared documents:"
_PERSONAL = "The asker's own documents:"


def in_blocks(hits: Sequence[Hit], personal: Set[UUID]) -> tuple[Hit, ...]:
    """Hits of shared corpora before those of `personal` ones, each group in the order given."""
    return tuple(sorted(hits, key=lambda hit: hit.chunk.document.corpus_id in personal))


def render_blocks(hits: Sequence[Hit], boundary: str, personal: Set[UUID]) -> str:
    """The shown chunks, [C1] first, under a heading for each block.

    Without passages from `personal` corpora there is nothing to tell apart, and no heading.

    Args:
        hits: in the order of `in_blocks`.
        boundary: as drawn for the prompt.
        personal: corpora that belong to the asker.
    """
    own = [hit.chunk.document.corpus_id in personal for hit in hits]
    if not any(own):
        return render_context(hits, boundary)
    parts: list[str] = []
    for number, (hit, is_own) in enumerate(zip(hits, own, strict=True), start=1):
        if number == 1 or is_own != own[number - 2]:
            parts.append(_PERSONAL if is_own else _SHARED)
        parts.append(render_passage(number, hit, boundary))
    return "\n\n".join(parts)
