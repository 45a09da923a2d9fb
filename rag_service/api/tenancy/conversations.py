"""Projects, conversations and their messages, for their owner alone: requirements C4 and E9."""

from __future__ import annotations

from uuid import UUID

from litestar import Controller, delete, get, post

from rag_service.api.services import IdentityDependency
from rag_service.api.tenancy.fields import check_texts, present, present_page, read_choice, read_slice
from rag_service.api.tenancy.schemas_agents import (
    ConversationBody,
    ConversationList,
    MessageBody,
    MessageList,
    ProjectBody,
    ProjectCreate,
    ProjectList,
)
from rag_service.api.tenancy.services import TenancyDependency
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.store.people.conversations import (
    create_project,
    delete_conversation,
    delete_project,
    list_conversations,
    list_messages,
    list_projects,
    read_conversation,
)


class ConversationsController(Controller):
    """What was asked and answered."""

    path = "/api/v1"
    tags = ["Conversations"]  # noqa: RUF012 - Litestar's way

    @get("/projects", summary="List projects", responses=problems(400, 401, 403, 500))
    async def projects(
        self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> ProjectList:
        """Newest first. Query: `offset`, `limit`."""
        part = read_slice(request)
        async with tenancy.transaction(identity) as connection:
            page = await list_projects(connection, part)
        return ProjectList(**present_page(page, lambda item: present(ProjectBody, item)))

    @post(
        "/projects",
        summary="Create a project",
        operation_class=accepts(ProjectCreate),
        responses=problems(400, 401, 403, 500),
    )
    async def add_project(
        self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> ProjectBody:
        body = await read_json(request, ProjectCreate)
        check_texts(required={"name": body.name})
        async with tenancy.transaction(identity) as connection:
            return present(ProjectBody, await create_project(connection, identity, name=body.name.strip()))

    @delete("/projects/{project_id:uuid}", summary="Delete a project", responses=problems(401, 403, 404, 500))
    async def remove_project(self, project_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> None:
        """Its conversations stay."""
        async with tenancy.transaction(identity) as connection:
            await delete_project(connection, project_id)

    @get("/conversations", summary="List conversations", responses=problems(400, 401, 403, 500))
    async def conversations(
        self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> ConversationList:
        """Latest first. Query: `offset`, `limit`, `projectId`."""
        part = read_slice(request, "projectId")
        project_id = read_choice(request, "projectId", UUID, "a UUID")
        async with tenancy.transaction(identity) as connection:
            page = await list_conversations(connection, part, project_id=project_id)
        return ConversationList(**present_page(page, lambda item: present(ConversationBody, item)))

    @get(
        "/conversations/{conversation_id:uuid}/messages",
        summary="Messages of a conversation",
        responses=problems(400, 401, 403, 404, 500),
    )
    async def messages(
        self, conversation_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> MessageList:
        """In order. Query: `offset`, `limit`."""
        part = read_slice(request)
        async with tenancy.transaction(identity) as connection:
            await read_conversation(connection, conversation_id)
            page = await list_messages(connection, conversation_id, part)
        return MessageList(**present_page(page, lambda item: present(MessageBody, item)))

    @delete(
        "/conversations/{conversation_id:uuid}",
        summary="Delete a conversation",
        responses=problems(401, 403, 404, 500),
    )
    async def remove(self, conversation_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> None:
        async with tenancy.transaction(identity) as connection:
            await delete_conversation(connection, conversation_id)
