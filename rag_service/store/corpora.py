"""Corpora: the containers that documents live in and that permissions are decided on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from rag_service.domain import CorpusKind, Identity, Role
from rag_service.errors import ConflictError, InputError, NotFoundError, PermissionDeniedError
from rag_service.store.database import Connection
from rag_service.store.rows import Page, Slice, Table

MAX_TTL_SECONDS = 2**31 - 1
DEFAULT_CORPUS = "documents"
HELD = "files in no vector store"  # the personal corpus of files that are in no other; it is never searched


@dataclass(frozen=True, kw_only=True)
class Corpus:
    id: UUID
    name: str
    kind: CorpusKind
    owner_id: UUID | None  # None for global corpora
    index_name: str  # the definition that rules it
    active: bool  # inactive: kept, but not searched and not written to
    ttl_seconds: int | None  # lifetime of its documents
    shared: bool = False  # every user may read it, if it is global
    groups: tuple[str, ...] = ()  # of the OpenID provider: their members may read it, if it is global
    metadata: Mapping[str, str] = field(default_factory=dict)  # what programs note of it
    created_at: datetime
    updated_at: datetime


_CORPORA = Table("corpora", Corpus, missing="There is no corpus {id}.")


async def create_corpus(
    connection: Connection,
    identity: Identity,
    *,
    name: str,
    kind: CorpusKind,
    index_name: str,
    ttl_seconds: int | None = None,
    shared: bool | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Corpus:
    """Create a corpus; a personal one belongs to the identity.

    `shared`: whether every user may read a global one; None: as RAG_SHARE_GLOBAL_CORPORA says.

    Raises ConflictError if the owner has one of this name, InputError if the lifetime is out of range,
    PermissionDeniedError if a user creates a global corpus.
    """
    check_ttl(ttl_seconds)
    owner = identity.user_id if kind is CorpusKind.PERSONAL else None
    values = {"name": name, "kind": kind.value, "owner_id": owner, "index_name": index_name, "ttl_seconds": ttl_seconds}
    if shared is not None:
        values["shared"] = shared
    if metadata:
        values["metadata"] = json.dumps(dict(metadata))
    try:
        return await _CORPORA.insert(connection, values)
    except psycopg.errors.UniqueViolation as error:
        raise ConflictError(f"A corpus named {name!r} already exists.", field="name") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDeniedError("Only administrators can create global corpora.") from error


async def find_corpus(connection: Connection, *, name: str, kind: CorpusKind) -> Corpus | None:
    """A corpus of the identity, or a global one, by name."""
    found = await select_corpora(connection, "name = %(name)s AND kind = %(kind)s", {"name": name, "kind": kind.value})
    return found[0] if found else None


async def find_default_corpus(connection: Connection, identity: Identity) -> Corpus | None:
    """As `default_corpus`; None if it was not created yet."""
    return await find_corpus(connection, name=DEFAULT_CORPUS, kind=_default_kind(identity))


async def default_corpus(connection: Connection, identity: Identity, *, index_name: str) -> Corpus:
    """The corpus for documents that name no other: global for administrators, else the user's own.

    It is created at first use, with the given index.
    """
    found = await find_default_corpus(connection, identity)
    if found is None:
        await lock_corpora(connection, {DEFAULT_CORPUS})  # somebody else may be creating it now
        found = await find_default_corpus(connection, identity)
    kind = _default_kind(identity)
    return found or await create_corpus(connection, identity, name=DEFAULT_CORPUS, kind=kind, index_name=index_name)


async def holding_corpus(connection: Connection, identity: Identity, *, index_name: str) -> Corpus:
    """The identity's corpus of files that are in no other. It is created at first use, deactivated."""
    await lock_corpora(connection, {f"{HELD} {identity.user_id}"})  # another request may be creating it now
    found = await find_corpus(connection, name=HELD, kind=CorpusKind.PERSONAL)
    if found is not None:
        return found
    made = await create_corpus(connection, identity, name=HELD, kind=CorpusKind.PERSONAL, index_name=index_name)
    return await update_corpus(connection, made.id, active=False)


async def find_or_create_corpus(connection: Connection, identity: Identity, name: str, index_name: str) -> Corpus:
    """The global corpus of a name; a new one gets the given index. Raises like `create_corpus`."""
    found = await find_corpus(connection, name=name, kind=CorpusKind.GLOBAL)
    return found or await create_corpus(connection, identity, name=name, kind=CorpusKind.GLOBAL, index_name=index_name)


def _default_kind(identity: Identity) -> CorpusKind:
    return CorpusKind.GLOBAL if identity.role is Role.ADMIN else CorpusKind.PERSONAL


async def read_corpus(connection: Connection, corpus_id: UUID) -> Corpus:
    """A corpus by id. Raises NotFoundError if there is none or it is another user's."""
    return await _CORPORA.read(connection, corpus_id)


async def list_corpora(connection: Connection, part: Slice, *, kind: CorpusKind | None = None) -> Page[Corpus]:
    """Corpora that the identity may see, by name."""
    rest = "WHERE %(kind)s::text IS NULL OR kind = %(kind)s ORDER BY name, id"
    return await _CORPORA.page(connection, part, rest, {"kind": None if kind is None else kind.value})


async def select_corpora(connection: Connection, condition: str, parameters: Mapping[str, Any]) -> tuple[Corpus, ...]:
    """Corpora under a condition (fixed text with named parameters), by name."""
    return await _CORPORA.select(connection, f"WHERE {condition} ORDER BY name, id", parameters)


async def update_corpus(
    connection: Connection,
    corpus_id: UUID,
    *,
    name: str | None = None,
    active: bool | None = None,
    ttl_seconds: int | None = None,
    keep_for_ever: bool = False,
    shared: bool | None = None,
    groups: Sequence[str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Corpus:
    """Rename, share, activate or deactivate a corpus, or change the lifetime of documents stored from now on.

    None keeps a value. `ttl_seconds` applies to new documents; `keep_for_ever` removes it. Raises like `create_corpus`
    and `read_corpus`.
    """
    check_ttl(ttl_seconds)
    await read_corpus(connection, corpus_id)
    changes = """name = coalesce(%s, name), active = coalesce(%s, active),
        shared = coalesce(%s, shared), groups = coalesce(%s, groups), updated_at = now(),
        metadata = coalesce(%s::jsonb, metadata),
        ttl_seconds = CASE WHEN %s THEN NULL ELSE coalesce(%s, ttl_seconds) END WHERE id = %s"""
    try:
        noted = None if metadata is None else json.dumps(dict(metadata))
        values = [name, active, shared, groups, noted, keep_for_ever, ttl_seconds, corpus_id]
        return await _CORPORA.update(connection, changes, values)
    except psycopg.errors.UniqueViolation as error:
        raise ConflictError(f"A corpus named {name!r} already exists.", field="name") from error
    except NotFoundError as error:
        raise PermissionDeniedError("Only administrators can change global corpora.") from error


async def delete_corpus(connection: Connection, corpus_id: UUID) -> None:
    """Delete a corpus with all its documents, their originals and what waits to be indexed.

    Raises NotFoundError like `read_corpus`, PermissionDeniedError if a user deletes a global corpus.
    """
    await read_corpus(connection, corpus_id)
    await lock_corpora(connection, {str(corpus_id)})
    cursor = await connection.execute("DELETE FROM corpora WHERE id = %s", [corpus_id])
    if cursor.rowcount == 0:
        raise PermissionDeniedError("Only administrators can delete global corpora.")


async def require_writable(connection: Connection, corpus_id: UUID) -> Corpus:
    """A corpus that the identity may add documents to; it stays so until the transaction ends.

    Raises NotFoundError like `read_corpus`, PermissionDeniedError if it is read-only for the identity, ConflictError if
    it is deactivated.
    """
    await read_corpus(connection, corpus_id)
    writable = await _CORPORA.select(connection, "c WHERE id = %s AND rag.may_write(c) FOR SHARE", [corpus_id])
    if not writable:
        raise PermissionDeniedError("You can read this corpus but not change it.")
    corpus = writable[0]
    if not corpus.active:
        raise ConflictError(f"The corpus {corpus.name!r} is deactivated; activate it to change its documents.")
    return corpus


def check_ttl(seconds: int | None) -> None:
    """Raise InputError unless the lifetime is from 1 second to 68 years."""
    if seconds is not None and not 1 <= seconds <= MAX_TTL_SECONDS:
        raise InputError(f"The lifetime must be from 1 to {MAX_TTL_SECONDS} seconds.", field="ttlSeconds")


async def lock_corpora(connection: Connection, corpus_ids: Iterable[str]) -> None:
    """Until the transaction ends, keep others from writing to these corpora.

    All documents of a corpus share its statistics rows, so there is one writer per corpus at a time.
    """
    for corpus_id in sorted(corpus_ids):
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [corpus_id])


async def try_lock_corpus(connection: Connection, corpus_id: UUID) -> bool:
    """As `lock_corpora`, but without waiting: False if somebody is writing to the corpus."""
    cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [str(corpus_id)])
    return bool((await cursor.fetchone() or (False,))[0])
