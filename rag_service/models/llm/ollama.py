"""LlamaIndex's Ollama class with a cheaper stream.

The stock class makes half a dozen objects for each word, which takes longer than the search of a question. Here one
response carries the words that arrived together: a slow model still streams word by word.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

import httpx
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.llms.ollama import Ollama
from ollama import ResponseError

from rag_service.unpicklable import Unpicklable


class ServiceOllama(Unpicklable, Ollama):
    """Asks and answers as the stock class does, but for how much one response carries."""

    @llm_chat_callback()  # LlamaIndex's events
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """Stream the answer. `raw` of each response is the last object that it was made of."""
        request = {
            "model": self.model,
            "messages": self._convert_to_ollama_messages(messages),
            "stream": True,
            "options": self._model_kwargs,
            "format": "json" if self.json_mode else None,
            "think": self.thinking,
            "keep_alive": self.keep_alive,
        } | kwargs
        return self._stream({name: value for name, value in request.items() if value is not None})

    async def _stream(self, request: dict[str, Any]) -> AsyncGenerator[ChatResponse]:
        # The client's own connections, with its address, headers and limits.
        async with self.async_client._client.stream("POST", "/api/chat", json=request) as reply:
            try:
                reply.raise_for_status()
            except httpx.HTTPStatusError as error:
                await reply.aread()
                raise ResponseError(reply.text, reply.status_code) from error
            text = thinking = ""
            calls: list[ToolCallBlock] = []
            async for lines in _lines_together(reply):
                delta, part = "", {}
                for line in lines:
                    part = json.loads(line)
                    if "error" in part:
                        break
                    said = part["message"]
                    delta += said["content"] or ""
                    thinking += said.get("thinking") or ""
                    calls += [_as_call(each.get("function") or {}) for each in said.get("tool_calls") or ()]
                text += delta
                if delta or "error" not in part:
                    thought = [ThinkingBlock(content=thinking)] if thinking else []
                    message = ChatMessage(role=MessageRole.ASSISTANT, blocks=[*thought, TextBlock(text=text), *calls])
                    yield ChatResponse(message=message, delta=delta, raw=part)
                if "error" in part:
                    raise ResponseError(part["error"])


def _as_call(function: Mapping[str, Any]) -> ToolCallBlock:
    """The call that a model wrote, whatever it wrote: an object of arguments, or the text of anything else."""
    given = function.get("arguments") or {}
    arguments = given if isinstance(given, dict | str) else json.dumps(given)
    return ToolCallBlock(tool_name=str(function.get("name", "")), tool_kwargs=arguments)


async def _lines_together(reply: httpx.Response) -> AsyncIterator[list[bytes]]:
    """The lines of a reply, those that arrived in one piece together."""
    rest = b""
    async for piece in reply.aiter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]
