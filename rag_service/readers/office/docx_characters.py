"""Raised, lowered, struck-out and hidden characters of Word documents, by their own format or by that of a style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rag_service.readers.common.builder import HIDDEN, STRUCK_OUT
from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.common.xml import Element
from rag_service.readers.office.docx_fields import join_paragraphs, settle_fields

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VALUE = _W + "val"
_STRUCK, _HIDDEN = (_W + "strike", _W + "dstrike"), (_W + "vanish",)
_DELETED = (_W + "delText", _W + "moveFrom")

Look = Mapping[str, str]  # tag of a property → its value


class Characters:
    """Settles the runs of a document and its notes before they are read, fields and deleted paragraph ends first."""

    def __init__(self, styles: Element):
        own = {style.get(_W + "styleId"): style for style in styles.iterchildren(_W + "style")}
        self._looks = {identifier: _look_of_style(identifier, own) for identifier in own}

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
                if _shows(look, _STRUCK) or _shows(look, _HIDDEN):
                    warnings[STRUCK_OUT if _shows(look, _STRUCK) else HIDDEN] = None
                    run.getparent().remove(run)
                elif (place := look.get(_W + "vertAlign", "")) in ("superscript", "subscript"):
                    for text in run.iterchildren(_W + "t"):
                        text.text = (raise_run if place == "superscript" else lower_run)(text.text or "")
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
    wanted = () if properties is None else properties.iterchildren(*_STRUCK, *_HIDDEN, _W + "vertAlign")
    return {part.tag: part.get(_VALUE, "true") for part in wanted}


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
