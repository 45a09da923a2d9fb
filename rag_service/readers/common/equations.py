"""How equations are written on one line, as a person types them: (a+b)ⁿ = ∑_(k=0)^n a/(k+1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rag_service.readers.common.builder import one_line
from rag_service.readers.common.superscripts import is_raised, lower_run, raise_run
from rag_service.readers.common.xml import Element, local_name

_INVISIBLE = re.compile("[\u2061-\u2064]")  # "apply the function", "times", "comma", "plus"
_BRACKETED = re.compile(r"\([^()]*\)")
_SIGNS = frozenset("∑∏∫⋃⋂∮")  # limits stand below and above them
_NOT_SHOWN = frozenset({"annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark"})
_ACCENTS = {  # what stands above a letter → the combining character
    "¯": "\u0304", "‾": "\u0304", "_": "\u0304", "^": "\u0302", "~": "\u0303", "˜": "\u0303", "→": "\u20d7",
    "˙": "\u0307",
}  # fmt: skip


def fraction(parts: Sequence[str], *, has_bar: bool = True) -> str:
    """a/(2c), from which a whole number before it stays apart; without a bar, a number of combinations: n¦k."""
    if not has_bar:
        return "¦".join(parts)
    if len(parts) == 2 and all(part.isdecimal() and len(part) <= 3 for part in parts):
        return f"{raise_run(parts[0])}/{lower_run(parts[1])}"
    return "/".join([*map(grouped, parts[:1]), *map(_one_factor, parts[1:])])


def grouped(text: str) -> str:
    """In brackets, unless it is one word, number or sign, or has them."""
    return text if text.isalnum() or len(text) == 1 or _BRACKETED.fullmatch(text) else f"({text})"


def _one_factor(text: str) -> str:
    """In brackets, unless it is one factor: "a/2c" would be read as half of a, times c."""
    is_word = text.isalpha() and len(text) > 2
    is_one = len(text) == 1 or text.isdecimal() or is_word or _BRACKETED.fullmatch(text) is not None
    return text if is_one else f"({text})"


def exponent(text: str) -> str:
    """Raised digits and signs, or a raised letter; else `^(2n)`."""
    raised = raise_run(text)
    is_sign = len(text) == 1 and not text.isalnum()  # degrees, a dash
    return raised if is_raised(raised) or is_sign or not text else f"^{_one_factor(text)}"


def power(base: str, above: str) -> str:
    """A base with its exponent; a fraction is in brackets, since a/b² is another."""
    return f"{grouped(base) if '/' in base else base}{exponent(above)}"


def index(text: str) -> str:
    """A lowered word or number, as people type it; else `_(i+1)`."""
    return lower_run(text) if text.isalnum() else f"_({text})" if text else ""


def accented(text: str, mark: str) -> str:
    """A letter with the mark that it bears, as x̄ or ŷ; of several letters, the mark is left out."""
    return text + mark if len(text) == 1 else text


def write_math(element: Element) -> str:
    """MathML by its structure; its depth is that of the file, which readers limit."""
    return one_line(_INVISIBLE.sub("", _write(element)))


def _write(element: Element) -> str:
    kind = local_name(element).lower()
    if kind in _NOT_SHOWN:
        return ""
    if kind == "semantics":
        return _write(element[0]) if len(element) else ""
    written = [_write(child) for child in element]
    parts = [part.strip() for part in written]
    if kind in _STRUCTURES and len(parts) == _STRUCTURES[kind][0]:
        return _STRUCTURES[kind][1](parts)
    if kind == "mfrac" and len(parts) == 2:
        return fraction(parts, has_bar=(element.get("linethickness") or "1").strip("0. pxemt") != "")
    if kind == "msqrt":
        return f"√{grouped(''.join(parts))}"
    if kind == "mfenced":
        return f"{element.get('open', '(')}{element.get('separators', ',')[:1].join(parts)}{element.get('close', ')')}"
    if kind == "mtable":
        return "; ".join(parts)
    if kind in ("mtr", "mlabeledtr"):
        return ", ".join(parts)
    if kind == "mspace":
        return " "
    if parts:
        return "".join(written)
    return f" {element.text} " if kind == "mtext" and element.text else (element.text or "").strip()


def _limits(base: str, below: str, above: str) -> str:
    limits = [f"{mark}{grouped(text)}" for mark, text in (("_", below), ("^", above)) if text]
    return "".join([base, *limits, " " * (base in _SIGNS)])


def _over(parts: Sequence[str]) -> str:
    base, above = parts
    return accented(base, _ACCENTS[above]) if above in _ACCENTS else _limits(base, "", above)


def _sub_sup(parts: Sequence[str]) -> str:
    base, below, above = parts
    return _limits(base, below, above) if base in _SIGNS else power(base + index(below), above)


_STRUCTURES: dict[str, tuple[int, Callable[[Sequence[str]], str]]] = {  # element → how many parts it has, their text
    "msup": (2, lambda parts: power(*parts)),
    "msub": (2, lambda parts: _limits(parts[0], parts[1], "") if parts[0] in _SIGNS else parts[0] + index(parts[1])),
    "msubsup": (3, _sub_sup),
    "mroot": (2, lambda parts: f"{raise_run(parts[1])}√{grouped(parts[0])}"),
    "mover": (2, _over),
    "munder": (2, lambda parts: _limits(parts[0], parts[1], "")),
    "munderover": (3, lambda parts: _limits(*parts)),
}
