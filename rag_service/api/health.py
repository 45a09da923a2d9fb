"""Liveness and readiness."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

import structlog
from litestar import Controller, Response, get
from msgspec import UNSET, Meta, Struct, UnsetType

from rag_service.api.http.services import Probe, ServicesDependency
from rag_service.errors import RagError

log = structlog.get_logger(__name__)

_PROBE_SECONDS = 3.0


class AliveBody(Struct, frozen=True):
    status: str


class DependencyBody(Struct, kw_only=True, frozen=True, rename="camel"):
    state: Annotated[str, Meta(description="up, lagging (a read replica) or down.")]
    required: Annotated[bool, Meta(description="Whether the service needs it to work.")]
    without: Annotated[str, Meta(description="What does and does not work while it is down.")]
    latency_ms: float
    code: Annotated[str | None, Meta(description="Error code, if it is down.")] = None
    detail: Annotated[str | None, Meta(description="Lag, if any.")] = None


class RelevanceBody(Struct, kw_only=True, frozen=True, rename="camel"):
    model: Annotated[str, Meta(description="The embedding model.")]
    state: Annotated[
        str,
        Meta(
            description="packaged (calibrated in the index definitions), fitted, scaled (the fit is still running),"
            " unknown (not measured yet) or off."
        ),
    ]
    detail: str


class JudgeBody(Struct, kw_only=True, frozen=True, rename="camel"):
    name: str
    state: Annotated[
        str,
        Meta(
            description="passed (in use), failed (it said yes to false claims), silent (it says yes too seldom) or"
            " waiting (not examined yet). Only a judge that has passed is used."
        ),
    ]
    detail: Annotated[str, Meta(description="The figures of the examination.")]


class ReadyBody(Struct, kw_only=True, frozen=True, rename="camel"):
    status: Annotated[str, Meta(description="ready, degraded or unavailable.")]
    dependencies: dict[str, DependencyBody]
    relevance: Annotated[
        RelevanceBody | UnsetType, Meta(description="State of the relevance fit; does not affect `status`.")
    ] = UNSET
    judge: Annotated[JudgeBody | UnsetType, Meta(description="Examination of the judge; does not affect `status`.")] = (
        UNSET
    )


class HealthController(Controller):
    """For load balancers and operators."""

    path = "/health"
    tags = ["Health"]

    @get(summary="Check liveness")
    async def alive(self) -> AliveBody:
        """The process responds."""
        return AliveBody("alive")

    @get("/ready", summary="Check readiness")
    async def ready(self, services: ServicesDependency) -> Response[ReadyBody]:
        """The state of each dependency; 200 if the service is usable, otherwise 503."""
        names = list(services.probes)
        found = await asyncio.gather(*(_ask(name, services.probes[name]) for name in names))
        dependencies = dict(zip(names, found, strict=True))
        down = [
            dependency
            for name, dependency in dependencies.items()
            if dependency.state == "down" and services.probes[name].missed
        ]
        usable = not any(dependency.required for dependency in down)
        status = "unavailable" if not usable else "degraded" if down else "ready"
        relevance: RelevanceBody | UnsetType = UNSET
        if services.relevance is not None:
            known = services.relevance()
            relevance = RelevanceBody(model=known.model, state=known.state, detail=known.detail)
        judge: JudgeBody | UnsetType = UNSET
        if (examined := services.judge()) is not None:
            judge = JudgeBody(name=examined.name, state=examined.state, detail=examined.detail)
        body = ReadyBody(status=status, dependencies=dependencies, relevance=relevance, judge=judge)
        return Response(body, status_code=200 if usable else 503, headers={"Cache-Control": "no-store"})


async def _ask(name: str, probe: Probe) -> DependencyBody:
    started = time.perf_counter()
    code = detail = None
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            detail = await probe.check()
    except Exception as error:
        code = error.code if isinstance(error, RagError) else "timeout" if isinstance(error, TimeoutError) else "failed"
        log.warning("dependency_down", dependency=name, code=code, exc_info=error)
    return DependencyBody(
        state="down" if code is not None else "up" if detail is None else "lagging",
        required=probe.required,
        without=probe.without,
        latency_ms=round((time.perf_counter() - started) * 1000, 1),
        code=code,
        detail=detail,
    )
