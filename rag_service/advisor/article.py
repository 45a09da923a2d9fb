"""Finds the article of the knowledge base that governs a case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from rag_service.advisor.required_data import REQUIRED_DATA_TYPE
from rag_service.advisor.schema import Inquiry
from rag_service.answering.decision.confidence import rate_confidence
from rag_service.answering.engine import CitedQueryEngine
from rag_service.domain import Condition, ConditionGroup, Confidence, Filters, Hit, Identity, Operator
from rag_service.errors import InputError, NotFoundError
from rag_service.indices import IndexDefinition
from rag_service.language.words import fold
from rag_service.retrieval.found import Found
from rag_service.retrieval.question import Question
from rag_service.settings import Settings
from rag_service.store.corpora import select_corpora
from rag_service.store.database import Database
from rag_service.store.documents.catalogue import read_field_values
from rag_service.store.search.scope import WILDCARD

ARTICLE_ID = "article_id"  # filter field that names the article
ARTICLE_CHUNKS = 100  # maximum chunks of an article that are used
_CANDIDATES = 20  # hits that choose the article
_TOP = 3  # best hits of an article that count for it


@dataclass(frozen=True, kw_only=True)
class Article:
    """The document that governs a case; without an id and chunks where there is none."""

    found: Found  # by the search for it
    confidence: Confidence
    id: str | None = None  # as declared, else the file name
    title: str = ""
    hits: tuple[Hit, ...] = ()  # its chunks, best first

    @property
    def language(self) -> str:
        """ISO 639-1 code of the inquiry's language."""
        return self.found.plan.language


@dataclass(frozen=True, kw_only=True)
class ArticleFinder:
    """Finds articles in the corpora that an identity may read."""

    database: Database
    engine: CitedQueryEngine
    indices: Mapping[str, IndexDefinition]
    settings: Settings

    async def find(self, inquiry: Inquiry, identity: Identity) -> Article:
        """The article whose best chunks above the threshold fit the inquiry best.

        Chunks of all types count: on the 20 answerable questions of evals/retirement.jsonl they choose the right
        article 19 times, the three types of required data alone 17 times.

        Raises:
            InputError: a filter field is not declared, no document has the value that is asked for, or several indices
                are in reach and none is named.
            NotFoundError: there is no such corpus, or none whose index declares required data.
            EmbeddingError, StoreError: as a search.
        """
        corpus_ids = await self._resolve_corpora(inquiry, identity)
        filters = await self._restrict(inquiry, corpus_ids, identity)
        found = await self._search(inquiry, identity, filters, limit=_CANDIDATES)
        threshold = found.index.query.threshold
        minimum = self.settings.retrieval.threshold if threshold is None else threshold
        by_document: dict[UUID, list[Hit]] = defaultdict(list)
        for hit in found.passages:
            if hit.scores.relevance >= minimum:
                by_document[hit.chunk.document.id].append(hit)
        if not by_document:
            return Article(found=found, confidence=rate_confidence((), found.index.query))
        best = max(by_document.values(), key=lambda found: sum(sorted(map(_rating, found), reverse=True)[:_TOP]))
        document = best[0].chunk.document
        of_document = replace(filters, document_ids=(document.id,))
        chunks = (await self._search(inquiry, identity, of_document, limit=ARTICLE_CHUNKS)).passages
        declared = best[0].chunk.metadata.get(ARTICLE_ID)
        return Article(
            found=found,
            id=str(declared or document.file_name or document.id),
            title=document.title,
            hits=chunks,
            confidence=rate_confidence(chunks, found.index.query),
        )

    async def _search(self, inquiry: Inquiry, identity: Identity, filters: Filters, *, limit: int) -> Found:
        """Find reranked passages, whatever their relevance."""
        question = Question(
            inquiry.text, identity=identity, filters=filters, top_k=limit, candidates=limit, threshold=0.0
        )
        return await self.engine.search(question)

    async def _resolve_corpora(self, inquiry: Inquiry, identity: Identity) -> tuple[UUID, ...]:
        """The corpora of one index that declares required data, as far as the caller may read them."""
        async with self.database.transaction(identity) as connection:
            readable = await select_corpora(connection, "active", {})
        if set(inquiry.corpus_ids) - {corpus.id for corpus in readable}:
            raise NotFoundError("This corpus does not exist.", field="corpusIds")
        if inquiry.index is not None and inquiry.index not in self.indices:
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
            raise NotFoundError("No available corpus has an index that declares required data.", field="index")
        if len(names) > 1:
            raise InputError(f"Several indices support the advisor; choose one of {', '.join(names)}.", field="index")
        self._check_fields(inquiry, names[0])
        return tuple(corpus.id for corpus in chosen)

    async def _restrict(self, inquiry: Inquiry, corpus_ids: tuple[UUID, ...], identity: Identity) -> Filters:
        """Filters for the inquiry's fields, in the spellings of the documents: "401(k)" finds "401k".

        A value that no document has is refused. Documents that name no value, or any, fit every inquiry: only they
        would be left, and an article about another case would answer.
        """
        fields: dict[str, str] = {}
        spelled_differently: list[Condition | ConditionGroup] = []
        async with self.database.transaction(identity, limited=True) as connection:
            known = {name: await read_field_values(connection, corpus_ids, name) for name in inquiry.fields}
        for name, wanted in inquiry.fields.items():
            spellings = [value for value in known[name] if _key(value) == _key(wanted)]
            others = [value for value in known[name] if value != WILDCARD]
            if not spellings and others and _key(wanted) != WILDCARD:
                raise InputError(f"No article has {wanted!r}; known values: {', '.join(others)}.", field=name)
            if len(spellings) < 2:
                fields[name] = spellings[0] if spellings else wanted
                continue
            alike = Condition(field=name, operator=Operator.IN, value=(*spellings, WILDCARD))
            missing = Condition(field=name, operator=Operator.IS_EMPTY)
            spelled_differently.append(ConditionGroup(combine="or", parts=(alike, missing)))
        where = ConditionGroup(combine="and", parts=tuple(spelled_differently)) if spelled_differently else None
        return Filters(corpus_ids=corpus_ids, fields=fields, where=where)

    def _advises(self, index_name: str) -> bool:
        index = self.indices.get(index_name)
        return index is not None and REQUIRED_DATA_TYPE in index.ingest.chunk_types.values()

    def _check_fields(self, inquiry: Inquiry, index_name: str) -> None:
        declared = self.indices[index_name].ingest.filter_fields
        for name in inquiry.fields:
            if name not in declared:
                known = ", ".join(declared) or "none"
                raise InputError(f"The index {index_name!r} has no filter field {name!r}; it has {known}.", field=name)


def _key(value: str) -> str:
    """A value without what people write differently: case, accents, blanks and punctuation."""
    return "".join(filter(str.isalnum, fold(value))) or value


def _rating(hit: Hit) -> float:
    return hit.scores.relevance if hit.scores.rerank is None else hit.scores.rerank
