"""The advisor: structured answers from a curated knowledge base.

    inquiry + filter fields → the article that governs the case → its chunks by tier, within a token budget
      → a chat model with a JSON schema, or sentences of the article → guarded, verified, guardrails checked

One article governs a case: procedures are not mixed. If the model fails or cannot follow a schema, the article's table
gives the required data and its sentences the response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TypeVar

import structlog

from rag_service.advisor.article import ARTICLE_CHUNKS, Article, ArticleFinder
from rag_service.advisor.check import check_response, doubts_of, with_missing_fields
from rag_service.advisor.prompt import REPAIR_TOKENS, ask_for_json, render_messages
from rag_service.advisor.quotes import quote_sections
from rag_service.advisor.required_data import REQUIRED_DATA_TYPE, find_missing, read_required_fields
from rag_service.advisor.schema import (
    AdvisorResponse,
    Inquiry,
    RequiredData,
    RequiredDataReply,
    ResponseReply,
    ResponseRequest,
    SectionReply,
)
from rag_service.answering.decision.conclusion import decide, find_doubts, make_reasons
from rag_service.answering.decision.confidence import MIN_CONFIDENCE
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.prompt.packing import (
    FittedPrompt,
    PackedContext,
    Tiers,
    count_prompt,
    fit_prompt,
    pack_context,
    split_budget,
)
from rag_service.answering.prompt.templates import Prompts, new_boundary, render_context
from rag_service.domain import Decision, Hit, Identity, Reason
from rag_service.errors import ContextOverflowError, ModelError, ModelOutputError
from rag_service.language.words import count_tokens
from rag_service.models.llm.model import ChatModel
from rag_service.recent import keep_for
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

REQUIRED_DATA_TYPES = (REQUIRED_DATA_TYPE, "eligibility", "business_rules")  # chunk types that name required data
REQUIRED_DATA_CONTEXT = 500  # tokens; more only where the table alone takes more
REQUIRED_DATA_ANSWER = 1200  # tokens; a table of ten fields takes half of it
DEFAULT_MAX_TOKENS = 4000  # of a response, context and answer together
Render = Callable[[Sequence[Hit]], tuple[str, str]]  # (system, user) with these passages
_Asked = TypeVar("_Asked", RequiredDataReply, ResponseReply)
_Reply = TypeVar("_Reply", RequiredData, AdvisorResponse)
_NEED_FIRST: Tiers = {"critical": (REQUIRED_DATA_TYPE,), "high": REQUIRED_DATA_TYPES[1:]}


@dataclass(frozen=True, kw_only=True)
class Advisor:
    """Lists the data that a case needs, and answers it."""

    articles: ArticleFinder
    chat: ChatModel
    prompts: Prompts
    settings: Settings

    async def required_data(self, inquiry: Inquiry, identity: Identity) -> RequiredData:
        """The data that a case needs, from the chunks of its article with a type in `REQUIRED_DATA_TYPES`.

        Raises:
            InputError: a filter field is not declared, or several indices are in reach and none is named.
            NotFoundError: there is no such corpus, or none with a definition for advisors.
            ModelOutputError: the model's reply was unusable twice.
            ContextOverflowError: the declared table does not fit the model's window.
            ModelError: the model fails and has no fallback.
            EmbeddingError, StoreError.
        """
        with self._keep_for(identity):
            return await self._list_data(inquiry, identity)

    async def generate_response(self, request: ResponseRequest, identity: Identity) -> AdvisorResponse:
        """A structured response to a case, with every statement verified. See `split_budget` for `max_tokens`.

        Raises:
            ContextOverflowError: the CRITICAL chunks alone do not fit; field `maxTokens` where more would help.
            InputError, NotFoundError, ModelOutputError, ModelError, EmbeddingError, StoreError: as `required_data`.
        """
        with self._keep_for(identity):
            return await self._respond(request, identity)

    # -- steps

    def _keep_for(self, identity: Identity) -> AbstractContextManager[None]:
        """Keep what is made and learned in here for the user alone, such as how the server counts tokens."""
        return keep_for(identity.user_id, lasting=self.settings.embedding.query_cache_size > 0)

    async def _list_data(self, inquiry: Inquiry, identity: Identity) -> RequiredData:
        article = await self.articles.find(inquiry, identity)
        reply = self._found_nothing(RequiredData, article)
        if article.id is None:
            return reply
        boundary = new_boundary()
        hits = [hit for hit in article.hits if hit.chunk.type in REQUIRED_DATA_TYPES]
        table = [hit for hit in hits if hit.chunk.type == REQUIRED_DATA_TYPE]
        fitted = self._fit(
            hits,
            self._renderer("advisor_data", inquiry, article, boundary),
            boundary=boundary,
            language=article.language,
            max_tokens=max(REQUIRED_DATA_CONTEXT, count_tokens(render_context(table, boundary))),
            answer_tokens=REQUIRED_DATA_ANSWER,
            tiers=_NEED_FIRST,
        )
        context = fitted.context
        said, model_error = await self._ask(fitted, RequiredDataReply, max_tokens=REQUIRED_DATA_ANSWER)
        fields = read_required_fields(context.hits) if said is None else said.fields()
        doubts = find_doubts(_doubts(article, context, model_error))
        log.info("required_data_listed", contexts=len(context.hits), fields=len(fields))
        return replace(self._conclude(reply, article, context, doubts, model_error), fields=fields)

    async def _respond(self, request: ResponseRequest, identity: Identity) -> AdvisorResponse:
        inquiry, answers = request.inquiry, self.settings.answers
        article = await self.articles.find(inquiry, identity)
        reply = self._found_nothing(AdvisorResponse, article)
        if article.id is None:
            return reply
        boundary = new_boundary()
        context_tokens, answer_tokens = split_budget(request.max_tokens or DEFAULT_MAX_TOKENS)
        fitted = self._fit(
            article.hits,
            self._renderer("advisor_response", inquiry, article, boundary, request.collected),
            boundary=boundary,
            language=article.language,
            max_tokens=min(context_tokens, answers.max_context_tokens),
            answer_tokens=answer_tokens,
            tiers=article.found.index.query.tiers,
            is_requested=context_tokens <= answers.max_context_tokens,
        )
        context = fitted.context
        said, model_error = await self._ask(fitted, ResponseReply, max_tokens=answer_tokens)
        drafts = _quote(article, context, inquiry, answer_tokens) if said is None else said.sections
        checked = check_response(
            drafts,
            context.hits,
            question=inquiry.text,
            fallback_topic=article.title,
            notice=self.prompts.message("withheld", article.language),
            language=article.language,
            secrets=[fitted.texts[0]] if self.chat.structured_output else [],
            withhold=answers.withhold_unverified,
        )
        missing = find_missing(read_required_fields(article.hits), request.collected)
        doubts = find_doubts(
            _doubts(article, context, model_error)
            | doubts_of(Decision(said.decision) if said else None, missing, checked)
        )
        reply = self._conclude(reply, article, context, doubts, model_error)
        sentence = self.prompts.message("missing_data", article.language)
        sections = with_missing_fields(checked.sections, missing, article.title, sentence)
        log.info("response_generated", contexts=len(context.hits), decision=reply.decision.value, missing=len(missing))
        return replace(
            reply,
            sections=() if reply.decision is Decision.OUT_OF_SCOPE else sections,
            guardrails=checked.guardrails,
            missing=missing,
            answer_tokens=sum(count_tokens(text) for draft in drafts for text in _texts(draft)),
            withheld=checked.withheld,
        )

    def _found_nothing(self, kind: type[_Reply], article: Article) -> _Reply:
        """The reply where no article governs the case."""
        return kind(
            decision=Decision.OUT_OF_SCOPE,
            reasons=self._reasons([Doubt.NOTHING_FOUND], article.language),
            confidence=article.confidence,
            language=article.language,
            model=self.chat.model_name,
        )

    def _conclude(
        self, reply: _Reply, article: Article, context: PackedContext, doubts: Sequence[Doubt], model_error: str | None
    ) -> _Reply:
        """The reply with its decision, and the chunks that it was made from."""
        return replace(
            reply,
            decision=decide(doubts),
            reasons=self._reasons(doubts, article.language),
            model_error=model_error,
            article_id=article.id,
            shown=context.hits,
            left_out=context.left_out,
            context_tokens=context.tokens,
        )

    def _renderer(
        self,
        prompt: str,
        inquiry: Inquiry,
        article: Article,
        boundary: str,
        case: Mapping[str, object] | None = None,
    ) -> Render:
        template, question = self.prompts.template(prompt, article.language), inquiry.text
        return lambda hits: render_messages(template, hits, question=question, boundary=boundary, case=case)

    def _reasons(self, doubts: Sequence[Doubt], language: str) -> tuple[Reason, ...]:
        return make_reasons(doubts, self.prompts.messages, language)

    def _fit(
        self,
        hits: Sequence[Hit],
        render: Render,
        *,
        boundary: str,
        language: str,
        max_tokens: int,
        answer_tokens: int,
        tiers: Tiers,
        is_requested: bool = False,
    ) -> FittedPrompt:
        """The prompt with as many chunks as `max_tokens`, which may have been requested, and the window allow."""
        limit = self.chat.prompt_limit(language, answer_tokens=answer_tokens + REPAIR_TOKENS)
        fixed = count_prompt(render(()))
        try:
            packed = pack_context(
                hits,
                limit=limit,
                other_tokens=fixed,
                max_tokens=max_tokens,
                max_chunks=ARTICLE_CHUNKS,
                boundary=boundary,
                tiers=tiers,
            )
        except ContextOverflowError as error:
            if is_requested and max_tokens < limit - fixed:
                raise ContextOverflowError(f"{error.message} Raise maxTokens.", field="maxTokens") from error
            raise
        return fit_prompt(packed, render, limit=limit, boundary=boundary, tiers=tiers)

    async def _ask(
        self, fitted: FittedPrompt, kind: type[_Asked], *, max_tokens: int
    ) -> tuple[_Asked | None, str | None]:
        """The model's reply, or None where quotes take its place; and the code of its error, if it failed."""
        if not self.chat.structured_output:
            return None, None
        try:
            return await ask_for_json(self.chat, fitted.texts, kind, max_tokens=max_tokens), None
        except ModelOutputError:
            raise  # another model is needed: quotes would hide it
        except ModelError as error:
            if self.chat.fallback is None:
                raise
            log.warning("answer_degraded", without="model", code=error.code, exc_info=error)
            return None, error.code


def _doubts(article: Article, context: PackedContext, model_error: str | None) -> dict[Doubt, bool]:
    return {
        Doubt.MODEL_FAILED: model_error is not None,
        Doubt.LITTLE_CONTEXT: context.tokens < article.found.index.query.minimum_context_tokens,
        Doubt.LOW_CONFIDENCE: article.confidence.value < MIN_CONFIDENCE,
    }


def _quote(article: Article, context: PackedContext, inquiry: Inquiry, tokens: int) -> Sequence[SectionReply]:
    """A response without a model."""
    weights, language = article.found.weights, article.language
    return quote_sections(context.hits, inquiry=inquiry.text, weights=weights, language=language, tokens=tokens)


def _texts(draft: SectionReply) -> tuple[str, ...]:
    return (draft.topic, *draft.answer_components, *draft.steps, *draft.warnings)
