"""The prompt of an answer, with as many whole passages as the model's window holds, or a part of one.

An index definition maps chunk types to tiers. CRITICAL chunks always go in, and first; then HIGH, then the rest while
the budget lasts. Token counts are estimates, which what the model's server counts corrects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.guards.injection import neutralise
from rag_service.answering.prompt.cutting import cut_passage
from rag_service.answering.prompt.notices import Notices, make_notices
from rag_service.answering.prompt.templates import (
    SCHEMA_PROMPT,
    Prompts,
    new_boundary,
    render_context,
    render_passage,
)
from rag_service.domain import Hit
from rag_service.errors import ContextOverflowError
from rag_service.indices import Tier
from rag_service.language.words import count_tokens
from rag_service.retrieval.query import AnswerRun
from rag_service.settings import Settings
from rag_service.settings.answers import AnswerSettings

QUOTED_PASSAGES = 4  # that quotes are chosen from
CONTEXT_SHARE = 4  # passages take at most one part in so many of a model's context
MIN_CONTEXT_TOKENS = 1_000  # however small the context is, if it has room for them
MESSAGE_TOKENS = 4  # what a chat template adds around each message
TIERS: tuple[Tier, ...] = ("critical", "high", "medium", "low")

# Replaces the boundary of a request while tokens are counted, so that cached counts can be used: all boundaries
# have the same number of tokens.
_COUNTED_BOUNDARY = "~000000000000~"

Tiers = Mapping[Tier, Sequence[str]]  # tier → chunk types
NO_TIERS: Tiers = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class PackedContext:
    """The chunks in the prompt and their size."""

    hits: tuple[Hit, ...]  # [C1] first
    tokens: int  # of the rendered passages
    left_out: tuple[str, ...]  # ids of chunks that did not fit


@dataclass(frozen=True, kw_only=True)
class FittedPrompt:
    """A prompt that fits the window, as it is sent."""

    texts: tuple[str, ...]  # one for each message
    context: PackedContext
    tokens: int  # of all messages


@dataclass(frozen=True, kw_only=True)
class ReadyPrompt:
    """A prompt ready to be sent."""

    messages: Sequence[ChatMessage]
    context: PackedContext
    tokens: int  # our count of the whole prompt
    notices: Notices
    boundary: str  # around the passages
    secret: str  # text that the answer must not repeat

    def offering(self, rule: str) -> ReadyPrompt:
        """Return the same with a rule about the tools that are offered."""
        system, *rest = self.messages
        told = ChatMessage(role=MessageRole.SYSTEM, content=f"{system.content}\n\n{rule}")
        return replace(self, messages=[told, *rest], tokens=self.tokens + count_tokens(rule))


def write_prompt(
    run: AnswerRun,
    sources: Sequence[Hit],
    *,
    prompts: Prompts,
    settings: Settings,
    boundary: str | None = None,
    taken: int = 0,
) -> ReadyPrompt:
    """Return the prompt of a question with as many of its sources, best first, as fit into the window of its model.

    Args:
        boundary: around the passages; None: a new one.
        taken: tokens that tools and their results take beside the prompt.

    Raises:
        ContextOverflowError: question and instructions alone fill the window.
    """
    question, found, language = run.question, run.found, run.language
    name = question.prompt or (found.index.query.prompt if settings.answers.grounded_prompting else "classic")
    if question.schema is not None:
        name = SCHEMA_PROMPT
    template = prompts.template(name, language)
    boundary = boundary or new_boundary()
    notices = make_notices(found, sources, prompts)
    # What is searched for and what is asked for are two things: form and language belong to what was written.
    asked = " ".join(neutralise(question.asked).split())
    values = {"boundary": boundary, "context": "", "question": asked, "refusal": notices.refusal}
    values |= {"history": question.history, "instructions": question.instructions}
    values |= {"schema": "" if question.schema is None else neutralise(question.schema.outline())}
    personal = question.personal_corpora
    limit = run.model.prompt_limit(language) - taken
    fixed = count_prompt(template.render(values), boundary=boundary)
    fitted = fit_prompt(
        pack_sources(run, sources, settings=settings.answers, boundary=boundary, limit=limit, other_tokens=fixed),
        lambda hits: template.render({**values, "context": render_context(hits, boundary, personal)}),
        limit=limit,
        boundary=boundary,
    )
    system, user = fitted.texts
    return ReadyPrompt(
        messages=[
            ChatMessage(role=MessageRole.SYSTEM, content=system),
            ChatMessage(role=MessageRole.USER, content=user),
        ],
        context=fitted.context,
        tokens=fitted.tokens,
        notices=notices,
        boundary=boundary,
        secret=template.render({**values, "refusal": "", "question": ""})[0],
    )


def pack_sources(
    run: AnswerRun,
    sources: Sequence[Hit],
    *,
    settings: AnswerSettings,
    boundary: str,
    limit: int = sys.maxsize,
    other_tokens: int = 0,
) -> PackedContext:
    """Choose as many sources as one answer is made from, those of personal corpora last.

    Args:
        limit: of the whole prompt, in tokens, if there is one.
        other_tokens: of the rest of the prompt.

    Raises:
        ContextOverflowError: not one of them fits.
    """
    question, model = run.question, run.model
    # Quotes are chosen from the first few passages: their sentences compete with each other.
    most = settings.max_chunks or (QUOTED_PASSAGES if model.only_quotes else len(sources))
    quarter = sys.maxsize if model.only_quotes else model.context_window // CONTEXT_SHARE
    context = pack_context(
        sources,
        limit=limit,
        other_tokens=other_tokens,
        max_tokens=min(settings.max_context_tokens, max(quarter, MIN_CONTEXT_TOKENS)),
        max_chunks=most * run.found.searches,
        boundary=boundary,
        weights=run.found.weights,
    )
    ordered = sorted(context.hits, key=lambda hit: hit.chunk.document.corpus_id in question.personal_corpora)
    return replace(context, hits=tuple(ordered))


def shorten_prompt(
    run: AnswerRun, prompted: ReadyPrompt, *, prompts: Prompts, settings: Settings, taken: int
) -> ReadyPrompt:
    """Return the same prompt without its last passages, so that it keeps to what is known by now of the model's window.

    `taken` as in `write_prompt`. Raises ContextOverflowError if it does not fit even with one passage.
    """
    shown = prompted.context.hits
    for kept in range(len(shown) - 1, 0, -1):
        shorter = write_prompt(
            run, shown[:kept], prompts=prompts, settings=settings, boundary=prompted.boundary, taken=taken
        )
        if shorter.context.hits == shown[:kept]:
            return shorter
    raise ContextOverflowError(
        "The prompt does not fit into the model's window, even with a single passage.", field="RAG_CONTEXT_WINDOW"
    )


def split_budget(max_tokens: int) -> tuple[int, int]:
    """(tokens for the context, tokens for the answer): 70 % and 30 %, rounded down."""
    return max_tokens * 7 // 10, max_tokens * 3 // 10


def count_prompt(texts: Sequence[str], *, boundary: str = "") -> int:
    """Tokens of the messages as sent; counting is faster with the boundary of their request."""
    tokens = len(texts) * MESSAGE_TOKENS
    for text in texts:
        tokens += count_rendered(text, boundary)
    return tokens


def count_rendered(text: str, boundary: str) -> int:
    """Tokens of a text that was rendered with a boundary."""
    return count_tokens(text.replace(boundary, _COUNTED_BOUNDARY) if boundary else text)


def tier_of(hit: Hit, tiers: Tiers) -> Tier:
    """Return the tier of a chunk's type; LOW for types that no tier names."""
    return next((tier for tier in TIERS if hit.chunk.type in tiers.get(tier, ())), "low")


def pack_context(
    hits: Sequence[Hit],
    *,
    limit: int,
    other_tokens: int,
    max_tokens: int,
    max_chunks: int,
    boundary: str,
    tiers: Tiers = NO_TIERS,
    weights: Mapping[str, float] = MappingProxyType({}),
) -> PackedContext:
    """Choose whole chunks by tier, within a tier in the order given, until a limit is reached.

    CRITICAL chunks all go in, `max_chunks` or not. Another chunk that does not fit is left out, and
    smaller ones after it may still go in. If none fits whole, a part of the first goes in.

    Args:
        hits: best first, as the reranker ordered them.
        limit: of the whole prompt, in tokens.
        other_tokens: system text, question and history.
        max_tokens: limit of the context itself.
        max_chunks: limit for chunks that are not CRITICAL.
        boundary: as used when rendering.
        tiers: chunk types by tier; empty: all chunks are equal.
        weights: index term of the question → weight: the part is one that holds them.

    Raises:
        ContextOverflowError: no room for all CRITICAL chunks, for a part of any chunk, or even for the question.
    """
    room = min(max_tokens, limit - other_tokens)
    if room <= 0:
        raise ContextOverflowError(
            f"Question and instructions take {other_tokens} tokens; beside the answer the window has room for {limit},"
            " and thus no room for documents.",
            field="RAG_CONTEXT_WINDOW",
        )
    ordered, critical = list(hits), []
    if tiers:
        ordered.sort(key=lambda hit: TIERS.index(tier_of(hit, tiers)))  # stable: keeps the reranker's order
        critical = [hit for hit in ordered if tier_of(hit, tiers) == "critical"]
    chosen, left_out = list(critical), []
    used = count_rendered(render_context(critical, boundary), boundary)
    if used > room:
        raise _critical_overflow(len(critical), used, room)
    for hit in ordered[len(critical) :]:
        if len(chosen) >= max_chunks:
            left_out.append(hit.chunk.id)
            continue
        # No token reaches over the beginning of a passage, so the parts add up.
        cost = count_rendered(f"{render_passage(len(chosen) + 1, hit, boundary)}\n\n", boundary)
        if used + cost <= room:
            chosen.append(hit)
            used += cost
        else:
            left_out.append(hit.chunk.id)
    if hits and not chosen:
        most = 19 * room // 20  # a heading may come before it
        part = cut_passage(
            ordered[0], weights, most, lambda hit: count_rendered(render_context([hit], boundary), boundary)
        )
        if part is None:
            raise ContextOverflowError(
                f"No passage fits into the {room} tokens left for documents.", field="RAG_CONTEXT_WINDOW"
            )
        chosen, left_out = [part], [hit.chunk.id for hit in ordered[1:]]
        used = count_rendered(render_context(chosen, boundary), boundary)
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

    `render` gives the texts of all messages with these chunks.

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
            tokens=count_rendered(render_context(kept, boundary), boundary),
            left_out=(last.chunk.id, *context.left_out),
        )


def _critical_overflow(chunks: int, tokens: int, room: int) -> ContextOverflowError:
    return ContextOverflowError(
        f"The CRITICAL chunks alone do not fit: {chunks} of them take {tokens} tokens,"
        f" and there is room for {room}. None of them may be left out.",
        field="RAG_CONTEXT_WINDOW",
    )
