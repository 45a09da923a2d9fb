"""Numbered headings of plain text: minutes, contracts and laws, whose sections have a number and no other mark.

A run of lines whose numbers have one form ("1.", "1.1", "II.", "b)", "Art. 5", "§ 3") and increase is one of headings
if most of them stand above text that is longer than they are. The items of a list stand below each other. When in doubt
a line is no heading: the text is the same either way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rag_service.readers.common.headings import reads_like_heading

_NUMBERED = re.compile(
    r"[ \t]*(?:"
    r"(?P<word>[A-ZÀ-Ý][^\W\d_]{1,11}\.?|§{1,2})[ \t]*(?P<count>\d{1,4})[.):º°]?"  # "Artículo 5.", "§ 3", "Day 2:"
    r"|(?P<dotted>\d{1,3}(?:\.\d{1,3}){1,5})[.)]?"
    r"|(?P<mark>\d{1,3}|[IVXLC]{1,7}|[A-Za-z])(?P<sign>[.)])"
    r")(?:[ \t]+|$)(?P<title>.*)"
)
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_MAX_LEVELS = 6  # as in Markdown
_MAX_PARAGRAPH = 20  # lines that tell the width of a paragraph
_Number = tuple[int, ...]


class _Line(NamedTuple):
    """A line that may be a heading, with one reading of its number: "C." is a letter and a Roman number."""

    row: int  # among the lines, from 0
    form: str
    number: _Number


def find_headings(lines: Sequence[str]) -> Mapping[int, tuple[int, str]]:
    """Index of a line → (level from 1, heading). A form that first occurs below another one is a level deeper."""
    found: dict[int, str] = {}
    for run in sorted(_runs(_candidates(lines)), key=len, reverse=True):
        if not any(line.row in found for line in run) and _has_text_below(lines, run):
            found |= {line.row: line.form for line in run}
    levels: dict[str, int] = {}
    for index in sorted(found):
        levels.setdefault(found[index], min(len(levels) + 1, _MAX_LEVELS))
    return {index: (levels[form], " ".join(lines[index].split()).rstrip(":")) for index, form in found.items()}


def _candidates(lines: Sequence[str]) -> Iterable[_Line]:
    for index, line in enumerate(lines):
        match = _NUMBERED.fullmatch(line)
        if match is None or _goes_on(lines, index):
            continue
        title = match["title"].strip()
        if reads_like_heading(title, title) if title else match["word"]:
            yield from (_Line(index, form, number) for form, number in _readings(match))


def _readings(match: re.Match[str]) -> Iterable[tuple[str, _Number]]:
    if match["word"]:
        yield match["word"].lower(), (int(match["count"]),)
    elif match["dotted"]:
        numbers = tuple(map(int, match["dotted"].split(".")))
        yield f"{len(numbers)} numbers", numbers
    elif match["mark"].isdecimal():
        yield f"1{match['sign']}", (int(match["mark"]),)
    else:
        mark = match["mark"]
        if len(mark) == 1:
            yield f"{'A' if mark.isupper() else 'a'}{match['sign']}", (ord(mark),)
        if mark.isupper() and set(mark) <= _ROMAN.keys():
            yield f"I{match['sign']}", (_read_roman(mark),)


def _read_roman(text: str) -> int:
    values = [_ROMAN[character] for character in text]
    return sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True))


def _goes_on(lines: Sequence[str], index: int) -> bool:
    """Whether a line may have been broken at the width of its paragraph: the next word would not have fitted."""
    after = lines[index + 1].split() if index + 1 < len(lines) else []
    if not after or _NUMBERED.match(lines[index + 1]):
        return False
    if after[0][0].islower():
        return True
    width = end = 0
    for line in lines[index : index + _MAX_PARAGRAPH]:
        if not line.strip():
            break
        width, end = max(width, len(line.rstrip())), end + 1
    return end > 1 and len(lines[index].rstrip()) + 1 + len(after[0]) > width


def _runs(candidates: Iterable[_Line]) -> Iterable[list[_Line]]:
    """Lines of one form in order; a number that does not increase begins another run."""
    runs: dict[str, list[list[_Line]]] = {}
    for line in candidates:
        of_form = runs.setdefault(line.form, [])
        if of_form and of_form[-1][-1].number < line.number:
            of_form[-1].append(line)
        else:
            of_form.append([line])
    return (run for of_form in runs.values() for run in of_form if len(run) > 1)


def _has_text_below(lines: Sequence[str], run: Sequence[_Line]) -> bool:
    """Whether most headings are shorter than the text up to the next number of their form."""
    longer = 0
    for line in run:
        left = len(lines[line.row].strip())
        for text in map(lines.__getitem__, range(line.row + 1, len(lines))):
            match = _NUMBERED.fullmatch(text)
            if left < 0 or (match is not None and any(form == line.form for form, _ in _readings(match))):
                break
            left -= len(text.strip())
        longer += left < 0
    return 2 * longer > len(run)
