"""Rerankers: a second, closer look at the hits, chosen by RAG_RERANK_STRATEGY.

A reranker reorders and never drops. It fills `scores.rerank` (0..1) and leaves the other scores as
they are. A reranker that fails raises RerankError and must not cost the user the answer: call it
through `rerank_or_keep`, which logs the failure and keeps the incoming order.

The default one, `heuristic`, needs no model and takes a few milliseconds. It adds four signals to the fused score.

    order = fused
          + PHRASE_WEIGHT   · share of the question's neighbouring words that stand together in the passage
          + SENTENCE_WEIGHT · share of its words that one sentence of the passage holds
          + SECTION_WEIGHT  · share of its words that the headings and the title hold
          + DOCUMENT_WEIGHT · how far the best passage of the same document lies behind the best of all
    score = sigmoid(logit(best relevance) + STEEPNESS · (order - best order))

The order rests on the fused score because the calibrated relevance, which says whether a passage answers, orders
worse. Scores stay in 0..1: the first hit has the best relevance found, the others fall off as a listwise logistic fit
says.

The weights were set on XQuAD (1,190 questions each) and the project's own sets so that no set loses by any of them.
Without reranking, MRR of XQuAD falls from 0.978 to 0.973 (en) and P@3 of procedures_es from 0.933 to 0.883
(docs/decisions/040-rules-that-were-switched-off.md).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import Protocol
from uuid import UUID

import structlog
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from rag_service.domain import Chunk, Hit
from rag_service.errors import ConfigurationError, RerankError
from rag_service.language.words import terms
from rag_service.models.llm.model import ChatModel
from rag_service.models.plugins import build, parse_options, require_extra
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

PHRASE_WEIGHT = 0.1
SENTENCE_WEIGHT = 0.05
SECTION_WEIGHT = 0.02
DOCUMENT_WEIGHT = 0.4
STEEPNESS = 18.0  # log-odds of being the right passage per unit of fused score (listwise fit, XQuAD odd articles)
NEAR = 2  # index terms that neighbouring words of the question may lie apart in a passage
MARGIN = 1e-6  # relevance is kept this far from 0 and 1, where log-odds end

_SENTENCE_END = re.compile(r"[.!?:;]\s+|\n+")


class Reranker(Protocol):
    """One strategy. `name` is its value of RAG_RERANK_STRATEGY."""

    name: str

    async def rerank(self, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
        """All hits, best first. `language` is the question's, ISO 639-1.

        Raises RerankError if the hits cannot be rated; the incoming order then stands.
        """
        ...

    async def warm_up(self) -> None:
        """Load what the first call would otherwise wait for."""
        ...


class NoReranker:
    """The order of the fusion as it is; `scores.rerank` stays None, because nothing was rated."""

    name = "none"

    async def rerank(self, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
        return list(hits)

    async def warm_up(self) -> None:
        return


class HeuristicReranker:
    """Moves the fused score by phrases, sentence overlap, section match and the best passage of the document."""

    name = "heuristic"

    async def warm_up(self) -> None:
        return

    async def rerank(self, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
        if not hits:
            return []
        asked = terms(question, language)
        wanted, pairs = set(asked), list(pairwise(asked))
        base = [hit.scores.relevance if hit.scores.fused is None else hit.scores.fused for hit in hits]
        best_of: dict[UUID, float] = {}  # by document
        for hit, score in zip(hits, base, strict=True):
            document = hit.chunk.document.id
            best_of[document] = max(score, best_of.get(document, score))
        orders = []
        for hit, score in zip(hits, base, strict=True):
            passage = _read(hit.chunk.text, language)
            section = wanted & _read_headings(_headings(hit.chunk), language)
            orders.append(
                score
                + PHRASE_WEIGHT * _phrase_share(pairs, passage)
                + SENTENCE_WEIGHT * _sentence_share(wanted, passage)
                + SECTION_WEIGHT * len(section) / max(1, len(wanted))
                + DOCUMENT_WEIGHT * (best_of[hit.chunk.document.id] - max(base))
            )
        certain = min(1 - MARGIN, max(MARGIN, max(hit.scores.relevance for hit in hits)))
        top, log_odds = max(orders), math.log(certain / (1 - certain))
        scores = [1 / (1 + math.exp(min(700.0, STEEPNESS * (top - order) - log_odds))) for order in orders]
        return by_score(hits, scores)


@dataclasses.dataclass(frozen=True)
class _Passage:
    """Where the index terms of a passage stand."""

    places: Mapping[str, AbstractSet[int]]  # term → its positions among all terms
    sentences: Mapping[str, AbstractSet[int]]  # term → numbers of the sentences that hold it


# Reading twenty passages took a third of a search's time in Python, and popular passages come again.
# 512 passages of 800 tokens take 16 MB.
@lru_cache(maxsize=512)
def _read(text: str, language: str) -> _Passage:
    places: dict[str, set[int]] = {}
    sentences: dict[str, set[int]] = {}
    position = 0
    for number, sentence in enumerate(_SENTENCE_END.split(text)):
        for term in terms(sentence, language):
            places.setdefault(term, set()).add(position)
            sentences.setdefault(term, set()).add(number)
            position += 1
    return _Passage(places=places, sentences=sentences)


@lru_cache(maxsize=2048)  # chunks of a document share their title, those of a section their headings too
def _read_headings(headings: str, language: str) -> frozenset[str]:
    return frozenset(terms(headings, language))


def _headings(chunk: Chunk) -> str:
    found = {chunk.document.title: None}
    for span in chunk.spans:
        found |= dict.fromkeys(span.location.headings)
    return " ".join(found)


def _sentence_share(wanted: AbstractSet[str], passage: _Passage) -> float:
    """The largest share of the question's terms that one sentence of the passage holds, 0..1."""
    held: Counter[int] = Counter()  # sentence → terms in it
    for term in wanted:
        held.update(passage.sentences.get(term, ()))
    return max(held.values()) / len(wanted) if held else 0.0


def _phrase_share(pairs: Sequence[tuple[str, str]], passage: _Passage) -> float:
    """Share of the question's pairs of neighbouring terms that lie within `NEAR` of each other, 0..1."""
    together = 0
    for first, second in pairs:
        there = passage.places.get(second, frozenset())
        for here in passage.places.get(first, ()):
            if not there.isdisjoint(range(here - NEAR, here + NEAR + 1)):
                together += 1
                break
    return together / len(pairs) if pairs else 0.0


def by_score(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """The hits with these rerank scores, best first; equal scores keep the incoming order."""
    rated = [
        dataclasses.replace(hit, scores=dataclasses.replace(hit.scores, rerank=float(score)))
        for hit, score in zip(hits, scores, strict=True)
    ]
    return sorted(rated, key=attrgetter("scores.rerank"), reverse=True)


async def rerank_or_keep(reranker: Reranker, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
    """Rerank; if that fails, log `rerank_failed` and return the hits as they came."""
    try:
        return await reranker.rerank(question, hits, language=language)
    except RerankError as error:
        log.error("rerank_failed", strategy=reranker.name, hits=len(hits), exc_info=error)
        return list(hits)


def build_reranker(settings: Settings, *, chat: ChatModel, reranker: BaseNodePostprocessor | None = None) -> Reranker:
    """The reranker that RAG_RERANK_STRATEGY names. No model is loaded yet.

    `reranker` replaces what the settings name. Raises ConfigurationError if a package is missing, the class path or
    options are wrong, or the chat model is unsuitable.
    """
    # Strategies are imported when chosen: some bring packages that the others do without.
    if reranker is not None:
        return _wrap(reranker)
    options = parse_options(settings.rerank.options, setting="RAG_RERANK_OPTIONS")
    match settings.rerank.strategy:
        case "none":
            return NoReranker()
        case "heuristic":
            return HeuristicReranker()
        case "llm":
            from rag_service.models.reranking.llm import LLMReranker

            if not chat.structured_output:
                raise ConfigurationError(
                    f"RAG_RERANK_STRATEGY=llm needs a language model; the chat provider `{chat.provider}` is none."
                    " Choose `heuristic`, or RAG_CHAT_PROVIDER=ollama.",
                    field="RAG_RERANK_STRATEGY",
                )
            return LLMReranker(chat)
        case "sbert":
            from rag_service.models.reranking.postprocessor import cross_encoder

            for package in ("llama_index.postprocessor.sbert_rerank", "sentence_transformers"):
                require_extra(package, extra="sbert", setting="RAG_RERANK_STRATEGY", value="sbert")
            return cross_encoder(settings.rerank.model, options)
        case "cohere":
            package = "llama_index.postprocessor.cohere_rerank"
            require_extra(package, extra="cohere", setting="RAG_RERANK_STRATEGY", value="cohere")
            options = {"model": settings.rerank.model} | options  # its key: COHERE_API_KEY
            return _wrap(
                build(f"{package}:CohereRerank", options, BaseNodePostprocessor, setting="RAG_RERANK_STRATEGY")
            )
        case path:
            return _wrap(build(path, options, BaseNodePostprocessor, setting="RAG_RERANK_STRATEGY"))


def _wrap(postprocessor: BaseNodePostprocessor) -> Reranker:
    from rag_service.models.reranking.postprocessor import PostprocessorReranker

    return PostprocessorReranker(type(postprocessor).__name__, lambda: postprocessor)
