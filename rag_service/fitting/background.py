"""Measures an embedding model that no index is calibrated for, in the background, and tells the other processes.

The shipped question sets are embedded one batch after the other, queued behind documents and questions. First the scale
of random pairs is known, in the end the relevance; either is used at once. A process that measures holds a lease in the
database, so that the others wait and read what it stores. Vectors go into the cache of embeddings: whoever goes on
after an interruption embeds what is missing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import psycopg
import structlog

from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import ConfigurationError, RagError, StoreError
from rag_service.fitting.question_sets import QuestionSet, load_shipped
from rag_service.fitting.relevance import EmbeddedSet, fit_relevance, fit_scales
from rag_service.indices import IndexDefinition
from rag_service.ingest.embedding_cache import embedding_key, read_embeddings, write_embeddings
from rag_service.models.embedding.guarded import GuardedEmbedding
from rag_service.models.embedding.relevance import ModelRelevance, State
from rag_service.store.database import Database
from rag_service.store.relevance_fits import ModelFit, lease_model, read_model_fit, renew_lease, store_model_fit

log = structlog.get_logger(__name__)

LOOK_SECONDS = 10.0  # between looks at what another process stored, and before the first new attempt
STEADY_SECONDS = 60.0  # the same once the model is fitted
MAX_PAUSE = 300.0  # between attempts
SCALE_QUESTIONS = 40  # of each set, beside its passages: enough for the scale
_BATCH = 10  # texts embedded and kept together
_KEPT_SECONDS = 86_400  # vectors, for whoever goes on after an interruption
DETAILS: Mapping[State, str] = {
    "packaged": "The index definitions are calibrated for this model.",
    "off": "RAG_FIT_RELEVANCE is off: relevance rests on the calibrations of the index definitions.",
    "unknown": "Nothing has been measured yet: relevance is a rough guess until the background fit has begun.",
    "scaled": "The scale of random pairs is in force; the background fit replaces it.",
    "fitted": "Relevance and the weight of the vectors are fitted to the shipped question sets.",
}
_PROBE = "What does this model make of a sentence that stays the same?"


@dataclass(frozen=True, kw_only=True)
class RelevanceReport:
    """What is known of the embedding model's cosines, for operators."""

    model: str
    state: State
    detail: str


@dataclass
class Progress:
    """How far this process has come; 0 of 0 when it does not measure."""

    done: int = 0  # texts
    total: int = 0


@dataclass(eq=False)
class RelevanceFitter:
    """Keeps a `ModelRelevance` up to date."""

    relevance: ModelRelevance  # what is kept up to date
    database: Database
    embedding: GuardedEmbedding  # the model, without a cache
    index: IndexDefinition  # its BM25 parameters and synonyms are those of the fit
    progress: Progress = field(default_factory=Progress, init=False)
    _revision: bytes | None = field(default=None, init=False)  # of the model, once this process has asked it

    def report(self) -> RelevanceReport:
        """The present state in words."""
        detail = DETAILS[self.relevance.state]
        if self.progress.total:
            detail += f" This process has embedded {self.progress.done} of {self.progress.total} texts."
        return RelevanceReport(model=self.relevance.model, state=self.relevance.state, detail=detail)

    async def load(self) -> None:
        """Use what is stored for the model; a database that is down is asked again later."""
        if not self.relevance.watched:
            return
        try:
            async with self.database.transaction(LOCAL_ADMIN) as connection:
                found = await read_model_fit(connection, self.relevance.model)
        except (StoreError, psycopg.Error) as error:
            log.warning("relevance_unreadable", exc_info=error)
            return
        if found is not None and (self._revision is None or found.is_of(self._revision)):
            self.relevance.known = found

    async def run(self) -> None:
        """Measure what is missing, and use what other processes measured, until cancelled."""
        pause = LOOK_SECONDS
        while self.relevance.watched:
            try:
                pause = STEADY_SECONDS if await self.measure() else LOOK_SECONDS
            except ConfigurationError as error:
                log.error("relevance_not_fitted", model=self.relevance.model, reason=error.message)
                pause = MAX_PAUSE
            except (RagError, psycopg.Error) as error:
                log.warning("relevance_delayed", model=self.relevance.model, exc_info=error)
                pause = min(2 * pause, MAX_PAUSE)
            await asyncio.sleep(pause)

    async def complete(self) -> None:
        """Measure now, or wait until another process has.

        Raises EmbeddingError or StoreError if the model or the database fails.
        """
        while self.relevance.watched:
            if await self.measure():
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def measure(self) -> bool:
        """Measure the model unless that is done, or another process does it; returns whether it is done.

        Raises EmbeddingError or StoreError if the model or the database fails; what was embedded is kept.
        """
        await self.load()
        if self._revision is None:
            self._revision = await self._read_revision()
            known = self.relevance.known
            if known is not None and not known.is_of(self._revision):
                log.warning("relevance_of_another_model", model=self.relevance.model)
                self.relevance.known = None
        if self.relevance.state == "fitted":
            return True
        async with self.database.transaction(LOCAL_ADMIN) as connection:
            if not await lease_model(connection, self.relevance.model, self._revision):
                return False
        try:
            await self._fit(self._revision)
        finally:
            self.progress = Progress()
            await asyncio.shield(self._give_back())
        return True

    async def _read_revision(self) -> bytes:
        """What the model makes of one text in both roles: a model or a prefix that changed makes something else."""
        query = await self.embedding.embed_unhurried_query(_PROBE)
        passage = (await self.embedding.aget_text_embedding_batch([_PROBE]))[0]
        return np.array([*query, *passage], dtype="<f4").tobytes()

    async def _give_back(self) -> None:
        try:
            async with self.database.transaction(LOCAL_ADMIN) as connection:
                await renew_lease(connection, self.relevance.model, seconds=0)
        except (StoreError, psycopg.Error):  # the lease ends by itself
            log.warning("relevance_lease_kept")

    async def _fit(self, revision: bytes) -> None:
        model, sets = self.relevance.model, await asyncio.to_thread(load_shipped)
        self.progress = Progress(total=sum(len(some.passages) + len(some.questions) for some in sets))
        log.info("relevance_fitting", model=model, texts=self.progress.total)
        passages = [await self._embed(some.passages, "passage") for some in sets]
        first = [await self._embed(_texts(some)[:SCALE_QUESTIONS], "query") for some in sets]
        scales = await asyncio.to_thread(fit_scales, await asyncio.to_thread(_join, sets, passages, first))
        await self._store(ModelFit(model=model, revision=revision, scales=scales))
        log.info("relevance_scaled", model=model)
        rest = [await self._embed(_texts(some)[SCALE_QUESTIONS:], "query") for some in sets]
        every = [[*some, *others] for some, others in zip(first, rest, strict=True)]
        embedded = await asyncio.to_thread(_join, sets, passages, every)  # a million numbers
        scales = await asyncio.to_thread(fit_scales, embedded)
        run = f"background-{datetime.now(UTC):%Y%m%d}"
        fits = await asyncio.to_thread(fit_relevance, embedded, scales, self.index, run=run)
        await self._store(ModelFit(model=model, revision=revision, scales=scales, fits=fits))
        log.info("relevance_fitted", model=model, alphas={language: fit.alpha for language, fit in fits.items()})

    async def _store(self, fit: ModelFit) -> None:
        async with self.database.transaction(LOCAL_ADMIN) as connection:
            await store_model_fit(connection, fit)
        self.relevance.known = fit

    async def _embed(self, texts: Sequence[str], role: Literal["query", "passage"]) -> list[list[float]]:
        """Vectors of texts, those of an interrupted attempt from the cache."""
        model = f"{self.relevance.model}\0{hashlib.sha256(self._revision or b'').hexdigest()}"
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            keys = [embedding_key(text, model=model, dimension=self.embedding.dimension, role=role) for text in batch]
            async with self.database.transaction(LOCAL_ADMIN) as connection:
                found = await read_embeddings(connection, keys)
            missing = {key: text for key, text in zip(keys, batch, strict=True) if key not in found}
            if missing:
                made = dict(zip(missing, await self._ask(list(missing.values()), role), strict=True))
                async with self.database.transaction(LOCAL_ADMIN) as connection:
                    await write_embeddings(connection, made, tenant=None, ttl_seconds=_KEPT_SECONDS)
                    await renew_lease(connection, self.relevance.model)
                found |= made
            vectors += [found[key] for key in keys]
            self.progress.done += len(batch)
        return vectors

    async def _ask(self, texts: list[str], role: Literal["query", "passage"]) -> list[list[float]]:
        if role == "passage":
            return await self.embedding.aget_text_embedding_batch(texts)
        return [await self.embedding.embed_unhurried_query(text) for text in texts]


def _texts(questions: QuestionSet) -> list[str]:
    return [asked.text for asked in questions.questions]


def _join(
    sets: Sequence[QuestionSet], passages: Sequence[list[list[float]]], questions: Sequence[list[list[float]]]
) -> list[EmbeddedSet]:
    return [
        EmbeddedSet(questions=some, of_passages=np.array(texts), of_questions=np.array(asked))
        for some, texts, asked in zip(sets, passages, questions, strict=True)
    ]
