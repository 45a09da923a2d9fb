"""Which article of the knowledge base governs a case, and all it says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from rag_service.definitions import IndexDefinition
from rag_service.domain import Confidence, Filters, Hit, Identity
from rag_service.errors import InputError, NotFoundError
from rag_service.models.reranking.rerankers import Reranker, rerank_or_keep
from rag_service.query.advisor.required_data import REQUIRED_DATA_TYPE
from rag_service.query.advisor.schema import Inquiry
from rag_service.query.confidence import rate_confidence
from rag_service.query.retrieval.retriever import Retrieval, Retriever
from rag_service.settings import Settings
from rag_service.store.corpora import select_corpora
from rag_service.store.session import Database
from rag_service.text.words import terms

ARTICLE_ID = "article_id"  # filter field that names the article
ARTICLE_CHUNKS = 100  # chunks of an article that are looked at
_CANDIDATES = 20  # hits that choose the article
_TOP = 3  # best hits of an article that speak for it


@dataclass(frozen=True, kw_only=True)
class Article:
    """The document that governs a case."""

    retrieval: Retrieval  # the search that chose it
    id: str  # as declared, else the file name
    title: str
    hits: tuple[Hit, ...]  # its chunks, best first
    confidence: Confidence


class ArticleFinder:
    """Finds articles in the corpora that an identity may read."""

    def __init__(
        self,
        database: Database,
        retriever: Retriever,
        reranker: Reranker,
        indices: Mapping[str, IndexDefinition],
        settings: Settings,
    ):
        """
        Args:
            database: tells which corpora the caller may read.
            retriever: finds passages.
            reranker: orders them.
            indices: definitions by name; those that declare required data can advise.
            settings: threshold and search mode.
        """
        self._database = database
        self._retriever = retriever
        self._reranker = reranker
        self._indices = indices
        self._settings = settings

    async def find(self, inquiry: Inquiry, identity: Identity) -> tuple[Retrieval, Article | None]:
        """The article whose best chunks fit the inquiry best; None when none passes the threshold.

        Chunks of every type speak for an article, whatever types its content is then taken from: on the 20
        answerable questions of evals/retirement.jsonl they choose the right one 19 times, the three types of
        required data alone 17 times.

        Raises:
            InputError: a filter field is not declared, or several indices are in reach and none is named.
            NotFoundError: there is no such corpus, or none whose index declares required data.
            EmbeddingError, StoreError: as a search.
        """
        filters = Filters(corpus_ids=await self._resolve_corpora(inquiry, identity), fields=inquiry.fields)
        retrieval, hits = await self._search(inquiry, identity, filters, limit=_CANDIDATES)
        threshold = retrieval.index.query.threshold
        least = self._settings.similarity_threshold if threshold is None else threshold
        by_document: dict[UUID, list[Hit]] = defaultdict(list)
        for hit in hits:
            if hit.scores.relevance >= least:
                by_document[hit.chunk.document.id].append(hit)
        if not by_document:
            return retrieval, None
        best = max(by_document.values(), key=lambda found: sum(sorted(map(_rating, found), reverse=True)[:_TOP]))
        document = best[0].chunk.document
        _, chunks = await self._search(
            inquiry, identity, replace(filters, document_ids=(document.id,)), limit=ARTICLE_CHUNKS
        )
        declared = best[0].chunk.metadata.get(ARTICLE_ID)
        return retrieval, Article(
            retrieval=retrieval,
            id=str(declared or document.file_name or document.id),
            title=document.title,
            hits=tuple(chunks),
            confidence=rate_confidence(chunks, retrieval.index.query),
        )

    async def _search(
        self, inquiry: Inquiry, identity: Identity, filters: Filters, *, limit: int
    ) -> tuple[Retrieval, list[Hit]]:
        retrieval = await self._retriever.search(
            inquiry.text,
            identity=identity,
            filters=filters,
            limit=limit,
            mode="hybrid" if self._settings.hybrid else "dense",
        )
        asked = terms(inquiry.text, retrieval.plan.language)
        return retrieval, await rerank_or_keep(self._reranker, inquiry.text, retrieval.hits, query_terms=asked)

    async def _resolve_corpora(self, inquiry: Inquiry, identity: Identity) -> tuple[UUID, ...]:
        """The corpora of one index that declares required data, as far as the caller may read them."""
        async with self._database.transaction(identity) as connection:
            readable = await select_corpora(connection, "active", {})
        if set(inquiry.corpus_ids) - {corpus.id for corpus in readable}:
            raise NotFoundError("There is no such corpus.", field="corpusIds")
        if inquiry.index is not None and inquiry.index not in self._indices:
            raise InputError(f"There is no index {inquiry.index!r}.", field="index")
        chosen = [
            corpus
            for corpus in readable
            if (not inquiry.corpus_ids or corpus.id in inquiry.corpus_ids)
            and (inquiry.index or corpus.index_name) == corpus.index_name
            and self._advises(corpus.index_name)
        ]
        names = sorted({corpus.index_name for corpus in chosen})
        if not names:
            raise NotFoundError("There is no corpus here whose index declares required data.", field="index")
        if len(names) > 1:
            raise InputError(f"Several indices can advise; name one of {', '.join(names)}.", field="index")
        self._check_fields(inquiry, names[0])
        return tuple(corpus.id for corpus in chosen)

    def _advises(self, index_name: str) -> bool:
        index = self._indices.get(index_name)
        return index is not None and REQUIRED_DATA_TYPE in index.ingest.chunk_types.values()

    def _check_fields(self, inquiry: Inquiry, index_name: str) -> None:
        declared = self._indices[index_name].ingest.filter_fields
        for name in inquiry.fields:
            if name not in declared:
                known = ", ".join(declared) or "none"
                raise InputError(f"The index {index_name!r} has no filter field {name!r}; it has {known}.", field=name)


def _rating(hit: Hit) -> float:
    return hit.scores.relevance if hit.scores.rerank is None else hit.scores.rerank
