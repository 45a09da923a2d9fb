"""The tools as LlamaIndex `FunctionTool`s: for our own answers, and for anybody's agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from llama_index.core.tools import FunctionTool

from rag_service.answering.tools.definitions import DEFINITIONS, ToolDefinition

Use = Callable[[str, dict[str, Any]], Coroutine[Any, Any, str]]  # (tool, arguments) → what the model is told
Run = Callable[[Coroutine[Any, Any, str]], str]  # runs the call for callers that cannot wait


def make_function_tools(use: Use, *, run: Run | None = None) -> list[FunctionTool]:
    """A LlamaIndex tool for each definition; without `run` they are asynchronous only."""
    return [_make(definition, use, run) for definition in DEFINITIONS.values()]


def _make(definition: ToolDefinition, use: Use, run: Run | None) -> FunctionTool:
    def call(**arguments: Any) -> Awaitable[str]:
        return use(definition.name, arguments)

    def call_and_wait(**arguments: Any) -> str:
        if run is None:
            raise RuntimeError("This tool is asynchronous: use `acall`.")
        return run(use(definition.name, arguments))

    return FunctionTool.from_defaults(
        fn=call_and_wait,
        async_fn=call,
        name=definition.name,
        description=definition.description,
        fn_schema=definition.arguments,
    )
