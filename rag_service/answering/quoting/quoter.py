"""Quotes passages in the place of a chat model: where none is set, and where it fails."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import zip_longest
from uuid import UUID

import llama_index.core.instrumentation as instrument
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatInProgressEvent, LLMChatStartEvent

from rag_service.answering.quoting.choice import choose_quotes
from rag_service.answering.quoting.quotes import MAX_PLACES, Evidence, Quotes
from rag_service.domain import Hit
from rag_service.models.embedding.local import LocalEmbedding
from rag_service.models.embedding.relevance import UNSCALED, ModelRelevance
from rag_service.models.llm.model import ChatModel
from rag_service.models.servers.resilience import isolated
from rag_service.observability.tracing import span
from rag_service.recent import Recent

dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]  # not in its __all__

_KEPT_SENTENCES = 2_000  # some 12 kB each


class Quoter:
    """Chooses quotes with the models of the service."""

    def __init__(
        self,
        embedding: BaseEmbedding | None = None,
        relevance: ModelRelevance | None = None,
        *,
        reader: LocalEmbedding | None = None,
        seconds: float | None = None,
    ):
        """Prepare the choice.

        Args:
            embedding: compares sentences with the question; None: they are scored by words alone.
            relevance: knows the scale of its cosines; None: that of the packaged model.
            reader: the model whose token vectors are compared as well.
            seconds: allowed for comparing; after that, words alone choose. None: no limit.
        """
        self._embedding = embedding
        self._reader = reader
        self._relevance = relevance
        self._seconds = seconds
        self._recent = Recent[list[float]](_KEPT_SENTENCES)

    async def quote(self, evidence: Evidence, model: ChatModel) -> Quotes:
        """Return the sentences that answer best. Listeners of LlamaIndex see a chat: a question, and the quotes.

        Args:
            evidence: what may be quoted.
            model: in whose place quotes are given, when its turn has come.

        Raises:
            ModelBusyError: too many requests wait.
        """
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": model.provider,
            "gen_ai.request.model": model.model_name,
        }
        asked = [ChatMessage(role=MessageRole.USER, content=evidence.question)]
        async with model.slots.take():
            with span("model", **attributes):
                dispatcher.event(
                    LLMChatStartEvent(messages=asked, additional_kwargs={}, model_dict=model.llm.to_payload())
                )
                quotes = await isolated(self.choose(evidence))
        _report(asked, quotes)
        return quotes

    async def choose(self, evidence: Evidence) -> Quotes:
        """Return the sentences that answer best, those of each document if each is to be quoted."""
        scale = UNSCALED if self._relevance is None else self._relevance.scale(evidence.language)
        deadline = None if self._seconds is None else asyncio.get_running_loop().time() + self._seconds
        every = [
            await choose_quotes(
                one, self._embedding, reader=self._reader, scale=scale, deadline=deadline, recent=self._recent
            )
            for one in (_split(evidence) if evidence.by_document else [evidence])
        ]
        if not evidence.by_document:
            return every[0]
        turns = [place for turn in zip_longest(*(one.places for one in every)) for place in turn if place is not None]
        return Quotes(
            evidence=evidence,
            sentences=tuple(sentence for one in every for sentence in one.sentences),
            places=tuple(turns[:MAX_PLACES]),
            is_degraded=any(one.is_degraded for one in every),
        )


def _report(asked: list[ChatMessage], quotes: Quotes) -> None:
    """Show listeners of LlamaIndex the quotes, as a model would stream them."""
    text, response = "", ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=""))
    for piece in quotes.pieces:
        text += piece
        response = ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text), delta=piece)
        dispatcher.event(LLMChatInProgressEvent(messages=asked, response=response))
    dispatcher.event(LLMChatEndEvent(messages=asked, response=response))


def _split(evidence: Evidence) -> list[Evidence]:
    """The evidence of each document alone; the numbers of the passages stay."""

    def only(document: UUID) -> tuple[Hit, ...]:
        return tuple(hit if hit.chunk.document.id == document else _blank(hit) for hit in evidence.hits)

    documents = dict.fromkeys(hit.chunk.document.id for hit in evidence.hits)
    return [replace(evidence, hits=only(document)) for document in documents]


def _blank(hit: Hit) -> Hit:
    return replace(hit, chunk=replace(hit.chunk, text=""))
