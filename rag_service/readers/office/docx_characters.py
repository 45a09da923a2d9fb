"""Raised, lowered, struck-out, hidden and white characters of Word documents, by their format or that of a style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from rag_service.readers.common.builder import HIDDEN, STRUCK_OUT
from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.common.xml import Element, whole_number
from rag_service.readers.office.docx_fields import join_paragraphs, settle_fields

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VALUE = _W + "val"
_STRUCK, _HIDDEN = (_W + "strike", _W + "dstrike"), (_W + "vanish",)
_DELETED = (_W + "delText", _W + "moveFrom")

_PLACE, _SIZE, _COLOUR = _W + "position", _W + "sz", _W + "color"
_GROUNDS = (_W + "shd", _W + "highlight")
_PLAIN_TABLES = ("", "TableGrid", "TableNormal")  # styles without a ground
_MIN_PLACE, _SMALLER = 2, 0.85  # half-points up or down; of the size beside it
_USUAL_SIZE = 20  # half-points, where nothing says another

Look = Mapping[str, str]  # tag of a property → its value


class Characters:
    """Settles the runs of a document and its notes before they are read, fields and deleted paragraph ends first."""

    def __init__(self, styles: Element):
        own = {style.get(_W + "styleId"): style for style in styles.iterchildren(_W + "style")}
        self._looks = {identifier: _look_of_style(identifier, own) for identifier in own}
        self._shaded = frozenset(
            identifier for identifier, style in own.items() if next(style.iter(_W + "shd"), None) is not None
        )
        size = styles.find(f"{_W}docDefaults/{_W}rPrDefault/{_W}rPr/{_SIZE}")
        self._size = _USUAL_SIZE if size is None else whole_number(size.get(_VALUE), usual=_USUAL_SIZE, digits=4)

    def settle(self, root: Element) -> list[str]:
        """Drop runs that are struck out or hidden, write raised and lowered ones; warnings of what was dropped."""
        settle_fields(root)
        warnings = dict.fromkeys([STRUCK_OUT] if next(root.iter(*_DELETED), None) is not None else [])
        join_paragraphs(root)
        for paragraph in root.iter(_W + "p"):
            above = self._styled(paragraph.find(f"{_W}pPr/{_W}pStyle"))
            for run in list(_runs(paragraph)):
                properties = run.find(_W + "rPr")
                if properties is None and not above:
                    continue
                look = {**above, **self._styled(None if properties is None else properties.find(_W + "rStyle"))}
                look |= _look(properties)
                is_hidden = _shows(look, _HIDDEN) or (_is_white(look) and _is_on_paper(run, self._shaded))
                if _shows(look, _STRUCK) or is_hidden:
                    warnings[STRUCK_OUT if _shows(look, _STRUCK) else HIDDEN] = None
                    run.getparent().remove(run)
                elif place := _place_of(look, self._size):
                    for text in run.iterchildren(_W + "t"):
                        text.text = (raise_run if place > 0 else lower_run)(text.text or "")
        return list(warnings)

    def _styled(self, style: Element | None) -> Look:
        return {} if style is None else self._looks.get(style.get(_VALUE), {})


def is_on(switch: Element) -> bool:
    """Whether a property that may say "off" is on."""
    return switch.get(_VALUE, "true") not in ("0", "false", "off")


def _runs(paragraph: Element) -> Iterator[Element]:
    """The runs of a paragraph, without those of text boxes within it."""
    for run in paragraph.iter(_W + "r"):
        if next(run.iterancestors(_W + "p")) is paragraph:
            yield run


def _look(properties: Element | None) -> Look:
    wanted = (
        ()
        if properties is None
        else properties.iterchildren(*_STRUCK, *_HIDDEN, *_GROUNDS, _W + "vertAlign", _PLACE, _SIZE, _COLOUR)
    )
    return {part.tag: part.get(_W + "fill" if part.tag == _GROUNDS[0] else _VALUE, "true") for part in wanted}


def _place_of(look: Look, usual: int) -> int:
    """1: raised, -1: lowered, 0: neither; moved up or down counts if the characters are smaller than usual, too."""
    if place := {"superscript": 1, "subscript": -1}.get(look.get(_W + "vertAlign", "")):
        return place
    moved = look.get(_PLACE, "0")
    is_small = whole_number(look.get(_SIZE), usual=usual, digits=4) < _SMALLER * usual
    if not is_small or whole_number(moved.lstrip("-"), usual=0, digits=4) < _MIN_PLACE:
        return 0
    return -1 if moved.startswith("-") else 1


def _is_white(look: Look) -> bool:
    return look.get(_COLOUR, "").upper() == "FFFFFF" and look.keys().isdisjoint(_GROUNDS)


def _is_on_paper(run: Element, shaded: Set[str]) -> bool:
    """Whether the page is what lies behind a run: no ground of its paragraph, cell, table or text box."""
    for above in run.iterancestors():
        properties = above.find(f"{above.tag}Pr")
        style = None if properties is None else properties.find(f"{_W}pStyle")
        if style is not None and style.get(_VALUE) in shaded:
            return False
        if properties is not None and properties.find(_W + "shd") is not None:
            return False
        if above.tag == _W + "tbl":
            named = above.find(f"{_W}tblPr/{_W}tblStyle")
            if named is not None and named.get(_VALUE) not in _PLAIN_TABLES:
                return False
        if above.tag == _W + "txbxContent" or above.find(_W + "background") is not None:
            return False
    return True


def _look_of_style(identifier: str, own: Mapping[str, Element]) -> Look:
    """The look of a style with what it inherits."""
    look: Look = {}
    for _ in range(20):  # styles may refer to each other in a circle
        style = own.get(identifier)
        if style is None:
            break
        look = {**_look(style.find(_W + "rPr")), **look}
        base = style.find(_W + "basedOn")
        identifier = "" if base is None else base.get(_VALUE)
    return look


def _shows(look: Look, tags: tuple[str, ...]) -> bool:
    return any(look.get(tag, "0") not in ("0", "false", "off") for tag in tags)
