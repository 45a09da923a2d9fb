"""Hybrid retrieval: BM25 and vectors, fused, under the caller's identity.

Keyword search runs while the question is embedded. Vector search follows, candidates of either search get the score of
the other, and only the best of the fused ranking are read with their text. No connection is held while a slow embedding
is awaited; one that is there in time (of a cached question) spares the second transaction.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import structlog

from rag_service.domain import Hit, Identity
from rag_service.errors import EmbeddingError
from rag_service.indices import IndexDefinition, RelevanceFit
from rag_service.language.detection import guess_language, nearest_language
from rag_service.language.languages import language_codes
from rag_service.models.embedding.relevance import ModelRelevance, relevance
from rag_service.observability.tracing import span
from rag_service.retrieval.found import Found
from rag_service.retrieval.fusion import ABSENT_NAME, Candidates, fuse
from rag_service.retrieval.name_forms import TextEmbedding, drop_other_forms
from rag_service.retrieval.named_files import (
    NamedFiles,
    asks_overview,
    find_named_files,
    read_outlines,
    read_within,
    take_turns,
)
from rag_service.retrieval.parts import asks_chain
from rag_service.retrieval.planner import QueryPlan, find_absent, make_plan
from rag_service.retrieval.query import PassageRetriever
from rag_service.retrieval.question import Mode, Question
from rag_service.settings.models import PACKAGED_MODEL
from rag_service.store.database import Connection, Database, meanwhile
from rag_service.store.search.dense import DenseSearch
from rag_service.store.search.lexical import NONE_FOUND, LexicalSearch, Rated
from rag_service.store.search.passages import has_many_spans, read_chunk_rows, to_chunks
from rag_service.store.search.postings import WeightedTerms, weigh_terms
from rag_service.store.search.scope import (
    SearchScope,
    check_fields,
    check_ids,
    resolve_scope,
)
from rag_service.tables.storage import has_long_tables

log = structlog.get_logger(__name__)

DEGRADED_DENSE = "degraded_dense"  # key in `timings_ms`: milliseconds lost on an embedding model that is down


class QueryEmbedding(TextEmbedding, Protocol):
    """What a search asks of an embedding model; every LlamaIndex embedding is one."""

    async def aget_query_embedding(self, query: str) -> list[float]:
        """The vector of a question."""


class HybridRetriever(PassageRetriever):
    """Hybrid retrieval over everything that an identity may read."""

    def __init__(
        self,
        database: Database,
        embedding: QueryEmbedding,
        indices: Mapping[str, IndexDefinition],
        *,
        default_index: str,
        mode: Mode = "hybrid",
        lexical_fallback: bool = False,
        relevance: ModelRelevance | None = None,
        identity: Identity | None = None,
    ):
        """
        Args:
            database: where the chunks are.
            embedding: the model that embedded them.
            indices: definitions by name.
            default_index: definition for searches over corpora of several or unknown definitions.
            mode: of queries that name none.
            lexical_fallback: whether hybrid searches go on by keywords alone while the embedding model is down.
            relevance: what is known of the model's cosines; None: they are as the packaged model's.
            identity: as in `PassageRetriever`.
        """
        super().__init__(identity=identity)
        self._database = database
        self._embedding = embedding
        self._indices = indices
        self._default_index = default_index
        self._mode = mode
        self._lexical_fallback = lexical_fallback
        self._relevance = relevance or ModelRelevance(PACKAGED_MODEL)

    async def search(self, question: Question) -> Found:
        """As `PassageRetriever.search`. What was left out because the embedding model is down shows in the timings as
        `degraded_dense`."""
        mode = question.mode or self._mode
        started = time.perf_counter()
        try:
            return await self._search(question, mode)
        except EmbeddingError as error:
            if mode == "dense" or not self._lexical_fallback:
                raise
            log.warning("retrieval_degraded", without="dense", exc_info=error)
        lost = round((time.perf_counter() - started) * 1000, 2)
        found = await self._search(question, "lexical")
        return replace(found, timings_ms={**found.timings_ms, DEGRADED_DENSE: lost})

    async def _search(self, question: Question, mode: Mode) -> Found:
        clock = _Clock()
        embedding = None if mode == "lexical" else asyncio.ensure_future(self._embed(question.text))
        ranked: list[Hit] | None = None
        try:
            async with self._database.transaction(question.identity, limited=True) as connection:
                # What failed is raised here; what is there by now need not be waited for.
                vector = embedding.result() if embedding is not None and embedding.done() else None
                begun = await self._begin(connection, question, clock, mode=mode, vector=vector)
                if vector is None and embedding is not None and embedding.done():
                    vector = embedding.result()
                if embedding is None or vector is not None:
                    ranked = await self._rank(connection, begun, vector, clock, question=question, mode=mode)
            if embedding is not None and ranked is None:
                vector = await embedding
                clock.lap("embedding")
                async with self._database.transaction(question.identity, limited=True) as connection:
                    ranked = await self._rank(connection, begun, vector, clock, question=question, mode=mode)
        finally:
            if embedding is not None and not embedding.done():
                embedding.cancel()
        clock.lap("read")  # the end of the transaction is part of the search
        absent = begun.absent
        if absent:
            is_packaged = vector is not None and self._relevance.state == "packaged"
            absent = await drop_other_forms(absent, ranked or (), self._embedding if is_packaged else None)
            if not absent:
                ranked = [_rate_present(hit) for hit in ranked or ()]
        return Found(
            plan=_settle_language(begun.plan, question, ranked or ()),
            index=begun.index,
            scope=begun.scope,
            hits=tuple(ranked or ()),
            weights=begun.terms.ranking.weights,
            absent=absent,
            timings_ms=clock.laps,
            files=begun.files,
            is_chain=vector is not None and self._relevance.state == "packaged" and asks_chain(vector),
        )

    async def _embed(self, question: str) -> list[float]:
        with span("embed"):
            return await self._embedding.aget_query_embedding(question)

    async def _begin(
        self,
        connection: Connection,
        question: Question,
        clock: _Clock,
        *,
        mode: Mode,
        vector: list[float] | None,
    ) -> _Begun:
        """Everything that needs no vector, and the nearest chunks if the vector is there already.

        Finding those is the longest statement of a search; the postings are summed up meanwhile.
        """
        index, plan, scope, files = await self._resolve(connection, question)
        clock.lap("scope")
        rules = index.query
        terms = await weigh_terms(connection, scope, plan.terms, k1=rules.bm25_k1)
        dense = None if vector is None else DenseSearch(scope, vector, nearest=rules.candidates)
        lexical = LexicalSearch(scope, terms, best=rules.candidates, k1=rules.bm25_k1, b=rules.bm25_b)
        # A vector search needs the postings of the chunks that it finds only.
        postings = terms.postings if mode == "dense" else await lexical.read(connection)
        if dense is None:
            lexical.add(postings)
        else:
            await meanwhile(dense.read(connection), partial(lexical.add, postings))
        found = NONE_FOUND if mode == "dense" else await lexical.search(connection)
        clock.lap("lexical")
        absent = find_absent(plan.names, plan.terms, terms.chunk_frequencies) if plan.names else ()
        if absent and await has_long_tables(connection, scope.corpus_ids):
            absent = ()  # a row that is not in the text may have the name
        within = None
        if files is not None and files.found and (files.place or files.outlines):
            within = await read_within(connection, files)
        return _Begun(
            index=index, plan=plan, scope=scope, terms=terms, lexical=lexical, found_by_words=found, absent=absent,
            dense=dense, files=files, within=within,
        )  # fmt: skip

    async def _resolve(
        self, connection: Connection, question: Question
    ) -> tuple[IndexDefinition, QueryPlan, SearchScope, NamedFiles | None]:
        """The index definition, the plan and the scope of a question, and the files that it names."""
        index, filters = self._indices[self._default_index], question.filters
        analyse = partial(make_plan, question.text, filters=filters, asked=question.asked, expected=question.languages)
        scope, plan = await meanwhile(resolve_scope(connection, filters), partial(analyse, index=index))
        if filters.must_exist:
            await self._check_filters(connection, scope)
        named = self._indices.get(scope.index_names[0], index) if len(scope.index_names) == 1 else index
        if named is not index:
            index, plan = named, analyse(index=named)
        files = None
        if plan.file_names:
            files, plan = await _find_files(connection, question, scope, plan, index)
        if plan.filters != filters:
            scope = await resolve_scope(connection, plan.filters)
        return index, plan, scope, files

    async def _check_filters(self, connection: Connection, scope: SearchScope) -> None:
        """Raises NotFoundError and InputError if the filters name a corpus, a document or a field that is not there."""
        filters = scope.filters
        if filters.corpus_ids or filters.document_ids:
            await check_ids(connection, scope)
        if scope.corpus_ids and not filters.any_field and (filters.fields or filters.where is not None):
            searched = [self._indices[name] for name in scope.index_names if name in self._indices]
            check_fields(filters, {name for index in searched for name in index.ingest.filter_fields})

    async def _rank(
        self,
        connection: Connection,
        begun: _Begun,
        vector: list[float] | None,
        clock: _Clock,
        *,
        question: Question,
        mode: Mode,
    ) -> list[Hit]:
        """Vector search, fusion, and the best with their text; ends the transaction."""
        rules, limit = begun.index.query, max(question.candidates, question.top_k)
        candidates = await self._score(connection, begun, vector)
        fit = self._relevance.fit_for(rules, begun.plan.language)
        share = rules.alpha if fit is None or fit.alpha is None else fit.alpha
        share = share if question.alpha is None else question.alpha
        ranked = fuse(
            candidates,
            alpha={"dense": 1.0, "lexical": 0.0, "hybrid": share}[mode],
            ceiling=begun.terms.ranking.ceiling,
            calibration=fit,
            scale=self._relevance.scale(begun.plan.language),
            limit=limit if begun.files is None else None,
            absent=bool(begun.absent),
        )
        clock.lap("dense")
        rows = await read_chunk_rows(connection, [chunk_id for chunk_id, _ in ranked])
        if has_many_spans(rows):
            await connection.commit()
            chunks = await asyncio.to_thread(to_chunks, rows)
        else:
            _, chunks = await meanwhile(connection.commit(), partial(to_chunks, rows))
        hits = [Hit(chunk=chunks[chunk_id], scores=scores) for chunk_id, scores in ranked if chunk_id in chunks]
        between = self._relevance.fit_for(rules, begun.plan.language, between=True)
        if between is not None and vector is not None:
            hits = [_rate_between(hit, begun, between) for hit in hits]
        if begun.files is not None:
            return _of_files(hits, begun.files, limit)
        unique: dict[tuple[str, int, str], Hit] = {}  # a passage of files with the same content, once
        for hit in hits:
            unique.setdefault((hit.chunk.document.content_hash, hit.chunk.start, hit.chunk.text), hit)
        return list(unique.values())

    async def _score(self, connection: Connection, begun: _Begun, vector: list[float] | None) -> Candidates:
        """Every chunk that either search found, with the scores of both."""
        found, cosines = begun.found_by_words, None
        within = None if begun.within is None else np.array(begun.within, dtype=np.int64)
        if vector is not None:
            dense = begun.dense
            if dense is None:
                dense = DenseSearch(begun.scope, vector, nearest=begun.index.query.candidates)
                await dense.read(connection)
            near = await dense.cosines(connection, found.ids if within is None else within)
            found, cosines = await begun.lexical.score(connection, near.ids), near.values
        if within is not None:
            found, cosines = await self._keep_within(connection, begun, within, found, cosines)
        return Candidates(ids=found.ids, cosines=cosines, bm25=found.scores, coverage=found.coverage)

    @staticmethod
    async def _keep_within(
        connection: Connection,
        begun: _Begun,
        within: npt.NDArray[np.int64],
        found: Rated,
        cosines: npt.NDArray[np.float64] | None,
    ) -> tuple[Rated, npt.NDArray[np.float64] | None]:
        """Of what was found the chunks within; with a vector search all of them were found."""
        if cosines is None:
            return await begun.lexical.score(connection, within), None
        kept = np.isin(found.ids, within)
        rated = Rated(ids=found.ids[kept], scores=found.scores[kept], coverage=found.coverage[kept])
        return rated, cosines[kept]


async def _find_files(
    connection: Connection, question: Question, scope: SearchScope, plan: QueryPlan, index: IndexDefinition
) -> tuple[NamedFiles | None, QueryPlan]:
    """The files that a question names, and its plan without their names; None: it names no file."""
    files = await find_named_files(connection, scope, question.text, plan.file_names)
    if not files.found:
        chosen = scope.filters.document_ids or scope.filters.file_name is not None
        return (files if files.missing and not chosen else None), plan  # of files that were chosen none is missing
    # The name of a file is no word that its passages hold, and does not tell the language.
    plan = make_plan(
        files.rest,
        filters=replace(plan.filters, document_ids=files.document_ids),
        index=index,
        file_language=files.found[0].language,
        expected=question.languages,
    )
    plan = replace(plan, names=())
    if asks_overview(files, plan.language):
        files = await read_outlines(connection, files)
    return files, plan


def _settle_language(plan: QueryPlan, question: Question, hits: Sequence[Hit]) -> QueryPlan:
    """The plan in the language of most passages where the question is rather in that one, or leaves it open."""
    written = Counter(language for hit in hits if (language := hit.chunk.document.language) is not None)
    if not written:
        return plan
    ((common, _),) = written.most_common(1)
    if common not in language_codes() and guess_language(question.asked, (*question.languages, common)) == common:
        return replace(plan, language=common)
    if plan.is_language_open:
        return replace(plan, language=nearest_language(question.asked, (plan.language, common)))
    return plan


def _rate_between(hit: Hit, begun: _Begun, fit: RelevanceFit) -> Hit:
    """A passage in another language has a relevance of its own."""
    scores = hit.scores
    is_foreign = hit.chunk.document.language not in (None, begun.plan.language)
    if not is_foreign or scores.dense is None:
        return hit
    log_odds = ABSENT_NAME if begun.absent else 0.0
    rated = relevance(np.array(scores.dense), np.array(scores.coverage or 0.0), fit, log_odds=log_odds)
    return replace(hit, scores=replace(scores, relevance=float(rated)))


def _rate_present(hit: Hit) -> Hit:
    """Take back what the relevance lost because no passage seemed to hold a name of the question."""
    rated = hit.scores.relevance
    return replace(hit, scores=replace(hit.scores, relevance=rated / (rated + (1 - rated) * math.exp(ABSENT_NAME))))


def _of_files(hits: list[Hit], files: NamedFiles, limit: int) -> list[Hit]:
    """The passages of named files: some of each; those of an overview in their order, all relevant."""
    if files.outlines:
        places = {document: place for place, document in enumerate(files.document_ids)}
        hits.sort(key=lambda hit: (places[hit.chunk.document.id], hit.chunk.index))
        hits = [replace(hit, scores=replace(hit.scores, relevance=1.0)) for hit in hits]
    return take_turns(hits, limit) if len(files.found) > 1 else hits[:limit]


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """The first half of a search: everything but what needs the question's vector."""

    index: IndexDefinition
    plan: QueryPlan
    scope: SearchScope
    terms: WeightedTerms
    lexical: LexicalSearch
    found_by_words: Rated  # the best of it
    absent: tuple[str, ...]
    dense: DenseSearch | None  # None: the vector was not there in time
    files: NamedFiles | None  # that the question names
    within: list[int] | None  # the only chunks that are asked about; None: all in scope


@dataclass
class _Clock:
    laps: dict[str, float] = field(default_factory=dict)  # step → milliseconds
    last: float = field(default_factory=time.perf_counter)

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = round((now - self.last) * 1000, 2)
        self.last = now
