"""OpenAI's files and vector stores as the official client sees them, over the real application."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from rag_service.domain import Identity
from rag_service.store.accounts.keys import Scope
from tests.integration.tenancy.conftest import Street
from tests.integration.tenancy.web import client_of, new_key
from tests.integration.tenancy.world import make_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

HARBOUR = b"The harbour of Brisa opens at six in the morning. Boats leave it before seven."
MARKET = b"The market of Brisa opens at nine in the morning. Stalls close at noon."
OPENS = "When does the harbour of Brisa open?"
MISSING = str(uuid4())
WRITING = {Scope.READ, Scope.WRITE}


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody with the official client."""

    identity: Identity
    client: AsyncOpenAI


class Town:
    """People who use one service."""

    def __init__(self, street: Street, stack: contextlib.AsyncExitStack):
        self._street, self._stack = street, stack

    async def client(self, identity: Identity, scopes: set[Scope] | None = None) -> AsyncOpenAI:
        transport = httpx.ASGITransport(app=self._street.application)  # type: ignore[arg-type]  # an ASGI application
        web = await self._stack.enter_async_context(httpx.AsyncClient(transport=transport))
        key = await new_key(self._street.house, identity, scopes or WRITING)
        return AsyncOpenAI(base_url="http://service/v1", api_key=key, http_client=web, max_retries=0)

    async def person(self, name: str = "ana") -> Person:
        identity = await self._street.house.user(f"{name}-{uuid4().hex[:8]}")
        return Person(identity=identity, client=await self.client(identity))


@pytest_asyncio.fixture(loop_scope="module")
async def town(street: Street) -> AsyncIterator[Town]:
    async with contextlib.AsyncExitStack() as stack:
        yield Town(street, stack)


@pytest_asyncio.fixture(loop_scope="module")
async def working(street: Street) -> AsyncIterator[None]:
    async with street.house.working():
        yield


async def upload(client: AsyncOpenAI, name: str = "harbour.txt", data: bytes = HARBOUR) -> str:
    return (await client.files.create(file=(name, data), purpose="assistants")).id


async def fill(client: AsyncOpenAI, store_id: str, name: str, data: bytes, **attributes: Any) -> str:
    file_id = await upload(client, name, data)
    done = await client.vector_stores.files.create_and_poll(
        file_id, vector_store_id=store_id, attributes=attributes, poll_interval_ms=50
    )
    assert (done.status, done.last_error) == ("completed", None)
    return file_id


async def test_a_file_is_kept_read_listed_and_deleted(town: Town) -> None:
    client = (await town.person()).client
    made = await client.files.create(file=("harbour.txt", HARBOUR), purpose="user_data")
    assert (made.object, made.filename, made.bytes) == ("file", "harbour.txt", len(HARBOUR))
    assert (made.purpose, made.status, made.expires_at) == ("user_data", "uploaded", None)
    assert await client.files.retrieve(made.id) == made
    assert (await client.files.content(made.id)).content == HARBOUR
    assert [one.id async for one in client.files.list(purpose="user_data")] == [made.id]
    assert [one.id async for one in client.files.list(purpose="assistants")] == []
    assert (await client.files.delete(made.id)).deleted
    with pytest.raises(openai.NotFoundError):
        await client.files.retrieve(made.id)


async def test_a_file_may_expire(town: Town) -> None:
    client = (await town.person()).client
    lifetime: Any = {"anchor": "created_at", "seconds": 3600}
    made = await client.files.create(file=("harbour.txt", HARBOUR), purpose="assistants", expires_after=lifetime)
    assert made.expires_at is not None
    assert abs(made.expires_at - made.created_at - 3600) <= 1


async def test_what_waits_in_no_store_is_neither_searched_nor_a_store(town: Town, working: None) -> None:
    person = await town.person()
    await upload(person.client)
    assert [one async for one in person.client.vector_stores.list()] == []
    response: Any = await person.client.responses.create(model="rag-service", input=OPENS)
    assert response.rag["decision"] == "out_of_scope"


async def test_a_store_is_made_changed_listed_and_deleted(town: Town) -> None:
    client = (await town.person()).client
    stores = [await client.vector_stores.create(name=name, metadata={"of": name}) for name in ("one", "two", "three")]
    ids = [store.id for store in stores]
    assert (stores[0].object, stores[0].name, stores[0].status) == ("vector_store", "one", "completed")
    assert (stores[0].metadata, stores[0].file_counts.total, stores[0].usage_bytes) == ({"of": "one"}, 0, 0)
    assert [one.id async for one in client.vector_stores.list(limit=1)] == ids[::-1]
    assert [one.id async for one in client.vector_stores.list(order="asc", limit=2)] == ids
    page = await client.vector_stores.list(order="asc", after=ids[0], limit=1)
    assert ([one.id for one in page.data], page.has_more) == ([ids[1]], True)
    changed = await client.vector_stores.update(ids[0], name="first", metadata={"of": "all"})
    assert (changed.name, changed.metadata) == ("first", {"of": "all"})
    assert (await client.vector_stores.update(ids[0], name="again")).metadata == {"of": "all"}
    assert (await client.vector_stores.retrieve(ids[0])).name == "again"
    assert (await client.vector_stores.create()).name != (await client.vector_stores.create()).name
    assert (await client.vector_stores.delete(ids[0])).deleted
    with pytest.raises(openai.NotFoundError):
        await client.vector_stores.retrieve(ids[0])
    with pytest.raises(openai.ConflictError, match="already exists"):
        await client.vector_stores.create(name="two")


async def test_files_of_a_store_are_found_filtered_and_taken_out(town: Town, working: None) -> None:
    client = (await town.person()).client
    store = await client.vector_stores.create(name="brisa")
    harbour = await fill(client, store.id, "harbour.txt", HARBOUR, year=2024, kind="port", open=True)
    market = await fill(client, store.id, "market.txt", MARKET, year=2019.5, kind="market")
    counts = (await client.vector_stores.retrieve(store.id)).file_counts
    assert (counts.completed, counts.total, counts.in_progress, counts.failed) == (2, 2, 0, 0)
    assert (await client.files.retrieve(harbour)).status == "processed"

    read = await client.vector_stores.files.retrieve(harbour, vector_store_id=store.id)
    assert read.attributes == {"year": 2024, "kind": "port", "open": True}
    assert [one.id async for one in client.vector_stores.files.list(store.id, limit=1)] == [market, harbour]
    assert [one.id async for one in client.vector_stores.files.list(store.id, order="asc")] == [harbour, market]
    assert [one.id async for one in client.vector_stores.files.list(store.id, filter="failed")] == []
    assert len([one async for one in client.vector_stores.files.list(store.id, filter="completed")]) == 2

    found = await client.vector_stores.search(store.id, query=OPENS, rewrite_query=True, max_num_results=5)
    best: Any = found.data[0]
    assert (best.file_id, best.filename) == (harbour, "harbour.txt")
    assert best.attributes == {"year": 2024, "kind": "port", "open": True}
    assert 0 < best.score <= 1
    assert best.content[0].text == HARBOUR.decode()

    await client.vector_stores.files.update(harbour, vector_store_id=store.id, attributes={"year": 2025})
    read = await client.vector_stores.files.retrieve(harbour, vector_store_id=store.id)
    assert read.attributes == {"year": 2025}

    await client.vector_stores.files.delete(harbour, vector_store_id=store.id)
    assert harbour not in {one.file_id async for one in client.vector_stores.search(store.id, query=OPENS)}
    assert (await client.files.content(harbour)).content == HARBOUR  # the file is kept
    again = await client.vector_stores.files.create_and_poll(harbour, vector_store_id=store.id, poll_interval_ms=50)
    assert (again.id, again.status) == (harbour, "completed")

    await client.vector_stores.delete(store.id)
    assert (await client.files.retrieve(market)).status == "uploaded"


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"type": "eq", "key": "kind", "value": "port"}, {"harbour.txt"}),
        ({"type": "ne", "key": "kind", "value": "port"}, {"market.txt"}),
        ({"type": "gt", "key": "year", "value": 2019}, {"harbour.txt", "market.txt"}),
        ({"type": "gte", "key": "year", "value": 2024}, {"harbour.txt"}),
        ({"type": "lt", "key": "year", "value": 2024}, {"market.txt"}),
        ({"type": "lte", "key": "year", "value": 2019.5}, {"market.txt"}),
        ({"type": "in", "key": "kind", "value": ["port", "x"]}, {"harbour.txt"}),
        ({"type": "nin", "key": "kind", "value": ["port", "x"]}, {"market.txt"}),
        ({"type": "eq", "key": "open", "value": True}, {"harbour.txt"}),
        (
            {
                "type": "and",
                "filters": [
                    {"type": "gt", "key": "year", "value": 2000},
                    {
                        "type": "or",
                        "filters": [
                            {"type": "eq", "key": "kind", "value": "market"},
                            {"type": "eq", "key": "kind", "value": "fair"},
                        ],
                    },
                ],
            },
            {"market.txt"},
        ),
    ],
)
async def test_filters_compare_attributes(brisa: tuple[AsyncOpenAI, str], filters: Any, names: set[str]) -> None:
    client, store_id = brisa
    found = await client.vector_stores.search(
        store_id, query="When does it open in the morning?", filters=filters, ranking_options={"score_threshold": 0}
    )
    assert {one.filename for one in found.data} == names


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def brisa(street: Street) -> AsyncIterator[tuple[AsyncOpenAI, str]]:
    """A store of two files, with the client of its owner."""
    async with contextlib.AsyncExitStack() as stack:
        client = (await Town(street, stack).person()).client
        store = await client.vector_stores.create(name="brisa")
        async with street.house.working():
            await fill(client, store.id, "harbour.txt", HARBOUR, year=2024, kind="port", open=True)
            await fill(client, store.id, "market.txt", MARKET, year=2019.5, kind="market")
        yield client, store.id


async def test_file_search_answers_from_the_stores_that_it_names(brisa: tuple[AsyncOpenAI, str]) -> None:
    client, store_id = brisa
    empty = await client.vector_stores.create(name=f"empty {uuid4().hex[:8]}")
    tool: Any = {"type": "file_search", "vector_store_ids": [store_id], "max_num_results": 3}
    response: Any = await client.responses.create(model="rag-service", input=OPENS, tools=[tool])
    assert "opens at six" in response.output_text
    (annotation, *_) = response.output[-1].content[0].annotations
    assert (annotation.type, (await client.files.retrieve(annotation.file_id)).filename) == (
        "file_citation",
        "harbour.txt",
    )
    assert response.rag["ignored"] == []
    call, message = response.output
    assert (call.type, call.status, call.queries, message.type) == ("file_search_call", "completed", [OPENS], "message")
    async with client.responses.stream(model="rag-service", input=OPENS, tools=[tool]) as stream:
        events: list[Any] = [event async for event in stream]
        final: Any = await stream.get_final_response()
    assert final.output_text == response.output_text
    assert [one.type for one in final.output] == ["file_search_call", "message"]
    searching = [event.type for event in events if "file_search" in event.type]
    assert searching == [f"response.file_search_call.{state}" for state in ("in_progress", "searching", "completed")]
    assert {event.output_index for event in events if "output_text" in event.type} == {1}
    for fields in (
        {"vector_store_ids": [empty.id]},
        {"filters": {"type": "eq", "key": "kind", "value": "market"}},
    ):
        other: Any = await client.responses.create(model="rag-service", input=OPENS, tools=[{**tool, **fields}])
        assert "opens at six" not in other.output_text


async def test_file_search_names_what_is_wrong(brisa: tuple[AsyncOpenAI, str]) -> None:
    client, store_id = brisa
    for fields, param in (
        ({"filters": {"type": "like", "key": "k", "value": "v"}}, "tools[0].filters"),
        ({"max_num_results": 0}, "tools[0].max_num_results"),
        ({"vector_store_ids": ["vs_1"]}, "tools[0].vector_store_ids"),
    ):
        tool: Any = {"type": "file_search", "vector_store_ids": [store_id], **fields}
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model="rag-service", input=OPENS, tools=[tool])
        assert caught.value.param == param
    tool = {"type": "file_search", "vector_store_ids": [MISSING]}
    with pytest.raises(openai.NotFoundError, match=MISSING):
        await client.responses.create(model="rag-service", input=OPENS, tools=[tool])


async def test_a_file_that_cannot_be_read_says_why(town: Town, working: None) -> None:
    client = (await town.person()).client
    store = await client.vector_stores.create(name="broken")
    for name, data, code in (
        ("broken.pdf", b"%PDF-1.7 nothing", "invalid_file"),
        ("a.exe", b"MZ\0\1", "unsupported_file"),
    ):
        file_id = await upload(client, name, data)
        done = await client.vector_stores.files.create_and_poll(file_id, vector_store_id=store.id, poll_interval_ms=50)
        assert done.status == "failed"
        assert done.last_error is not None
        assert (done.last_error.code, bool(done.last_error.message)) == (code, True)
        assert (await client.files.retrieve(file_id)).status == "error"
    assert (await client.vector_stores.retrieve(store.id)).file_counts.failed == 2


async def test_a_file_deleted_while_it_waits_is_gone(town: Town, street: Street) -> None:
    client = (await town.person()).client
    store = await client.vector_stores.create(name="waiting", file_ids=[await upload(client)])
    (waiting,) = [one async for one in client.vector_stores.files.list(store.id, filter="in_progress")]
    assert (store.status, store.file_counts.in_progress) == ("in_progress", 1)
    with pytest.raises(openai.ConflictError, match="being indexed"):
        await client.vector_stores.files.update(waiting.id, vector_store_id=store.id, attributes={"a": 1})
    await client.files.delete(waiting.id)
    later = await upload(client, "market.txt", MARKET)
    async with street.house.working():
        await client.vector_stores.files.create_and_poll(later, vector_store_id=store.id, poll_interval_ms=50)
    assert [one.id async for one in client.vector_stores.files.list(store.id)] == [later]
    with pytest.raises(openai.NotFoundError):
        await client.vector_stores.files.retrieve(waiting.id, vector_store_id=store.id)


async def test_a_file_is_in_one_store_at_a_time(town: Town) -> None:
    client = (await town.person()).client
    one, two = [await client.vector_stores.create(name=name) for name in ("one", "two")]
    file_id = await upload(client)
    await client.vector_stores.files.create(one.id, file_id=file_id)
    with pytest.raises(openai.ConflictError, match=one.id):
        await client.vector_stores.files.create(two.id, file_id=file_id)
    with pytest.raises(openai.NotFoundError):
        await client.vector_stores.files.retrieve(file_id, vector_store_id=two.id)
    await client.vector_stores.files.delete(file_id, vector_store_id=one.id)
    await client.vector_stores.files.create(two.id, file_id=file_id)


async def test_what_is_another_users_does_not_exist(brisa: tuple[AsyncOpenAI, str], town: Town, street: Street) -> None:
    owner, store_id = brisa
    (file, *_) = [one async for one in owner.vector_stores.files.list(store_id)]
    stranger = (await town.person("eve")).client
    own = await upload(stranger)
    mine = await stranger.vector_stores.create(name="mine")
    tool: Any = {"type": "file_search", "vector_store_ids": [store_id]}
    for call in (
        stranger.vector_stores.retrieve(store_id),
        stranger.vector_stores.update(store_id, name="taken"),
        stranger.vector_stores.delete(store_id),
        stranger.vector_stores.search(store_id, query=OPENS),
        stranger.vector_stores.files.list(store_id),
        stranger.vector_stores.files.create(store_id, file_id=own),
        stranger.vector_stores.files.create(mine.id, file_id=file.id),
        stranger.vector_stores.create(name="stolen", file_ids=[file.id]),
        stranger.vector_stores.files.retrieve(file.id, vector_store_id=store_id),
        stranger.vector_stores.files.update(file.id, vector_store_id=store_id, attributes={}),
        stranger.vector_stores.files.delete(file.id, vector_store_id=store_id),
        stranger.files.retrieve(file.id),
        stranger.files.content(file.id),
        stranger.files.delete(file.id),
        stranger.files.list(after=file.id),
        stranger.vector_stores.list(after=store_id),
        stranger.responses.create(model="rag-service", input=OPENS, tools=[tool]),
    ):
        with pytest.raises(openai.NotFoundError):
            await call
    assert [one.id async for one in stranger.files.list()] == [own]
    assert [one.id async for one in stranger.vector_stores.list()] == [mine.id]  # and none called `stolen`
    assert len([one async for one in owner.vector_stores.files.list(store_id)]) == 2


@pytest.mark.parametrize(
    ("param", "path", "body"),
    [
        ("expires_after", "/v1/vector_stores", {"expires_after": {"anchor": "last_active_at", "days": 1}}),
        ("name", "/v1/vector_stores", {"name": " "}),
        ("metadata", "/v1/vector_stores", {"metadata": {str(key): "" for key in range(17)}}),
        ("query", "/v1/vector_stores/{store}/search", {"query": []}),
        ("query", "/v1/vector_stores/{store}/search", {"query": " "}),
        ("max_num_results", "/v1/vector_stores/{store}/search", {"query": "q", "max_num_results": 51}),
        ("filters", "/v1/vector_stores/{store}/search", {"query": "q", "filters": {"type": "near"}}),
        ("filters.and", "/v1/vector_stores/{store}/search", {"query": "q", "filters": {"type": "and", "filters": []}}),
        (
            "filters.filters[0].key",
            "/v1/vector_stores/{store}/search",
            {"query": "q", "filters": {"type": "or", "filters": [{"type": "eq", "value": 1}]}},
        ),
        ("attributes", "/v1/vector_stores/{store}/files", {"file_id": MISSING, "attributes": {"a": []}}),
        ("attributes", "/v1/vector_stores/{store}/files", {"file_id": MISSING, "attributes": {"a": "\0"}}),
        ("file_id", "/v1/vector_stores/{store}/files", {}),
    ],
)
async def test_bad_input_names_its_field(
    brisa: tuple[AsyncOpenAI, str], street: Street, param: str, path: str, body: Any
) -> None:
    client, store_id = brisa
    async with client_of(street.application, client.api_key) as web:
        reply = await web.post(path.replace("{store}", store_id), json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


async def test_unknown_ids_and_purposes_are_refused(brisa: tuple[AsyncOpenAI, str]) -> None:
    client, store_id = brisa
    for purpose in ("fine-tune", "batch", "vision"):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.files.create(file=("a.txt", b"a"), purpose=purpose)  # type: ignore[arg-type]
        assert caught.value.param == "purpose"
    for file_id in (MISSING, "file-abc"):
        with pytest.raises(openai.NotFoundError):
            await client.vector_stores.files.create(store_id, file_id=file_id)
    with pytest.raises(openai.NotFoundError):
        await client.vector_stores.retrieve("vs_abc")
    with pytest.raises(openai.BadRequestError, match="before"):
        await client.vector_stores.list(before=store_id)
    ignored: Any = await client.vector_stores.create(name=f"d {uuid4().hex[:8]}", description="of no effect")
    assert ignored.ignored == ["description"]


async def test_a_key_that_may_only_read_changes_nothing(street: Street, town: Town) -> None:
    person = await town.person()
    store = await person.client.vector_stores.create(name="kept")
    reader = await town.client(person.identity, {Scope.READ})
    assert (await reader.vector_stores.search(store.id, query=OPENS)).data == []
    for call in (
        reader.files.create(file=("a.txt", b"a"), purpose="assistants"),
        reader.vector_stores.create(name="new"),
        reader.vector_stores.delete(store.id),
    ):
        with pytest.raises(openai.PermissionDeniedError):
            await call


async def test_what_was_uploaded_elsewhere_is_a_file_of_its_corpus(street: Street, town: Town) -> None:
    world = await make_world(street.house)
    client = await town.client(world.owner)
    corpus, document = str(world.ids["corpus_id"]), str(world.ids["document_id"])
    (file,) = [one async for one in client.vector_stores.files.list(corpus)]
    assert (file.id, file.status) == (document, "completed")
    assert document in {one.id async for one in client.files.list()}
    await client.vector_stores.delete(corpus)
    with pytest.raises(openai.NotFoundError):  # it never was a file in no store
        await client.files.retrieve(document)
