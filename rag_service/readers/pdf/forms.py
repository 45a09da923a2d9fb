"""Values of form fields and comments of a PDF page, which are no part of its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pypdfium2 import raw as pdfium

from rag_service.readers.common.builder import one_line
from rag_service.readers.pdf.characters import read_string

_COMMENTS = (pdfium.FPDF_ANNOT_TEXT, pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_HIGHLIGHT)
_TICKED = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_NO_VALUES = (pdfium.FPDF_FORMFIELD_PUSHBUTTON, pdfium.FPDF_FORMFIELD_SIGNATURE)
_MAX_ANNOTATIONS = 5_000  # a page


def read_annotations(page: Any, form: Any) -> Iterator[tuple[str, str]]:
    """("form" or "comment", text) of a page, in the order of the file: "Surname: Gómez".

    `page`, `form`: PDFium's raw handles; without a form, None.
    """
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            kind = pdfium.FPDFAnnot_GetSubtype(annotation)
            if kind == pdfium.FPDF_ANNOT_WIDGET and form:
                text = _field(annotation, form)
                if text:
                    yield "form", text
            elif kind in _COMMENTS:
                text = _text(lambda *out: pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", *out))  # noqa: B023
                if text:
                    yield "comment", text
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _field(annotation: Any, form: Any) -> str:
    """A field with its value; ticked boxes have their name alone, empty fields nothing."""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in _NO_VALUES:
        return ""
    name = _text(lambda *out: pdfium.FPDFAnnot_GetFormFieldAlternateName(form, annotation, *out))
    name = name or _text(lambda *out: pdfium.FPDFAnnot_GetFormFieldName(form, annotation, *out))
    value = _text(lambda *out: pdfium.FPDFAnnot_GetFormFieldValue(form, annotation, *out))
    if kind in _TICKED:
        if not pdfium.FPDFAnnot_IsChecked(form, annotation):
            return ""
        return f"☒ {name}" if value.lower() in ("", "on", "yes", "1", "x") else f"☒ {name}: {value}"
    return f"{name}: {value}" if value else ""


def _text(read: Callable[..., int]) -> str:
    return one_line(read_string(read))
