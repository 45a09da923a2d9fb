"""The routes for many people on one service, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from litestar import Router
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from rag_service.api.tenancy.agents import AgentsController
from rag_service.api.tenancy.chat import ChatController
from rag_service.api.tenancy.conversations import ConversationsController
from rag_service.api.tenancy.corpora import CorporaController
from rag_service.api.tenancy.documents import documents_router
from rag_service.api.tenancy.feedback import FeedbackController
from rag_service.api.tenancy.keys import KeysController
from rag_service.api.tenancy.services import TenancyServices
from rag_service.api.tenancy.uploads import UploadsController
from rag_service.api.tenancy.users import UsersController
from rag_service.settings import Settings

TENANCY_ROUTE_HANDLERS: Sequence[ControllerRouterHandler] = (
    AgentsController,
    ChatController,
    ConversationsController,
    CorporaController,
    FeedbackController,
    KeysController,
    UploadsController,
    UsersController,
)


def tenancy_router(settings: Settings, services: Callable[[], TenancyServices]) -> Router:
    """All of them below one router; the application checks role and scope for each.

    Args:
        settings: for the size of uploads.
        services: what the routes stand on, asked for with each request.
    """
    return Router(
        "/",
        route_handlers=[*TENANCY_ROUTE_HANDLERS, documents_router(settings)],
        dependencies={
            "tenancy": Provide(services, sync_to_thread=False),
        },
    )
