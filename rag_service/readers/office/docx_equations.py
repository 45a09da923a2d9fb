"""Equations of Word, which `equations` writes on one line."""

from __future__ import annotations

from collections.abc import Callable

from rag_service.readers.common.builder import one_line
from rag_service.readers.common.equations import accented, exponent, fraction, grouped, index, power
from rag_service.readers.common.superscripts import raise_run
from rag_service.readers.common.xml import Element

_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
Read = Callable[[Element], str]  # the text of what an element contains


def write_structure(element: Element, read: Read) -> str | None:
    """A part of an equation whose shape means something; None for any other element."""
    kind = element.tag.removeprefix(_M)
    write = _STRUCTURES.get(kind) if kind != element.tag else None
    return None if write is None else write(element, lambda part: one_line(read(part)))


def _fraction(element: Element, read: Read) -> str:
    parts = [read(part) for part in element.iterchildren(_M + "num", _M + "den")]
    return fraction(parts, has_bar=_property(element, "type", "bar") != "noBar")


def _accented(element: Element, read: Read) -> str:
    usual = "\u0302" if element.tag == _M + "acc" else "\u0304"
    is_below = _property(element, "pos", "top") == "bot"
    text = _part(element, "e", read)
    return text if is_below else accented(text, _property(element, "chr", usual))


def _delimited(element: Element, read: Read) -> str:
    begin, between, end = (
        _property(element, key, usual) for key, usual in (("begChr", "("), ("sepChr", "|"), ("endChr", ")"))
    )
    return begin + between.join(_parts(element, "e", read)) + end


def _sum(element: Element, read: Read) -> str:
    """A sum, a product or an integral with its limits."""
    limits = [
        f"{mark}{grouped(text)}" for mark, key in (("_", "sub"), ("^", "sup")) for text in _parts(element, key, read)
    ]
    return f"{_property(element, 'chr', '∫')}{''.join(limits)} {_part(element, 'e', read)}"


def _root(element: Element, read: Read) -> str:
    return f"{raise_run(_part(element, 'deg', read))}√{grouped(_part(element, 'e', read))}"


def _function(element: Element, read: Read) -> str:
    name, argument = _part(element, "fName", read), _part(element, "e", read)
    return f"{name}{argument}" if argument.startswith("(") else f"{name} {argument}"


def _matrix(element: Element, read: Read) -> str:
    return "; ".join(", ".join(_parts(row, "e", read)) for row in element.iterchildren(_M + "mr"))


_STRUCTURES: dict[str, Callable[[Element, Read], str]] = {
    "sSup": lambda element, read: power(_part(element, "e", read), _part(element, "sup", read)),
    "sup": lambda element, read: exponent(read(element)),
    "sub": lambda element, read: index(read(element)),
    "f": _fraction,
    "d": _delimited,
    "nary": _sum,
    "rad": _root,
    "func": _function,
    "m": _matrix,
    "acc": _accented,
    "bar": _accented,
    "eqArr": lambda element, read: "; ".join(_parts(element, "e", read)),
    "limLow": lambda element, read: f"{_part(element, 'e', read)}_{grouped(_part(element, 'lim', read))}",
    "limUpp": lambda element, read: f"{_part(element, 'e', read)}^{grouped(_part(element, 'lim', read))}",
}


def _parts(element: Element, kind: str, read: Read) -> list[str]:
    return [text for part in element.iterchildren(_M + kind) if (text := read(part))]


def _part(element: Element, kind: str, read: Read) -> str:
    return "".join(_parts(element, kind, read))


def _property(element: Element, key: str, usual: str) -> str:
    found = element.find(f"{element.tag}Pr/{_M}{key}")
    return usual if found is None else found.get(_M + "val") or ""
