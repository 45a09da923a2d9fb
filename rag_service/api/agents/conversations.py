"""Projects, conversations and their messages, visible to their owner only."""

from __future__ import annotations

from uuid import UUID

from litestar import Controller, delete, get, post

from rag_service.api.agents.schemas import (
    ConversationList,
    MessageList,
    ProjectBody,
    ProjectCreate,
    ProjectList,
)
from rag_service.api.http.access import CallerDependency
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems
from rag_service.api.http.fields import check_texts, read_choice, read_slice
from rag_service.api.http.presenters import present
from rag_service.store.accounts.conversations import (
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
    async def projects(self, request: AnyRequest, caller: CallerDependency) -> ProjectList:
        """Newest first. Query: `offset`, `limit`."""
        return present(ProjectList, await caller.run(list_projects, read_slice(request)))

    @post(
        "/projects",
        summary="Create a project",
        operation_class=accepts(ProjectCreate),
        responses=problems(400, 401, 403, 500),
    )
    async def add_project(self, request: AnyRequest, caller: CallerDependency) -> ProjectBody:
        body = await read_json(request, ProjectCreate)
        check_texts(required={"name": body.name})
        return present(ProjectBody, await caller.run(create_project, caller.identity, name=body.name.strip()))

    @delete("/projects/{project_id:uuid}", summary="Delete a project", responses=problems(401, 403, 404, 500))
    async def remove_project(self, project_id: UUID, caller: CallerDependency) -> None:
        """Its conversations stay."""
        await caller.run(delete_project, project_id)

    @get("/conversations", summary="List conversations", responses=problems(400, 401, 403, 500))
    async def conversations(self, request: AnyRequest, caller: CallerDependency) -> ConversationList:
        """Latest first. Query: `offset`, `limit`, `projectId`."""
        part = read_slice(request, "projectId")
        project_id = read_choice(request, "projectId", UUID, "a UUID")
        return present(ConversationList, await caller.run(list_conversations, part, project_id=project_id))

    @get(
        "/conversations/{conversation_id:uuid}/messages",
        summary="Messages of a conversation",
        responses=problems(400, 401, 403, 404, 500),
    )
    async def messages(self, conversation_id: UUID, request: AnyRequest, caller: CallerDependency) -> MessageList:
        """In order. Query: `offset`, `limit`."""
        part = read_slice(request)
        async with caller.transaction() as connection:
            await read_conversation(connection, conversation_id)
            return present(MessageList, await list_messages(connection, conversation_id, part))

    @delete(
        "/conversations/{conversation_id:uuid}",
        summary="Delete a conversation",
        responses=problems(401, 403, 404, 500),
    )
    async def remove(self, conversation_id: UUID, caller: CallerDependency) -> None:
        await caller.run(delete_conversation, conversation_id)
