"""Results as plain records, which `pandas.DataFrame` and other libraries for tables take as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin
from uuid import UUID

import msgspec

from rag_service.client.results import CitedAnswer
from rag_service.errors import InputError

Record = dict[str, Any]  # name of a column → value; values within others as `scores.relevance`


def records(results: Iterable[object]) -> list[Record]:
    """Return one flat dictionary for each result, all with the same keys in the same order.

    Args:
        results: documents, passages, answers, ingested files, or the citations, values or sources of an answer.

    Raises:
        InputError: something else is among them.
    """
    rows = [dict(_flatten("", result)) for result in results]
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _flatten(prefix: str, holder: object) -> Iterator[tuple[str, Any]]:
    for name, value, kind in _items(holder):
        if isinstance(value, msgspec.Struct | Mapping):
            yield from _flatten(f"{prefix}{name}.", value)
        elif value is None and (absent := _struct_in(kind)):
            yield from ((inner, None) for inner in _names(f"{prefix}{name}.", absent))
        else:
            yield f"{prefix}{name}", msgspec.to_builtins(value, builtin_types=(UUID, datetime, date))


def _items(holder: object) -> Iterator[tuple[str, Any, object]]:
    """Name, value and declared type of what a result holds. Raises InputError if it is none."""
    if isinstance(holder, CitedAnswer):
        holder = _describe(holder)
    if isinstance(holder, msgspec.Struct):
        yield from ((one.name, getattr(holder, one.name), one.type) for one in msgspec.structs.fields(holder))
    elif isinstance(holder, Mapping):
        yield from ((name, value, None) for name, value in holder.items())
    elif is_dataclass(holder):
        yield from ((one.name, getattr(holder, one.name), None) for one in fields(holder))
    else:
        raise InputError(
            f"There are no records of {type(holder).__name__}: give a list of documents, passages, answers, citations,"
            " values or ingested files.",
            field="results",
        )


def _struct_in(kind: object) -> type[msgspec.Struct] | None:
    """Return the struct that a field may hold."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    parts = get_args(kind) if get_origin(kind) in (Annotated, Union, UnionType) else ()
    return next(filter(None, map(_struct_in, parts)), None)


def _names(prefix: str, kind: type[msgspec.Struct]) -> Iterator[str]:
    for one in msgspec.structs.fields(kind):
        if (inner := _struct_in(one.type)) is None:
            yield f"{prefix}{one.name}"
        else:
            yield from _names(f"{prefix}{one.name}.", inner)


def _describe(answer: CitedAnswer) -> Record:
    """Return what one compares answers by; the proof of each is in its `citations` and `values`."""
    return {
        "question": answer.question,
        "answer": answer.text,
        "decision": answer.decision,
        "confidence": answer.confidence,
        "kind": answer.kind,
        "citations": len(answer.citations),
        "verified": sum(citation.status == "verified" for citation in answer.citations),
        "sources": len(answer.sources),
        "language": answer.body.language,
        "model": answer.body.model,
        "latency_ms": answer.body.latency_ms,
        "answer_id": answer.id,
        **({} if answer.data is None else {"data": answer.data}),
    }
