"""A service elsewhere, over its API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import msgspec

from rag_service.api.agents.schemas import KeptAnswerBody
from rag_service.api.corpora.schemas import CorpusBody, CorpusList, DocumentBody, DocumentList, ImportBody
from rag_service.api.http.events import NDJSON, WireEvent
from rag_service.api.http.schemas import (
    AnswerBody,
    AnswerRequest,
    CheckBody,
    CheckDone,
    CheckRequest,
    CitationBody,
    DeltaData,
    DoneData,
    IngestBody,
    PassageBody,
    SearchBody,
    SearchRequest,
    SentenceData,
    SourceBody,
    SourcesData,
    StepData,
)
from rag_service.errors import ConfigurationError, InputError, RagError, ServiceUnreachableError
from rag_service.ingest.transfer.files import write_export

T = TypeVar("T")

_ANSWER = "/api/v1/query/answer"
_CHECK = "/api/v1/check"
_Kinds = dict[str, type[msgspec.Struct]]  # name of an event → its data
_EVENTS: _Kinds = {
    "sources": SourcesData,
    "step": StepData,
    "delta": DeltaData,
    "citation": CitationBody,
    "done": DoneData,
}

_PAGE = 100  # corpora or documents per request
_PATIENT = httpx.Timeout(None, connect=10.0)  # an import embeds for hours where the model is another one
_TIMEOUT = httpx.Timeout(300.0, connect=10.0)  # a busy model takes long to answer


class _Event(msgspec.Struct):
    """A line of a streamed answer; heartbeats have no data."""

    event: str
    data: msgspec.Raw = msgspec.Raw()


class RemoteBackend:
    """Calls a running service, with the methods of `EmbeddedBackend`. The key is in the headers and never shown."""

    kind = "remote"
    components = None
    reader_suffixes: frozenset[str] = frozenset()

    def __init__(self, url: str, api_key: str | None):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError("url must begin with http:// or https:// and contain a host.", field="url")
        self.where = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        self._url = url.rstrip("/")
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Check that the service answers, else raise ServiceUnreachableError."""
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

    async def search(
        self, request: SearchRequest, *, alpha: float | None = None, mode: str | None = None
    ) -> SearchBody:
        if alpha is not None or mode is not None:
            raise InputError(
                "alpha and mode are only available with an embedded service; a remote one uses its own definition."
            )
        return await self._request("POST", "/api/v1/query", SearchBody, json=as_json(request, SearchRequest))

    async def answer(self, request: AnswerRequest) -> AnswerBody:
        return await self._request("POST", _ANSWER, _answer_kind(request), json=as_json(request, AnswerRequest))

    def stream(self, request: AnswerRequest, *, retractable: bool = True) -> AsyncGenerator[WireEvent, None]:
        """The events of an answer; text may be taken back in any case."""
        return self._stream(_ANSWER, as_json(request, AnswerRequest), _EVENTS | {"final": _answer_kind(request)})

    def check_stream(self, request: CheckRequest) -> AsyncGenerator[WireEvent, None]:
        """The events of a check."""
        kinds: _Kinds = {"sentence": SentenceData, "final": CheckBody, "done": CheckDone}
        return self._stream(_CHECK, msgspec.to_builtins(request), kinds)

    async def _stream(self, path: str, body: dict[str, Any], kinds: _Kinds) -> AsyncGenerator[WireEvent, None]:
        """The events of a streamed reply that are of these kinds."""
        body, headers = body | {"stream": True}, {"Accept": NDJSON}
        try:
            async with self._connected().stream("POST", path, json=body, headers=headers) as response:
                if response.is_error:
                    await response.aread()
                    raise error_from(_problem_of(response), response.status_code)
                async for line in _lines(response):
                    event = msgspec.json.decode(line, type=_Event)
                    if event.event == "error":
                        raise error_from(msgspec.json.decode(event.data), 500)
                    if event.event in kinds:
                        yield WireEvent(event.event, msgspec.json.decode(event.data, type=kinds[event.event]))
                    if event.event == "done":
                        return
        except httpx.TransportError as error:
            raise ServiceUnreachableError(f"The service at {self.where} does not respond.") from error
        raise ServiceUnreachableError(f"The service at {self.where} ended the stream before its end.")

    async def read_passages(self, request: SearchRequest, sources: Sequence[SourceBody]) -> list[PassageBody]:
        """An answer has the places of its passages, not their texts: these are searched for again."""
        return (await self.search(request)).passages if sources else []

    async def check(self, request: CheckRequest) -> CheckBody:
        return await self._request("POST", _CHECK, CheckBody, json=msgspec.to_builtins(request))

    async def export(self, corpus_id: UUID, file: Path, on_progress: object = None) -> int:
        return await write_export(self._download(f"/api/v1/corpora/{corpus_id}/export"), file)

    async def import_corpus(
        self, file: Path, *, name: str | None, kind: str | None, index: str | None, keep_access: bool,
        on_progress: object = None,
    ) -> ImportBody:  # fmt: skip
        fields = {"name": name, "kind": kind, "index": index, "access": "keep" if keep_access else None}
        try:
            opened = file.open("rb")
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror}.") from error
        with opened:
            return await self._request(
                "POST",
                "/api/v1/corpora/import",
                ImportBody,
                files={"file": (file.name, opened)},
                data={name: value for name, value in fields.items() if value},
                timeout=_PATIENT,
            )

    async def corpora(self) -> list[CorpusBody]:
        return await self._read_all("/api/v1/corpora", CorpusList)

    async def documents(self, corpus_id: UUID) -> list[DocumentBody]:
        return await self._read_all(f"/api/v1/corpora/{corpus_id}/documents", DocumentList, sort="name")

    async def _read_all(self, path: str, kind: type[Any], **query: str) -> list[Any]:
        """The items of all pages of a list."""
        found: list[Any] = []
        while True:
            part = {**query, "offset": len(found), "limit": _PAGE}
            page = await self._request("GET", path, kind, params=part)
            found += page.items
            if not page.items or len(found) >= page.total:
                return found

    async def _download(self, path: str) -> AsyncGenerator[bytes]:
        """A file in pieces. Raises ServiceUnreachableError, too, if it ends early."""
        try:
            async with self._connected().stream("GET", path) as response:
                if response.is_error:
                    await response.aread()
                    raise error_from(_problem_of(response), response.status_code)
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx.TransportError as error:
            raise ServiceUnreachableError(f"The service at {self.where} does not respond.") from error

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            raise RuntimeError("The service is closed; call open_service() again.")
        return self._client

    async def _request(self, method: str, path: str, kind: type[T], **content: Any) -> T:
        try:
            response = await self._connected().request(method, path, **content)
        except httpx.TransportError as error:
            raise ServiceUnreachableError(f"The service at {self.where} does not respond.") from error
        if response.is_error:
            raise error_from(_problem_of(response), response.status_code)
        return msgspec.json.decode(response.content, type=kind)


def as_json(request: SearchRequest, kind: type[SearchRequest]) -> dict[str, Any]:
    """The fields of a kind of request, without empty ones, for which the service has defaults."""
    fields: dict[str, Any] = msgspec.to_builtins(request)
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    return {name: value for name, value in fields.items() if name in known and value not in (None, [], {})}


def _answer_kind(request: AnswerRequest) -> type[AnswerBody]:
    return KeptAnswerBody if request.keep or request.conversation_id is not None else AnswerBody


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """Lines of NDJSON; those of httpx also end at characters that JSON may contain."""
    rest = b""
    async for part in response.aiter_bytes():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line


def _problem_of(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def error_from(problem: Mapping[str, Any], status: int) -> RagError:
    """The error that a service reported, as the class that it has there."""
    code = str(problem.get("code", ""))
    kind = _find_kind(RagError, code) or RagError
    named = [item.get("field") for item in problem.get("errors", [])]
    message = str(problem.get("detail") or f"The service replied with status {status}.")
    return kind(message, field=named[0] if named else None, retry_after=problem.get("retryAfter"))


def _find_kind(kind: type[RagError], code: str) -> type[RagError] | None:
    if kind.code == code and kind.__init__ is RagError.__init__:
        return kind
    return next((found for child in kind.__subclasses__() if (found := _find_kind(child, code))), None)
