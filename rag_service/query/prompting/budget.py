"""What fits into the model's window: whole chunks, by tier and score, never more than there is room for.

An index definition maps chunk types to tiers. CRITICAL chunks always go in, and first; then HIGH, then
the rest while the budget lasts. Counts are ours, not the model's; `RESERVE` covers the difference between
tokenizers. What counts in the end is the rendered prompt: `fit_prompt` counts it as it will be sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from rag_service.definitions import Tier
from rag_service.domain import Hit
from rag_service.errors import ContextOverflowError
from rag_service.query.prompting.prompt import render_context, render_passage
from rag_service.text.tokens import count_tokens

RESERVE = 0.15  # share of the window kept free for other tokenizers' counts
MESSAGE_TOKENS = 4  # what a chat template adds around each message
TIERS: tuple[Tier, ...] = ("critical", "high", "medium", "low")

# Stands for the boundary of a request while tokens are counted: all boundaries have as many, and the lines
# that hold this one were counted before.
_COUNTED_BOUNDARY = "~000000000000~"

Tiers = Mapping[Tier, Sequence[str]]  # tier → chunk types
NO_TIERS: Tiers = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class PackedContext:
    """The chunks that are shown, and what they cost."""

    hits: tuple[Hit, ...]  # [C1] first
    tokens: int  # of the rendered passages
    left_out: tuple[str, ...]  # ids of chunks that did not fit


@dataclass(frozen=True, kw_only=True)
class FittedPrompt:
    """A prompt that fits, as it will be sent."""

    texts: tuple[str, ...]  # one for each message
    context: PackedContext
    tokens: int  # of all messages


def split_budget(max_tokens: int) -> tuple[int, int]:
    """(tokens for the context, tokens for the answer): 70 % and 30 %, rounded down (requirement B4)."""
    return max_tokens * 7 // 10, max_tokens * 3 // 10


def prompt_limit(window: int, answer_tokens: int) -> int:
    """Tokens that a prompt may have at most: the window without our reserve and without the answer."""
    return int(window * (1 - RESERVE)) - answer_tokens


def count_prompt(texts: Sequence[str], *, boundary: str = "") -> int:
    """Tokens of messages as they are sent; with the boundary of their request named they are counted faster."""
    return sum(count_rendered(text, boundary) + MESSAGE_TOKENS for text in texts)


def count_rendered(text: str, boundary: str) -> int:
    """Tokens of a text that was rendered with a boundary as `new_boundary` draws it."""
    return count_tokens(text.replace(boundary, _COUNTED_BOUNDARY) if boundary else text)


def tier_of(hit: Hit, tiers: Tiers) -> Tier:
    """The tier of a chunk's type; LOW for types that no tier names."""
    return next((tier for tier in TIERS if hit.chunk.type in tiers.get(tier, ())), "low")


def pack_context(
    hits: Sequence[Hit],
    *,
    window: int,
    answer_tokens: int,
    other_tokens: int,
    most_tokens: int,
    most_chunks: int,
    boundary: str,
    tiers: Tiers = NO_TIERS,
) -> PackedContext:
    """Choose whole chunks by tier, within a tier in the order given, until a limit is reached.

    CRITICAL chunks all go in, `most_chunks` or not. Another chunk that does not fit is left out, and
    smaller ones after it may still go in.

    Args:
        hits: best first, as the reranker ordered them.
        window: tokens that the model can hold.
        answer_tokens: kept free for the answer.
        other_tokens: system text, question and history.
        most_tokens: limit on the context of its own.
        most_chunks: likewise.
        boundary: as used when rendering.
        tiers: chunk types by tier; empty: all chunks are equal.

    Raises:
        ContextOverflowError: there is no room for all CRITICAL chunks, for any chunk, or even for the question.
    """
    room = min(most_tokens, prompt_limit(window, answer_tokens) - other_tokens)
    if room <= 0:
        raise ContextOverflowError(
            f"Question and instructions take {other_tokens} tokens and the answer {answer_tokens};"
            f" the window of {window} has no room for documents.",
            field="RAG_CONTEXT_WINDOW",
        )
    ordered = sorted(hits, key=lambda hit: TIERS.index(tier_of(hit, tiers)))  # stable: keeps the reranker's order
    critical = [hit for hit in ordered if tier_of(hit, tiers) == "critical"]
    chosen, left_out = list(critical), []
    used = _rendered_tokens(critical, boundary)
    if used > room:
        raise _critical_overflow(len(critical), used, room)
    for hit in ordered[len(critical) :]:
        cost = count_rendered(render_passage(len(chosen) + 1, hit, boundary), boundary) + 2
        if len(chosen) < most_chunks and used + cost <= room:
            chosen.append(hit)
            used += cost
        else:
            left_out.append(hit.chunk.id)
    # The sum is an estimate: tokens may join across the seams, or part.
    while (used := _rendered_tokens(chosen, boundary)) > room:
        left_out.append(chosen.pop().chunk.id)
    if hits and not chosen:
        raise ContextOverflowError(
            f"No passage fits into the {room} tokens left for documents.", field="RAG_CONTEXT_WINDOW"
        )
    return PackedContext(hits=tuple(chosen), tokens=used, left_out=tuple(left_out))


def fit_prompt(
    context: PackedContext,
    render: Callable[[tuple[Hit, ...]], Sequence[str]],
    *,
    limit: int,
    boundary: str,
    tiers: Tiers = NO_TIERS,
) -> FittedPrompt:
    """Render the prompt and count it; while it is over the limit, leave out the last chunk.

    Args:
        context: what `pack_context` chose.
        render: the texts of all messages with these chunks shown.
        limit: as `prompt_limit` gives it.
        boundary: as used when rendering.
        tiers: as given to `pack_context`.

    Raises:
        ContextOverflowError: it does not fit even with one chunk, or without a CRITICAL one.
    """
    while True:
        texts = tuple(render(context.hits))
        tokens = count_prompt(texts, boundary=boundary)
        if tokens <= limit:
            return FittedPrompt(texts=texts, context=context, tokens=tokens)
        last = context.hits[-1] if context.hits else None
        if last is not None and tier_of(last, tiers) == "critical":
            raise _critical_overflow(len(context.hits), tokens, limit)
        if last is None or len(context.hits) == 1:
            raise ContextOverflowError(
                f"The prompt takes {tokens} tokens; the window has room for {limit}.", field="RAG_CONTEXT_WINDOW"
            )
        kept = context.hits[:-1]
        context = replace(
            context,
            hits=kept,
            tokens=_rendered_tokens(kept, boundary),
            left_out=(last.chunk.id, *context.left_out),
        )


def _rendered_tokens(hits: Sequence[Hit], boundary: str) -> int:
    return count_rendered(render_context(hits, boundary), boundary) if hits else 0


def _critical_overflow(chunks: int, tokens: int, room: int) -> ContextOverflowError:
    return ContextOverflowError(
        f"The CRITICAL chunks alone do not fit: {chunks} of them take {tokens} tokens,"
        f" and there is room for {room}. None of them may be left out.",
        field="RAG_CONTEXT_WINDOW",
    )
