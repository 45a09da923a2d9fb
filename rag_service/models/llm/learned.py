"""What the replies of a model server show of it, such as how it counts tokens.

One request must not teach the process: its text may be odd, or made so. A user's own requests count for that user, and
for others only what several users agree on.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from statistics import median_low
from typing import Generic, TypeVar
from uuid import UUID

from rag_service.recent import current_user

_KEPT = 9  # values of a user, of which the middle one holds
_USERS = 1_000
_AGREEING = 3  # users whose middle one holds for somebody who has seen none
_SECONDS = 86_400.0  # servers and their models change

_Value = TypeVar("_Value", bool, int, float)


class Learned(Generic[_Value]):
    """A fact about a server, as each user's replies show it."""

    def __init__(self) -> None:
        self._seen: OrderedDict[UUID | None, deque[tuple[float, _Value]]] = OrderedDict()

    def add(self, value: _Value) -> None:
        """Take in what a reply to the current user shows."""
        user = current_user()
        self._seen.setdefault(user, deque(maxlen=_KEPT)).append((time.monotonic(), value))
        self._seen.move_to_end(user)
        while len(self._seen) > _USERS:
            self._seen.popitem(last=False)

    def value(self) -> _Value | None:
        """Return the median of the user's own, or of those of at least three others; None: nothing is known yet."""
        if (own := self._of(current_user())) is not None:
            return own
        others = [value for user in self._seen if (value := self._of(user)) is not None]
        return median_low(others) if len(others) >= _AGREEING else None

    def _of(self, user: UUID | None) -> _Value | None:
        since = time.monotonic() - _SECONDS
        values = [value for at, value in self._seen.get(user, ()) if at >= since]
        return median_low(values) if values else None
