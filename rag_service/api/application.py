"""Routes, handlers and what surrounds them, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from litestar import Litestar
from litestar.di import Provide
from litestar.types import ASGIApp, ControllerRouterHandler, Scope

from rag_service.api.context import RequestContext
from rag_service.api.health import HealthController
from rag_service.api.http.bodies import BODY_LIMIT
from rag_service.api.http.check import CheckController
from rag_service.api.http.documentation import ELSEWHERE, openapi_config, redirect_to_schema
from rag_service.api.http.ids_only import IdsOnly
from rag_service.api.http.problems import ClientGoneError, describe, handle_client_gone, handle_error
from rag_service.api.http.services import from_state
from rag_service.api.ingest import ingest_router
from rag_service.api.query import QueryController
from rag_service.errors import ConfigurationError
from rag_service.observability.metrics import Metrics
from rag_service.settings import Settings


def create_litestar(
    settings: Settings,
    *,
    more_routes: Sequence[ControllerRouterHandler] = (),
    lifespan: Sequence[Callable[[Litestar], AbstractAsyncContextManager[None]]] = (),
    surround: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    metrics: Metrics | None = None,
) -> Litestar:
    """The web application; its routes use `state.services`, a `Services`, which must be set before the first request.

    Args:
        more_routes: handlers of other layers, such as the pages.
        lifespan: entered at start, left at shutdown.
        surround: wraps the routes, inside what gives every request its id, log line and headers.
        metrics: counts all requests, and the errors of the handlers.
    """
    from rag_service.api.http.access import identify  # loads the database driver

    async def count_error(error: Exception, _: Scope) -> None:
        if metrics is not None and not isinstance(error, ClientGoneError):
            metrics.error(describe(error).code)

    application = Litestar(
        route_handlers=[
            QueryController,
            CheckController,
            HealthController,
            ingest_router(settings),
            redirect_to_schema,
            *more_routes,
        ],
        dependencies={"services": from_state("services"), "identity": Provide(identify)},
        after_exception=[count_error],
        exception_handlers={Exception: handle_error, ClientGoneError: handle_client_gone},
        request_max_body_size=BODY_LIMIT,
        openapi_config=openapi_config(),
        lifespan=list(lifespan),
        logging_config=None,  # Litestar's own would take over the root logger
        debug=False,
    )
    application.state.metrics = metrics
    _check_root_path(settings.root_path, application)
    application.asgi_handler = RequestContext(surround(IdsOnly(application.asgi_handler)), settings, metrics)
    return application


def metrics_of(application: Any) -> Metrics | None:
    """The metrics of an ASGI application, if it is one of ours and counts."""
    state = getattr(application, "state", None)
    found: Metrics | None = None if state is None else state.get("metrics")
    return found


def _check_root_path(root: str, application: Litestar) -> None:
    """Raise ConfigurationError for a root path that is also an address of our own: it could not be told whether a proxy
    has stripped it."""
    if not root:
        return
    paths = [route.path for route in application.routes if route.path not in ELSEWHERE]
    own = next((path for path in paths if f"{path}/".startswith(f"{root}/")), None)
    if own is not None:
        raise ConfigurationError(
            f"The path {root} cannot be told from the service's own address {own}: choose another one.",
            field="RAG_ROOT_PATH",
        )
