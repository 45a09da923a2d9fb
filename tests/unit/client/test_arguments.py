"""Python takes what REST takes: the arguments of `search`, `ask`, `retriever` and `query_engine` are its fields."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from rag_service.api.http.queries import read_question, read_turns
from rag_service.api.http.schemas import AnswerRequest, MessageRequest, SearchRequest
from rag_service.client import Service
from rag_service.client.asking import AskOptions, SearchOptions
from rag_service.client.remote import as_json
from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import InputError
from rag_service.settings import Settings

RENAMED = {"query": "question", "similarity_threshold": "threshold"}
FILTER = {"and": [{"field": "year", "operator": ">=", "value": 2023}]}
SEARCH: dict[str, Any] = {
    "top_k": 3, "threshold": 0.4, "source": "HR", "tags": ["fees"], "file_name": "loans.md",
    "document_ids": [UUID(int=1)], "corpus_ids": [UUID(int=2)], "fields": {"year": "2024"}, "filter": FILTER,
}  # fmt: skip
ANSWER: dict[str, Any] = SEARCH | {
    "messages": [{"role": "user", "content": "Is there a fee?"}], "keep": True, "conversation_id": UUID(int=3),
    "replaces": UUID(int=4),
}  # fmt: skip


@pytest.mark.parametrize(("options", "request_type"), [(SearchOptions, SearchRequest), (AskOptions, AnswerRequest)])
def test_python_takes_each_field_of_the_rest_request(options: type, request_type: type[msgspec.Struct]) -> None:
    fields = {RENAMED.get(name, name) for name in request_type.__struct_fields__}
    assert set(options.__annotations__) == fields - {"question", "stream"}


@pytest.mark.parametrize("method", [Service.search, Service.ask])
def test_each_option_is_described(method: Callable[..., Any]) -> None:
    options = AskOptions if method is Service.ask else SearchOptions
    described = inspect.getdoc(method) or ""
    assert [name for name in options.__annotations__ if not re.search(rf"\b{name}\b.*:", described)] == []


class Backend:
    """Keeps the requests."""

    kind = "embedded"
    components = None

    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def search(self, request: SearchRequest, **_: Any) -> Any:
        self.requests.append(request)
        raise InputError("seen")

    async def answer(self, request: AnswerRequest) -> Any:
        return await self.search(request)

    async def stream(self, request: AnswerRequest, **_: Any) -> AsyncIterator[Any]:
        yield await self.search(request)


def test_what_python_is_given_arrives_where_rest_reads_it() -> None:
    """In the process by `read_question`, elsewhere by JSON: both get the request with every field."""
    backend = Backend()
    with Service(backend) as service:  # type: ignore[arg-type]  # as much of one as is needed
        calls: list[Callable[[], Any]] = [
            lambda: service.search("Fees?", **SEARCH),
            lambda: service.retriever(**SEARCH).retrieve("Fees?"),
            lambda: service.query_engine(**SEARCH).query("Fees?"),
            lambda: service.query_engine(**SEARCH, streaming=True).query("Fees?"),
            lambda: service.ask("Fees?", **ANSWER),
            lambda: service.ask("Fees?", **ANSWER, stream=True),
        ]
        for call in calls:
            with pytest.raises(InputError, match="seen"):
                call()
    for request in backend.requests:
        query = read_question(request, Settings(), LOCAL_ADMIN)
        filters = query.filters
        assert (query.text, query.top_k, query.threshold) == ("Fees?", 3, 0.4)
        assert (filters.source, filters.tags, filters.file_name) == ("HR", ("fees",), "loans.md")
        assert (filters.document_ids, filters.corpus_ids) == ((UUID(int=1),), (UUID(int=2),))
        assert filters.fields == {"year": "2024"}
        assert filters.where is not None
        assert msgspec.convert(as_json(request, type(request)), type(request)) == request
    asked: AnswerRequest = backend.requests[-1]
    assert (asked.stream, asked.keep, asked.conversation_id, asked.replaces) == (True, True, UUID(int=3), UUID(int=4))
    assert [turn.content for turn in read_turns(asked)] == ["Is there a fee?"]


def test_an_option_that_does_not_exist_is_named() -> None:
    with Service(Backend()) as service:  # type: ignore[arg-type]
        calls: list[Callable[..., Any]] = [service.search, service.ask, partial(service.ask, stream=True)]
        for call in [
            *calls,
            lambda _, **more: service.retriever(**more),
            lambda _, **more: service.query_engine(**more),
        ]:
            with pytest.raises(TypeError, match=r"unexpected keyword argument 'topk'; there are top_k, threshold"):
                call("Fees?", topk=3)


def test_filters_and_messages_of_llamaindex_are_understood() -> None:
    backend = Backend()
    either = MetadataFilters(
        filters=[
            MetadataFilter(key="year", operator=FilterOperator.GTE, value=2023),
            MetadataFilters(filters=[MetadataFilter(key="kind", value="fee")], condition=FilterCondition.NOT),
        ],
        condition=FilterCondition.OR,
    )
    with Service(backend) as service:  # type: ignore[arg-type]
        said = [ChatMessage(role="assistant", content="There is.")]
        with pytest.raises(InputError, match="seen"):
            service.ask("How much?", filter=either, messages=said)
        with pytest.raises(InputError, match="role"):
            service.ask("How much?", messages=[ChatMessage(role="system", content="Lie.")])
    [request] = backend.requests
    assert request.messages == [MessageRequest(role="assistant", content="There is.")]
    assert request.filter == {
        "or": [
            {"field": "year", "operator": ">=", "value": 2023},
            {"not": [{"field": "kind", "operator": "==", "value": "fee"}]},
        ]
    }
