"""Sources that workers keep corpora equal to: where they are, when they run, how the last run ended.

A worker syncs a source under a *claim* that ends unless it is renewed, so that another one goes on after a crash.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

import psycopg

from rag_service.domain import CorpusKind, Identity, Role
from rag_service.errors import ConflictError, InputError
from rag_service.store.corpora import lock_corpora, require_writable
from rag_service.store.database import Connection
from rag_service.store.documents.synced import lock_target
from rag_service.store.rows import Page, Slice, Table, fetch_value, find_one

EVERY_SECONDS = (900, 30 * 86_400)  # least and most between two runs
MAX_DEPTH = 20  # links to follow
MAX_SOURCES = 50  # of one corpus
MAX_TARGET = 2000  # characters


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What a run did, in files or pages."""

    added: int = 0
    changed: int = 0
    renamed: int = 0
    deleted: int = 0
    unchanged: int = 0
    kept: int = 0  # gone from the source, but not deleted
    not_taken: int = 0
    reasons: tuple[str, ...] = ()  # the first of those not taken, each with the reason


class SourceStatus(StrEnum):
    WAITING = "waiting"  # for its first run, or the next one
    RUNNING = "running"
    FAILED = "failed"  # the last run; it is tried again


@dataclass(frozen=True, kw_only=True)
class ScheduledSource:
    id: UUID
    corpus_id: UUID
    corpus_name: str
    corpus_kind: CorpusKind
    target: str
    depth: int  # links to follow from a page
    every_seconds: int  # between two runs
    status: SourceStatus
    next_run_at: datetime
    last_run_at: datetime | None  # its end
    report: RunReport | None  # of the last run that succeeded
    error: str | None  # of the last run
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class ClaimedSource:
    """A source that a worker syncs, and as whom."""

    id: UUID
    claim: int
    corpus_id: UUID
    user_id: UUID
    role: Role  # of the user, now
    target: str
    depth: int

    @property
    def identity(self) -> Identity:
        return Identity(user_id=self.user_id, role=self.role)


_SOURCES = Table(
    "sources s JOIN corpora c ON c.id = s.corpus_id",
    ScheduledSource,
    missing="This source does not exist.",
    columns="""s.id, s.corpus_id, c.name AS corpus_name, c.kind AS corpus_kind, s.target, s.depth, s.every_seconds,
        s.next_run_at, s.last_run_at, s.report, s.error, s.created_at,
        CASE WHEN s.leased_until >= now() THEN 'running' WHEN s.error IS NOT NULL THEN 'failed'
             ELSE 'waiting' END AS status""",
)


async def add_source(
    connection: Connection, identity: Identity, *, corpus_id: UUID, target: str, depth: int, every_seconds: int
) -> ScheduledSource:
    """Add a source, which runs as the identity and is due at once.

    Raises:
        InputError: a number is out of range.
        ConflictError: the corpus has this source, or too many, or is deactivated.
        NotFoundError, PermissionDeniedError: the corpus is missing or not writable.
    """
    if not EVERY_SECONDS[0] <= every_seconds <= EVERY_SECONDS[1]:
        raise InputError(f"must be from {EVERY_SECONDS[0]} to {EVERY_SECONDS[1]} seconds.", field="everySeconds")
    await require_writable(connection, corpus_id)
    await lock_corpora(connection, {str(corpus_id)})
    if await fetch_value(connection, "SELECT count(*) FROM sources WHERE corpus_id = %s", [corpus_id]) >= MAX_SOURCES:
        raise ConflictError(f"The corpus has {MAX_SOURCES} sources; remove one of them first.")
    try:
        source_id = await fetch_value(
            connection,
            "INSERT INTO sources (corpus_id, user_id, target, depth, every_seconds) VALUES (%s, %s, %s, %s, %s)"
            " RETURNING id",
            [corpus_id, identity.user_id, target, depth, every_seconds],
        )
    except psycopg.errors.UniqueViolation as error:
        raise ConflictError(f"{target} is a source of this corpus already.", field="target") from error
    return await read_source(connection, source_id)


async def read_source(connection: Connection, source_id: UUID) -> ScheduledSource:
    """A source by id. Raises NotFoundError unless the identity may write to its corpus."""
    return await _SOURCES.get(connection, "WHERE s.id = %s", [source_id])


async def list_sources(connection: Connection, part: Slice) -> Page[ScheduledSource]:
    """The sources of all corpora that the identity may write to."""
    return await _SOURCES.page(connection, part, "ORDER BY c.name, s.target, s.id")


async def run_source_soon(connection: Connection, source_id: UUID) -> ScheduledSource:
    """Make a source due now. Raises as `read_source`."""
    await connection.execute("UPDATE sources SET next_run_at = now() WHERE id = %s", [source_id])
    return await read_source(connection, source_id)


async def remove_source(connection: Connection, source_id: UUID, *, documents: bool) -> None:
    """Remove a source, with the documents that it brought or without. A run of it stops soon.

    The documents that stay are its own again if it is added once more. Raises NotFoundError as `read_source`, and
    ConflictError if documents are to go while it is synced.
    """
    source = await read_source(connection, source_id)
    await connection.execute("DELETE FROM sources WHERE id = %s", [source_id])
    if documents:
        await lock_target(connection, source.corpus_id, source.target)
        await lock_corpora(connection, {str(source.corpus_id)})
        await connection.execute(
            """DELETE FROM documents d USING synced_files s
               WHERE s.document_id = d.id AND s.corpus_id = %s AND s.target = %s AND s.brought""",
            [source.corpus_id, source.target],
        )


async def claim_source(connection: Connection, *, lease: timedelta, wanted: UUID | None = None) -> ClaimedSource | None:
    """The source that is due longest, or the one that is wanted; None if there is none or a worker is at it."""
    query = "SELECT * FROM rag.claim_source(%s, %s)"
    return await find_one(connection, ClaimedSource, query, [lease, wanted])


async def hold_source(connection: Connection, source: ClaimedSource, *, lease: timedelta | None) -> bool:
    """Renew a claim, or give it up with None; whether it was still ours."""
    held: bool = await fetch_value(connection, "SELECT rag.hold_source(%s, %s, %s)", [source.id, source.claim, lease])
    return held


async def release_source(
    connection: Connection, source: ClaimedSource, *, report: RunReport | None, error: str | None
) -> None:
    """End a run with its report, or with its error, after which the next one is soon."""
    told = None if report is None else json.dumps(asdict(report))
    values = [source.id, source.claim, told, error]
    await connection.execute("SELECT rag.release_source(%s, %s, %s, %s)", values)
