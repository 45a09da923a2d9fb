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
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

# LlamaIndex's calls take no identity, so it travels with the task. The owner is the number of a UUID: an answer looks
# a thousand texts up, and UUID has its hash in Python.
_owner: ContextVar[int | None] = ContextVar("kept_for", default=None)
_user: ContextVar[UUID | None] = ContextVar("current_user", default=None)


@contextmanager
def keep_for(user_id: UUID | None, *, lasting: bool = True) -> Iterator[None]:
    """Keep what is made in here for a user; None, or not `lasting`: only until the end of the outermost such block.

    Nothing may be yielded inside.
    """
    user = _user.set(_user.get() if user_id is None else user_id)
    owner = _owner.set(user_id.int if user_id is not None and lasting else _owner.get() or uuid4().int)
    try:
        yield
    finally:
        _owner.reset(owner)
        _user.reset(user)


def current_user() -> UUID | None:
    """Return the user that `keep_for` was given last, or None."""
    return _user.get()


class OwnedValues(Generic[_Key, _Value]):
    """Keep values under keys, each of one user, for any number of threads.

    When it is full, the user with the most values loses the one used least recently, so that nobody pushes out the
    few of another.
    """

    def __init__(self, limit: int):
        """`limit`: number of values of all users together."""
        self._limit = limit
        self._values: dict[_Key, _Value] = {}
        self._owners: dict[_Key, UUID | int] = {}
        self._keys: dict[UUID | int, OrderedDict[_Key, None]] = {}
        self._lock = threading.Lock()

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key, if it is kept."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._keys[self._owners[key]].move_to_end(key)
            return value

    def keep(self, key: _Key, value: _Value, *, owner: UUID | int) -> None:
        """Keep a value for a user."""
        with self._lock:
            self._drop(key)
            self._values[key], self._owners[key] = value, owner
            self._keys.setdefault(owner, OrderedDict())[key] = None
            if len(self._values) > self._limit:
                most = max(self._keys, key=lambda user: len(self._keys[user]))
                self._drop(next(iter(self._keys[most])))

    def forget(self, key: _Key) -> None:
        """Remove the value of a key, if it is kept."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: _Key) -> None:
        if key not in self._values:
            return
        owner = self._owners.pop(key)
        del self._values[key], self._keys[owner][key]
        if not self._keys[owner]:
            del self._keys[owner]


class Recent(Generic[_Value]):
    """Keep values of the texts that each user used last: digests of the texts, not the texts."""

    def __init__(self, limit: int):
        """`limit`: number of values of all users together."""
        self._kept: OwnedValues[tuple[int, bytes], _Value] = OwnedValues(limit)

    def get(self, text: str) -> _Value | None:
        """Return the value of a text, if it is kept for the user."""
        owner = _owner.get()
        return None if owner is None else self._kept.get((owner, _digest(text)))

    def keep(self, text: str, value: _Value) -> None:
        """Keep a value for the user."""
        if (owner := _owner.get()) is not None:
            self._kept.keep((owner, _digest(text)), value, owner=owner)


def kept_apart(limit: int) -> Callable[[Callable[_Arguments, _Value]], Callable[_Arguments, _Value]]:
    """Decorate a function of texts: `functools.lru_cache` of `limit` calls, apart for each user."""

    def decorate(make: Callable[_Arguments, _Value]) -> Callable[_Arguments, _Value]:
        @functools.lru_cache(maxsize=limit)
        def kept(owner: int, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Value:
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
