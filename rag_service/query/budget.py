"""What fits into the model's window: whole chunks, best first, never more than there is room for.

Counts are ours, not the model's; `RESERVE` covers the difference between tokenizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_service.domain import Hit
from rag_service.errors import ContextOverflowError
from rag_service.query.prompt import render_passage
from rag_service.text.tokens import count_tokens

RESERVE = 0.15  # share of the window kept free for other tokenizers' counts


@dataclass(frozen=True, kw_only=True)
class PackedContext:
    """The chunks that are shown, and what they cost."""

    hits: tuple[Hit, ...]
    tokens: int  # of the rendered passages
    left_out: tuple[str, ...]  # ids of chunks that did not fit


def pack_context(
    hits: Sequence[Hit],
    *,
    window: int,
    answer_tokens: int,
    other_tokens: int,
    most_tokens: int,
    most_chunks: int,
    boundary: str,
) -> PackedContext:
    """Choose whole chunks in the order given until a limit is reached.

    A chunk that does not fit is left out and smaller ones after it may still go in.

    Args:
        hits: best first.
        window: tokens that the model can hold.
        answer_tokens: kept free for the answer.
        other_tokens: system text, question and history.
        most_tokens: limit on the context of its own.
        most_chunks: likewise.
        boundary: as used when rendering.

    Raises:
        ContextOverflowError: the window has no room for any of the chunks, or not even the question.
    """
    room = min(most_tokens, int(window * (1 - RESERVE)) - answer_tokens - other_tokens)
    if room <= 0:
        raise ContextOverflowError(
            f"Question and instructions take {other_tokens} tokens and the answer {answer_tokens};"
            f" the window of {window} has no room for documents.",
            field="RAG_CONTEXT_WINDOW",
        )
    chosen: list[Hit] = []
    left_out: list[str] = []
    used = 0
    for hit in hits:
        cost = count_tokens(render_passage(len(chosen) + 1, hit, boundary)) + 2
        if len(chosen) < most_chunks and used + cost <= room:
            chosen.append(hit)
            used += cost
        else:
            left_out.append(hit.chunk.id)
    if hits and not chosen:
        raise ContextOverflowError(
            f"No passage fits into the {room} tokens left for documents.", field="RAG_CONTEXT_WINDOW"
        )
    return PackedContext(hits=tuple(chosen), tokens=used, left_out=tuple(left_out))
