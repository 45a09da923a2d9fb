"""Figures for Prometheus: requirement C11."""

from __future__ import annotations

import hmac

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from rag_service.api.services import Services, ServicesDependency
from rag_service.api.wire.bodies import AnyRequest
from rag_service.api.wire.documentation import problems
from rag_service.domain import Role
from rag_service.errors import PermissionDeniedError
from rag_service.metrics import CONTENT_TYPE, Metrics


def metrics_route(metrics: Metrics) -> HTTPRouteHandler:
    """`GET /metrics` over the application's figures."""

    @get(
        "/metrics",
        tags=["Health"],
        summary="Figures for Prometheus",
        description="Where RAG_AUTH is `required`: for administrators, and for the bearer of RAG_METRICS_TOKEN.",
        responses=problems(401, 403),
        media_type="text/plain",
    )
    async def read_metrics(request: AnyRequest, services: ServicesDependency) -> Response[bytes]:
        await _authorise(request, services)
        return Response(metrics.render(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})

    return read_metrics


async def _authorise(request: AnyRequest, services: Services) -> None:
    settings = services.settings
    if settings.auth == "none":
        return
    if settings.metrics_token is not None:
        expected = f"Bearer {settings.metrics_token.get_secret_value()}"
        given = request.headers.get("authorization", "")
        if hmac.compare_digest(given.encode(), expected.encode()):
            return
    identity = await services.authenticate(request.headers)
    if identity.role is not Role.ADMIN:
        raise PermissionDeniedError("Only administrators read the figures.")
