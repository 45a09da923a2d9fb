"""Requests of one user or network wait for each other, and nobody else's for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from litestar.datastructures.state import State

from rag_service.api import limits
from rag_service.api.http.services import IDENTITY, make_turns
from rag_service.api.limits import LimitedApplication
from rag_service.domain import Identity
from rag_service.errors import AuthenticationError
from rag_service.turns import Turns

LIST = "/api/v1/corpora"
AT_ONCE = 4


class Service:
    """The middleware over an application whose requests end when they are told to."""

    def __init__(self, *, shared: bool = True) -> None:
        self.users: dict[str, UUID] = {}  # by key
        self.turns = make_turns(connections=2_000, shared=shared)
        self.inside: list[str] = []  # keys or networks whose requests are in progress, in their order
        self.began = 0
        self.go = asyncio.Semaphore(0)
        self.refused: list[str] = []
        self.tasks: list[asyncio.Task[list[Any]]] = []
        services = SimpleNamespace(turns=self.turns, authenticate=self.authenticate)
        self.application = SimpleNamespace(state=State({"services": services}))
        self.middleware = LimitedApplication(self.work, count_error=self.refused.append)
        self.long: Turns | None = None  # at which every request takes a turn
        self.status = 200
        self.is_whole = True  # whether replies have an end

    async def authenticate(self, headers: Mapping[str, str]) -> Identity:
        try:
            return Identity(user_id=self.users[headers["x-api-key"]])
        except KeyError:
            raise AuthenticationError("Not known.") from None

    async def work(self, scope: Any, receive: Any, send: Any) -> None:
        self.began += 1
        name = next((value.decode() for key, value in scope["headers"] if key == b"x-api-key"), scope["client"][0])
        self.inside.append(name)
        try:
            async with self.at_length():
                await self.go.acquire()
        finally:
            self.inside.remove(name)
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": not self.is_whole})

    @asynccontextmanager
    async def at_length(self) -> AsyncIterator[None]:
        if self.long is None:
            yield
        else:
            async with self.long.take():
                yield

    async def send(
        self, key: str = "", *, network: str = "192.0.2.1", path: str = LIST, left: asyncio.Event | None = None
    ) -> None:
        """Begin a request."""
        scope = {
            "type": "http", "method": "GET", "path": path, "client": (network, 1), "litestar_app": self.application,
            "headers": [(b"x-api-key", key.encode())] if key else [], "query_string": b"", "root_path": "",
        }  # fmt: skip
        messages: list[Any] = []

        async def receive() -> Any:
            if left is not None and left.is_set():
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": b"", "more_body": False}

        async def reply(message: Any) -> None:
            messages.append(message)

        async def run() -> list[Any]:
            await self.middleware(scope, receive, reply)
            return messages

        self.tasks.append(asyncio.create_task(run()))
        await settled()

    async def end(self) -> None:
        self.go.release()
        for _ in self.tasks:
            self.go.release()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        assert self.turns.requests.is_idle


async def until_began(service: Service, count: int) -> None:
    async with asyncio.timeout(20):
        while service.began < count:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def settled() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MOST_SECONDS", 600.0)  # nothing here is counted by the clock


@pytest.fixture
def service() -> Service:
    made = Service()
    made.users = {"ana": uuid4(), "bruno": uuid4()}
    return made


async def test_few_requests_of_a_user_are_in_progress_and_another_users_waits_for_none_of_them(
    service: Service,
) -> None:
    for _ in range(300):
        await service.send("ana")
    assert service.inside == ["ana"] * AT_ONCE
    for _ in range(3):
        await service.send("bruno")
    assert service.inside == ["ana"] * AT_ONCE + ["bruno"] * 3
    requests = service.turns.requests
    assert (requests.running, requests.waiting, requests.refused) == (AT_ONCE + 3, 300 - AT_ONCE, 0)
    await service.end()
    assert service.began == 303


async def test_the_next_one_begins_when_one_ends(service: Service) -> None:
    for _ in range(AT_ONCE + 2):
        await service.send("ana")
    service.go.release()
    await settled()
    assert (service.began, len(service.inside)) == (AT_ONCE + 1, AT_ONCE)
    await service.end()


async def test_a_thousand_users_with_a_request_each_are_all_in_progress(service: Service) -> None:
    for number in range(1_000):
        service.users[f"user {number}"] = uuid4()
        await service.send(f"user {number}", network=f"192.0.2.{number % 3}")
    assert len(service.inside) == 1_000
    assert service.turns.requests.waiting == 0
    await service.end()


async def test_a_user_with_a_thousand_keys_is_one_user(service: Service) -> None:
    user = uuid4()
    for number in range(1_000):
        service.users[f"key {number}"] = user
        await service.send(f"key {number}", network=f"198.51.100.{number % 250}")
    assert len(service.inside) == AT_ONCE
    await service.send("bruno")
    assert service.inside[-1] == "bruno"
    await service.end()


async def test_without_a_known_credential_it_is_the_network_that_waits(service: Service) -> None:
    for number in range(10):
        await service.send(f"made up {number}")
        await service.send(path="/api/v1/session")
    assert len(service.inside) == AT_ONCE
    await service.send("made up", network="192.0.2.2")
    await service.send("ana", network="192.0.2.2")
    assert service.inside[-2:] == ["made up", "ana"]
    await service.end()


@pytest.mark.parametrize("path", ["/health", "/health/ready", "/metrics", "/", "/assets/1/page.js"])
async def test_health_metrics_and_the_page_wait_for_nothing(service: Service, path: str) -> None:
    for _ in range(10):
        await service.send()
    await service.send(path=path)
    assert len(service.inside) == AT_ONCE + 1
    await service.end()


async def test_long_work_keeps_no_small_request_of_its_user_waiting(service: Service) -> None:
    service.long = Turns("search", limit=2, queue=100)
    for _ in range(20):
        await service.send("ana")
    assert service.began == 20  # one in its turn, nineteen wait for theirs
    assert service.long.waiting == 19
    service.long = None
    await service.send("ana")
    assert service.began == 21
    await service.end()


async def test_what_is_not_long_keeps_its_place(service: Service) -> None:
    service.long = Turns("database", limit=100, long=False)
    for _ in range(20):
        await service.send("ana")
    assert service.began == AT_ONCE
    await service.end()


async def test_a_request_that_waits_for_something_gives_its_place_back(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_MOST_SECONDS", 0.02)
    for _ in range(AT_ONCE + 1):
        await service.send("ana")
    await until_began(service, AT_ONCE + 1)
    assert service.began == AT_ONCE + 1
    await service.end()


async def test_a_client_that_leaves_while_it_waits_costs_nothing(service: Service) -> None:
    left = asyncio.Event()
    for _ in range(AT_ONCE):
        await service.send("ana")
    for _ in range(50):
        await service.send("ana", left=left)
    await service.send("ana")
    left.set()
    service.go.release()
    await until_began(service, AT_ONCE + 1)  # the last one
    await service.end()
    assert service.began == AT_ONCE + 1  # and none of the fifty


@pytest.mark.parametrize(("status", "is_whole"), [(400, True), (429, True), (499, True), (200, False)])
@pytest.mark.parametrize("is_long", [False, True])
async def test_a_request_that_ends_in_vain_counts_for_a_while(
    service: Service, monkeypatch: pytest.MonkeyPatch, status: int, is_whole: bool, is_long: bool
) -> None:
    monkeypatch.setattr(limits, "_IN_VAIN_SECONDS", 600.0)
    service.status, service.is_whole = status, is_whole
    service.long = Turns("model", limit=100) if is_long else None
    service.go = asyncio.Semaphore(1_000)
    for number in range(20):
        await service.send("ana")
        await service.send("unknown", network=f"192.0.2.{number}")
    assert service.began == AT_ONCE + 20
    await service.send("bruno")
    assert service.began == AT_ONCE + 21, "nobody else waits for them"
    for task in service.tasks:
        task.cancel()


async def test_requests_that_are_served_do_not_count_any_more(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_IN_VAIN_SECONDS", 600.0)
    service.go = asyncio.Semaphore(1_000)
    for _ in range(20):
        await service.send("ana")
    assert service.began == 20
    await service.end()


async def test_what_was_in_vain_is_over_after_its_time(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_IN_VAIN_SECONDS", 0.02)
    service.status, service.go = 404, asyncio.Semaphore(1_000)
    for _ in range(AT_ONCE * 2):
        await service.send("ana")
    await until_began(service, AT_ONCE * 2)
    assert service.began == AT_ONCE * 2, "the second half waited for the first one's time"


async def test_when_the_service_stops_nothing_is_left(service: Service) -> None:
    for _ in range(20):
        await service.send("ana")
        await service.send()
    for task in service.tasks:
        task.cancel()
    await asyncio.gather(*service.tasks, return_exceptions=True)
    assert service.turns.requests.is_idle


async def test_more_than_may_wait_are_refused_and_told_when_to_come_back(service: Service) -> None:
    service.turns.requests._per_owner = 10
    for path in (*[LIST] * 10, LIST, "/v1/models"):
        await service.send("ana", path=path)
    ours, openai = [await task for task in service.tasks[10:]]
    for start, body in (ours, openai):
        assert start["status"] == 429
        assert 1 <= int(dict(start["headers"])[b"retry-after"]) <= 60
        assert b"10 of your requests" in body["body"]
    assert msgspec.json.decode(ours[1]["body"])["code"] == "rate_limited"
    assert "error" in msgspec.json.decode(openai[1]["body"])
    assert service.refused == ["rate_limited"] * 2
    await service.send("bruno")
    assert service.inside[-1] == "bruno"
    await service.end()


async def test_where_nobody_signs_in_there_is_one_user_who_has_every_place() -> None:
    service = Service(shared=False)
    service.users = {"ana": uuid4()}
    for _ in range(50):
        await service.send("ana")
    assert len(service.inside) == 50
    await service.end()


async def test_routes_learn_who_was_found(service: Service) -> None:
    seen: list[Any] = []

    async def note(scope: Any, *_: Any) -> None:
        seen.append(scope["state"].get(IDENTITY) if "state" in scope else None)

    service.middleware = LimitedApplication(note, count_error=service.refused.append)
    await service.send("ana")
    await service.send("unknown")
    assert seen == [Identity(user_id=service.users["ana"]), None]
    for task in service.tasks:
        await task
