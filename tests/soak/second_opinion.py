"""What a second reader finds in public files, and ours does not: `python -m tests.soak.second_opinion FOLDER`.

Compares the figures and words of the stored text with those of a plain reading: `pdftotext` for PDF where it is
installed, else the characters as PDFium gives them; openpyxl's cells; the texts in the XML of Office and OpenDocument
files; lxml's text of web pages. Prints for each file what is only in one of the two, and what was refused.

A difference is a place to look at beside the page, not yet an error: marks are set apart, page numbers, hidden and
struck-out text are left out, and forms, comments and charts are read by us alone.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pypdfium2
from lxml import etree, html
from openpyxl import load_workbook

from rag_service.errors import DocumentError
from rag_service.language.words import fold
from rag_service.readers.ocr.recognition import NeedsOcrError
from rag_service.readers.parse import parse

_FIGURE = re.compile(r"\d+(?:[.,'\u00a0\u202f]\d{3})*(?:[.,]\d+)?")
_HYPHEN = re.compile(r"[-\u00ad\x02\ufffe]\s*\n\s*(?=[^\W\d_])|[\x02\ufffe]")  # at a line end
_MIDNIGHT = " 00:00:00"  # of a date in openpyxl
_WORD = re.compile(r"[^\W\d_]{3,}")
_SHOWN = 12  # differences of a file
_TEXTS = re.compile(r"(?:word/(?:document|footnotes|endnotes|header\d*|footer\d*)|ppt/slides/slide\d+|content)\.xml")


def main(folder: Path) -> None:
    """Compare the files below a folder."""
    files = same = 0
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        read = READERS.get(path.suffix.lower())
        if read is None:
            continue
        files += 1
        data = path.read_bytes()
        name = path.relative_to(folder)
        try:
            ours = parse(data, file_name=path.name).text
        except (DocumentError, NeedsOcrError) as refusal:
            cause = f" ({refusal.__cause__!r})" if refusal.__cause__ else ""
            click.echo(f"refused   {name}: {refusal}{cause}")
            continue
        try:
            theirs = read(data)
        except Exception as error:  # noqa: BLE001 - the other library's failure is no fault of ours
            click.echo(f"not read  {name}: {type(error).__name__}")
            continue
        found = list(differences(ours, theirs))
        same += not found
        click.echo("\n".join([f"{'differs' if found else 'same':9} {name}", *found]))
    click.echo(f"{files} files, {same} the same")


def differences(ours: str, theirs: str) -> Iterator[str]:
    """Lines that name the figures and words that are in one of two texts only.

    Names of columns stand in each row of our text, so that a figure of theirs is missing only if ours has none.
    """
    for what, pattern in (("figures", _FIGURE), ("words", _WORD)):
        here, there = (Counter(_normal(found) for found in pattern.findall(text)) for text in (ours, theirs))
        for where, only in (("theirs", there.keys() - here.keys()), ("ours", here.keys() - there.keys())):
            if only:
                shown = ", ".join(sorted(only)[:_SHOWN])
                more = f" and {len(only) - _SHOWN} more" if len(only) > _SHOWN else ""
                yield f"          {what} only in {where}: {shown}{more}"


def _normal(text: str) -> str:
    return re.sub(r"[\s.,'\u00a0\u202f]", "", fold(text))


def _read_pdf(data: bytes) -> str:
    if program := shutil.which("pdftotext"):
        done = subprocess.run([program, "-layout", "-", "-"], input=data, capture_output=True, check=True, timeout=120)
        return _HYPHEN.sub("", done.stdout.decode(errors="replace"))
    document = pypdfium2.PdfDocument(data)
    return _HYPHEN.sub("", "\n".join(page.get_textpage().get_text_range() for page in document))


def _read_xlsx(data: bytes) -> str:
    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    cells = (cell for sheet in book.worksheets for row in sheet.iter_rows(values_only=True) for cell in row)
    texts = (f"{cell:.15g}" if isinstance(cell, float) else str(cell) for cell in cells if cell is not None)
    return "\n".join(["Sheet", *book.sheetnames, *(text.removesuffix(_MIDNIGHT) for text in texts)])


def _read_office(data: bytes) -> str:
    """The texts of the paragraphs of a Word or PowerPoint file."""
    return "\n".join("".join(text.text or "" for text in paragraph.iter("{*}t")) for paragraph in _paragraphs(data))


def _read_odf(data: bytes) -> str:
    return "\n".join("".join(paragraph.itertext()) for paragraph in _paragraphs(data))


def _paragraphs(data: bytes) -> Iterator[etree._Element]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if _TEXTS.fullmatch(name):
                yield from etree.fromstring(archive.read(name)).iter("{*}p", "{*}h")


def _read_html(data: bytes) -> str:
    page = html.fromstring(data)
    for node in page.xpath("//script | //style | //head"):
        node.drop_tree()
    return "\n".join(page.itertext())


READERS: dict[str, Callable[[bytes], str]] = {
    ".pdf": _read_pdf,
    **dict.fromkeys((".xlsx", ".xlsm"), _read_xlsx),
    **dict.fromkeys((".docx", ".docm", ".pptx", ".pptm"), _read_office),
    **dict.fromkeys((".odt", ".ods", ".odp"), _read_odf),
    **dict.fromkeys((".html", ".htm", ".xhtml"), _read_html),
}


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python -m tests.soak.second_opinion FOLDER")
    main(Path(sys.argv[1]))
