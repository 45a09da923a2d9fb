"""Reads the headers of messages so that a broken or endless one costs itself, and not the message."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator
from email.headerregistry import BaseHeader
from email.message import EmailMessage
from email.policy import EmailPolicy
from typing import Any, cast

MAX_HEADER = 20_000  # characters; the standard library needs quadratic time, a minute for 20,000 encoded words


class _BoundedPolicy(EmailPolicy):
    """The standard policy, which reads the beginning of a long header, and raises at none."""

    def header_fetch_parse(self, name: str, value: Any) -> Any:
        if isinstance(value, BaseHeader):
            return value
        try:
            return super().header_fetch_parse(name, value[:MAX_HEADER])
        except MemoryError:  # it may not be the header's fault: the whole file fails, with a reason
            raise
        except Exception as error:  # its parser raises anything on broken ones (python/cpython#81261)
            if isinstance(error, RecursionError) and _is_nested():
                raise
            # What code asks for fields of has to be an object with them; the others are shown as they are written.
            return self.header_factory(name, "") if name.lower().startswith("content-") else value[:MAX_HEADER]


def _is_nested() -> bool:
    """Whether the parser is so deep in parts of parts that these, and not a header, use up the stack."""
    return sum(1 for _ in traceback.walk_stack(None)) > sys.getrecursionlimit() / 2


MAIL_POLICY = cast("EmailPolicy[EmailMessage]", _BoundedPolicy())


def warn_of_headers(messages: Iterable[EmailMessage]) -> Iterator[str]:
    """A warning for each header, by name, that was cut or cannot be read."""
    told: set[str] = set()
    for message in messages:
        for name, value in message.raw_items():
            if name.lower() in told:
                continue
            if len(str(value)) > MAX_HEADER:
                told.add(name.lower())
                yield f"The header {name[:40]} was cut after {MAX_HEADER:,} characters."
            elif not isinstance(MAIL_POLICY.header_fetch_parse(name, value), BaseHeader):
                told.add(name.lower())
                yield f"The header {name[:40]} cannot be read and is shown as it is written."
