"""Projects, conversations and their messages: visible to their owner, and to others where the owner shares them."""

from __future__ import annotations

import asyncio
from uuid import UUID

import structlog
from litestar import Controller, Response, delete, get, patch, post

from rag_service.api.agents.export import EXPORT_MESSAGES, write_markdown
from rag_service.api.agents.history import SourceChanges, find_source_changes
from rag_service.api.agents.schemas import (
    ConversationBody,
    ConversationList,
    ConversationUpdate,
    MessageBody,
    MessageList,
    ProjectBody,
    ProjectCreate,
    ProjectList,
)
from rag_service.api.http.access import Caller, CallerDependency
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems, takes_query
from rag_service.api.http.fields import SLICE, check_texts, read_choice, read_slice
from rag_service.api.http.presenters import present
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.errors import PermissionDeniedError
from rag_service.store.accounts.conversations import (
    Message,
    change_conversation,
    create_project,
    delete_conversation,
    delete_project,
    list_conversations,
    list_messages,
    list_projects,
    list_shared,
    message_batches,
    read_conversation,
    share_conversation,
    unshare_conversation,
)

log = structlog.get_logger(__name__)


class ConversationsController(Controller):
    """Stored questions and answers."""

    path = "/api/v1"
    tags = ["Conversations"]

    @get(
        "/projects",
        summary="List projects",
        operation_class=takes_query(**SLICE),
        responses=problems(400, 401, 403, 500),
    )
    async def projects(self, request: AnyRequest, caller: CallerDependency) -> ProjectList:
        """Newest first."""
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
        """Its conversations are kept."""
        await caller.run(delete_project, project_id)

    @get(
        "/conversations",
        summary="List conversations",
        operation_class=takes_query(
            **SLICE,
            projectId={"format": "uuid", "description": "Only those of a project."},
            q={"description": "Words; of conversations that others share, in the title."},
            shared={
                "type": "boolean",
                "default": False,
                "description": "Those that others share with you; else your own.",
            },
        ),
        responses=problems(400, 401, 403, 500),
    )
    async def conversations(self, request: AnyRequest, caller: CallerDependency) -> ConversationList:
        """Pinned ones first, then newest first."""
        part = read_slice(request, "projectId", "q", "shared")
        project_id = read_choice(request, "projectId", UUID, "a UUID")
        words = request.query_params.get("q")
        check_texts(required={}, optional={"q": words})
        if read_choice(request, "shared", ("false", "true").index, "true or false"):
            if project_id is not None:
                raise InvalidRequestError([FieldError("projectId", "cannot be combined with shared=true")])
            if not _may_share(caller):
                return ConversationList(items=[], total=0)
            return present(ConversationList, await caller.run(list_shared, part, words=words))
        return present(ConversationList, await caller.run(list_conversations, part, project_id=project_id, words=words))

    @get("/conversations/{conversation_id:uuid}", summary="Read a conversation", responses=problems(401, 403, 404, 500))
    async def conversation(self, conversation_id: UUID, caller: CallerDependency) -> ConversationBody:
        """Your own, or one that another user shares, if you may read all corpora that its answers rest on."""
        found = await caller.run(read_conversation, conversation_id, or_shared=_may_share(caller))
        return present(ConversationBody, found)

    @post(
        "/conversations/{conversation_id:uuid}/share",
        status_code=200,
        summary="Share a conversation",
        responses=problems(401, 403, 404, 409, 500),
    )
    async def share(self, conversation_id: UUID, caller: CallerDependency) -> ConversationBody:
        """Users who may read all corpora that its answers rest on can read it, including what is added later. Their
        rights are checked each time. 409: nobody else may read a corpus that an answer rests on, because it is personal
        or holds files added to questions, or it is not known."""
        if not _may_share(caller):
            raise PermissionDeniedError("Sharing is switched off (RAG_SHARING).")
        shared = await caller.run(share_conversation, conversation_id)
        log.info("conversation_shared", conversation_id=str(conversation_id), user_id=str(caller.identity.user_id))
        return present(ConversationBody, shared)

    @delete(
        "/conversations/{conversation_id:uuid}/share",
        summary="Stop sharing a conversation",
        responses=problems(401, 403, 404, 500),
    )
    async def unshare(self, conversation_id: UUID, caller: CallerDependency) -> None:
        await caller.run(unshare_conversation, conversation_id)
        log.info("conversation_unshared", conversation_id=str(conversation_id), user_id=str(caller.identity.user_id))

    @patch(
        "/conversations/{conversation_id:uuid}",
        summary="Rename or pin a conversation",
        operation_class=accepts(ConversationUpdate),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def change(self, conversation_id: UUID, request: AnyRequest, caller: CallerDependency) -> ConversationBody:
        body = await read_json(request, ConversationUpdate)
        title = body.title if isinstance(body.title, str) else None
        if title is not None:
            check_texts(required={"title": title})
        pinned = body.pinned if isinstance(body.pinned, bool) else None
        changed = await caller.run(change_conversation, conversation_id, title=title and title.strip(), pinned=pinned)
        return present(ConversationBody, changed)

    @get(
        "/conversations/{conversation_id:uuid}/export",
        summary="Export a conversation as Markdown",
        media_type="text/markdown",
        responses=problems(401, 403, 404, 500),
    )
    async def export(self, conversation_id: UUID, caller: CallerDependency) -> Response[str]:
        """Questions and answers with their citations, and which of the cited documents have since been deleted or
        changed. For JSON, list the conversation's messages."""
        async with caller.transaction() as connection:
            conversation = await read_conversation(connection, conversation_id, or_shared=_may_share(caller))
            messages: list[Message] = []
            changes: list[SourceChanges] = []
            async for batch in message_batches(connection, conversation_id, count=EXPORT_MESSAGES):
                messages[:0] = batch
                changes[:0] = await find_source_changes(connection, batch)
        headers = {"content-disposition": "attachment; filename=conversation.md", "cache-control": "no-store"}
        text = await asyncio.to_thread(write_markdown, conversation, messages, changes)
        return Response(text, media_type="text/markdown", headers=headers)

    @get(
        "/conversations/{conversation_id:uuid}/messages",
        summary="List the messages of a conversation",
        operation_class=takes_query(**SLICE),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def messages(self, conversation_id: UUID, request: AnyRequest, caller: CallerDependency) -> MessageList:
        """Oldest first."""
        part = read_slice(request)
        async with caller.transaction() as connection:
            await read_conversation(connection, conversation_id, or_shared=_may_share(caller))
            page = await list_messages(connection, conversation_id, part)
            changes = await find_source_changes(connection, page.items)
        items = [present(MessageBody, one, source_changes=of) for one, of in zip(page.items, changes, strict=True)]
        return MessageList(items=items, total=page.total)

    @delete(
        "/conversations/{conversation_id:uuid}",
        summary="Delete a conversation",
        responses=problems(401, 403, 404, 500),
    )
    async def remove(self, conversation_id: UUID, caller: CallerDependency) -> None:
        await caller.run(delete_conversation, conversation_id)


def _may_share(caller: Caller) -> bool:
    """Whether the service lets users share conversations at all (RAG_SHARING)."""
    return caller.tenancy.settings.auth.sharing
