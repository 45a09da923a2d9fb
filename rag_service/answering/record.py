"""Answer records: everything that decided an answer, stored with it, and a comparison of two records.

A record names the model, prompt, index definition, settings, and the ranked chunks with their scores and hashes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import structlog

from rag_service.answering.prompt.templates import Prompts
from rag_service.domain import (
    Answer,
    Citation,
    CitationStatus,
    Condition,
    ConditionGroup,
    DocumentRef,
    Filters,
    FilterTree,
    Hit,
    Identity,
    Operator,
    Scores,
    Turn,
)
from rag_service.errors import StoreError
from rag_service.indices import IndexDefinition
from rag_service.models.prefixes import vectors_name
from rag_service.retrieval.query import AnswerRun
from rag_service.retrieval.question import FollowUp, Question
from rag_service.settings import Settings
from rag_service.store.accounts.answers import read_cited, store_answer
from rag_service.store.database import Database
from rag_service.store.search.passages import read_passages

log = structlog.get_logger(__name__)

# Settings that decide an answer: no secrets, no addresses.
_RECORDED_SETTINGS = (
    "embedding_provider", "embedding_model", "embedding_dimension", "rerank_strategy", "rerank_model", "hybrid",
    "grounded_prompting", "max_chunks_in_prompt", "context_max_tokens", "max_tokens", "context_window",
    "chat_tools", "max_steps", "temperature", "withhold_unverified", "similarity_threshold", "out_of_scope_threshold",
)  # fmt: skip
_SCORE_DIGITS = 4
_RECALLED = 2  # answers whose passages are shown again


class AnswerRecorder:
    """Makes and stores the records."""

    def __init__(self, database: Database, prompts: Prompts, settings: Settings):
        self._database = database
        self._prompts = prompts
        self._grounded = settings.answers.grounded_prompting
        self._settings = {key: value for key, value in settings.flat().items() if key in _RECORDED_SETTINGS}
        self._vectors_name, self._dimension = vectors_name(settings.embedding), settings.embedding.dimension
        self._indices: dict[str, dict[str, str]] = {}  # by name: what a record says of an index

    def make_record(self, run: AnswerRun, answer: Answer) -> dict[str, Any]:
        """The record of an answer, ready for JSON. An answer without retrieval has no index and no chunks."""
        question, found = run.question, run.retrieved
        index = None if found is None else found.index
        model = run.model if answer.model_error is None else run.model.fallback or run.model
        own = index.query.prompt if index is not None and self._grounded else "classic"
        name = question.prompt or own
        template = self._prompts.template(name, answer.language)
        shown = {hit.chunk.id for hit in answer.shown}
        return {
            "answerId": str(answer.id),
            "createdAt": datetime.now(UTC).isoformat(),
            "question": answer.question,
            "language": answer.language,
            "request": _write_request(question),
            "model": {"provider": model.provider, "name": answer.model},
            "prompt": {
                "name": name,
                "sha256": _hash(template.system + "\0" + template.user),
                "instructionsSha256": _hash(question.instructions),
            },
            "index": {} if index is None else self._describe(index),
            "settings": self._settings,
            "chunks": [_write_hit(hit, shown=hit.chunk.id in shown) for hit in answer.sources],
            "files": [] if found is None else list(map(str, found.named_documents)),
            "modelError": answer.model_error,
            "answer": answer.text,
            "decision": answer.decision.value,
            "reasons": [reason.code for reason in answer.reasons],
            "confidence": answer.confidence.value,
            "answersQuestion": answer.answers_question,
            "citations": [_write_citation(citation) for citation in answer.citations],
            "verification": {
                **dict.fromkeys(CitationStatus, 0),
                **Counter(citation.status for citation in answer.citations),
                "unmarkedSentences": answer.unmarked_sentences,
                "withheldSentences": answer.withheld_sentences,
            },
            "tokens": asdict(answer.tokens),
            "latencyMs": answer.latency_ms,
            "steps": [
                {"tool": step.tool, "asked": step.asked, "found": step.found, "failed": step.failed}
                for step in answer.steps
            ],
            "modelCalls": [
                {"purpose": call.purpose.value, "firstTokenMs": call.first_token_ms, "totalMs": call.total_ms}
                for call in answer.calls
            ],
        }

    def _describe(self, index: IndexDefinition) -> dict[str, str]:
        """Name and hashes of an index definition; made once for each."""
        if index.name not in self._indices:
            ingest = index.fingerprint(embedding_model=self._vectors_name, dimension=self._dimension)
            self._indices[index.name] = {"name": index.name, "query": index.query_hash, "ingest": ingest}
        return self._indices[index.name]

    async def record(self, run: AnswerRun, answer: Answer) -> bool:
        """Store the record, and return whether it is. If the database fails now, the answer is still returned."""
        record, identity = self.make_record(run, answer), run.question.identity
        try:
            async with self._database.transaction(identity) as connection:
                await store_answer(connection, identity, answer_id=answer.id, record=record)
        except StoreError as error:
            log.error("answer_not_recorded", answer_id=str(answer.id), exc_info=error)
            return False
        return True

    async def recall(self, question: Question) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
        """Return the passages that the last two answers of the conversation cited, and those of remembered answers.

        Those of the newest answer first. What a client sends as an earlier answer is looked up by its text among one's
        own records, so that a forged one brings nothing. Passages that may not be read any more, that a newer version
        has replaced, or that lie outside the scope of the request, are left out. Nothing is recalled while the database
        fails.
        """
        said = {number: turn.content for number, (_, turn) in enumerate(_answers(question.turns), start=1)}
        places = {place: number for number, (place, _) in enumerate(_answers(question.turns), start=1)}
        last = sorted(said, reverse=True)[:_RECALLED]
        before = [places[place] for place in question.remembered if place in places and places[place] not in last]
        if not last or not _is_simple(question.filters):
            return (), ()
        try:
            async with self._database.transaction(question.identity) as connection:
                cited = await read_cited(connection, [said[number] for number in (*last, *before)])
                chunks = await read_passages(connection, [one for ids in cited.values() for one in ids])
        except StoreError as error:
            log.warning("earlier_passages_unknown", exc_info=error)
            return (), ()
        found: dict[str, Hit] = {}
        for number in (*last, *before):
            for chunk_id, content in cited.get(said[number], {}).items():
                chunk = chunks.get(chunk_id)
                is_current = chunk is not None and chunk.document.content_hash == content
                if chunk is not None and is_current and _is_within(question.filters, chunk.document):
                    found.setdefault(chunk_id, Hit(chunk=chunk, scores=Scores(relevance=0.0), from_turn=number))
        of_last, others = (
            [hit for hit in found.values() if (hit.from_turn in last) is is_last] for is_last in (True, False)
        )
        return tuple(of_last), tuple(others)


def _is_simple(filters: Filters) -> bool:
    """Whether a document says by itself if the filters leave it: they ask for no fields, types or conditions."""
    return not (filters.fields or filters.chunk_types or filters.territory or filters.where)


def _is_within(filters: Filters, document: DocumentRef) -> bool:
    allowed = (
        (filters.corpus_ids, document.corpus_id),
        (filters.document_ids, document.id),
        (filters.file_name and (filters.file_name,), document.file_name),
        (filters.source and (filters.source,), document.source),
    )
    return all(not wanted or given in wanted for wanted, given in allowed) and set(filters.tags) <= set(document.tags)


def _answers(turns: Sequence[Turn]) -> Iterator[tuple[int, Turn]]:
    """Yield the answers with their places."""
    return ((place, turn) for place, turn in enumerate(turns) if turn.role == "assistant")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that changed between two records."""

    what: str  # model, prompt, index, settings, chunks, answer, steps, verification
    detail: str  # for people


def compare_records(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """What changed between two records, causes first; ids, times and latencies are ignored."""
    differences: list[Difference] = []
    for part in ("model", "prompt", "index", "settings"):
        differences += _changed_keys(part, before.get(part, {}), after.get(part, {}))
    differences += _changed_chunks(before["chunks"], after["chunks"])
    if before["answer"] != after["answer"]:
        differences.append(Difference(what="answer", detail="the text differs"))
    if before.get("steps", []) != after.get("steps", []):
        differences.append(Difference(what="steps", detail="the model searched, read or computed something else"))
    for part in ("decision", "confidence"):
        if before[part] != after[part]:
            differences.append(Difference(what=part, detail=f"{before[part]} → {after[part]}"))
    differences += _changed_keys("verification", before["verification"], after["verification"])
    return differences


def recorded_question(record: Mapping[str, Any], identity: Identity) -> Question:
    """The recorded request, ready to be asked again."""
    request = record["request"]
    filters = request["filters"]
    agent_id, follow_up = request.get("agentId"), request.get("followUp")
    return Question(
        record["question"],
        identity=identity,
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
            where=_read_tree(filters.get("where")),
        ),
        prompt=request.get("prompt"),
        instructions=request.get("instructions", ""),
        history=request.get("history", ""),
        follow_up=None if follow_up is None else FollowUp(asked=follow_up["asked"], joined=follow_up["joined"]),
        personal_corpora=frozenset(UUID(value) for value in request.get("personalCorpora", ())),
        agent_id=None if agent_id is None else UUID(agent_id),
    )


def read_said(record: Mapping[str, Any]) -> tuple[Turn, ...]:
    """The conversation up to the answer of a record; empty if it was not recorded for going on."""
    said = tuple(Turn(role=turn["role"], content=turn["content"]) for turn in record["request"].get("said", ()))
    return (*said, Turn(role="assistant", content=record["answer"])) if said else ()


def _write_request(question: Question) -> dict[str, Any]:
    """What `recorded_question` reads."""
    filters = question.filters
    return {
        "topK": question.top_k,
        "threshold": question.threshold,
        "filters": {
            "corpusIds": list(map(str, filters.corpus_ids)),
            "documentIds": list(map(str, filters.document_ids)),
            "fileName": filters.file_name,
            "source": filters.source,
            "tags": list(filters.tags),
            "fields": dict(filters.fields),
            "chunkTypes": list(filters.chunk_types),
            "territory": filters.territory,
            "where": msgspec.to_builtins(filters.where),
        },
        "prompt": question.prompt,
        "instructions": question.instructions,
        "history": question.history,
        "followUp": None if question.follow_up is None else asdict(question.follow_up),
        "personalCorpora": sorted(map(str, question.personal_corpora)),
        "agentId": None if question.agent_id is None else str(question.agent_id),
        "said": [{"role": turn.role, "content": turn.content} for turn in question.said],
    }


def _read_tree(written: Mapping[str, Any] | None) -> FilterTree | None:
    """The inverse of what `_write_request` makes of a filter tree."""
    if written is None:
        return None
    if "combine" in written:
        parts = [part for item in written["parts"] if (part := _read_tree(item)) is not None]
        return ConditionGroup(combine=written["combine"], parts=tuple(parts))
    value = written["value"]
    return Condition(
        field=written["field"],
        operator=Operator(written["operator"]),
        value=tuple(value) if isinstance(value, list) else value,
    )


def _write_hit(hit: Hit, *, shown: bool) -> dict[str, Any]:
    scores = {key: None if value is None else round(value, _SCORE_DIGITS) for key, value in vars(hit.scores).items()}
    return {
        "chunkId": hit.chunk.id,
        "documentId": str(hit.chunk.document.id),
        "title": hit.chunk.document.title,
        "contentHash": hit.chunk.document.content_hash,
        "textSha256": _hash(hit.chunk.text),
        "shown": shown,
        "scores": scores,
    }


def _write_citation(citation: Citation) -> dict[str, Any]:
    return {
        "mark": citation.mark,
        "status": citation.status.value,
        "method": None if citation.method is None else citation.method.value,
        "reason": citation.reason,
        "missing": citation.missing,
        "against": None if citation.against is None else asdict(citation.against),
        "formula": citation.formula,
        "judge": citation.judge,
        "documentId": None if citation.document_id is None else str(citation.document_id),
        "contentHash": citation.content_hash,
        "chunkId": citation.chunk_id,
        "quote": citation.quote,
        "start": citation.start,
        "end": citation.end,
        "evidence": [{"quote": one.quote, "start": one.start, "end": one.end} for one in citation.evidence],
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
