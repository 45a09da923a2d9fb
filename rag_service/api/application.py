"""Routes, handlers and what surrounds them, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from litestar import Litestar
from litestar.di import Provide
from litestar.types import ASGIApp, ControllerRouterHandler

from rag_service.api.health import HealthController
from rag_service.api.ingest import ingest_router
from rag_service.api.query import QueryController
from rag_service.api.services import Services
from rag_service.api.wire.bodies import BODY_LIMIT
from rag_service.api.wire.context import RequestContext
from rag_service.api.wire.documentation import openapi_config
from rag_service.api.wire.problems import ClientGoneError, handle_client_gone, handle_error


def create_litestar(
    services: Services,
    *,
    more_routes: Sequence[ControllerRouterHandler] = (),
    lifespan: Sequence[Callable[[Litestar], AbstractAsyncContextManager[None]]] = (),
    surround: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> Litestar:
    """The web application over given services.

    Args:
        services: what the routes stand on.
        more_routes: handlers of other layers, such as the pages.
        lifespan: entered at start, left at shutdown.
        surround: wraps the routes, inside what gives every request its id, log line and headers.
    """

    # Imported here: it brings the database driver, which whoever only imports this module does without.
    from rag_service.api.tenancy.services import identify

    application = Litestar(
        route_handlers=[QueryController, HealthController, ingest_router(services.settings), *more_routes],
        dependencies={
            "services": Provide(lambda: services, sync_to_thread=False),
            "identity": Provide(identify),
        },
        exception_handlers={Exception: handle_error, ClientGoneError: handle_client_gone},
        request_max_body_size=BODY_LIMIT,
        openapi_config=openapi_config(),
        lifespan=list(lifespan),
        logging_config=None,  # Litestar's own would take over the root logger
        debug=False,
    )
    application.asgi_handler = RequestContext(surround(application.asgi_handler), services.settings)
    return application
