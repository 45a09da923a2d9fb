"""Numbers that browsers put before the items of ordered lists (HTML Standard, 4.4.5 and 4.4.8).

Styles in a style sheet are not known. Items that begin with a number of their own have no other: pages that write their
numbers as text hide those of the browser there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_service.readers.common.list_numbers import NumberFormat, write_number
from rag_service.readers.common.xml import Element, local_name

NUMBER = "rag-number"  # the attribute with the number of an item
_INTEGER = re.compile(r"[ \t]*(-?\d{1,9})")
_STYLE = re.compile(r"list-style(?:-type)?\s*:\s*([^;]*)", re.IGNORECASE)
_OWN_NUMBER = re.compile(
    r"\s*(?:\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,6})\)|(?:\d{1,3}\.){1,6}\d{0,3}|[A-Za-z]\.|[ivxIVX]{1,6}\.)\s"
)
_LISTS = frozenset({"ol", "ul", "li"})
_FORMATS = {
    "lower-alpha": NumberFormat.LOWER_LETTER, "lower-latin": NumberFormat.LOWER_LETTER,
    "upper-alpha": NumberFormat.UPPER_LETTER, "upper-latin": NumberFormat.UPPER_LETTER,
    "lower-roman": NumberFormat.LOWER_ROMAN, "upper-roman": NumberFormat.UPPER_ROMAN,
}  # fmt: skip
_TYPES = {str(format): format for format in NumberFormat}
_WITHOUT_NUMBER = frozenset({"none", "disc", "circle", "square"})


def settle_numbers(root: Element) -> None:
    """Set `NUMBER` on each item of an ordered list that shows one; it is empty on items with a number of their own."""
    for item in root.iter("li"):
        item.attrib.pop(NUMBER, None)
    for found in root.iter("ol"):
        for item, value in _count(found):
            number_format = _format(item, found)
            if _OWN_NUMBER.match(_first_text(item)):
                item.set(NUMBER, "")
            elif number_format is not None:
                item.set(NUMBER, f"{write_number(value, number_format)}.")


def _count(ordered: Element) -> Iterator[tuple[Element, int]]:
    items = [child for child in ordered if local_name(child) == "li" and child.get("hidden") is None]
    step = 1 if ordered.get("reversed") is None else -1
    start = _integer(ordered.get("start"))
    value = (1 if step > 0 else len(items)) if start is None else start
    for item in items:
        own = _integer(item.get("value"))
        value = value if own is None else own
        yield item, value
        value += step


def _format(item: Element, ordered: Element) -> NumberFormat | None:
    """How an item is numbered, None for a bullet or nothing: by its style, its type, or those of its list."""
    for element in (item, ordered):
        style = _STYLE.search(element.get("style") or "")
        for word in style[1].lower().split() if style else ():
            if word in _WITHOUT_NUMBER:
                return None
            if word in _FORMATS:
                return _FORMATS[word]
        kind = element.get("type") or ""
        if kind.lower() in _WITHOUT_NUMBER:
            return None
        if kind in _TYPES:
            return _TYPES[kind]
    return NumberFormat.DECIMAL


def _first_text(item: Element) -> str:
    """The first text of an item, unless that of a list in it comes first."""
    element = item
    while not (element.text or "").strip() and len(element) and local_name(element[0]) not in _LISTS:
        element = element[0]
    return element.text or ""


def _integer(text: str | None) -> int | None:
    found = _INTEGER.match(text or "")
    return int(found[1]) if found else None
