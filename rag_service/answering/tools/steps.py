"""The tool calls of one answer: each is checked and run within a budget; the model reads results between boundaries.

New passages continue the numbering of those shown. Whatever a model asks for, it gets a sentence back and goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import structlog
from llama_index.core.base.llms.types import ChatMessage, ContentBlock, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.tools import FunctionTool

from rag_service.answering.guards.injection import neutralise
from rag_service.answering.prompt.templates import render_passage
from rag_service.answering.tools.definitions import DEFINITIONS, make_function_tools
from rag_service.answering.tools.toolbox import READ_TOKENS, Toolbox, ToolResult
from rag_service.domain import Hit, Step
from rag_service.errors import InputError, RagError
from rag_service.language.words import count_tokens
from rag_service.models.llm.call import ToolCall
from rag_service.tables.sentences import CitedCells

log = structlog.get_logger(__name__)

_MALFORMED = "The arguments are not a JSON object of a few lines."
_SHOWN_ARGUMENTS = {"search": "query", "read": "document", "compute": "operation"}  # what of a call a reader sees first
_MAX_NAME = 64  # characters of a tool's name, as OpenAI has it
_MAX_ARGUMENTS = 8_000  # characters
_MAX_SHOWN = 200  # characters of that


async def _never(name: str, arguments: dict[str, object]) -> str:
    raise RuntimeError("Calls of a model are run by `Steps`.")


OFFERED: Sequence[FunctionTool] = make_function_tools(_never)


@cache
def offer_tokens() -> int:
    """Tokens that the tools take in a prompt."""
    return count_tokens(json.dumps([tool.metadata.to_openai_tool() for tool in OFFERED]))


@dataclass(kw_only=True)
class Steps:
    """What has been called, and what is left to call."""

    toolbox: Toolbox | None  # None: there are no tools
    boundary: str  # of the prompt
    calls_left: int
    room: int  # tokens that results may still take
    shown: list[Hit]  # [C1] first
    say: Callable[[str], str]  # a sentence of the service, `tool_…` of messages.yaml, in the language of the question
    steps: list[Step] = field(default_factory=list)
    messages: list[ChatMessage] = field(default_factory=list)  # after the prompt: calls and their results
    found: list[Hit] = field(default_factory=list)  # by searches, in their order
    computed: dict[str, CitedCells] = field(default_factory=dict)  # id of a result's passage → the cells behind it

    @property
    def offered(self) -> Sequence[FunctionTool]:
        """The tools that the next call of the model may use."""
        return OFFERED if self.toolbox is not None and self.calls_left > 0 and self.room > 0 else ()

    @property
    def results(self) -> str:
        """Return what the tools gave, as the model read it."""
        return "\n\n".join(m.content or "" for m in self.messages if m.role is MessageRole.TOOL)

    @property
    def tokens(self) -> int:
        """Tokens that the tools, their calls and the results take beside the prompt."""
        if self.toolbox is None:
            return 0
        return offer_tokens() + sum(count_tokens(message.content or "") for message in self.messages)

    async def take(self, text: str, calls: Sequence[ToolCall]) -> list[tuple[Step, tuple[Hit, ...]]]:
        """Run the calls of a model that had written `text` before them: each step with the passages it adds."""
        blocks: list[ContentBlock] = [TextBlock(text=text)] if text.strip() else []
        taken, results = [], []
        for call in calls:
            arguments = _read_arguments(call)
            name = call.name[:_MAX_NAME]
            blocks.append(ToolCallBlock(tool_call_id=call.id[:_MAX_NAME], tool_name=name, tool_kwargs=arguments or {}))
            if self.calls_left <= 0:
                told = self.say("tool_no_calls")
            else:
                self.calls_left -= 1
                step, added, told = await self._run(name, arguments)
                self.steps.append(step)
                taken.append((step, added))
            names = {"tool_call_id": call.id[:_MAX_NAME], "name": name}
            results.append(ChatMessage(role=MessageRole.TOOL, content=told, additional_kwargs=names))
        self.messages += [ChatMessage(role=MessageRole.ASSISTANT, blocks=blocks), *results]
        return taken

    async def _run(self, name: str, arguments: dict[str, object] | None) -> tuple[Step, tuple[Hit, ...], str]:
        began = time.perf_counter()
        added: tuple[Hit, ...] = ()
        failed = True
        try:
            if arguments is None or self.toolbox is None:
                raise InputError(_MALFORMED)
            result = await self.toolbox.call(name, arguments, max_tokens=min(READ_TOKENS, self.room))
            added, told = self._tell(result)
            if name == "search":
                self.found += result.hits
            failed = False
        except InputError as error:
            told = self.say("tool_error").format(reason=error.message)
        except RagError as error:
            log.warning("tool_failed", tool=name, code=error.code, exc_info=error)
            told = self.say("tool_failed")
        step = Step(
            number=len(self.steps) + 1,
            tool=name if name in DEFINITIONS else "unknown",
            asked=_describe(name, arguments),
            found=len(added),
            failed=failed,
            milliseconds=round((time.perf_counter() - began) * 1000, 1),
        )
        log.info("tool_called", tool=step.tool, found=step.found, failed=failed, total_ms=step.milliseconds)
        self.room -= count_tokens(told)
        return step, added, f"{self.boundary}\n{neutralise(told)}\n{self.boundary}" if failed else told

    def _tell(self, result: ToolResult) -> tuple[tuple[Hit, ...], str]:
        """Return the passages that are new and fit, and what the model reads."""
        marks = {hit.chunk.id: mark for mark, hit in enumerate(self.shown, start=1)}
        parts: list[str] = []
        added: list[Hit] = []
        room = self.room
        for hit in (*self._result(result), *result.hits):
            if (mark := marks.get(hit.chunk.id)) is not None:
                parts.append(self.say("tool_shown").format(number=mark))
                continue
            text = render_passage(len(self.shown) + len(added) + 1, hit, self.boundary)
            if (cost := count_tokens(text)) > room:
                parts.append(self.say("tool_no_room"))
                break
            room -= cost
            added.append(hit)
            parts.append(text)
        self.shown += added
        if result.text and result.computed is None:
            parts.append(f"{self.boundary}\n{neutralise(result.text)}\n{self.boundary}")
        return tuple(added), "\n\n".join(parts)

    def _result(self, result: ToolResult) -> list[Hit]:
        """Return what was computed, as a passage that has not been shown."""
        if result.computed is None:
            return []
        chunk_id = f"computed-{len(self.computed) + 1}"
        self.computed[chunk_id] = result.computed.cells
        return [replace(result.computed.hit, chunk=replace(result.computed.hit.chunk, id=chunk_id))]


def _read_arguments(call: ToolCall) -> dict[str, object] | None:
    """Return the arguments of a call; None: they are no JSON object, or a huge one."""
    if len(call.arguments) > _MAX_ARGUMENTS:
        return None
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _describe(name: str, arguments: dict[str, object] | None) -> str:
    """Return what was asked for, for a reader: the query, the document and its place, or the operation."""
    given = arguments or {}
    told = [given.get(_SHOWN_ARGUMENTS.get(name, "")), given.get("place") if name == "read" else given.get("column")]
    words = neutralise(", ".join(str(one) for one in told if isinstance(one, str) and one)).split()
    return " ".join(words)[:_MAX_SHOWN]
