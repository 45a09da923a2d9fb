"""The advisor: structured answers over a governed knowledge base (requirements B1 to B6).

    inquiry + filter fields → the article that governs the case → its chunks by tier, within a token budget
      → a chat model held to a JSON schema, or the article's own words → guarded, verified, guardrails checked

A case is governed by one article: procedures are not mixed. Without a model that follows a schema, required
data come from the article's declared table and a response from its sentences, under the same contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from rag_service.definitions import IndexDefinition
from rag_service.domain import Decision, Hit, Identity
from rag_service.errors import ContextOverflowError
from rag_service.models.chat.chat import ChatModel
from rag_service.models.reranking.rerankers import Reranker
from rag_service.query.advisor.article import ARTICLE_CHUNKS, Article, ArticleFinder
from rag_service.query.advisor.check import check_response, weakest_decision, with_missing_fields
from rag_service.query.advisor.prompt import (
    REPAIR_TOKENS,
    REQUIRED_DATA_SYSTEM,
    RESPONSE_SYSTEM,
    ask_for_json,
    render_messages,
)
from rag_service.query.advisor.quotes import quote_sections
from rag_service.query.advisor.required_data import REQUIRED_DATA_TYPE, find_missing, read_required_fields
from rag_service.query.advisor.schema import (
    AdvisorResponse,
    Inquiry,
    RequiredData,
    RequiredDataReply,
    RequiredField,
    ResponseReply,
    ResponseRequest,
    SectionReply,
)
from rag_service.query.confidence import decide, rate_confidence
from rag_service.query.prompting.budget import (
    FittedPrompt,
    PackedContext,
    Tiers,
    count_prompt,
    fit_prompt,
    pack_context,
    prompt_limit,
    split_budget,
)
from rag_service.query.prompting.prompt import Prompts, new_boundary, render_context
from rag_service.query.retrieval.retriever import Retrieval, Retriever
from rag_service.settings import Settings
from rag_service.store.session import Database
from rag_service.text.tokens import count_tokens

log = structlog.get_logger(__name__)

REQUIRED_DATA_TYPES = (REQUIRED_DATA_TYPE, "eligibility", "business_rules")  # all that required data may rest on
REQUIRED_DATA_CONTEXT = 500  # tokens; more only where the table alone takes more
REQUIRED_DATA_ANSWER = 1200  # tokens; a table of ten fields takes half of it
DEFAULT_MAX_TOKENS = 4000  # of a response, context and answer together
_NEED_FIRST: Tiers = {"critical": (REQUIRED_DATA_TYPE,), "high": REQUIRED_DATA_TYPES[1:]}


class Advisor:
    """Answers the two advisor questions."""

    def __init__(
        self,
        database: Database,
        retriever: Retriever,
        chat: ChatModel,
        reranker: Reranker,
        prompts: Prompts,
        indices: Mapping[str, IndexDefinition],
        settings: Settings,
    ):
        """
        Args:
            database: tells which corpora the caller may read.
            retriever: finds passages.
            chat: writes, where it can follow a JSON schema.
            reranker: orders passages within their tier.
            prompts: for the sentences that the service itself says.
            indices: definitions by name.
            settings: limits and switches.
        """
        self._articles = ArticleFinder(database, retriever, reranker, indices, settings)
        self._chat = chat
        self._prompts = prompts
        self._settings = settings

    async def required_data(self, inquiry: Inquiry, identity: Identity) -> RequiredData:
        """The data that a case needs, from those chunks of its article that may say so: `REQUIRED_DATA_TYPES`.

        Raises:
            InputError: a filter field is not declared, or several indices are in reach and none is named.
            NotFoundError: there is no such corpus, or none with a definition for advisors.
            ModelOutputError: the model's reply was unusable twice.
            ContextOverflowError: the declared table does not fit the model's window.
            ModelError, EmbeddingError, StoreError.
        """
        retrieval, article = await self._articles.find(inquiry, identity)
        language = retrieval.plan.language
        if article is None:
            return self._no_required_data(retrieval)
        article = replace(article, hits=tuple(hit for hit in article.hits if hit.chunk.type in REQUIRED_DATA_TYPES))
        boundary = new_boundary()
        fitted = self._fit(
            article,
            REQUIRED_DATA_SYSTEM,
            question=inquiry.text,
            boundary=boundary,
            most_tokens=max(REQUIRED_DATA_CONTEXT, _tokens_of(article.hits, REQUIRED_DATA_TYPE, boundary)),
            answer_tokens=REQUIRED_DATA_ANSWER,
            tiers=_NEED_FIRST,
        )
        if self._chat.structured_output:
            reply = await ask_for_json(self._chat, fitted.texts, RequiredDataReply, max_tokens=REQUIRED_DATA_ANSWER)
            fields = _fields_of(reply)
        else:
            fields = read_required_fields(fitted.context.hits)
        log.info("required_data_listed", contexts=len(fitted.context.hits), fields=len(fields))
        return RequiredData(
            decision=self._decide(article, fitted.context),
            confidence=article.confidence,
            article_id=article.id,
            fields=fields,
            context_tokens=fitted.context.tokens,
            chunks_used=len(fitted.context.hits),
            chunks_left_out=len(fitted.context.left_out),
            language=language,
            model=self._chat.model_name,
        )

    async def generate_response(self, request: ResponseRequest, identity: Identity) -> AdvisorResponse:
        """A structured response to a case, every statement verified.

        70 % of `max_tokens` go to the context and 30 % to the answer.

        Raises:
            ContextOverflowError: the CRITICAL chunks alone do not fit; field `maxTokens` where more would help.
            InputError, NotFoundError, ModelOutputError, ModelError, EmbeddingError, StoreError: as `required_data`.
        """
        inquiry = request.inquiry
        retrieval, article = await self._articles.find(inquiry, identity)
        if article is None:
            return self._no_response(retrieval)
        boundary = new_boundary()
        context_tokens, answer_tokens = split_budget(request.max_tokens or DEFAULT_MAX_TOKENS)
        fitted = self._fit(
            article,
            RESPONSE_SYSTEM,
            question=inquiry.text,
            boundary=boundary,
            most_tokens=min(context_tokens, self._settings.context_max_tokens),
            answer_tokens=answer_tokens,
            tiers=retrieval.index.query.tiers,
            case=request.collected,
            budgeted=context_tokens <= self._settings.context_max_tokens,
        )
        shown = fitted.context.hits
        missing = find_missing(read_required_fields(article.hits), request.collected)
        said, drafts = await self._draft(inquiry, retrieval, fitted, answer_tokens=answer_tokens)
        checked = check_response(
            drafts,
            shown,
            question=inquiry.text,
            fallback_topic=article.title,
            notice=self._prompts.message("withheld", retrieval.plan.language),
            language=retrieval.plan.language,
            secrets=[fitted.texts[0]] if self._chat.structured_output else [],
            withhold=self._settings.withhold_unverified,
        )
        decision = weakest_decision(said, self._decide(article, fitted.context), missing, checked)
        sections = with_missing_fields(checked.sections, missing, article.title, retrieval.plan.language)
        log.info("response_generated", contexts=len(shown), decision=decision.value, missing=len(missing))
        return AdvisorResponse(
            decision=decision,
            confidence=article.confidence,
            article_id=article.id,
            sections=() if decision is Decision.OUT_OF_SCOPE else sections,
            guardrails=checked.guardrails,
            missing=missing,
            shown=shown,
            left_out=fitted.context.left_out,
            context_tokens=fitted.context.tokens,
            answer_tokens=sum(count_tokens(text) for draft in drafts for text in _texts(draft)),
            withheld=checked.withheld,
            language=retrieval.plan.language,
            model=self._chat.model_name,
        )

    # -- steps

    def _fit(
        self,
        article: Article,
        system: str,
        *,
        question: str,
        boundary: str,
        most_tokens: int,
        answer_tokens: int,
        tiers: Tiers,
        case: Mapping[str, object] | None = None,
        budgeted: bool = False,
    ) -> FittedPrompt:
        """The prompt with as many of the article's chunks as the budget and the window allow."""
        language = article.retrieval.plan.language

        def render(hits: Sequence[Hit]) -> tuple[str, str]:
            return render_messages(system, hits, question=question, boundary=boundary, language=language, case=case)

        window, reserved = self._chat.context_window, answer_tokens + REPAIR_TOKENS
        fixed = count_prompt(render(()))
        try:
            packed = pack_context(
                article.hits,
                window=window,
                answer_tokens=reserved,
                other_tokens=fixed,
                most_tokens=most_tokens,
                most_chunks=ARTICLE_CHUNKS,
                boundary=boundary,
                tiers=tiers,
            )
        except ContextOverflowError as error:
            if budgeted and most_tokens < prompt_limit(window, reserved) - fixed:
                raise ContextOverflowError(f"{error.message} Raise maxTokens.", field="maxTokens") from error
            raise
        return fit_prompt(packed, render, limit=prompt_limit(window, reserved), boundary=boundary, tiers=tiers)

    async def _draft(
        self, inquiry: Inquiry, retrieval: Retrieval, fitted: FittedPrompt, *, answer_tokens: int
    ) -> tuple[Decision, Sequence[SectionReply]]:
        if self._chat.structured_output:
            reply = await ask_for_json(self._chat, fitted.texts, ResponseReply, max_tokens=answer_tokens)
            return Decision(reply.decision), reply.sections
        sections = quote_sections(
            fitted.context.hits,
            inquiry=inquiry.text,
            weights=retrieval.weights,
            language=retrieval.plan.language,
            tokens=answer_tokens,
        )
        return (Decision.CAN_PROCEED if sections else Decision.UNCERTAIN), sections

    def _decide(self, article: Article, context: PackedContext) -> Decision:
        return decide(
            article.confidence,
            found=True,
            refused=False,
            context_tokens=context.tokens,
            minimum=article.retrieval.index.query.minimum_context_tokens,
        )

    def _no_required_data(self, retrieval: Retrieval) -> RequiredData:
        return RequiredData(
            decision=Decision.OUT_OF_SCOPE,
            confidence=rate_confidence((), retrieval.index.query),
            article_id=None,
            fields=(),
            context_tokens=0,
            chunks_used=0,
            chunks_left_out=0,
            language=retrieval.plan.language,
            model=self._chat.model_name,
        )

    def _no_response(self, retrieval: Retrieval) -> AdvisorResponse:
        """The model is never called where nothing fits."""
        return AdvisorResponse(
            decision=Decision.OUT_OF_SCOPE,
            confidence=rate_confidence((), retrieval.index.query),
            article_id=None,
            sections=(),
            guardrails=(),
            missing=(),
            shown=(),
            left_out=(),
            context_tokens=0,
            answer_tokens=0,
            withheld=0,
            language=retrieval.plan.language,
            model=self._chat.model_name,
        )


def _tokens_of(hits: Sequence[Hit], chunk_type: str, boundary: str) -> int:
    return count_tokens(render_context([hit for hit in hits if hit.chunk.type == chunk_type], boundary))


def _fields_of(reply: RequiredDataReply) -> tuple[RequiredField, ...]:
    return tuple(
        RequiredField(
            field=field.field,
            group="participant" if fields is reply.participant_data else "plan",
            description=field.description,
            why_needed=field.why_needed,
            data_type=field.data_type,
            required=field.required,
        )
        for fields in (reply.participant_data, reply.plan_data)
        for field in fields
    )


def _texts(draft: SectionReply) -> tuple[str, ...]:
    return (draft.topic, *draft.answer_components, *draft.steps, *draft.warnings)
