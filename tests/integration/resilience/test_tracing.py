"""Spans of a request and the correlation id from request to worker; no text leaves by them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rag_service.observability import tracing
from rag_service.observability.tracing import configure_tracing, record_span, span
from tests.doubles.ollama import CHAT, ErrorLine, OllamaDouble, Say, chat
from tests.integration.resilience.conftest import QUESTION, Start, add_document
from tests.serving import wait_until

ANSWER, STREAM = "/api/v1/query/answer", "/api/v1/query/answer/stream"
STEPS = ["embed", "judge", "model", "prompt", "rerank", "search", "verify"]
GOOD = "The limit for travel is 300 euros a day [C1]."


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    kept = InMemorySpanExporter()
    end = configure_tracing(kept)
    yield kept
    end()


def spans_of(exporter: InMemorySpanExporter, client: httpx.Client, reply: httpx.Response) -> dict[str, ReadableSpan]:
    """The spans of one request by name; waits until they have been exported."""
    correlation_id = reply.headers["x-request-id"]
    wait_until(lambda: _flush() and _root(exporter, correlation_id))
    root = _root(exporter, correlation_id)
    assert root is not None and root.context is not None
    inside = [
        found
        for found in exporter.get_finished_spans()
        if found.parent is not None and found.parent.span_id == root.context.span_id
    ]
    return {found.name: found for found in (root, *inside)}


def _flush() -> bool:
    provider = getattr(tracing._tracer, "span_processor", None)
    return provider is None or bool(provider.force_flush())


def _root(exporter: InMemorySpanExporter, correlation_id: str) -> ReadableSpan | None:
    for found in exporter.get_finished_spans():
        if (found.attributes or {}).get("rag.correlation_id") == correlation_id:
            return found
    return None


@pytest.mark.parametrize("url", [ANSWER, STREAM])
def test_an_answer_is_one_request_with_all_its_steps(
    start: Start, ollama: OllamaDouble, exporter: InMemorySpanExporter, url: str
) -> None:
    ollama.answer = GOOD
    client = start()
    add_document(client)
    reply = client.post(url, json={"query": QUESTION}, headers={"X-Request-ID": "trace-me"})
    assert reply.status_code == 200
    found = spans_of(exporter, client, reply)
    assert sorted(found) == sorted([*STEPS, "request"])
    request = found["request"].attributes or {}
    assert request["http.route"] == url
    assert request["http.response.status_code"] == 200
    assert request["rag.correlation_id"] == "trace-me"
    model = dict(found["model"].attributes or {})
    assert model.pop("gen_ai.usage.input_tokens") > 0 and model.pop("gen_ai.usage.output_tokens") > 0
    assert model == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "ollama",
        "gen_ai.request.model": "llama3.2",
        "gen_ai.response.finish_reasons": ("stop",),
    }
    for step in STEPS:
        begun, ended = found[step].start_time, found[step].end_time
        assert begun is not None and ended is not None and begun <= ended


def test_a_caller_that_traces_sees_the_request_in_its_own_trace(start: Start, exporter: InMemorySpanExporter) -> None:
    client = start()
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    reply = client.get("/api/v1/corpora", headers={"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"})
    request = spans_of(exporter, client, reply)["request"]
    assert request.context is not None
    assert f"{request.context.trace_id:032x}" == trace_id


def test_no_text_leaves_by_a_span(start: Start, ollama: OllamaDouble, exporter: InMemorySpanExporter) -> None:
    question, document, said, wrong = (f"canary-{place}" for place in ("question", "document", "said", "wrong"))
    client = start(extractive_fallback=False)
    add_document(client, f"The limit for travel is 300 euros. {document}", "travel.txt")
    ollama.script(CHAT, chat(Say(f"{said} [C1].")), chat(ErrorLine(wrong)))
    for _ in range(2):
        reply = client.post(ANSWER, json={"query": f"What is the limit for travel, {question}?"})
    client.get(f"/nothing/{question}")
    found = spans_of(exporter, client, reply)
    assert (found["model"].attributes or {})["error.type"] == "ModelError"
    exported = "\n".join(finished.to_json() for finished in exporter.get_finished_spans())
    for canary in (question, document, said, wrong):
        assert canary not in exported


def test_it_is_off_without_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    configure_tracing()()
    assert tracing._tracer is None
    assert span("model") is span("search")  # nothing is made
    record_span("verify", 1.0)


def test_it_is_on_with_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    end = configure_tracing()
    assert tracing._tracer is not None
    end()
    assert tracing._tracer is None


@pytest.mark.slow
def test_a_job_logs_under_the_id_of_its_request(start: Start, logged: io.StringIO) -> None:
    client = start(worker_embedded=True)
    corpus = client.post("/api/v1/corpora", json={"name": "notes", "kind": "personal"}).json()
    reply = client.post(
        f"/api/v1/corpora/{corpus['id']}/documents",
        json={"text": "The gate opens at six.", "fileName": "gate.txt"},
        headers={"X-Request-ID": "upload-17"},
    )
    assert reply.status_code == 202

    def line() -> dict[str, str] | None:
        lines = [json.loads(text) for text in logged.getvalue().splitlines()]
        return next((found for found in lines if found["action"] == "upload_indexed"), None)

    wait_until(line)
    found = line()
    assert found is not None and found["correlation_id"] == "upload-17"
