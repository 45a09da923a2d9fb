"""Values of form fields and comments of a PDF page, which are no part of its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pypdfium2 import raw as pdfium

from rag_service.readers.common.builder import HIDDEN, one_line
from rag_service.readers.pdf.characters import read_string
from rag_service.readers.pdf.rows import read_rows
from rag_service.readers.pdf.words import Box, Word

_COMMENTS = (pdfium.FPDF_ANNOT_TEXT, pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_HIGHLIGHT)
_TICKED = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_NO_VALUES = (pdfium.FPDF_FORMFIELD_PUSHBUTTON, pdfium.FPDF_FORMFIELD_SIGNATURE)
_UNSEEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD = 1 << 13  # of the flags of a text field (ISO 32000-1, table 228)
_MAX_ANNOTATIONS = 5_000  # a page
_LETTERS = re.compile(r"[^\W_]+")
_ABOVE = 1.5  # of the height of a label, from its middle to the field below it
_FRAME = 3.0  # points that a field may overlap its label


def read_annotations(
    page: Any, form: Any, words: Sequence[Word], *, warn: Callable[[str], None]
) -> Iterator[tuple[str, str]]:
    """("form" or "comment", text) of a page, in the order of the file: "Surname: Gómez"; empty fields have no text.

    `page`, `form`: PDFium's raw handles; without a form, None. `words`: what is printed on the page.
    """
    labels = _Labels(words)
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            kind = pdfium.FPDFAnnot_GetSubtype(annotation)
            if kind == pdfium.FPDF_ANNOT_WIDGET and form:
                text = _field(annotation, form, labels)
                if text is None:
                    continue
                if text and _is_hidden(annotation, form):
                    warn(HIDDEN)
                else:
                    yield "form", text
            elif kind in _COMMENTS:
                text = _text(lambda *out: pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", *out))  # noqa: B023
                if text:
                    yield "comment", text
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _field(annotation: Any, form: Any, labels: _Labels) -> str | None:
    """A field with its value; ticked boxes have their label alone, empty fields nothing. None: a button."""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in _NO_VALUES:
        return None
    value = _text(lambda *out: pdfium.FPDFAnnot_GetFormFieldValue(form, annotation, *out))
    if not (pdfium.FPDFAnnot_IsChecked(form, annotation) if kind in _TICKED else value):
        return ""
    tooltip = _text(lambda *out: pdfium.FPDFAnnot_GetFormFieldAlternateName(form, annotation, *out))
    name = tooltip or _text(lambda *out: pdfium.FPDFAnnot_GetFormFieldName(form, annotation, *out))
    if not labels.are_printed(name):
        box = pdfium.FS_RECTF()
        pdfium.FPDFAnnot_GetRect(annotation, box)
        name = labels.beside((box.left, box.bottom, box.right, box.top), is_before=kind not in _TICKED) or name
    if kind in _TICKED:
        return f"☒ {name}" if value.lower() in ("", "on", "yes", "1", "x") else f"☒ {name}: {value}"
    return f"{name}: {value}"


def _is_hidden(annotation: Any, form: Any) -> bool:
    """Whether the page does not show the value of a field."""
    if pdfium.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
        return True
    is_text = pdfium.FPDFAnnot_GetFormFieldType(form, annotation) == pdfium.FPDF_FORMFIELD_TEXTFIELD
    return is_text and bool(pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD)


class _Labels:
    """What is printed beside the fields of a page.

    A field's own name is for programs, and its tooltip may be an instruction: "a value from 40 to 250".
    """

    def __init__(self, words: Sequence[Word]):
        self._words = [word for word in words if word.turns == 0]
        self._printed = _bare(" ".join(word.text for word in words))

    def are_printed(self, name: str) -> bool:
        bare = _bare(name)
        return bool(bare.strip()) and bare in self._printed

    def beside(self, box: Box, *, is_before: bool) -> str:
        """The text before a field, or behind a box that is ticked, or else above it; "" if it has none but a number."""
        left, bottom, right, top = box
        for row in read_rows([word for word in self._words if bottom < word.middle < top]):
            before = [segment for segment in row.segments if segment[-1].right < left + _FRAME]
            behind = [segment for segment in row.segments if segment[0].left > right - _FRAME]
            if label := _label(before[-1:] if is_before else behind[:1]):
                return label
        above = [word for word in self._words if 0 <= word.middle - top < _ABOVE * word.height]
        for row in reversed(list(read_rows(above))):
            over = [segment for segment in row.segments if segment[-1].right > left and segment[0].left < right]
            if label := _label(over[:1]):
                return label
        return ""


def _label(segments: Sequence[Sequence[Word]]) -> str:
    text = one_line(" ".join(word.text for segment in segments for word in segment)).rstrip(": ")
    return text if any(map(str.isalpha, text)) else ""


def _bare(text: str) -> str:
    """Its letters and digits, between spaces."""
    return f" {' '.join(_LETTERS.findall(text.casefold()))} "


def _text(read: Callable[..., int]) -> str:
    return one_line(read_string(read))
