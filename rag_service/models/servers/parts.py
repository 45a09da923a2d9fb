"""The pieces of an answer as a model server sent them, without the objects that LlamaIndex makes of each.

LlamaIndex's stream builds a message, its blocks and an event for every word, each checked by pydantic: a
third of all that a streamed answer costs. An LLM class of ours may offer the same stream plainly; every
other is asked as LlamaIndex asks it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from llama_index.core.base.llms.types import ChatMessage, ChatResponse


@dataclass(frozen=True, slots=True)
class ModelPart:
    """One piece, with the names that LlamaIndex's ChatResponse has for the same things."""

    delta: str  # its text; empty while the model thinks, and at the end
    raw: Mapping[str, Any]  # the server's object
    additional_kwargs: Mapping[str, Any] = field(default_factory=dict)  # token counts, where they stand apart


Part = ModelPart | ChatResponse


@runtime_checkable
class StreamsParts(Protocol):
    """An LLM that gives its stream plainly."""

    def stream_parts(self, messages: Sequence[ChatMessage], **options: Any) -> AsyncGenerator[Sequence[Part]]:
        """The answer to one call, begun when the first parts are asked for.

        What arrived together comes together: who reads more slowly than the model writes gets more at a time.

        Args:
            messages: the conversation.
            options: as `astream_chat` takes them.

        Raises:
            Exception: as the client package has it, as soon as all that came before was given.
        """
        ...
