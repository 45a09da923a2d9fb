"""Position of a database: what a replica must show before a search may run on it.

What was reported as stored must be found by the next search, and what was deleted must not, whichever process wrote and
whichever searches. So a search asks the primary for its position first, which takes one small statement.

A position lists the corpora that the identity may read, each with its row's version (`xmin`, the same on a physical
replica) and its count of changes (`corpus_statistics.version`, raised by triggers). The place in the write-ahead log
would not do: a bulk load of one tenant would make the replica useless to all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from rag_service.store.database import Connection

State = Mapping[UUID, tuple[str, int]]  # readable corpus → version of its row, count of its changes


@dataclass(frozen=True, kw_only=True)
class Position:
    """The state of everything that an identity may find in some corpora."""

    corpus_ids: tuple[UUID, ...]  # that were asked for; empty: all
    state: State

    async def is_shown_on(self, connection: Connection) -> bool:
        """Whether a connection, under the same identity, shows all that there was at this position."""
        state = await _read_state(connection, self.corpus_ids)
        return state.keys() == self.state.keys() and all(
            state[corpus_id][0] == row and state[corpus_id][1] >= changes
            for corpus_id, (row, changes) in self.state.items()
        )


async def read_position(connection: Connection, corpus_ids: tuple[UUID, ...]) -> Position:
    """The present position, for what the connection's identity may find in these corpora (none: in all)."""
    return Position(corpus_ids=corpus_ids, state=await _read_state(connection, corpus_ids))


async def _read_state(connection: Connection, corpus_ids: tuple[UUID, ...]) -> State:
    cursor = await connection.execute(
        """SELECT c.id, c.xmin::text, coalesce(s.version, 0)
           FROM corpora c LEFT JOIN corpus_statistics s ON s.corpus_id = c.id
           WHERE %(all)s OR c.id = ANY(%(corpora)s)""",
        {"all": not corpus_ids, "corpora": list(corpus_ids)},
    )
    return {corpus_id: (row, changes) for corpus_id, row, changes in await cursor.fetchall()}
