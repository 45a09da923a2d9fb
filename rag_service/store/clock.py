"""The one clock that all machines share: the database's.

What is stored with a time, or is due at one, is reckoned by it. A machine whose own clock is wrong then
neither keeps content beyond its end nor leaves jobs lying.
"""

from __future__ import annotations

from datetime import UTC, datetime

from rag_service.store.session import Connection

AT_ONCE = datetime.fromtimestamp(0, UTC)  # due whatever the time is


async def database_now(connection: Connection) -> datetime:
    """When the transaction began, by the database's clock."""
    cursor = await connection.execute("SELECT now()")
    row = await cursor.fetchone()
    if row is None:
        raise RuntimeError("SELECT now() returned nothing")
    now: datetime = row[0]
    return now
