"""Where a database is, for what an identity may find in it: what a search on a replica must have reached.

What somebody has been told is stored must be found by the next search, and what is deleted must not,
whichever process wrote it and whichever searches. A replica lags, mostly by a millisecond, sometimes by
minutes. So a search asks the primary for its position first, which takes one small statement.

A position lists the corpora that the identity may read, each with its own row's version (`xmin`, which a
physical replica shares with its primary) and its count of changes (`corpus_statistics.version`), which
triggers raise in every transaction that touches its documents or chunks. Permissions are in it, since they
decide which corpora are listed. The usual measure, the primary's place in the write-ahead log, would cost a
little less, but any write moves it: while one tenant's bulk load kept a replica minutes behind, it would be
of no use to the others either. Counts can be compared: a replica that is further serves as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from rag_service.store.session import Connection

State = Mapping[UUID, tuple[str, int]]  # readable corpus → version of its row, count of its changes


@dataclass(frozen=True, kw_only=True)
class Position:
    """The state of everything that an identity may find in some corpora."""

    corpus_ids: tuple[UUID, ...]  # that were asked for; empty: all
    state: State

    async def is_shown_on(self, connection: Connection) -> bool:
        """Whether a connection, under the same identity, shows all that there was at this position."""
        return self._is_reached_by(await _read_state(connection, self.corpus_ids))

    def _is_reached_by(self, state: State) -> bool:
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
