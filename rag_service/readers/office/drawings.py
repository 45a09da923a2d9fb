"""What drawings of all Office files say: text, charts and diagrams (SmartArt)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_service.errors import TooLargeError
from rag_service.readers.common.builder import one_line
from rag_service.readers.common.cells import Cell, Row
from rag_service.readers.common.list_numbers import NumberFormat, write_number
from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.common.xml import Element, whole_number
from rag_service.readers.office.pictures import Relations

CHART, DIAGRAM = "chart", "diagram"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MAX_CELLS = 200_000  # of a chart
_DECIMAL = NumberFormat.DECIMAL
_NUMBERS = {  # how the name of a format begins
    "alphaLc": NumberFormat.LOWER_LETTER, "alphaUc": NumberFormat.UPPER_LETTER,
    "romanLc": NumberFormat.LOWER_ROMAN, "romanUc": NumberFormat.UPPER_ROMAN,
}  # fmt: skip
_ENDING = re.compile(".*(?=Period|Paren|Plain)")


def embedded(element: Element, related: Relations) -> Iterator[tuple[str, str]]:
    """(CHART or DIAGRAM, member) of the charts and diagrams that an element shows."""
    for mark in element.iter(_C + "chart", "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"):
        kind, key = (CHART, "id") if mark.tag == _C + "chart" else (DIAGRAM, "dm")
        yield kind, related.get(mark.get(_R + key) or "", ("", ""))[1]


def paragraphs(element: Element) -> Iterator[str]:
    """The paragraphs with text."""
    return (text for text, _ in numbered_paragraphs(element))


def numbered_paragraphs(element: Element) -> Iterator[tuple[str, str]]:
    """(text, number) of the paragraphs with text; the number that PowerPoint makes is empty without one."""
    counts: dict[int, tuple[str, int]] = {}  # level → format, number of the last item
    for paragraph in element.iter(_A + "p"):
        pieces = (
            _run_text(part) if part.tag == _A + "t" else " "
            for part in paragraph.iter(_A + "t", _A + "br", _A + "tab")
            if part.getparent().get("type") != "slidenum"
        )
        text = one_line("".join(pieces))
        if text:
            yield text, _next_number(paragraph.find(_A + "pPr"), counts)


def _next_number(properties: Element | None, counts: dict[int, tuple[str, int]]) -> str:
    """The number before a paragraph, given its properties; empty without one. Counts it in `counts`."""
    level, bullet = (None, None) if properties is None else (properties.get("lvl"), properties.find(_A + "buAutoNum"))
    depth = whole_number(level, usual=0, digits=2)
    for deeper in [one for one in counts if one > depth or (bullet is None and one == depth)]:
        del counts[deeper]
    if bullet is None:
        return ""
    form = bullet.get("type") or "arabicPeriod"
    first = whole_number(bullet.get("startAt"), usual=1, digits=5)
    before, last = counts.get(depth, (form, first - 1))
    number = last + 1 if before == form else first
    counts[depth] = form, number
    shown = write_number(number, next((kind for name, kind in _NUMBERS.items() if form.startswith(name)), _DECIMAL))
    return {"Period": f"{shown}.", "ParenR": f"{shown})", "ParenBoth": f"({shown})"}.get(_ENDING.sub("", form), shown)


def _run_text(text: Element) -> str:
    """The text of a run, raised or lowered as its run is; none of one that is struck out."""
    look = text.getparent().find(_A + "rPr")
    if look is None:
        return text.text or ""
    if is_struck(look):
        return ""
    baseline = look.get("baseline") or "0"  # 1/1000 of a percent
    if not baseline.strip("-0%"):
        return text.text or ""
    return lower_run(text.text or "") if baseline.startswith("-") else raise_run(text.text or "")


def is_struck(look: Element) -> bool:
    return look.get("strike") in ("sngStrike", "dblStrike")


def chart_title(chart: Element) -> str:
    title = chart.find(f"{_C}chart/{_C}title")
    return "" if title is None else " ".join(paragraphs(title))


def chart_rows(chart: Element) -> list[Row]:
    """The data of a chart as a table: a row for each category, a column for each series."""
    names: list[str] = []
    categories: dict[int, str] = {}
    values: dict[int, dict[int, str]] = {}
    count = 0
    for column, series in enumerate(chart.iter(_C + "ser"), start=2):
        names.append(one_line(" ".join(point.text or "" for point in series.findall(f"{_C}tx//{_C}v"))))
        for kind in ("cat", "xVal"):
            for index, text in _points(series.find(_C + kind)):
                categories.setdefault(index, text)
        for kind in ("val", "yVal"):
            for index, text in _points(series.find(_C + kind)):
                values.setdefault(index, {})[column] = text
                count += 1
        if count > _MAX_CELLS:
            raise TooLargeError(f"A chart has more than {_MAX_CELLS:,} values. Split the file.")
    if not values:
        return []
    header = [Cell(column, text, is_text=True) for column, text in enumerate(names, start=2) if text]
    rows = [Row(1, header, is_header=True)] if header else []
    for number, index in enumerate(sorted(values), start=2):
        label = categories.get(index)
        first = [Cell(1, label, is_text=True)] if label else []
        rows.append(Row(number, [*first, *(Cell(at, text, is_text=False) for at, text in values[index].items())]))
    return rows


def _points(data: Element | None) -> Iterator[tuple[int, str]]:
    if data is None:
        return
    levels = data.findall(f".//{_C}lvl")
    for point in (levels[0] if levels else data).iter(_C + "pt"):
        index, text = point.get("idx") or "", one_line(point.findtext(_C + "v") or "")
        if index.isdecimal() and text:
            yield int(index), _number(text)


def _number(text: str) -> str:
    """A stored value without binary noise: 0.15, never 0.15000000000000002."""
    try:
        short = f"{float(text):.15g}"
    except ValueError:
        return text
    return short if "e" not in short and len(short) < len(text) else text
