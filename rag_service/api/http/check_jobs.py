"""Checks in the background: a few for each user, kept in this process for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID, uuid4

import msgspec

from rag_service.api.http.events import WireEvent
from rag_service.api.http.problems import report
from rag_service.api.http.schemas import CheckBody, CheckJobBody, SentenceData
from rag_service.domain import Identity
from rag_service.errors import NotFoundError, RateLimitedError
from rag_service.tasks import end_tasks

_OPEN_PER_USER = 4  # waiting or running: a user cannot fill the queue of the others
_KEPT_PER_USER = 10  # a user cannot push out the results of the others
_KEPT = 200  # checks in all
_KEPT_BYTES = 128 * 2**20  # of their results; one of a text of 200,000 characters with many citations has some MB
_KEPT_SECONDS = 3600.0
_RETRY_SECONDS = 10


@dataclass(kw_only=True, eq=False)
class _Job:
    owner: UUID
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    sentences: int = 0
    result: bytes = b""  # JSON, which takes a fraction of the objects
    error: dict[str, Any] | None = None
    ended: float | None = None  # time.monotonic()
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class CheckJobs:
    """The checks of a server process."""

    def __init__(self) -> None:
        self._jobs: dict[UUID, _Job] = {}

    def start(self, events: AsyncGenerator[WireEvent, None], identity: Identity) -> CheckJobBody:
        """Check in the background, `events` waiting for their turn; of a user's results the oldest gives way.

        Raises RateLimitedError if too many checks are open.
        """
        self._forget()
        own = [job_id for job_id, job in self._jobs.items() if job.owner == identity.user_id]
        ended = [job_id for job_id in self._ended() if job_id in own]
        for job_id in ended[: max(0, len(own) + 1 - _KEPT_PER_USER)]:
            del self._jobs[job_id]
        if len(own) - len(ended) >= _OPEN_PER_USER or len(self._jobs) >= _KEPT:
            raise RateLimitedError("Too many checks are in progress.", retry_after=_RETRY_SECONDS)
        job_id, job = uuid4(), _Job(owner=identity.user_id)
        self._jobs[job_id] = job
        job.task = asyncio.create_task(self._run(job, events))
        return self.read(job_id, identity)

    def read(self, job_id: UUID, identity: Identity) -> CheckJobBody:
        """State and result. Raises NotFoundError if there is none of this user's."""
        self._forget()
        job = self._jobs.get(job_id)
        if job is None or job.owner != identity.user_id:
            raise NotFoundError("There is no such check; finished ones are kept for an hour.")
        # Megabytes, which are not decoded to be encoded again.
        result: Any = msgspec.Raw(job.result) if job.result else None
        return CheckJobBody(id=job_id, state=job.state, sentences=job.sentences, result=result, error=job.error)

    async def aclose(self) -> None:
        """Stop all checks."""
        await end_tasks(*(job.task for job in self._jobs.values() if job.task is not None))

    async def _run(self, job: _Job, events: AsyncGenerator[WireEvent, None]) -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    job.state = "running"
                    if isinstance(event.data, SentenceData):
                        job.sentences += 1
                    elif isinstance(event.data, CheckBody):
                        job.result = await asyncio.to_thread(msgspec.json.encode, event.data)
            job.state = "done"
        except asyncio.CancelledError:
            job.state = "failed"
            raise
        except Exception as error:  # noqa: BLE001 - logged, and told to who asked
            job.state, job.error = "failed", msgspec.to_builtins(report(error))
        finally:
            job.ended = time.monotonic()

    def _ended(self) -> list[UUID]:
        """Those that have ended, oldest first."""
        ended = [(job.ended, job_id) for job_id, job in self._jobs.items() if job.ended is not None]
        return [job_id for _, job_id in sorted(ended)]

    def _forget(self) -> None:
        """Drop what ended long ago, and what is too much."""
        now = time.monotonic()
        for job_id in self._ended():
            if now - (self._jobs[job_id].ended or now) > _KEPT_SECONDS:
                del self._jobs[job_id]
        # Of too many, or too large ones, the oldest of whoever has most gives way, never that of somebody else.
        while (left := self._ended()) and (len(self._jobs) >= _KEPT or self._size(None) > _KEPT_BYTES):
            most = max((self._jobs[job_id].owner for job_id in left), key=self._size)
            del self._jobs[next(job_id for job_id in left if self._jobs[job_id].owner == most)]

    def _size(self, owner: UUID | None) -> int:
        """Bytes of the results of a user, and one for each check; None: of all."""
        return sum(1 + len(job.result) for job in self._jobs.values() if owner in (None, job.owner))
