"""Answers over a real socket: plain, as server-sent events and as NDJSON, all from the same events."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from rag_service.answering.drafts.events import AnswerComplete, AnswerDelta, SourcesFound
from rag_service.domain import Confidence, Decision
from rag_service.errors import ModelError, StoreError
from tests.integration.api.conftest import Serve, read_ndjson, read_sse
from tests.serving import leave_when, wait_until
from tests.unit.api.samples import ADMIN, ANSWER, DOCUMENT, EVENTS, PLACE_BODY, QUESTION, Pause, Script

ANSWER_URL, STREAM_URL = "/api/v1/query/answer", "/api/v1/query/answer/stream"
NDJSON = {"Accept": "application/x-ndjson"}
SSE = {"Accept": "text/event-stream"}
MODES = [pytest.param(SSE, read_sse, id="sse"), pytest.param(NDJSON, read_ndjson, id="ndjson")]
EXPECTED = ["sources", "delta", "delta", "citation", "citation", "final", "done"]
VERDICT = {
    "answerId": str(ANSWER.id),
    "answer": ANSWER.text,
    "language": "es",
    "decision": "can_proceed",
    "reasons": [],
    "confidence": 0.93,
    "confidenceParts": {"meanRelevance": 0.91, "meanRerank": 0.95, "criticalBoost": False},
}
PLACE = "production.xlsx, sheet Stocks, cell C12"
SOURCES = {
    "sources": [
        {
            "documentId": str(DOCUMENT.id),
            "title": "Production",
            "chunkIndex": 3,
            "score": 0.91,
            "source": "ERP",
            "tags": ["stock", "lyon"],
            "chunkId": "chunk-1",
            "fileName": "production.xlsx",
            "location": PLACE_BODY,
            "place": PLACE,
            "language": None,
        }
    ],
    "contextUsed": [
        {
            "mark": 1,
            "documentId": str(DOCUMENT.id),
            "chunkIndex": 3,
            "snippet": "Lyon: 4200 unités",
            "fromTurn": None,
        }
    ],
}
VERIFIED = {
    "mark": 1,
    "status": "verified",
    "method": None,
    "reason": None,
    "formula": None,
    "judge": None,
    "quote": "4200 unités",
    "documentId": str(DOCUMENT.id),
    "title": "Production",
    "contentHash": DOCUMENT.content_hash,
    "chunkId": "chunk-1",
    "start": 106,
    "end": 117,
    "location": PLACE_BODY,
    "place": PLACE,
    "support": 0.9,
    "sentenceStart": 0,
    "sentenceEnd": 27,
    "evidence": [{"quote": "4200 unités", "start": 106, "end": 117, "location": PLACE_BODY, "place": PLACE}],
    "missing": None,
    "against": None,
}
NOT_FOUND = {
    **dict.fromkeys(VERIFIED),
    "mark": 7,
    "status": "not_found",
    "support": 0.0,
    "sentenceStart": 0,
    "sentenceEnd": 27,
    "evidence": [],
}
CITATIONS = {"citations": [VERIFIED, NOT_FOUND]}
COSTS = {
    "model": "extractive",
    "latencyMs": 12.3,
    "timings": {"retrievalMs": 3.0, "modelCalls": [{"purpose": "answer", "firstTokenMs": 4.5, "totalMs": 8.0}]},
    "promptTokens": 210,
    "completionTokens": 12,
    "finishReason": "stop",
}
UNREMARKABLE = {  # what only other answers have
    "unmarkedSentences": 0,
    "withheldSentences": 0,
    "flagged": [],
    "guardrails": {"passed": True, "violations": [], "checks": []},
    "steps": [],
    "modelError": None,
    "answersQuestion": None,
    "incomplete": False,
    "searchedFor": None,
    "related": [],
    "followUps": [],
    "kind": "answer",
    "places": [],
    "recorded": True,
    "data": None,
    "values": [],
}
PARTS = {"verdict": VERDICT, "sources": SOURCES, "citations": CITATIONS, "costs": COSTS, "unremarkable": UNREMARKABLE}


def stream(client: httpx.Client, accept: dict[str, str], parse: Any, url: str = STREAM_URL) -> list[tuple[str, Any]]:
    with client.stream("POST", url, json={"query": QUESTION}, headers=accept) as response:
        assert response.status_code == 200
        return list(parse(response.iter_lines()))


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_plain_answer_has_each_part_as_documented(serve: Serve, part: dict[str, Any]) -> None:
    body = serve().post(ANSWER_URL, json={"query": QUESTION}).json()
    assert {name: body.get(name) for name in part} == part


def test_plain_answer_has_no_other_parts(serve: Serve) -> None:
    body = serve().post(ANSWER_URL, json={"query": QUESTION}).json()
    assert body.keys() == {name for part in PARTS.values() for name in part}


def test_request_reaches_the_engine_with_its_filters_and_the_caller(serve: Serve) -> None:
    script = Script()
    request = {
        "query": f"  {QUESTION} ",
        "topK": 3,
        "similarityThreshold": 0,
        "source": "ERP",
        "tags": ["stock"],
        "fileName": "production.xlsx",
        "documentIds": [str(DOCUMENT.id)],
        "corpusIds": [str(DOCUMENT.corpus_id)],
        "fields": {"plant": "Lyon"},
        "stream": False,
    }
    assert serve(script).post(ANSWER_URL, json=request).status_code == 200
    query = script.queries[0]
    assert (query.text, query.top_k, query.threshold) == (QUESTION, 3, 0)
    assert (query.filters.source, query.filters.tags, query.filters.file_name) == ("ERP", ("stock",), "production.xlsx")
    assert (query.filters.document_ids, query.filters.corpus_ids) == ((DOCUMENT.id,), (DOCUMENT.corpus_id,))
    assert query.filters.fields == {"plant": "Lyon"}
    assert script.identities == [ADMIN]


def test_settings_fill_in_what_the_request_leaves_out(serve: Serve) -> None:
    script = Script()
    serve(script, topk_default=4, similarity_threshold=0.25).post(ANSWER_URL, json={"query": QUESTION})
    # The threshold stays open: an index definition may have its own, which the engine knows.
    assert (script.queries[0].top_k, script.queries[0].threshold) == (4, None)


@pytest.mark.parametrize(("accept", "parse"), MODES)
def test_stream_carries_the_events_in_order_and_the_same_final_as_the_plain_reply(
    serve: Serve, accept: dict[str, str], parse: Any
) -> None:
    client = serve()
    plain = client.post(ANSWER_URL, json={"query": QUESTION}).json()
    events = stream(client, accept, parse)
    assert [name for name, _ in events] == EXPECTED
    by_name = dict(events)
    assert by_name["final"] == plain
    assert by_name["sources"] == {"sources": plain["sources"], "contextUsed": plain["contextUsed"]}
    assert [data for name, data in events if name == "citation"] == plain["citations"]
    assert by_name["done"] == {"answerId": plain["answerId"]}
    assert "".join(data["text"] for name, data in events if name == "delta") == "Hay 4200 unidades [C1] [C7].\n"


def test_stream_true_streams_from_the_plain_address(serve: Serve) -> None:
    with serve().stream("POST", ANSWER_URL, json={"query": QUESTION, "stream": True}) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-accel-buffering"] == "no"
        assert "content-length" not in response.headers
        assert [name for name, _ in read_sse(response.iter_lines())] == EXPECTED


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/x-ndjson", "application/x-ndjson"),
        ("text/event-stream;q=0.5, application/x-ndjson", "application/x-ndjson"),
        ("*/*", "text/event-stream; charset=utf-8"),
        ("application/json", "text/event-stream; charset=utf-8"),
        ("nonsense", "text/event-stream; charset=utf-8"),
        ("a/b;q=x, ;;, */*;q=", "text/event-stream; charset=utf-8"),
        ("", "text/event-stream; charset=utf-8"),
    ],
)
def test_accept_chooses_the_format(serve: Serve, accept: str, expected: str) -> None:
    response = serve().post(STREAM_URL, json={"query": QUESTION}, headers={"Accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (200, expected)


def test_sources_arrive_before_the_answer_is_made(serve: Serve) -> None:
    client = serve(Script(events=(EVENTS[0], Pause(3), *EVENTS[1:])))
    with client.stream("POST", STREAM_URL, json={"query": QUESTION}) as response:
        name, _ = next(read_sse(response.iter_lines()))
    assert name == "sources"


@pytest.mark.parametrize(
    ("accept", "parse", "beat"),
    [pytest.param(SSE, read_sse, ("comment", "keep-alive"), id="sse"),
     pytest.param(NDJSON, read_ndjson, ("heartbeat", None), id="ndjson")],
)  # fmt: skip
@pytest.mark.parametrize("silent_at", [0, 2], ids=["before the first event", "midway"])
def test_silence_is_filled_with_heartbeats(
    serve: Serve, accept: dict[str, str], parse: Any, beat: tuple[str, Any], silent_at: int
) -> None:
    script = Script(events=(*EVENTS[:silent_at], Pause(1.0), *EVENTS[silent_at:]))
    began = time.monotonic()
    events = stream(serve(script, heartbeat_seconds=0.05), accept, parse)
    assert 2 <= events.count(beat) <= (time.monotonic() - began) / 0.05
    assert [event[0] for event in events if event != beat] == EXPECTED


@pytest.mark.parametrize(("accept", "parse"), MODES)
def test_failure_midway_ends_the_stream_with_an_error_event(serve: Serve, accept: dict[str, str], parse: Any) -> None:
    script = Script(events=(*EVENTS[:2], ModelError("http://ollama:11434 said no", retry_after=7)))
    events = stream(serve(script), accept, parse)
    assert [name for name, _ in events] == ["sources", "delta", "error"]
    problem = events[-1][1]
    assert (problem["status"], problem["code"], problem["retryAfter"]) == (500, "llm_unavailable", 7)
    assert "ollama" not in str(problem)
    assert script.closed == 1


def test_failure_midway_is_a_problem_in_the_plain_reply(serve: Serve) -> None:
    script = Script(events=(*EVENTS[:2], ModelError("http://ollama:11434 said no", retry_after=7)))
    response = serve(script).post(ANSWER_URL, json={"query": QUESTION})
    assert (response.status_code, response.json()["code"]) == (500, "llm_unavailable")
    assert response.headers["retry-after"] == "7"


@pytest.mark.parametrize("url", [ANSWER_URL, STREAM_URL])
@pytest.mark.parametrize("accept", [SSE, NDJSON], ids=["sse", "ndjson"])
def test_failure_before_any_event_is_a_proper_problem_in_every_mode(
    serve: Serve, url: str, accept: dict[str, str]
) -> None:
    script = Script(events=(StoreError("10.0.0.3 refused", retry_after=5),))
    response = serve(script).post(url, json={"query": QUESTION}, headers=accept)
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["retry-after"] == "5"
    assert response.json()["code"] == "store_unavailable"
    assert script.closed == 1


@pytest.mark.parametrize(("url", "status"), [(ANSWER_URL, 500), (STREAM_URL, 200)])
def test_engine_without_an_answer_is_an_internal_error(serve: Serve, url: str, status: int) -> None:
    response = serve(Script(events=EVENTS[:3])).post(url, json={"query": QUESTION})
    assert response.status_code == status
    assert '"internal_error"' in response.text
    assert "event: done" not in response.text


@pytest.mark.parametrize(("accept", "parse"), MODES)
def test_disconnect_closes_the_engine_while_it_streams(serve: Serve, accept: dict[str, str], parse: Any) -> None:
    script = Script(endless=True)
    client = serve(script)
    with client.stream("POST", STREAM_URL, json={"query": QUESTION}, headers=accept) as response:
        lines = parse(response.iter_lines())
        assert next(lines)[0] == "sources"
        assert script.closed == 0
    wait_until(lambda: script.closed == 1)


@pytest.mark.parametrize(("accept", "parse"), MODES)
def test_disconnect_closes_the_engine_while_it_is_silent(serve: Serve, accept: dict[str, str], parse: Any) -> None:
    script = Script(events=(EVENTS[0], Pause(300)))
    client = serve(script)
    with client.stream("POST", STREAM_URL, json={"query": QUESTION}, headers=accept) as response:
        assert next(parse(response.iter_lines()))[0] == "sources"
    wait_until(lambda: script.closed == 1)


def test_disconnect_closes_the_engine_of_a_reader_that_does_not_read(serve: Serve) -> None:
    big = AnswerDelta(text="x" * 100_000)
    script = Script(events=(EVENTS[0], *[big] * 1000, Pause(300)))
    client = serve(script)
    with client.stream("POST", STREAM_URL, json={"query": QUESTION}):
        wait_until(lambda: script.queries)
    wait_until(lambda: script.closed)
    assert script.closed == 1


@pytest.mark.parametrize("url", [ANSWER_URL, STREAM_URL], ids=["plain", "stream"])
def test_disconnect_before_the_reply_closes_the_engine(serve: Serve, url: str) -> None:
    script = Script(events=(Pause(300),))
    leave_when(lambda: script.queries, serve(script), url, QUESTION)
    wait_until(lambda: script.closed)
    assert script.closed == 1


def test_disconnect_cancels_a_search(serve: Serve) -> None:
    script = Script(search_pause=300)
    leave_when(lambda: script.queries, serve(script), "/api/v1/query", QUESTION)
    assert wait_until(lambda: script.search_cancelled) < script.search_pause


def test_disconnect_is_no_error_in_the_log(serve: Serve, log_lines: Any) -> None:
    script = Script(events=(EVENTS[0], Pause(300)))
    client = serve(script)
    with client.stream("POST", STREAM_URL, json={"query": QUESTION}) as response:
        next(read_sse(response.iter_lines()))
    wait_until(lambda: [line for line in log_lines() if line["action"] == "http_request"])
    assert "client_gone" in [line["action"] for line in log_lines()]
    assert not [line for line in log_lines() if line["level"] in {"error", "warning"}]


def test_generator_is_closed_after_a_complete_reply(serve: Serve) -> None:
    script = Script()
    client = serve(script)
    client.post(ANSWER_URL, json={"query": QUESTION})
    client.post(STREAM_URL, json={"query": QUESTION})
    wait_until(lambda: script.closed >= 2)  # a moment after the reply
    assert script.closed == 2


@pytest.mark.parametrize(("url", "body"), [(STREAM_URL, {}), (ANSWER_URL, {"stream": True})])
def test_streaming_can_be_turned_off(serve: Serve, url: str, body: dict[str, Any]) -> None:
    script = Script()
    client = serve(script, stream_enabled=False)
    response = client.post(url, json={"query": QUESTION, **body})
    assert (response.status_code, response.json()["code"]) == (400, "streaming_disabled")
    assert client.post(ANSWER_URL, json={"query": QUESTION}).status_code == 200
    assert len(script.queries) == 1


def test_nothing_relevant_is_an_answer(serve: Serve) -> None:
    refusal = replace(
        ANSWER,
        text="No lo sé.",
        sources=(),
        shown=(),
        citations=(),
        decision=Decision.OUT_OF_SCOPE,
        related=ANSWER.sources[:1],
        confidence=Confidence(value=0.0, mean_relevance=0.0, mean_rerank=None, critical_boost=False),
    )
    events = (
        SourcesFound(sources=(), shown=(), timings_ms={}),
        AnswerDelta(text="No lo sé."),
        AnswerComplete(answer=refusal),
    )
    body = serve(Script(events=events)).post(ANSWER_URL, json={"query": QUESTION}).json()
    assert (body["sources"], body["decision"], body["confidence"]) == ([], "out_of_scope", 0.0)
    near = ANSWER.sources[0].chunk
    assert [(one["chunkId"], one["fileName"]) for one in body["related"]] == [(near.id, near.document.file_name)]
    assert body["related"][0]["text"] == near.text
