"""PDF: the text of each page, laid out so that the figures of a table row stay beside their label.

PDFium (Chrome's engine) with our `words` and `layout`, compared with pypdf's layout mode on five filings of 470 pages
(10-K, 10-Q, earnings release; one core): 120 pages a second instead of 12; of 1.4 million visible characters one is
missing; 4,873 of 4,889 lines with two or more figures are the same, most others better; sixty words split by kerning
are whole, and justified text has single spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import closing, suppress
from functools import partial
from itertools import compress
from typing import Any

import msgspec
import pypdfium2
from pypdfium2 import raw as pdfium

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError, ProtectedError, ScannedError, TooLargeError
from rag_service.readers.common.builder import HIDDEN, STRUCK_OUT, TextBuilder, clean, one_line, pictures_not_read
from rag_service.readers.common.embedded_files import Parts
from rag_service.readers.common.headings import MAX_CHARACTERS
from rag_service.readers.common.names import choose_title, language_of
from rag_service.readers.ocr.recognition import HOW_TO_INSTALL, is_installed, may_recognise
from rag_service.readers.ocr.recognition import MAX_PAGES as MAX_OCR_PAGES
from rag_service.readers.pdf.characters import WRONG, is_unreadable, read_string
from rag_service.readers.pdf.drawn_lines import (
    drop_struck,
    find_level_lines,
    join_fractions,
    join_minuses,
    join_slashed,
)
from rag_service.readers.pdf.forms import read_annotations
from rag_service.readers.pdf.headings import Heading, PageLine, find_headings, follow_path
from rag_service.readers.pdf.hidden_words import drop_hidden
from rag_service.readers.pdf.hyphens import join_hyphenated, read_vocabulary
from rag_service.readers.pdf.layout import Line, lay_out
from rag_service.readers.pdf.page_breaks import drop_running_lines, goes_on, join_columns, join_words, trim
from rag_service.readers.pdf.page_words import drop_outside, part_at_rule, read_words
from rag_service.readers.pdf.rules import PageObjects, read_rules
from rag_service.readers.pdf.scans import (
    STAMP_CHARACTERS,
    Picture,
    PictureFinder,
    Scan,
    may_be_scanned,
    read_picture,
    read_scanned_page,
    warn_of,
)
from rag_service.readers.pdf.tables import TableReader
from rag_service.readers.pdf.words import Word, boxes_on, count_letters, is_bold, level
from rag_service.word_boxes import Placed, pack

MEDIA_TYPE = "application/pdf"
MAX_PAGES = 5_000
MAX_PAGE_CHARACTERS = 1_000_000  # a dense page holds 10,000
_EMPTY_FORM = "The document is a form whose fields are empty."
_UNREADABLE = (
    "Some text was not read: its fonts do not say which letters they show. "
    "Run text recognition (OCR) on the document and upload the result."
)
_DYNAMIC_FORM = "The document is a dynamic form (XFA), whose values cannot be read. Print it to a PDF."
Remark = tuple[str, str]  # (part of the page, text)
_CURRENCY = re.compile(r"([$€£¥]) {2,}(?=[\d(—–-])")
_GAP = re.compile(r"[ \t]{2,}")
_PUNCTUATION_BEFORE, _PUNCTUATION_BEHIND = re.compile(r"[\W_]+"), re.compile(r"[\W_]+\Z")


def parse_pdf(data: bytes, *, name: str, parts: Parts) -> ParsedDocument:
    """Read a PDF; text is located by its page and the headings above it (see `headings`).

    Files encrypted with an empty user password are opened. `metadata["pages_without_text"]` lists empty pages. Call it
    only in a process that may crash: PDFium aborts when memory runs out.

    Raises:
        DocumentError: password-protected, damaged, cut off, or scanned without text.
        TooLargeError: too many pages, a page with far too many characters, or too much text.
        PdfiumError: damaged beyond repair.
    """
    if b"%%EOF" not in data:
        raise DocumentError(
            f'"{name}" is cut off: the end of the PDF is missing. Copy or download the file again and upload it.'
        )
    with closing(_open(data, name)) as document:
        builder = TextBuilder(name)
        if document.get_formtype() != pdfium.FORMTYPE_NONE:
            document.init_forms()  # a form of both kinds (XFA) keeps its values as one of the old kind, too
        pages, found = _read_pages(document, name, builder, finder=PictureFinder(data))
        remarks = [[(part, text) for part, text in on_page if text] for on_page in found]
        fields = [text for on_page in found for part, text in on_page if part == "form"]
        if document.formenv and not any(fields):
            is_old = document.get_formtype() == pdfium.FORMTYPE_ACRO_FORM
            if fields or not is_old:  # many programs declare a form without fields
                builder.warn(_EMPTY_FORM if is_old else _DYNAMIC_FORM)
        write_pages(builder, pages, remarks)
        _read_attachments(document, builder, parts)
        if not len(builder):
            why = {
                _UNREADABLE: "contains no text that can be read: its fonts do not say which letters they show",
                HIDDEN: "contains no text but hidden one",
            }.get(builder.first_warning, "contains no text, only images; it was probably scanned")
            raise ScannedError(
                f'"{name}" {why}. Run text recognition (OCR) on it and upload the result. {HOW_TO_INSTALL}'
            )
        empty = [number for number, lines in enumerate(pages, start=1) if not lines]
        if empty:
            builder.warn(f"Pages without text, empty or scanned: {_listed(empty)} of {len(pages)}.{_how_to_read()}")
        metadata = {"pages": len(pages), **({"pages_without_text": empty} if empty else {}), **_information(document)}
        return builder.build(
            title=choose_title(name, metadata.pop("title", None)),
            media_type=MEDIA_TYPE,
            language=language_of(read_string(partial(pdfium.FPDFCatalog_GetLanguage, document))),
            metadata=metadata,
        )


def _read_attachments(document: Any, builder: TextBuilder, parts: Parts) -> None:
    """Append the files attached to a PDF, as those of a mail; the file's own XML of an invoice is one of them."""
    for number in range(document.count_attachments()):
        attachment = document.get_attachment(number)
        try:
            path = one_line(attachment.get_name()) or f"attachment {number + 1}"
            content = bytes(attachment.get_data())
        except pdfium.PdfiumError:
            builder.warn(f"Attachment {number + 1} was not read: it is damaged.")
            continue
        parts.write(builder, content, path=path)


def _open(data: bytes, name: str) -> Any:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            raise ProtectedError(
                f'"{name}" is protected by a password. Save a copy without the password and upload that.'
            ) from error
        if error.err_code == pdfium.FPDF_ERR_SECURITY:
            raise ProtectedError(
                f'"{name}" is encrypted in a way that this service cannot open. '
                "Save an unprotected copy and upload that."
            ) from error
        raise


def _read_pages(
    document: Any, name: str, builder: TextBuilder, *, finder: PictureFinder
) -> tuple[list[list[PageLine]], list[list[Remark]]]:
    """For each page its lines, and its form values, comments and what pictures beside the text say."""
    if len(document) > MAX_PAGES:
        raise TooLargeError(
            f'"{name}" has {len(document):,} pages; the limit is {MAX_PAGES:,}. Split it into smaller files.'
        )
    pages: list[list[PageLine]] = []
    remarks: list[list[Remark]] = []
    characters = scanned = 0
    unread: list[int] = []  # the page of each picture
    tables = TableReader(name)
    for number in range(1, len(document) + 1):
        lines, found, pictures = _read_page(document, number, name, tables, builder, finder=finder)
        if scanned < MAX_OCR_PAGES and (scan := _recognise(document, number, lines, builder)) is not None:
            scanned += 1
            recognised = lines_of(scan)
            if _length(recognised) > 2 * _length(lines):  # else the picture has no text besides the typed one
                lines = recognised
                if scan.unsure:
                    builder.warn(warn_of(scan.unsure, number))
        elif pictures:
            count = min(len(pictures), MAX_OCR_PAGES - scanned) if may_recognise() else 0
            found += _read_pictures(document, number, pictures[:count], builder)
            unread += [number] * (len(pictures) - count)
            scanned += count
        pages.append(lines)
        remarks.append(found)
        characters += sum(len(line.text) + 1 for line in lines) + sum(len(text) for _, text in found)
        builder.check_size(characters)
    if unread:
        on = list(dict.fromkeys(unread))
        where = f" ({'page' if len(on) == 1 else 'pages'} {_listed(on)})"
        builder.warn(f"{pictures_not_read(len(unread), where)}{_how_to_read()}")
    return pages, remarks


def _read_pictures(document: Any, number: int, pictures: Sequence[Picture], builder: TextBuilder) -> Iterator[Remark]:
    """What text recognition reads in pictures of a page, each a remark."""
    if not pictures:
        return
    with closing(document[number - 1]) as page:
        for picture in pictures:
            scan = read_picture(page, picture)
            text = "\n".join(line.text for line in lines_of(scan)).strip()
            if text:
                yield "picture", text
                if scan.unsure:
                    builder.warn(warn_of(scan.unsure, number))


def _listed(pages: Sequence[int]) -> str:
    return ", ".join(map(str, pages[:50])) + (" …" if len(pages) > 50 else "")


def _how_to_read() -> str:
    return "" if is_installed() else f" {HOW_TO_INSTALL}"


def _read_page(
    document: Any, number: int, name: str, tables: TableReader, builder: TextBuilder, *, finder: PictureFinder
) -> tuple[list[PageLine], list[Remark], list[Picture]]:
    """Of a page: tidied lines, what stands in its fields and comments, and pictures; none if it cannot be read."""
    try:
        page = document[number - 1]
    except pypdfium2.PdfiumError:
        return [], [], []
    with closing(page), closing(page.get_textpage()) as text_page:

        def with_tables(words: list[Word]) -> list[Word]:
            return tables.read(
                words,
                lambda: read_rules(objects),
                is_bold=lambda word: is_bold(text_page.raw, word.at),
                part=lambda word, rule: part_at_rule(word, text_page.raw, rule),
            )

        if text_page.count_chars() > MAX_PAGE_CHARACTERS:
            raise TooLargeError(
                f'Page {number} of "{name}" unpacks to far more data than a page of text contains. '
                "Print the document to a new PDF and upload that."
            )
        objects = PageObjects(page.raw)
        found, are_cut_off = read_words(objects, text_page.raw)
        drawn = [word for word in found if not is_unreadable(word.text)]
        if len(drawn) < len(found) or any(WRONG in word.text for word in drawn):
            builder.warn(_UNREADABLE)
        seen = drop_hidden(drop_outside(drawn, page.raw), page, text_page.raw, objects)
        strokes = find_level_lines(objects)
        valid = drop_struck(seen, page.raw, strokes)
        words = join_minuses(join_fractions(join_slashed(valid), strokes), strokes)
        lines = lay_out(words, with_tables=with_tables)
        if are_cut_off or len(seen) < len(drawn):
            builder.warn(HIDDEN)
        if len(valid) < len(seen):
            builder.warn(STRUCK_OUT)
        box_of = boxes_on(page.raw)
        tidied = tidy(
            _page_line(line, is_bold=_is_bold(text_page.raw, line))._replace(
                words=[(at, word.text, box) for at, word in level(line.words) if (box := box_of(word))]
            )
            for line in lines
        )
        pictures = finder.find(page, objects, words) if tidied else []
        form = document.formenv and document.formenv.raw
        return tidied, list(read_annotations(page.raw, form, words, warn=builder.warn)), pictures


def _page_line(line: Line, *, is_bold: bool) -> PageLine:
    # The soft hyphen at the end of a line is one that is seen, and joined with the others.
    text = f"{line.text[:-1]}-" if line.text.endswith("\u00ad") else line.text
    return PageLine(clean(text).replace("\n", " "), line.height, is_bold, line.middle)


def lines_of(scan: Scan) -> list[PageLine]:
    """The recognised lines of a page, tidied; each is marked as a whole, since its words' places are guessed."""
    lines = ((_page_line(line, is_bold=False), box) for line, box in scan.lines)
    return tidy(line._replace(words=[(0, line.text, box)] if box else ()) for line, box in lines)


def _recognise(document: Any, number: int, lines: Sequence[PageLine], builder: TextBuilder) -> Scan | None:
    """A scanned page as text recognition reads it; None if it is not one or nothing recognises text here.

    `lines` are the typed ones: a scan may have a stamp or a page number.
    """
    if _length(lines) > STAMP_CHARACTERS:
        return None
    with suppress(pypdfium2.PdfiumError), closing(document[number - 1]) as page:
        if may_be_scanned(page, typed=bool(lines)):
            if may_recognise():
                return read_scanned_page(page)
            if lines and not is_installed():
                builder.warn(f"Page {number} is a picture with little text. {HOW_TO_INSTALL}")
    return None


def _length(lines: Sequence[PageLine]) -> int:
    return sum(len(line.text) for line in lines)


def _is_bold(text_page: Any, line: Line) -> bool:
    """Whether the first and last words are bold; only checked for lines that may be headings."""
    may_be_heading = line.height > 0 and 0 < len(line.text) <= MAX_CHARACTERS and -1 not in line.ends
    return may_be_heading and all(is_bold(text_page, index) for index in line.ends)


def write_pages(builder: TextBuilder, pages: Sequence[Sequence[PageLine]], remarks: Sequence[Sequence[Remark]]) -> None:
    """Write all pages, each heading on one line between empty lines, form values and comments at the end of a page."""
    path: list[Heading] = []
    kept, running = drop_running_lines(pages)
    pages = joined = list(map(join_columns, kept))
    join_words(joined)
    above: Sequence[PageLine] = ()
    vocabulary = read_vocabulary("\n".join(line.text for line in lines) for lines in pages)
    for number, (lines, headings) in enumerate(zip(pages, find_headings(pages), strict=True), start=1):
        is_joined = goes_on(above, lines) and not (headings and headings[0].first == 0)
        builder.write(("\n" if is_joined else "\n\n") if lines and len(builder) else "")
        above = () if remarks[number - 1] else lines or above
        place, done = _place(number, path), 0
        for heading in headings:
            _write_lines(builder, lines[done : heading.first], place, vocabulary, ending="\n\n")
            path, done = follow_path(path, heading), heading.last + 1
            place = _place(number, path)
            text = heading.text if done == len(lines) else f"{heading.text}\n\n"
            builder.write(text, place, pack(_place_words(text, lines[heading.first : done])))
        _write_lines(builder, lines[done:], place, vocabulary)
        for count, (part, text) in enumerate(remarks[number - 1]):
            builder.write("\n" if count else "\n\n" if len(builder) else "")
            builder.write(text, msgspec.structs.replace(place, part=part))
    for text, page in running.items():
        builder.write("\n\n")
        builder.write(text, _place(page + 1, path))


def _write_lines(
    builder: TextBuilder, lines: Sequence[PageLine], place: Location, vocabulary: Set[str], *, ending: str = ""
) -> None:
    text = join_hyphenated("\n".join([line.text for line in lines]).strip("\n"), vocabulary)
    text += ending if text else ""
    builder.write(text, place, pack(_place_words(text, lines)))


def _place_words(text: str, lines: Sequence[PageLine]) -> Iterator[Placed]:
    """The words of lines in the text that was made of them, found by the letters and digits before them."""
    letters = list(compress(range(len(text)), map(str.isalnum, text)))
    before = end = 0  # letters of the lines before; where the last word ends
    for line in lines:
        count = count_letters(line.text)
        if before + count > len(letters):
            return
        for at, word, box in line.words:
            is_plain = word.isalnum()
            own = len(word) if is_plain else count_letters(word)
            first = before + at
            if own:
                start, stop = letters[first], letters[first + own - 1] + 1
                if not is_plain:
                    lead, trail = _PUNCTUATION_BEFORE.match(word), _PUNCTUATION_BEHIND.search(word)
                    if lead and text.endswith(lead[0], end, start):
                        start -= len(lead[0])
                    if trail and text.startswith(trail[0], stop):
                        stop += len(trail[0])
            else:
                start = text.find(word, end, letters[first] if first < len(letters) else len(text))
                stop = start + len(word)
            if start >= 0:
                yield start, stop, box
                end = stop
        before += count


def _place(page: int, path: Sequence[Heading]) -> Location:
    return Location(page=page, headings=tuple(heading.text for heading in path))


def tidy(lines: Iterable[PageLine]) -> list[PageLine]:
    """Drop indentation and needless empty lines; gaps between columns become two spaces."""
    texts = ((line, _CURRENCY.sub(r"\1 ", line.text.replace("\u00a0", " "))) for line in lines)
    return trim(line._replace(text=_GAP.sub("  ", text.strip())) for line, text in texts)


def _information(document: Any) -> dict[str, str]:
    """Title, author and subject, if readable."""
    values: dict[str, str] = {}
    for key in ("title", "author", "subject"):
        with suppress(UnicodeDecodeError):  # broken properties must not make the text unreadable
            values[key] = one_line(document.get_metadata_value(key.title()))[:500]
    return {key: value for key, value in values.items() if value}
