"""What a reranker is, a second, closer look at the hits, and the one that needs no model.

A reranker reorders and never drops. It fills `scores.rerank` (0..1) and leaves the other scores as they are. One that
fails raises RerankError and must not cost the user the answer: call it through `rerank_or_keep`, which logs the failure
and keeps the incoming order.

Without a model, three signals are added to the fused score, in a few milliseconds.

    order = fused
          + PASSAGE_WEIGHT  · share of the question's character n-grams that the passage and its headings hold
          + SENTENCE_WEIGHT · the same share of one sentence of the passage
          + DOCUMENT_WEIGHT · how far the best passage of the same document lies behind the best of all
    score = sigmoid(logit(best relevance) + STEEPNESS · (order - best order))

N-grams that few of the hits hold weigh more. The order rests on the fused score because the calibrated relevance, which
says whether a passage answers, orders worse. Scores stay in 0..1: the first hit has the best relevance found, the
others fall off as a listwise logistic fit says.

What the signals gain on XQuAD and the project's own sets: docs/decisions/046-character-ngrams.md.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt
import structlog

from rag_service.domain import Chunk, Hit
from rag_service.errors import RerankError
from rag_service.language.ngrams import (
    Joined,
    Ngrams,
    character_ngrams,
    find_joined,
    find_ngrams,
    read_ngrams,
    weigh_by_rarity,
)
from rag_service.recent import kept_apart

log = structlog.get_logger(__name__)
PASSAGE_WEIGHT = 0.2
SENTENCE_WEIGHT = 0.3
DOCUMENT_WEIGHT = 0.4
STEEPNESS = 18.0  # log-odds of being the right passage per unit of fused score (listwise fit, XQuAD odd articles)
MARGIN = 1e-6  # relevance is kept this far from 0 and 1, where log-odds end

_SENTENCE_END = re.compile(r"[.!?:;]\s+|\n+")


class Reranker(Protocol):
    """One strategy. `name` is its value of RAG_RERANK_STRATEGY."""

    name: str

    async def rerank(self, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
        """All hits, best first. `language` is the question's, ISO 639-1.

        Raises RerankError if the hits cannot be rated; the incoming order then stands.
        """


class NoReranker:
    """The order of the fusion as it is; `scores.rerank` stays None, because nothing was rated."""

    name = "none"

    async def rerank(self, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
        return list(hits)


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


class HeuristicReranker:
    """Moves the fused score by spelling that question and passage share, and by the best passage of the document."""

    name = "heuristic"

    async def rerank(self, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
        if not hits:
            return []
        relevances = [hit.scores.relevance for hit in hits]
        base = [hit.scores.relevance if hit.scores.fused is None else hit.scores.fused for hit in hits]
        best_of: dict[UUID, float] = {}  # by document
        for hit, score in zip(hits, base, strict=True):
            document = hit.chunk.document.id
            best_of[document] = max(score, best_of.get(document, score))
        behind = [best_of[hit.chunk.document.id] - max(base) for hit in hits]
        passage, sentence = _shares(character_ngrams(question), hits)
        moved = PASSAGE_WEIGHT * passage + SENTENCE_WEIGHT * sentence + DOCUMENT_WEIGHT * np.array(behind)
        orders = (np.array(base) + moved).tolist()
        certain = min(1 - MARGIN, max(MARGIN, max(relevances)))
        top, log_odds = max(orders), math.log(certain / (1 - certain))
        scores = [1 / (1 + math.exp(min(700.0, STEEPNESS * (top - order) - log_odds))) for order in orders]
        return by_score(hits, scores)


def _shares(asked: Ngrams, hits: Sequence[Hit]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Shares of the question's n-grams, 0..1 and one a hit: in the passage with its headings, in its best sentence."""
    ngrams, counts = zip(*(_read(hit.chunk.text) for hit in hits), strict=True)
    starts = np.cumsum([0, *map(len, counts[:-1])])
    in_sentences = find_joined(asked, np.concatenate(ngrams), np.concatenate(counts))
    in_headings = find_ngrams(asked, [_read_headings(_headings(hit.chunk)) for hit in hits])
    in_passages = np.logical_or.reduceat(in_sentences, starts) | in_headings
    weights = weigh_by_rarity(in_passages)
    return in_passages @ weights, np.maximum.reduceat(in_sentences @ weights, starts)


# Reading twenty passages takes longer than all else here, and popular passages come again.
# 512 passages of 800 tokens take 15 MB.
@kept_apart(512)
def _read(text: str) -> Joined:
    """The n-grams of its sentences."""
    return read_ngrams(_SENTENCE_END.split(text))


@kept_apart(2048)  # chunks of a document share their title, those of a section their headings too
def _read_headings(headings: str) -> Ngrams:
    return character_ngrams(headings)


def _headings(chunk: Chunk) -> str:
    paths = dict.fromkeys(span.location.headings for span in chunk.spans)
    return " ".join(dict.fromkeys(chain([chunk.document.title], *paths)))
