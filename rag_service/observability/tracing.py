"""Traces (OpenTelemetry): where the time of a request goes, under the correlation id of its log lines.

One span a request, and below it `embed`, `search`, `rerank`, `prompt`, `model` and `verify`. Spans hold
no text: neither questions nor documents nor messages of errors, which may repeat them.

Off unless the extra `telemetry` is installed and OTEL_EXPORTER_OTLP_ENDPOINT is set; a span then costs one comparison.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

log = structlog.get_logger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_Describe = Callable[..., None]  # sets attributes
_tracer: Tracer | None = None  # of the process, like its logging


def configure_tracing(exporter: SpanExporter | None = None) -> Callable[[], None]:
    """Export the traces of this process, by OTLP if an endpoint is set; returns a function that flushes and stops."""
    global _tracer
    if exporter is None and not any(os.environ.get(name) for name in _ENDPOINTS):
        return lambda: None
    try:
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter()
    except ImportError:
        log.warning("tracing_not_installed", fix="pip install 'rag-service[telemetry]'")
        return lambda: None
    name = os.environ.get("OTEL_SERVICE_NAME", "rag-service")
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _tracer = provider.get_tracer("rag_service")

    def end() -> None:
        global _tracer
        _tracer = None
        provider.shutdown()

    return end


def span(name: str, **attributes: str | int | float) -> AbstractContextManager[_Describe]:
    """A step of the request that runs; gives what sets more attributes, of which those that are None are left out.

    Not the parent of steps inside: a generator may hold it open.
    """
    tracer = _tracer
    return _NOTHING if tracer is None else _Step(tracer, name, attributes)


def record_span(name: str, seconds: float) -> None:
    """A step that was done in pieces: one span that ends now and is as long as they were together."""
    tracer = _tracer
    if tracer is not None:
        now = time.time_ns()
        tracer.start_span(name, start_time=now - int(seconds * 1e9)).end(now)


class _Step:
    def __init__(self, tracer: Tracer, name: str, attributes: Mapping[str, str | int | float]):
        self._tracer = tracer
        self._name = name
        self._attributes = attributes

    def __enter__(self) -> _Describe:
        self._span = self._tracer.start_span(self._name, attributes=dict(self._attributes))
        return self._describe

    def _describe(self, **attributes: Any) -> None:
        self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _end(self._span, error)


@contextmanager
def request_span(method: str, headers: Mapping[str, str], correlation_id: str) -> Iterator[Callable[..., None]]:
    """The span of a request, of which all steps are part; yields what sets attributes of it.

    A caller that traces names its own span in `traceparent` (https://www.w3.org/TR/trace-context/).
    """
    tracer = _tracer
    if tracer is None:
        yield _ignore
        return
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
    parent = TraceContextTextMapPropagator().extract(carrier)
    begun = tracer.start_span(
        "request",
        context=parent,
        kind=trace.SpanKind.SERVER,
        attributes={"http.request.method": method, "rag.correlation_id": correlation_id},
    )
    token = context.attach(trace.set_span_in_context(begun, parent))
    failed: BaseException | None = None
    try:
        # OpenTelemetry's names have dots: http__route → http.route.
        yield lambda **attributes: begun.set_attributes({n.replace("__", "."): v for n, v in attributes.items()})
    except BaseException as error:
        failed = error
        raise
    finally:
        context.detach(token)
        _end(begun, failed)


def _ignore(**_: Any) -> None:
    """Nothing is traced."""


_NOTHING: AbstractContextManager[_Describe] = nullcontext(_ignore)


def _end(begun: Span, error: BaseException | None) -> None:
    if error is not None and not isinstance(error, asyncio.CancelledError | GeneratorExit):
        from opentelemetry.trace import StatusCode

        begun.set_attribute("error.type", type(error).__name__)
        begun.set_status(StatusCode.ERROR)
    begun.end()
