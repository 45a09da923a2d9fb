"""Keep what was made of texts just now, apart for each user.

    with keep_for(identity.user_id):
        ...  # what is made of a text in here is not made again for this user

What one user asks or stores makes nothing faster for another: how long a reply takes would tell whether somebody has
the same text. Outside of `keep_for` nothing is kept.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, ParamSpec, TypeVar
from uuid import UUID, uuid4

_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")

# LlamaIndex's calls take no identity, so it travels with the task.
_owner: ContextVar[UUID | None] = ContextVar("kept_for", default=None)
_user: ContextVar[UUID | None] = ContextVar("current_user", default=None)


@contextmanager
def keep_for(user_id: UUID | None, *, lasting: bool = True) -> Iterator[None]:
    """Keep what is made in here for a user; None, or not `lasting`: only until the end of the outermost such block.

    Nothing may be yielded inside.
    """
    lasts = lasting and user_id is not None
    user = _user.set(_user.get() if user_id is None else user_id)
    owner = _owner.set(user_id if lasts else _owner.get() or uuid4())
    try:
        yield
    finally:
        _owner.reset(owner)
        _user.reset(user)


def current_user() -> UUID | None:
    """Return whom `keep_for` was given last; None: nobody."""
    return _user.get()


class Recent(Generic[_Value]):
    """The values of the texts that each user used last, for any number of threads.

    It keeps digests of the texts, not the texts. When it is full, whoever has the most values loses the oldest, so
    that nobody pushes out the few of another.
    """

    def __init__(self, limit: int):
        """`limit`: number of values of all users together."""
        self._limit = limit
        self._values: dict[UUID, OrderedDict[bytes, _Value]] = {}
        self._count = 0
        self._lock = threading.Lock()

    def get(self, text: str) -> _Value | None:
        """Return the value of a text, if it is kept for the user."""
        key = _digest(text)
        with self._lock:
            if (owner := _owner.get()) is None or (own := self._values.get(owner)) is None:
                return None
            value = own.get(key)
            if value is not None:
                own.move_to_end(key)
            return value

    def keep(self, text: str, value: _Value) -> None:
        """Keep a value for the user."""
        owner, key = _owner.get(), _digest(text)
        if owner is None:
            return
        with self._lock:
            own = self._values.setdefault(owner, OrderedDict())
            self._count += key not in own
            own[key] = value
            own.move_to_end(key)
            while self._count > self._limit:
                self._give_up()

    def _give_up(self) -> None:
        most = max(self._values, key=lambda owner: len(self._values[owner]))
        self._values[most].popitem(last=False)
        self._count -= 1
        if not self._values[most]:
            del self._values[most]


def kept_apart(limit: int) -> Callable[[Callable[_Arguments, _Value]], Callable[_Arguments, _Value]]:
    """Decorate a function of texts: `functools.lru_cache` of `limit` calls, apart for each user."""

    def decorate(make: Callable[_Arguments, _Value]) -> Callable[_Arguments, _Value]:
        @functools.lru_cache(maxsize=limit)
        def kept(owner: UUID, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
            return make(*args, **kwargs)

        @functools.wraps(make)
        def get(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
            owner = _owner.get()
            if owner is None:
                return make(*args, **kwargs)
            return kept(owner, *args, **kwargs)  # type: ignore[arg-type]  # as with lru_cache: all are hashable

        return get

    return decorate


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
