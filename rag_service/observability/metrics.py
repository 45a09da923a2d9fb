"""Prometheus metrics: what the service counts and times.

One `Metrics` belongs to one application; nothing is registered globally. Its methods take plain
values, so that whoever calls them stays testable without it. Labels never hold a question, a
document, a user or a key; their values come from closed sets.

The names are an interface that dashboards depend on. `DOCUMENTED` becomes docs/reference/metrics.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from rag_service.domain import Answer, Decision, Hit, ModelCall

CONTENT_TYPE = CONTENT_TYPE_LATEST

Channel = Literal["search", "answer", "chat", "openai", "mcp"]  # by which a question came in

# Seconds. Search is promised below 0.05, the first token below 1.5, an answer below 4.
_SEARCH = (0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2, 5)
_MODEL = (0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 10, 20, 40, 80, 180)
_EMBEDDING = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_REQUEST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180)
_RELEVANCE = tuple(tenth / 10 for tenth in range(1, 11))
_DEGRADED = "degraded_"  # before a part that a retrieval did without, among its timings
_LAG_SECONDS = 0.25  # between two looks at the event loop
_LAG = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_TOKENS = (100, 250, 500, 1000, 1500, 2000, 2500, 3000, 4000, 8000, 16_000)

DOCUMENTED: Mapping[str, str] = {
    "rag_requests_total": "Requests by `method`, `route` (its template) and `status`.",
    "rag_request_seconds": "Duration of requests by `route`; for streams, until their end.",
    "rag_errors_total": "Problems reported to callers, by `code`.",
    "rag_retrieval_seconds": "Duration of a retrieval, including the embedding of the question.",
    "rag_search_seconds": "Steps of a retrieval by `step`: scope, lexical (and nearest), embedding (awaited), dense,"
    " read.",
    "rag_embedding_seconds": "Duration of calls to the embedding model, by `role`: query or passage.",
    "rag_embedded_texts_total": "Texts embedded, by `role`.",
    "rag_embedding_cache_total": "Look-ups in the embedding caches, by `role` and `outcome`: hit or miss.",
    "rag_chunk_relevance": "Calibrated relevance of the passages returned, 0 to 1.",
    "rag_questions_total": "Questions by `channel` (search, answer, chat, openai, mcp) and `relevant`: whether any"
    " passage was.",
    "rag_answers_total": "Complete answers by `decision` and `rag_used`: whether passages were shown to the model.",
    "rag_context_tokens": "Tokens in the passages shown to the model.",
    "rag_tokens_total": "Tokens used by the chat model, by `kind`: prompt or completion.",
    "rag_model_call_seconds": "Duration of calls of chat models, by `purpose`: rewrite, rerank, answer, judge, advisor,"
    " task, check.",
    "rag_first_token_seconds": "Time from the question to the first token of the answer, if the model was called.",
    "rag_answer_seconds": "Time from the question to the complete answer.",
    "rag_answers_left_total": "Answers whose client disconnected before the end.",
    "rag_citations_total": "Citations by `status`: verified, unchecked, contradicted, misattributed, not_found.",
    "rag_judge_seconds": "Duration of calls to the citation judge.",
    "rag_judged_claims_total": "Sentences sent to the judge, by `verdict`: supported, unsupported, none (it failed or"
    " was too slow).",
    "rag_unmarked_sentences_total": "Answer sentences without a citation.",
    "rag_feedback_total": "Feedback on answers, by `thumbs`: up or down.",
    "rag_degraded_total": "Retrievals and answers that had to do without a failed `part`: dense or model.",
    "rag_replica_searches_total": "Searches with a read replica configured, by `outcome`: replica, or why the primary"
    " was used: behind, failed, down.",
    "rag_circuit_open": "1 while calls to a `provider` are paused after failures, else 0.",
    "rag_model_waiting": "Requests currently waiting for the chat model.",
    "rag_turns_running": "Work that runs now, by `kind` of the queue that it passed: requests, database, model,"
    " quoting, search, ingest, check, embeddings, original, transfer, import_body, ingestion, parsing,"
    " text_recognition, tables, embedding, threads, sign_in.",
    "rag_turns_waiting": "Work that waits for its turn, by `kind`.",
    "rag_turns_refused_total": "Requests refused because a queue was full or its user had too many in it, by `kind`.",
    "rag_connections": "Open connections.",
    "rag_connections_ended_total": "Connections that the service closed or did not take, by `reason`: late (no request"
    " in time), idle (its place went to another), refused.",
    "rag_event_loop_lag": "Seconds that the event loop was late, four times a second.",
}


class Queue(Protocol):
    """A queue of turns, see `rag_service.turns`."""

    kind: str
    refused: int

    @property
    def running(self) -> int: ...

    @property
    def waiting(self) -> int: ...


class OpenConnections(Protocol):
    """The connections of a server, see `rag_service.api.http.connections`."""

    @property
    def ended(self) -> Mapping[str, int]: ...

    @property
    def count(self) -> int: ...


def _read_count(counts: Mapping[str, int], name: str) -> float:
    return float(counts.get(name, 0))


def _read_figure(queue: Queue, name: str) -> float:
    return float(getattr(queue, name))


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = self._counter("rag_requests_total", "method", "route", "status")
        self._request_seconds = self._histogram("rag_request_seconds", _REQUEST, "route")
        self._errors = self._counter("rag_errors_total", "code")
        self._retrieval_seconds = self._histogram("rag_retrieval_seconds", _SEARCH)
        self._search_seconds = self._histogram("rag_search_seconds", _SEARCH, "step")
        self._embedding_seconds = self._histogram("rag_embedding_seconds", _EMBEDDING, "role")
        self._embedded = self._counter("rag_embedded_texts_total", "role")
        self._cache = self._counter("rag_embedding_cache_total", "role", "outcome")
        self._relevance = self._histogram("rag_chunk_relevance", _RELEVANCE)
        self._questions = self._counter("rag_questions_total", "channel", "relevant")
        self._answers = self._counter("rag_answers_total", "decision", "rag_used")
        self._context_tokens = self._histogram("rag_context_tokens", _TOKENS)
        self._tokens = self._counter("rag_tokens_total", "kind")
        self._model_calls = self._histogram("rag_model_call_seconds", _MODEL, "purpose")
        self._first_token = self._histogram("rag_first_token_seconds", _MODEL)
        self._answer_seconds = self._histogram("rag_answer_seconds", _MODEL)
        self._left = self._counter("rag_answers_left_total")
        self._citations = self._counter("rag_citations_total", "status")
        self._judge_seconds = self._histogram("rag_judge_seconds", _MODEL)
        self._judged = self._counter("rag_judged_claims_total", "verdict")
        self._unmarked = self._counter("rag_unmarked_sentences_total")
        self._feedback = self._counter("rag_feedback_total", "thumbs")
        self._degraded = self._counter("rag_degraded_total", "part")
        self._replica_searches = self._counter("rag_replica_searches_total", "outcome")
        self._circuits = self._gauge("rag_circuit_open", "provider")
        self._waiting = self._gauge("rag_model_waiting")
        self._turns = {
            figure: self._gauge(f"rag_turns_{figure}", "kind") for figure in ("running", "waiting", "refused_total")
        }
        self._connections = self._gauge("rag_connections")
        self._connections_ended = self._gauge("rag_connections_ended_total", "reason")
        self._loop_lag = self._histogram("rag_event_loop_lag", _LAG)

    def _counter(self, name: str, *labels: str) -> Counter:
        return Counter(name, DOCUMENTED[name], labels, registry=self.registry)

    def _gauge(self, name: str, *labels: str) -> Gauge:
        return Gauge(name, DOCUMENTED[name], labels, registry=self.registry)

    def _histogram(self, name: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, DOCUMENTED[name], labels, buckets=buckets, registry=self.registry)

    def render(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)

    # -- requests

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def error(self, code: str) -> None:
        self._errors.labels(code).inc()

    # -- retrieval

    def retrieval(self, channel: Channel, hits: tuple[Hit, ...], timings_ms: Mapping[str, float]) -> None:
        """A retrieval that came to its end; `hits`: the passages it gave. No timings: nothing was searched."""
        self._questions.labels(channel, str(bool(hits)).lower()).inc()
        for hit in hits:
            self._relevance.observe(hit.scores.relevance)
        for step, milliseconds in timings_ms.items():
            if step.startswith(_DEGRADED):
                self._degraded.labels(step.removeprefix(_DEGRADED)).inc()
            else:
                self._search_seconds.labels(step).observe(milliseconds / 1000)
        if timings_ms:
            self._retrieval_seconds.observe(sum(timings_ms.values()) / 1000)

    def replica_search(self, outcome: Literal["replica", "behind", "failed", "down"]) -> None:
        """A search where there is a read replica."""
        self._replica_searches.labels(outcome).inc()

    def embedding(self, role: Literal["query", "passage"], count: int, seconds: float) -> None:
        """A call to the embedding model for `count` texts."""
        self._embedding_seconds.labels(role).observe(seconds)
        self._embedded.labels(role).inc(count)

    def cache(self, role: Literal["query", "passage"], hits: int, misses: int) -> None:
        """Texts looked up in an embedding cache."""
        self._cache.labels(role, "hit").inc(hits)
        self._cache.labels(role, "miss").inc(misses)

    # -- answers

    def model_call(self, call: ModelCall) -> None:
        """A call of a chat model that is over."""
        self._model_calls.labels(call.purpose.value).observe(call.total_ms / 1000)

    def first_token(self, seconds: float) -> None:
        self._first_token.observe(seconds)

    def answer(self, answer: Answer) -> None:
        """A complete answer."""
        used = answer.decision is not Decision.OUT_OF_SCOPE and bool(answer.shown)
        self._answers.labels(answer.decision.value, str(used).lower()).inc()
        self._answer_seconds.observe(answer.latency_ms / 1000)
        if answer.model_error is not None:
            self._degraded.labels("model").inc()
        if answer.shown:
            self._context_tokens.observe(answer.context_tokens)
        self._tokens.labels("prompt").inc(answer.tokens.prompt)
        self._tokens.labels("completion").inc(answer.tokens.completion)
        for citation in answer.citations:
            self._citations.labels(citation.status.value).inc()
        self._unmarked.inc(answer.unmarked_sentences)

    def judged(self, *, supported: int, unsupported: int, unjudged: int, seconds: float) -> None:
        """A call to the judge."""
        self._judge_seconds.observe(seconds)
        for verdict, count in (("supported", supported), ("unsupported", unsupported), ("none", unjudged)):
            self._judged.labels(verdict).inc(count)

    def answer_left(self) -> None:
        """The reader of an answer left before its end."""
        self._left.inc()

    def feedback(self, thumbs: str) -> None:
        self._feedback.labels(thumbs).inc()

    # -- state, read when the figures are fetched

    def watch_circuit(self, provider: str, is_open: Callable[[], bool]) -> None:
        self._circuits.labels(provider).set_function(lambda: float(is_open()))

    def watch_turns(self, *queues: Queue) -> None:
        """Show who runs, waits and was refused."""
        for queue in queues:
            for figure, gauge in self._turns.items():
                name = figure.removesuffix("_total")
                gauge.labels(queue.kind).set_function(partial(_read_figure, queue, name))

    def watch_connections(self, connections: OpenConnections) -> None:
        """Show how many are open, and how many were ended."""
        self._connections.set_function(lambda: float(connections.count))
        for reason in ("late", "idle", "refused"):
            self._connections_ended.labels(reason).set_function(partial(_read_count, connections.ended, reason))

    async def watch_loop(self) -> None:
        """Measure how late the event loop is, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_SECONDS
            await asyncio.sleep(_LAG_SECONDS)
            self._loop_lag.observe(max(0.0, loop.time() - due))

    def watch_waiting(self, waiting: Callable[[], int]) -> None:
        self._waiting.set_function(lambda: float(waiting()))
