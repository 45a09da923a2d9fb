"""Quotas per user, counted in the database so that all replicas share them.

The generic cell rate algorithm (ITU-T I.371): one time stamp a caller says when the quota is full
again; each request moves it on by one step, and is refused where that would be more than the period
ahead. A whole quota may be used at once, and comes back evenly. Times are the database's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from rag_service.store.database import Connection

Policy = Literal["requests", "answers"]

PERIOD_SECONDS = 60
_ROUNDING_SECONDS = 0.001  # PostgreSQL keeps microseconds: a step of 60/7 s is not exact


@dataclass(frozen=True, kw_only=True)
class Quota:
    """What a caller has left after a request."""

    policy: Policy
    limit: int  # requests a period
    granted: bool  # whether the request may go on
    remaining: int  # requests that could follow at once
    full_in: float  # seconds until the whole quota is there again
    retry_in: float  # seconds until one more request is granted; 0 while some remain


async def spend(connection: Connection, *, user_id: UUID, policy: Policy, limit: int) -> Quota:
    """Take one request from the user's quota, in one statement; a refused one costs nothing.

    All keys and sessions of a user share it: a quota for each key would grow with every key that is made.
    """
    step = PERIOD_SECONDS / limit
    # `excluded.full_at - step` is now. A stamp further ahead than the period is another limit's, or of a clock
    # that was set back: nobody waits for longer than the period.
    cursor = await connection.execute(
        """INSERT INTO rate_limits AS l (user_id, credential, policy, full_at, granted)
           VALUES (%(user)s, '', %(policy)s, statement_timestamp() + %(step)s * interval '1 s', true)
           ON CONFLICT (user_id, credential, policy) DO UPDATE SET (full_at, granted) = (
               SELECT CASE WHEN next <= most THEN next ELSE least(l.full_at, most) END, next <= most
               FROM (SELECT greatest(least(l.full_at, at + %(period)s * interval '1 s'), at)
                            + %(step)s * interval '1 s' AS next,
                            at + (%(period)s + %(rounding)s) * interval '1 s' AS most
                     FROM (SELECT excluded.full_at - %(step)s * interval '1 s' AS at) AS clock) AS reckoned)
           RETURNING granted, extract(epoch FROM full_at - statement_timestamp())::float""",
        {
            "user": user_id,
            "policy": policy,
            "step": step,
            "period": PERIOD_SECONDS,
            "rounding": _ROUNDING_SECONDS,
        },
    )
    row = await cursor.fetchone()
    if row is None:
        raise RuntimeError("INSERT … RETURNING returned nothing")
    granted, used = bool(row[0]), max(0.0, row[1])
    left = PERIOD_SECONDS + _ROUNDING_SECONDS - used
    return Quota(
        policy=policy,
        limit=limit,
        granted=granted,
        remaining=max(0, math.floor(left / step)) if granted else 0,
        full_in=used,
        retry_in=max(0.0, step - left),
    )
