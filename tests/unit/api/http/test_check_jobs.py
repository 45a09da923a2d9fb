"""Checks in the background: bounded, and each only for who asked for it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from litestar.testing import AsyncTestClient

from rag_service.answering.checking import TextChecker
from rag_service.answering.prompt.templates import load_prompts
from rag_service.api.http import check_jobs
from rag_service.api.http.check import check_events
from rag_service.api.http.check_jobs import CheckJobs
from rag_service.api.http.events import WireEvent
from rag_service.api.http.schemas import CheckedPassage, CheckRequest
from rag_service.domain import LOCAL_ADMIN, Identity
from rag_service.errors import NotFoundError, RateLimitedError, StoreError
from rag_service.settings import Settings
from tests.unit.api.samples import ADMIN, Script, application_over

TEXT, PASSAGE = "The pool opens at nine. The mayor resigned.", "The pool opens at nine."
BODY = {"text": TEXT, "passages": [{"text": PASSAGE}]}


def checker() -> TextChecker:
    return TextChecker(load_prompts(None), None, None)


async def ended(jobs: CheckJobs, started: Any) -> Any:
    async with asyncio.timeout(60):
        while jobs.read(started.id, ADMIN).state in ("waiting", "running"):  # noqa: ASYNC110 - as a client does
            await asyncio.sleep(0.01)
    return jobs.read(started.id, ADMIN)


async def test_a_check_goes_on_in_the_background_and_only_its_user_reads_it() -> None:
    jobs = CheckJobs()
    request = CheckRequest(text=TEXT, passages=[CheckedPassage(text=PASSAGE)])
    started = jobs.start(check_events(checker().check, request, ADMIN), ADMIN)
    assert started.state == "waiting"
    done = await ended(jobs, started)
    assert (done.state, done.sentences, msgspec.json.decode(done.result)["decision"]) == ("done", 2, "uncertain")
    with pytest.raises(NotFoundError):
        jobs.read(started.id, LOCAL_ADMIN)


async def test_a_failed_check_tells_its_problem() -> None:
    async def fail() -> AsyncGenerator[WireEvent, None]:
        raise StoreError("secret internals")
        yield

    jobs = CheckJobs()
    failed = await ended(jobs, jobs.start(fail(), ADMIN))
    assert (failed.state, failed.error["code"]) == ("failed", "store_unavailable")
    assert "secret" not in str(failed)


async def test_checks_are_bounded_by_user_and_end_with_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = 0

    async def endless() -> AsyncGenerator[WireEvent, None]:
        nonlocal closed
        try:
            await asyncio.sleep(60)
            yield WireEvent("done", None)  # type: ignore[arg-type]
        finally:
            closed += 1

    jobs = CheckJobs()
    for _ in range(4):
        jobs.start(endless(), ADMIN)
    with pytest.raises(RateLimitedError):
        jobs.start(endless(), ADMIN)
    other = jobs.start(endless(), LOCAL_ADMIN)
    await asyncio.sleep(0.01)
    await jobs.aclose()
    assert (closed, jobs.read(other.id, LOCAL_ADMIN).state) == (5, "failed")
    monkeypatch.setattr(check_jobs, "_KEPT_SECONDS", -1.0)
    with pytest.raises(NotFoundError):
        jobs.read(other.id, LOCAL_ADMIN)


async def test_results_give_way_to_newer_ones_of_the_same_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_jobs, "_KEPT_PER_USER", 3)

    async def check(jobs: CheckJobs, identity: Identity) -> UUID:
        request = CheckRequest(text=TEXT, passages=[CheckedPassage(text=PASSAGE)])
        started = jobs.start(check_events(checker().check, request, identity), identity)
        async with asyncio.timeout(60):
            while jobs.read(started.id, identity).state != "done":  # noqa: ASYNC110 - as a client does
                await asyncio.sleep(0.01)
        return started.id

    jobs = CheckJobs()
    theirs = await check(jobs, LOCAL_ADMIN)
    mine = [await check(jobs, ADMIN) for _ in range(5)]
    assert jobs.read(theirs, LOCAL_ADMIN).result is not None
    for gone in mine[:2]:
        with pytest.raises(NotFoundError):
            jobs.read(gone, ADMIN)
    assert all(jobs.read(kept, ADMIN).result for kept in mine[2:])
    # What is too much in all is taken from whoever has most, however old the results of others are.
    monkeypatch.setattr(check_jobs, "_KEPT_BYTES", len(msgspec.json.encode(jobs.read(mine[-1], ADMIN).result)) * 2 + 9)
    assert jobs.read(mine[-1], ADMIN).result is not None
    assert jobs.read(theirs, LOCAL_ADMIN).result is not None
    with pytest.raises(NotFoundError):
        jobs.read(mine[2], ADMIN)


async def test_the_api_streams_a_check_and_takes_it_into_the_background() -> None:
    services = dataclasses.replace(Script().services(Settings()), check=checker().check)
    application = application_over(services)
    application.state.checks = CheckJobs()
    async with AsyncTestClient(application, base_url="http://127.0.0.1") as client:
        plain = (await client.post("/api/v1/check", json=BODY)).json()
        headers = {"Accept": "application/x-ndjson"}
        streamed = await client.post("/api/v1/check", json=BODY | {"stream": True}, headers=headers)
        lines = [json.loads(line) for line in streamed.text.splitlines()]
        assert [line["event"] for line in lines] == ["sentence", "sentence", "final", "done"]
        assert lines[-2]["data"]["sentences"] == plain["sentences"]
        taken = await client.post("/api/v1/check", json=BODY | {"background": True})
        assert taken.status_code == 202
        async with asyncio.timeout(60):
            while (read := (await client.get(f"/api/v1/check/{taken.json()['id']}")).json())["state"] != "done":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert read["result"]["sentences"] == plain["sentences"]
        both = await client.post("/api/v1/check", json=BODY | {"background": True, "stream": True})
        gone = await client.get(f"/api/v1/check/{uuid4()}")
    assert (both.status_code, gone.status_code) == (400, 404)
