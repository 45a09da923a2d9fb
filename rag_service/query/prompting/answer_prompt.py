"""The prompt of an answer: what goes to the model, packed to its window, with all that is needed afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.domain import AnswerQuery, Hit
from rag_service.models.extractive.grounded_message import Evidence, GroundedMessage
from rag_service.query.guards.orders import without_orders
from rag_service.query.prompting.blocks import in_blocks, render_blocks
from rag_service.query.prompting.budget import PackedContext, count_rendered, fit_prompt, pack_context, prompt_limit
from rag_service.query.prompting.prompt import Prompts, new_boundary
from rag_service.query.prompting.whole_tables import needs_whole_table
from rag_service.query.retrieval.names import find_absent_codes
from rag_service.query.retrieval.nouns import find_absent_nouns
from rag_service.query.retrieval.numbered import find_absent_numbered
from rag_service.query.retrieval.retriever import Retrieval
from rag_service.settings import Settings
from rag_service.text.words import LANGUAGES, detect_language, terms, words


@dataclass(frozen=True, kw_only=True)
class Prompted:
    """A prompt ready to be sent."""

    messages: Sequence[ChatMessage]
    context: PackedContext
    tokens: int  # our count of the whole prompt
    refusal: str  # what the model is told to say when nothing answers
    warnings: tuple[str, ...]  # sentences on why the answer is not certain, whatever it is made from
    secret: str  # what the answer must not repeat


def write_prompt(
    query: AnswerQuery,
    retrieval: Retrieval,
    sources: Sequence[Hit],
    *,
    prompts: Prompts,
    settings: Settings,
    window: int,
) -> Prompted:
    """The prompt of a question over its sources, best first.

    Args:
        query: what is asked, with its history and instructions.
        retrieval: decides language and template.
        sources: as many of them go in whole as there is room for.
        prompts: templates and messages.
        settings: limits and switches.
        window: tokens that prompt and answer share.

    Raises:
        ContextOverflowError: question and instructions alone fill the window.
    """
    language = retrieval.plan.language
    name = query.prompt or (retrieval.index.query.prompt if settings.grounded_prompting else "classic")
    template = prompts.template(name, language)
    boundary = new_boundary()
    refusal = prompts.message("refusal", language)
    values = {"boundary": boundary, "context": "", "question": query.question, "refusal": refusal}
    values |= {"history": query.history, "instructions": query.instructions}
    context = pack_context(
        sources,
        window=window,
        answer_tokens=settings.max_tokens,
        other_tokens=sum(count_rendered(part, boundary) for part in template.render(values)),
        most_tokens=settings.context_max_tokens,
        most_chunks=settings.max_chunks_in_prompt,
        boundary=boundary,
    )
    personal = query.personal_corpora
    fitted = fit_prompt(
        replace(context, hits=in_blocks(context.hits, personal)),
        lambda hits: template.render({**values, "context": render_blocks(hits, boundary, personal)}),
        limit=prompt_limit(window, settings.max_tokens),
        boundary=boundary,
    )
    context, (system, user) = fitted.context, fitted.texts
    warnings = _warnings(retrieval, prompts, context.hits)
    evidence = Evidence(
        question=query.question,
        language=language,
        hits=_quotable(context.hits, retrieval.weights) if settings.chat_provider == "extractive" else context.hits,
        weights=retrieval.weights,
        equivalents={term.term: term.group for term in retrieval.plan.terms if term.group >= 0},
        refusal=refusal,
        warning=" ".join(warnings),
    )
    return Prompted(
        messages=[ChatMessage(role=MessageRole.SYSTEM, content=system), GroundedMessage.with_evidence(user, evidence)],
        context=context,
        tokens=fitted.tokens,
        refusal=refusal,
        warnings=warnings,
        secret=template.render({**values, "refusal": "", "question": ""})[0],
    )


def _quotable(hits: Sequence[Hit], weights: Mapping[str, float]) -> tuple[Hit, ...]:
    """What the answerer without a model may quote: what documents order a model to do answers nobody's question.

    Nor does what stands beside the order, in a passage that was found for the order's words.
    """
    return tuple(_without_what_was_found_by_orders(hit, weights) for hit in hits)


def _without_what_was_found_by_orders(hit: Hit, weights: Mapping[str, float]) -> Hit:
    cleared = without_orders(hit)
    before, after = hit.chunk.text, cleared.chunk.text
    if before == after or 2 * _weight_held(after, weights) >= _weight_held(before, weights):
        return cleared
    return replace(cleared, chunk=replace(cleared.chunk, text="\n" * len(before)))


def _weight_held(text: str, weights: Mapping[str, float]) -> float:
    """How much of the question's weight a text holds."""
    held = {term for language in LANGUAGES for term in terms(text, language)} | set(words(text))
    return sum(weight for term, weight in weights.items() if term in held)


def _warnings(retrieval: Retrieval, prompts: Prompts, hits: Sequence[Hit]) -> tuple[str, ...]:
    plan = retrieval.plan
    absent = warn_of_absent(retrieval, prompts, hits)
    whole = needs_whole_table(plan.question, plan.language, [hit.chunk.text for hit in hits])
    some_rows = prompts.message("some_rows", plan.language) if whole else ""
    return tuple(warning for warning in (absent, some_rows) if warning)


def warn_of_absent(retrieval: Retrieval, prompts: Prompts, hits: Sequence[Hit] = ()) -> str:
    """That the documents do not mention what the question asks about; empty where they do.

    Args:
        retrieval: tells what is there.
        prompts: have the words.
        hits: that an answer is made from, best first; none where there is no answer. Nouns are looked for where
            the best is in the question's language: documents in another one hold other nouns.
    """
    plan = retrieval.plan
    absent = list(retrieval.absent)
    if hits:
        codes = find_absent_codes(plan.names, [hit.chunk.text for hit in hits])
        absent += [code for code in codes if code not in absent]
        absent += find_absent_numbered(plan.question, [hit.chunk.text for hit in retrieval.hits])
    if hits and detect_language(hits[0].chunk.text, default=plan.language) == plan.language:
        absent += find_absent_nouns(plan.question, plan.language, plan.terms, retrieval.weights)
    if not absent:
        return ""
    names = ", ".join(f"“{name}”" for name in absent)
    return prompts.message("not_mentioned", plan.language).replace("{names}", names)
