"""The advisor's messages to the chat model, and its structured replies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

import structlog
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from msgspec import Struct

from rag_service.advisor.schema import json_schema, read_reply
from rag_service.answering.guards.injection import neutralise
from rag_service.answering.prompt.templates import PromptTemplate, render_context
from rag_service.domain import Hit, Purpose
from rag_service.errors import ModelOutputError
from rag_service.models.llm.model import ChatModel

log = structlog.get_logger(__name__)

REPAIR_TOKENS = 200  # reserved for a message that asks the model to correct its reply

_Reply = TypeVar("_Reply", bound=Struct)

_REPAIR = "Your last reply could not be used. {fault} Reply again, with JSON in the form asked for and nothing else."


def render_messages(
    template: PromptTemplate,
    hits: Sequence[Hit],
    *,
    question: str,
    boundary: str,
    case: Mapping[str, object] | None,
) -> tuple[str, str]:
    """(system, user) messages with these passages, [C1] first, and the collected data of the case."""
    return template.render(
        {
            "boundary": boundary,
            "case": neutralise(json.dumps(case, ensure_ascii=False, default=str)),
            "context": render_context(hits, boundary),
            "question": question,
        }
    )


async def ask_for_json(chat: ChatModel, texts: Sequence[str], kind: type[_Reply], *, max_tokens: int) -> _Reply:
    """The model's reply as a validated `kind`.

    An invalid reply is requested once more, with the error named; one cut off by `max_tokens` is not, because it
    would be cut off again.

    Raises:
        ModelOutputError: cut off, or invalid twice.
        ModelError: the model fails.
    """
    schema = json_schema(kind)
    roles = (MessageRole.SYSTEM, MessageRole.USER)
    messages = [ChatMessage(role=role, content=text) for role, text in zip(roles, texts, strict=True)]
    reply = await chat.complete_json(messages, schema, purpose=Purpose.ADVISOR, max_tokens=max_tokens)
    try:
        return read_reply(reply, kind)
    except ModelOutputError as fault:
        log.warning("model_output_repair", model=chat.model_name, fault=fault.message)
        messages.append(ChatMessage(role=MessageRole.USER, content=_REPAIR.format(fault=fault.message)))
    return read_reply(await chat.complete_json(messages, schema, purpose=Purpose.ADVISOR, max_tokens=max_tokens), kind)
