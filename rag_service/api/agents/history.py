"""Questions and answers kept in a conversation, with an agent or with all documents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Literal, Protocol
from uuid import UUID

import msgspec
import structlog

from rag_service.api.agents.schemas import KeptAnswerBody
from rag_service.api.http.events import WireEvent
from rag_service.api.http.presenters import present
from rag_service.api.http.schemas import AnswerBody
from rag_service.domain import Identity
from rag_service.errors import ConflictError, NotFoundError, StoreError
from rag_service.store.accounts.conversations import (
    Conversation,
    Message,
    add_message,
    change_conversation,
    create_conversation,
    delete_messages_from,
    lock_conversation,
)
from rag_service.store.database import Connection
from rag_service.store.documents.catalogue import read_versions

log = structlog.get_logger(__name__)

SourceChanges = Mapping[UUID, Literal["changed", "gone"]]  # by document; without those that are as they were cited
PresentKept = Callable[[AnswerBody], KeptAnswerBody]


class Writer(Protocol):
    """Whose conversation it is, and how it is written, such as `Caller`."""

    @property
    def identity(self) -> Identity: ...

    def transaction(self) -> AbstractAsyncContextManager[Connection]: ...


_TITLE = 80  # characters of the first question
# Columns of the message; passages that prove nothing.
_ELSEWHERE = {"answer", "citations", "answer_id", "related", "conversation_id"}


async def find_source_changes(connection: Connection, messages: Sequence[Message]) -> list[SourceChanges]:
    """What has become of the documents that each message cites; `gone` also if the identity may no longer read one."""
    cited = [
        {UUID(one["documentId"]): one.get("contentHash") for one in message.citations if one.get("documentId")}
        for message in messages
    ]
    versions = await read_versions(connection, list({document_id for one in cited for document_id in one}))
    return [
        {
            document_id: "changed" if document_id in versions else "gone"
            for document_id, content_hash in one.items()
            if document_id not in versions or content_hash not in (None, versions[document_id])
        }
        for one in cited
    ]


def _present_kept(answer: AnswerBody) -> KeptAnswerBody:
    return present(KeptAnswerBody, answer, conversation_id=None)


async def keep_answers(
    events: AsyncGenerator[WireEvent, None],
    caller: Writer,
    question: str,
    conversation_id: UUID | None,
    *,
    replaces: UUID | None,
    present_kept: PresentKept = _present_kept,
    agent_id: UUID | None = None,
    project_id: UUID | None = None,
) -> AsyncGenerator[WireEvent, None]:
    """The events of an answer; the final one is stored first and names its conversation.

    The answer `replaces`, its question and everything after them give way to it in the same step. `present_kept` makes
    its body of the answer. Raises ConflictError if what it replaces is gone: another answer was quicker to replace it.
    """
    async with aclosing(events):
        async for event in events:
            if not isinstance(event.data, AnswerBody):
                yield event
                continue
            body = present_kept(event.data)
            kept = await _keep_exchange(caller, question, body, conversation_id, replaces, agent_id, project_id)
            yield WireEvent("final", msgspec.structs.replace(body, conversation_id=kept))


async def keep_answer(
    answer: AnswerBody, caller: Writer, question: str, conversation_id: UUID | None
) -> KeptAnswerBody:
    """Store question and answer, in a new conversation if none is named."""
    body = _present_kept(answer)
    kept = await _keep_exchange(caller, question, body, conversation_id, None, None, None)
    return msgspec.structs.replace(body, conversation_id=kept)


async def _keep_exchange(
    caller: Writer,
    question: str,
    answer: KeptAnswerBody,
    conversation_id: UUID | None,
    replaces: UUID | None,
    agent_id: UUID | None,
    project_id: UUID | None,
) -> UUID | None:
    """Store question and answer, in a new conversation if none is named.

    Returns the conversation; None when the database is down: the answer is worth more than its record.
    """
    identity = caller.identity
    try:
        async with caller.transaction() as connection:
            if conversation_id is None:
                created = await create_conversation(
                    connection, identity, agent_id=agent_id, project_id=project_id, title=question[:_TITLE]
                )
                conversation_id = created.id
            else:
                conversation = await lock_conversation(connection, conversation_id)
                if replaces is not None:
                    await _delete_replaced(connection, conversation, replaces, question)
            await add_message(connection, identity, conversation_id, role="user", content=question, agent_id=agent_id)
            await add_message(
                connection, identity, conversation_id, role="assistant", content=answer.answer, agent_id=agent_id,
                citations=msgspec.to_builtins(answer.citations), answer_id=answer.answer_id,
                details=_details(answer),
            )  # fmt: skip
    except (StoreError, NotFoundError) as error:  # also: the conversation or agent was deleted meanwhile
        log.warning("conversation_not_stored", exc_info=error)
        return None
    return conversation_id


async def _delete_replaced(connection: Connection, conversation: Conversation, replaces: UUID, question: str) -> None:
    """Delete what an answer replaces. If the conversation is titled by the old question, the new one is its title."""
    try:
        replaced = await delete_messages_from(connection, conversation.id, replaces)
    except NotFoundError as error:
        raise ConflictError("Another answer has replaced this one. Load the conversation again.") from error
    if conversation.title == replaced[:_TITLE]:
        await change_conversation(connection, conversation.id, title=question[:_TITLE])


def _details(answer: KeptAnswerBody) -> dict[str, Any]:
    """The answer's other fields, as the API calls them. Of passages the place is kept, not the text."""
    slim = msgspec.structs.replace(
        answer, context_used=[msgspec.structs.replace(one, snippet="") for one in answer.context_used]
    )
    fields = msgspec.to_builtins(slim)
    return {
        name: fields[field.encode_name]
        for field in msgspec.structs.fields(answer)
        if (name := field.encode_name) and field.name not in _ELSEWHERE
    }
