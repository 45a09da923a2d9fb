"""A service elsewhere, over its own API."""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import msgspec

from rag_service.api.wire.schemas import AnswerBody, IngestBody, PassageBody, SearchBody, SearchRequest
from rag_service.errors import ConfigurationError, InputError
from rag_service.notebook.backend import CorpusInfo, Experiment, Found, ServiceUnreachableError, error_from

T = TypeVar("T")

_PAGE = 100  # corpora asked for at once
_TIMEOUT = httpx.Timeout(300.0, connect=10.0)  # an answer on a busy model takes its time


class RemoteBackend:
    """Talks to a running service. The key is kept in the client's headers and shown nowhere."""

    def __init__(self, url: str, api_key: str | None):
        """
        Args:
            url: base URL of the service, such as https://rag.example.
            api_key: API key or bearer token; None where the service needs none.

        Raises:
            ConfigurationError: the URL is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError("url must begin with http:// or https:// and name a host.", field="url")
        self._where = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        self._url = url.rstrip("/")
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._client: httpx.AsyncClient | None = None

    @property
    def where(self) -> str:
        return self._where

    async def open(self) -> None:
        """Check that the service answers.

        Raises:
            ServiceUnreachableError: it does not.
        """
        self._client = httpx.AsyncClient(base_url=self._url, headers=self._headers, timeout=_TIMEOUT)
        try:
            await self._request("GET", "/health", Any)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def ingest(self, data: bytes, *, name: str, file_name: str) -> IngestBody:
        return await self._request("POST", "/api/ingest", IngestBody, files={"file": (name, data)})

    async def search(self, request: SearchRequest, experiment: Experiment | None) -> Found:
        if experiment is not None:
            raise InputError("alpha and mode are for an embedded service; a remote one ranks by its own definition.")
        body = await self._request("POST", "/api/v1/query", SearchBody, json=_as_json(request))
        return Found(passages=tuple(body.passages), language=body.language)

    async def answer(self, request: SearchRequest) -> AnswerBody:
        return await self._request("POST", "/api/v1/query/answer", AnswerBody, json=_as_json(request))

    async def answer_with_passages(self, request: SearchRequest) -> tuple[AnswerBody, tuple[PassageBody, ...]]:
        """The passages are searched for again: an answer carries their places, not their texts."""
        body = await self.answer(request)
        return body, (await self.search(request, None)).passages if body.sources else ()

    async def corpora(self) -> list[CorpusInfo]:
        found: list[CorpusInfo] = []
        while True:
            part = {"offset": len(found), "limit": _PAGE}
            page = await self._request("GET", "/api/v1/corpora", dict[str, Any], params=part)
            found += [_read_corpus(item) for item in page["items"]]
            if not page["items"] or len(found) >= page["total"]:
                return found

    async def _request(self, method: str, path: str, kind: type[T], **content: Any) -> T:
        if self._client is None:
            raise RuntimeError("The service is closed; call open_service() again.")
        try:
            response = await self._client.request(method, path, **content)
        except httpx.TransportError as error:
            raise ServiceUnreachableError(f"The service at {self.where} does not answer.") from error
        if response.is_error:
            raise error_from(_problem_of(response), response.status_code)
        return msgspec.json.decode(response.content, type=kind)


def _as_json(request: SearchRequest) -> dict[str, Any]:
    """The request as the API takes it; what is not set is left to the service."""
    fields: dict[str, Any] = msgspec.to_builtins(request)
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


def _problem_of(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _read_corpus(item: dict[str, Any]) -> CorpusInfo:
    return CorpusInfo(
        id=UUID(item["id"]), name=item["name"], kind=item["kind"], index=item["index"], active=item["active"]
    )
