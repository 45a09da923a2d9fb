"""What Word computes or merges before it shows a text: fields, form fields, and paragraphs whose end is deleted."""

from __future__ import annotations

from dataclasses import dataclass, field

from rag_service.readers.common.xml import Element, whole_number

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VALUE = _W + "val"
_MARK, _RUN, _TEXT, _PROPERTIES = _W + "fldChar", _W + "r", _W + "t", _W + "rPr"
_BOXES = {True: "☒", False: "☐"}


@dataclass(kw_only=True)
class _Field:
    """A field that is open: its code comes first, then perhaps its result, which is what Word shows."""

    begin: Element
    is_code: bool = True
    code: list[Element] = field(default_factory=list)
    has_result: bool = False


def settle_fields(root: Element) -> None:
    """Drop the code of fields with what stands in it, and write the choice of drop-down lists and check boxes."""
    opened: list[_Field] = []
    for run in list(root.iter(_RUN)):
        for part in list(run):
            kind = part.get(_W + "fldCharType") if part.tag == _MARK else None
            if kind == "begin":
                opened.append(_Field(begin=part))
            elif kind == "separate" and opened:
                opened[-1].is_code = False
            elif kind == "end" and opened:
                _close(opened.pop())
            elif part.tag != _PROPERTIES and opened:
                inside = next((one for one in reversed(opened) if one.is_code), None)
                if inside is not None:
                    inside.code.append(part)
                else:
                    opened[-1].has_result = opened[-1].has_result or part.tag == _TEXT


def _close(ended: _Field) -> None:
    for part in ended.code:
        part.getparent().remove(part)
    shown = _shown(ended.begin)
    if shown and not ended.has_result:
        text = ended.begin.makeelement(_TEXT)
        text.text = shown
        ended.begin.addnext(text)


def _shown(begin: Element) -> str:
    """What a form field shows by itself."""
    box, choice = begin.find(f"{_W}ffData/{_W}checkBox"), begin.find(f"{_W}ffData/{_W}ddList")
    if box is not None:
        states = [state for name in ("checked", "default") for state in box.iterchildren(_W + name)]
        return _BOXES[bool(states) and states[0].get(_VALUE, "true") not in ("0", "false", "off")]
    if choice is None:
        return ""
    entries = [entry.get(_VALUE) or "" for entry in choice.iterchildren(_W + "listEntry")]
    chosen = [number for name in ("result", "default") for number in choice.iterchildren(_W + name)]
    place = whole_number(chosen[0].get(_VALUE), usual=len(entries), digits=3) if chosen else 0
    return entries[place] if place < len(entries) else ""


def join_paragraphs(root: Element) -> None:
    """Join paragraphs between which the end of the first is deleted, as Word does when the change is accepted."""
    marks = [one for tag in ("del", "moveFrom") for one in root.iterfind(f".//{_W}p/{_W}pPr/{_PROPERTIES}/{_W}{tag}")]
    ended = {next(mark.iterancestors(_W + "p")) for mark in marks}
    for paragraph in reversed([one for one in root.iter(_W + "p") if one in ended]):
        following = paragraph.getnext()
        if following is None or following.tag != _W + "p":
            continue
        first = next(iter(following), None)
        at = int(first is not None and first.tag == _W + "pPr")
        for part in reversed([part for part in paragraph if part.tag != _W + "pPr"]):
            following.insert(at, part)
        paragraph.getparent().remove(paragraph)
