"""Equations of Word on one line, as a person types them: (a+b)ⁿ = ∑_(k=0)^n a/(k+1)."""

from __future__ import annotations

import re
from collections.abc import Callable

from rag_service.readers.common.builder import one_line
from rag_service.readers.common.raised import lower_run, raise_run
from rag_service.readers.common.xml import Element

_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
Read = Callable[[Element], str]  # the text of what an element contains


def write_structure(element: Element, read: Read) -> str | None:
    """A part of an equation whose shape means something; None for any other element."""
    kind = element.tag.removeprefix(_M)
    write = _STRUCTURES.get(kind) if kind != element.tag else None
    return None if write is None else write(element, lambda part: one_line(read(part)))


def _fraction(element: Element, read: Read) -> str:
    """A whole number before it stays apart; a fraction without a bar is the number of combinations."""
    parts = [read(part) for part in element.iterchildren(_M + "num", _M + "den")]
    if _property(element, "type", "bar") == "noBar":
        return "¦".join(parts)
    if len(parts) == 2 and all(part.isdecimal() and len(part) <= 3 for part in parts):
        return f"{raise_run(parts[0])}/{lower_run(parts[1])}"
    return "/".join([*map(_grouped, parts[:1]), *map(_one_factor, parts[1:])])


def _one_factor(text: str) -> str:
    """What is divided by: "a/2c" would be read as half of a, times c."""
    is_word = text.isalpha() and len(text) > 2
    is_one = len(text) == 1 or text.isdecimal() or is_word or re.fullmatch(r"\([^()]*\)", text) is not None
    return text if is_one else f"({text})"


def _accented(element: Element, read: Read) -> str:
    """A letter with the mark that it bears, as x̄ or ŷ."""
    usual = "\u0302" if element.tag == _M + "acc" else "\u0304"
    text = _part(element, "e", read)
    is_below = _property(element, "pos", "top") == "bot"
    return text + (_property(element, "chr", usual) if len(text) == 1 and not is_below else "")


def _delimited(element: Element, read: Read) -> str:
    begin, between, end = (
        _property(element, key, usual) for key, usual in (("begChr", "("), ("sepChr", "|"), ("endChr", ")"))
    )
    return begin + between.join(_parts(element, "e", read)) + end


def _sum(element: Element, read: Read) -> str:
    """A sum, a product or an integral with its limits."""
    limits = [
        f"{mark}{_grouped(text)}" for mark, key in (("_", "sub"), ("^", "sup")) for text in _parts(element, key, read)
    ]
    return f"{_property(element, 'chr', '∫')}{''.join(limits)} {_part(element, 'e', read)}"


def _root(element: Element, read: Read) -> str:
    return f"{raise_run(_part(element, 'deg', read))}√{_grouped(_part(element, 'e', read))}"


def _function(element: Element, read: Read) -> str:
    name, argument = _part(element, "fName", read), _part(element, "e", read)
    return f"{name}{argument}" if argument.startswith("(") else f"{name} {argument}"


def _matrix(element: Element, read: Read) -> str:
    return "; ".join(", ".join(_parts(row, "e", read)) for row in element.iterchildren(_M + "mr"))


_STRUCTURES: dict[str, Callable[[Element, Read], str]] = {
    "sup": lambda element, read: raise_run(read(element)),
    "sub": lambda element, read: lower_run(read(element)),
    "f": _fraction,
    "d": _delimited,
    "nary": _sum,
    "rad": _root,
    "func": _function,
    "m": _matrix,
    "acc": _accented,
    "bar": _accented,
    "eqArr": lambda element, read: "; ".join(_parts(element, "e", read)),
    "limLow": lambda element, read: f"{_part(element, 'e', read)}_{_grouped(_part(element, 'lim', read))}",
    "limUpp": lambda element, read: f"{_part(element, 'e', read)}^{_grouped(_part(element, 'lim', read))}",
}


def _parts(element: Element, kind: str, read: Read) -> list[str]:
    return [text for part in element.iterchildren(_M + kind) if (text := read(part))]


def _part(element: Element, kind: str, read: Read) -> str:
    return "".join(_parts(element, kind, read))


def _property(element: Element, key: str, usual: str) -> str:
    found = element.find(f"{element.tag}Pr/{_M}{key}")
    return usual if found is None else found.get(_M + "val") or ""


def _grouped(text: str) -> str:
    return text if text.isalnum() or len(text) == 1 else f"({text})"
