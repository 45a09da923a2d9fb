"""Where an answer comes from: a record that says what went in and what was checked, and a comparison.

A record names everything that decides an answer: model, prompt, index definition, settings, and the
ranked chunks with their scores and content hashes. Two records differ exactly where something changed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog

from rag_service.domain import Answer, AnswerQuery, CitationStatus, Filters, Hit, Identity
from rag_service.errors import StoreError
from rag_service.models.chat.chat import ChatModel
from rag_service.query.prompting.prompt import Prompts
from rag_service.query.retrieval.retriever import Retrieval
from rag_service.settings import Settings
from rag_service.store.people.answers import store_answer
from rag_service.store.session import Database

log = structlog.get_logger(__name__)

# Settings that decide an answer; secrets and addresses are none of them.
_RECORDED_SETTINGS = (
    "embedding_provider", "embedding_model", "embedding_dimension", "rerank_strategy", "rerank_model", "hybrid",
    "grounded_prompting", "max_chunks_in_prompt", "context_max_tokens", "max_tokens", "context_window",
    "temperature", "withhold_unverified",
)  # fmt: skip
_SCORE_DIGITS = 4


class AnswerRecorder:
    """Makes and keeps the records."""

    def __init__(self, database: Database, prompts: Prompts, chat: ChatModel, settings: Settings):
        self._database = database
        self._prompts = prompts
        self._chat = chat
        self._settings = settings

    def make_record(self, query: AnswerQuery, answer: Answer, retrieval: Retrieval) -> dict[str, Any]:
        """The record of an answer, as JSON-ready values."""
        settings = self._settings
        name = query.prompt or (retrieval.index.query.prompt if settings.grounded_prompting else "classic")
        template = self._prompts.template(name, answer.language)
        shown = {hit.chunk.id for hit in answer.shown}
        return {
            "answerId": str(answer.id),
            "createdAt": datetime.now(UTC).isoformat(),
            "question": answer.question,
            "language": answer.language,
            "request": _write_request(query),
            "model": {"provider": self._chat.provider, "name": answer.model},
            "prompt": {
                "name": name,
                "sha256": _hash(template.system + "\0" + template.user),
                "instructionsSha256": _hash(query.instructions),
            },
            "index": {
                "name": retrieval.index.name,
                "query": retrieval.index.query_hash,
                "ingest": retrieval.index.fingerprint(
                    embedding_model=settings.embedding_model, dimension=settings.embedding_dimension
                ),
            },
            "settings": {field: getattr(settings, field) for field in _RECORDED_SETTINGS},
            "chunks": [_write_hit(hit, shown=hit.chunk.id in shown) for hit in answer.sources],
            "answer": answer.text,
            "decision": answer.decision.value,
            "confidence": answer.confidence.value,
            "citations": [
                {
                    "mark": citation.mark,
                    "status": citation.status.value,
                    "documentId": None if citation.document_id is None else str(citation.document_id),
                    "contentHash": citation.content_hash,
                    "chunkId": citation.chunk_id,
                    "quote": citation.quote,
                    "start": citation.start,
                    "end": citation.end,
                }
                for citation in answer.citations
            ],
            "verification": {
                **{status.value: 0 for status in CitationStatus},
                **Counter(citation.status.value for citation in answer.citations),
                "unmarkedSentences": answer.unmarked_sentences,
                "withheldSentences": answer.withheld_sentences,
            },
            "tokens": asdict(answer.tokens),
            "latencyMs": answer.latency_ms,
        }

    async def record(self, query: AnswerQuery, answer: Answer, retrieval: Retrieval, identity: Identity) -> None:
        """Keep the record. A database that fails now does not take the finished answer away."""
        try:
            async with self._database.transaction(identity) as connection:
                await store_answer(
                    connection, identity, answer_id=answer.id, record=self.make_record(query, answer, retrieval)
                )
        except StoreError as error:
            log.error("answer_not_recorded", answer_id=str(answer.id), exc_info=error)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that changed between two records."""

    what: str  # model, prompt, index, settings, chunks, answer, verification
    detail: str  # for people


def compare_records(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """What changed from one record to another, causes first; ids, times and latencies aside."""
    differences: list[Difference] = []
    for part in ("model", "prompt", "index", "settings"):
        differences += _changed_keys(part, before.get(part, {}), after.get(part, {}))
    differences += _changed_chunks(before["chunks"], after["chunks"])
    if before["answer"] != after["answer"]:
        differences.append(Difference(what="answer", detail="the text differs"))
    for part in ("decision", "confidence"):
        if before[part] != after[part]:
            differences.append(Difference(what=part, detail=f"{before[part]} → {after[part]}"))
    differences += _changed_keys("verification", before["verification"], after["verification"])
    return differences


def read_query(record: Mapping[str, Any]) -> AnswerQuery:
    """The request that a record answers, ready to be asked again."""
    request = record["request"]
    filters = request["filters"]
    agent_id = request.get("agentId")
    return AnswerQuery(
        question=record["question"],
        top_k=request["topK"],
        threshold=request["threshold"],
        filters=Filters(
            corpus_ids=tuple(UUID(value) for value in filters["corpusIds"]),
            document_ids=tuple(UUID(value) for value in filters["documentIds"]),
            file_name=filters["fileName"],
            source=filters["source"],
            tags=tuple(filters["tags"]),
            fields=filters["fields"],
            chunk_types=tuple(filters["chunkTypes"]),
            territory=filters["territory"],
        ),
        prompt=request.get("prompt"),
        instructions=request.get("instructions", ""),
        history=request.get("history", ""),
        personal_corpora=frozenset(UUID(value) for value in request.get("personalCorpora", ())),
        agent_id=None if agent_id is None else UUID(agent_id),
    )


def _write_request(query: AnswerQuery) -> dict[str, Any]:
    return {
        "topK": query.top_k,
        "threshold": query.threshold,
        "filters": _write_filters(query.filters),
        "prompt": query.prompt,
        "instructions": query.instructions,
        "history": query.history,
        "personalCorpora": sorted(str(value) for value in query.personal_corpora),
        "agentId": None if query.agent_id is None else str(query.agent_id),
    }


def _write_filters(filters: Filters) -> dict[str, Any]:
    return {
        "corpusIds": [str(value) for value in filters.corpus_ids],
        "documentIds": [str(value) for value in filters.document_ids],
        "fileName": filters.file_name,
        "source": filters.source,
        "tags": list(filters.tags),
        "fields": dict(filters.fields),
        "chunkTypes": list(filters.chunk_types),
        "territory": filters.territory,
    }


def _write_hit(hit: Hit, *, shown: bool) -> dict[str, Any]:
    scores = {key: None if value is None else round(value, _SCORE_DIGITS) for key, value in asdict(hit.scores).items()}
    return {
        "chunkId": hit.chunk.id,
        "documentId": str(hit.chunk.document.id),
        "title": hit.chunk.document.title,
        "contentHash": hit.chunk.document.content_hash,
        "textSha256": _hash(hit.chunk.text),
        "shown": shown,
        "scores": scores,
    }


def _changed_keys(part: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    return [
        Difference(what=part, detail=f"{key}: {before.get(key)} → {after.get(key)}")
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _changed_chunks(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[Difference]:
    old = {chunk["chunkId"]: chunk for chunk in before}
    new = {chunk["chunkId"]: chunk for chunk in after}
    found = [f"{chunk_id} of {old[chunk_id]['title']!r} is no longer found" for chunk_id in old if chunk_id not in new]
    found += [f"{chunk_id} of {new[chunk_id]['title']!r} is found now" for chunk_id in new if chunk_id not in old]
    for chunk_id in old.keys() & new.keys():
        if old[chunk_id]["textSha256"] != new[chunk_id]["textSha256"]:
            found.append(f"{chunk_id} of {new[chunk_id]['title']!r} has another text")
        elif old[chunk_id]["scores"] != new[chunk_id]["scores"]:
            found.append(f"{chunk_id} of {new[chunk_id]['title']!r} is scored differently")
    if not found and list(old) != list(new):
        found.append("the order differs")
    return [Difference(what="chunks", detail=detail) for detail in found]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
