"""The prompt of an answer, with as many whole passages as the model's window holds, or a part of one.

An index definition maps chunk types to tiers. CRITICAL chunks always go in, and first; then HIGH, then the rest while
the budget lasts. Token counts are estimates, which what the model's server counts corrects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import msgspec
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.guards.injection import neutralise, without_injections
from rag_service.answering.prompt.cutting import cut_passage, weight_held
from rag_service.answering.prompt.notices import tell_files, warn_of_absent
from rag_service.answering.prompt.reasons import Doubt
from rag_service.answering.prompt.templates import Prompts, new_boundary, render_context, render_passage
from rag_service.domain import Hit
from rag_service.errors import ContextOverflowError
from rag_service.indices import Tier
from rag_service.language.words import count_tokens, word_forms
from rag_service.models.extractive.extractive import Evidence, GroundedMessage
from rag_service.models.llm.model import ChatModel
from rag_service.retrieval.named_files import Place
from rag_service.retrieval.planner import QueryPlan
from rag_service.retrieval.query import RagQuery
from rag_service.settings import Settings

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
class Prompted:
    """A prompt ready to be sent."""

    messages: Sequence[ChatMessage]
    context: PackedContext
    tokens: int  # our count of the whole prompt
    refusal: str  # the sentence for questions that the passages do not answer
    warning: str  # why the answer is uncertain; may be empty
    doubts: Mapping[Doubt, bool]  # what the warning is about
    introduction: str  # of quotes: the warning, and which files were searched; may be empty
    preface: str  # shown before the answer; empty where a model writes it
    model_failed: str  # shown before the quotes that take the place of a failing model's answer
    unfinished: str  # shown after an answer that was cut off, or ended in a repetition
    boundary: str  # around the passages
    secret: str  # text that the answer must not repeat
    quote_signals: Mapping[str, float]  # `Evidence.signals`: filled while quotes answer; empty where a model does

    def failed(self) -> Prompted:
        """Return the same after the model has failed: the quotes that take its place begin with that."""
        return replace(self, preface=f"{self.model_failed} {self.introduction}".strip())

    def offering(self, rule: str) -> Prompted:
        """Return the same with a rule about the tools that are offered."""
        system, *rest = self.messages
        told = ChatMessage(role=MessageRole.SYSTEM, content=f"{system.content}\n\n{rule}")
        return replace(self, messages=[told, *rest], tokens=self.tokens + count_tokens(rule))

    def showing(self, hits: tuple[Hit, ...]) -> Prompted:
        """Return the same after more passages were shown."""
        added = hits[len(self.context.hits) :]
        tokens = self.context.tokens + sum(count_tokens(hit.chunk.text) for hit in added)
        return replace(self, context=replace(self.context, hits=hits, tokens=tokens))

    def cut(self) -> Prompted:
        """Return the same for an answer that the model did not finish: it is uncertain."""
        return replace(self, warning=self.warning or self.unfinished)


def write_prompt(
    query: RagQuery,
    sources: Sequence[Hit],
    *,
    prompts: Prompts,
    settings: Settings,
    boundary: str | None = None,
    taken: int = 0,
) -> Prompted:
    """Return the prompt of a question with as many of its sources, best first, as fit into the window of its model.

    Args:
        boundary: around the passages; None: a new one.
        taken: tokens that tools and their results take beside the prompt.

    Raises:
        ContextOverflowError: question and instructions alone fill the window.
    """
    model: ChatModel = query.model
    retrieval = query.found
    language = retrieval.plan.language
    name = query.prompt or (retrieval.index.query.prompt if settings.answers.grounded_prompting else "classic")
    template = prompts.template(name, language)
    boundary = boundary or new_boundary()
    refusal = prompts.message("refusal", language)
    # What is searched for and what is asked for are two things: form and language belong to what was written.
    asked = query.question if model.only_quotes else " ".join(neutralise(query.asked).split())
    values = {"boundary": boundary, "context": "", "question": asked, "refusal": refusal}
    values |= {"history": query.history, "instructions": query.instructions}
    personal = query.personal_corpora
    fitted = _fit_passages(
        sources,
        lambda hits: template.render({**values, "context": render_context(hits, boundary, personal)}),
        fixed=template.render(values),
        query=query,
        limit=model.prompt_limit(language) - taken,
        settings=settings,
        boundary=boundary,
    )
    context, (system, user) = fitted.context, fitted.texts
    files_searched, about_files = tell_files(retrieval, sources, prompts)
    absent = warn_of_absent(retrieval, prompts) if retrieval.absent else ""
    warning = f"{about_files} {absent}".strip()
    if query.doubtful and not warning:
        warning = prompts.message("doubtful", language)
    introduction = f"{files_searched} {warning}".strip()
    evidence = _gather_evidence(query, context.hits, refusal, introduction)
    query.evidence = evidence
    grounded = GroundedMessage(role=MessageRole.USER, content=user, evidence=evidence)
    return Prompted(
        messages=[ChatMessage(role=MessageRole.SYSTEM, content=system), grounded],
        context=context,
        tokens=fitted.tokens,
        refusal=refusal,
        warning=warning,
        doubts={
            Doubt.NAME_UNKNOWN: bool(retrieval.absent),
            Doubt.FILE_UNKNOWN: bool(about_files),
            Doubt.LOW_RELEVANCE: query.doubtful,
        },
        introduction=introduction,
        preface=introduction if model.only_quotes else "",
        model_failed=prompts.message("model_failed", language),
        unfinished=prompts.message("unfinished", language),
        boundary=boundary,
        secret=template.render({**values, "refusal": "", "question": ""})[0],
        quote_signals=evidence.signals,
    )


def _fit_passages(
    sources: Sequence[Hit],
    render: Callable[[tuple[Hit, ...]], Sequence[str]],
    *,
    fixed: Sequence[str],
    query: RagQuery,
    limit: int,
    settings: Settings,
    boundary: str,
) -> FittedPrompt:
    """The prompt with as many sources as fit, those of personal corpora last; `fixed` are its texts without any."""
    answers, model = settings.answers, query.model
    # Quotes are chosen from the first few passages: their sentences compete with each other.
    most = answers.max_chunks or (QUOTED_PASSAGES if model.only_quotes else len(sources))
    quarter = sys.maxsize if model.only_quotes else model.context_window // CONTEXT_SHARE
    context = pack_context(
        sources,
        limit=limit,
        other_tokens=count_prompt(fixed, boundary=boundary),
        max_tokens=min(answers.max_context_tokens, max(quarter, MIN_CONTEXT_TOKENS)),
        max_chunks=most * query.searches,
        boundary=boundary,
        weights=query.found.weights,
    )
    ordered = sorted(context.hits, key=lambda hit: hit.chunk.document.corpus_id in query.personal_corpora)
    return fit_prompt(replace(context, hits=tuple(ordered)), render, limit=limit, boundary=boundary)


def _gather_evidence(query: RagQuery, shown: Sequence[Hit], refusal: str, preface: str) -> Evidence:
    """Return what an answer without a chat model is made of."""
    retrieval, follow_up, versions = query.found, query.follow_up, query.versions
    asked = query.question if versions is None else versions.question
    if follow_up is not None and follow_up.joined:  # the questions before have their answers
        asked = follow_up.asked
    files = retrieval.files
    place = None if files is None else files.place
    return Evidence(
        question=asked,
        language=retrieval.plan.language,
        hits=tuple(_quotable(hit, retrieval.weights, place) if hit.from_turn is None else _blank(hit) for hit in shown),
        weights=retrieval.weights,
        equivalents=_equivalents(retrieval.plan, asked),
        refusal=refusal,
        preface=preface,
        by_document=query.of_several,
    )


def shorten_prompt(
    query: RagQuery, prompted: Prompted, *, prompts: Prompts, settings: Settings, taken: int
) -> Prompted:
    """Return the same prompt without its last passages, so that it keeps to what is known by now of the model's window.

    `taken` as in `write_prompt`. Raises ContextOverflowError if it does not fit even with one passage.
    """
    shown = prompted.context.hits
    for kept in range(len(shown) - 1, 0, -1):
        shorter = write_prompt(
            query, shown[:kept], prompts=prompts, settings=settings, boundary=prompted.boundary, taken=taken
        )
        if shorter.context.hits == shown[:kept]:
            return shorter
    raise ContextOverflowError(
        "The prompt does not fit into the model's window, even with a single passage.", field="RAG_CONTEXT_WINDOW"
    )


def _equivalents(plan: QueryPlan, question: str) -> dict[str, int]:
    """Index term → the word of the question that it stands for, if the question has one of these words."""
    forms = word_forms(question)
    asked = {term.group for term in plan.terms if term.term in forms}
    return {term.term: term.group for term in plan.terms if term.group >= 0 and term.group in asked}


def _quotable(hit: Hit, weights: Mapping[str, float], place: Place | None) -> Hit:
    """Return what the extractive model may quote: no injections, and nothing of a passage found mainly for their words.

    Of a question about a page or a cell only what stands there.
    """
    hit = hit if place is None else _only_at(place, hit)
    cleared = without_injections(hit)
    before, after = hit.chunk.text, cleared.chunk.text
    if before == after or 2 * weight_held(after, weights) >= weight_held(before, weights):
        return cleared
    return replace(cleared, chunk=replace(cleared.chunk, text="\n" * len(before)))


def _blank(hit: Hit) -> Hit:
    """A passage that an earlier answer cited and that is not found now: it would answer the earlier question."""
    return replace(hit, chunk=replace(hit.chunk, text=""))


def _only_at(place: Place, hit: Hit) -> Hit:
    """Return the hit with all else blanked out of its text; offsets stay valid. A cell is shown with its row."""
    chunk = hit.chunk
    spans = [span for span in chunk.spans if place.holds(span.location)]
    if place.kind in ("cell", "row"):  # the names of the columns stand between the cells
        rows = {(span.location.sheet, span.location.row) for span in spans}
        whole = [span for span in chunk.spans if (span.location.sheet, span.location.row) in rows]
        if len(rows) == 1:
            whole = [msgspec.structs.replace(whole[0], end=max(span.end for span in whole))]
        spans = whole
    kept = ["\n"] * len(chunk.text)
    for span in spans:
        start, end = max(0, span.start - chunk.start), max(0, span.end - chunk.start)
        kept[start:end] = chunk.text[start:end]
    return replace(hit, chunk=replace(chunk, text="".join(kept)))


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
        cost = count_rendered(render_passage(len(chosen) + 1, hit, boundary), boundary) + 2
        if len(chosen) < max_chunks and used + cost <= room:
            chosen.append(hit)
            used += cost
        else:
            left_out.append(hit.chunk.id)
    # The sum is an estimate: tokens may merge or split where texts are joined.
    while (used := count_rendered(render_context(chosen, boundary), boundary)) > room:
        left_out.append(chosen.pop().chunk.id)
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
