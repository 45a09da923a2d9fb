"""What a reply to a credential without the scope `read` holds: ids, no texts."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar.datastructures.headers import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPResponseStartEvent, Message, Receive, Scope, Send

ONLY_IDS = "only_ids"  # in the state of a request: `access.identify` sets it
_KEPT = frozenset({"id", "key"})  # the secret of a key is shown to its creator, once


class IdsOnly:
    """ASGI middleware: leaves in a JSON reply only what names things, where the request says so."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started: list[Message] = []
        body = bytearray()

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_concerned(scope, message):
                started.append(message)
            elif started and message["type"] == "http.response.body":
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    kept = msgspec.json.encode(_keep_ids(msgspec.json.decode(bytes(body)))) if body else b""
                    MutableScopeHeaders.from_message(started[0])["content-length"] = str(len(kept))
                    await send(started[0])
                    await send({"type": "http.response.body", "body": kept, "more_body": False})
            else:
                await send(message)

        await self._app(scope, receive, send_on)


def _is_concerned(scope: Scope, message: HTTPResponseStartEvent) -> bool:
    headers = MutableScopeHeaders.from_message(message)
    is_json = headers.get("content-type", "").startswith("application/json")
    return is_json and message["status"] < 400 and bool(scope.get("state", {}).get(ONLY_IDS))


def _keep_ids(value: Any) -> Any:
    """Return the ids of a reply, in its form."""
    if isinstance(value, list):
        return [kept for item in value if (kept := _keep_ids(item)) not in ({}, None)]
    if not isinstance(value, dict):
        return None
    found: dict[str, Any] = {}
    for name, item in value.items():
        if name in _KEPT or name.endswith(("Id", "Ids", "_id", "_ids")):
            found[name] = item
        elif isinstance(item, dict | list) and (kept := _keep_ids(item)):
            found[name] = kept
    return found
