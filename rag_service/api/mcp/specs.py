"""What an MCP tool is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct
from pydantic import BaseModel

from rag_service.api.http.services import Services
from rag_service.domain import Identity

Reply = tuple[str, Struct | None]  # text for the model, the same as data; None: the call failed
# (services, arguments, caller, address of the service as the caller knows it)
Call = Callable[[Services, Mapping[str, Any], Identity, str], Awaitable[Reply]]


@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """A tool as clients see it, and what it does."""

    name: str
    title: str
    description: str
    arguments: type[Struct] | type[BaseModel]
    result: type[Struct]
    call: Call


def json_schema(kind: type[Struct] | type[BaseModel]) -> dict[str, Any]:
    """JSON Schema of a class with `type: object` at its root, as MCP demands."""
    if issubclass(kind, BaseModel):
        return kind.model_json_schema()
    _, components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    root = components.pop(kind.__name__)
    return {**root, "$defs": components} if components else root
