"""Answers what a named file holds, in quotes: title, headings, first sentences, numbers of pages, sheets and rows.

For questions that ask for nothing else, such as "What is in rapport.pdf?". Nothing is written by a model: every
statement but those numbers, which the reader of the file counted, is a quote with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from rag_service.answering.answerers.computed import write_computed
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.drafts.draft import Draft
from rag_service.answering.guards.injection import find_injections, neutralise_metadata, without_injections
from rag_service.answering.prompt.notices import tell_files
from rag_service.answering.prompt.templates import Prompts
from rag_service.domain import Hit, Location, Span
from rag_service.language.languages import load_language, quote_text
from rag_service.language.sentences import HEADING, split_sentences
from rag_service.language.words import fold, words
from rag_service.retrieval.named_files import Heading, NamedFiles, Outline, Place
from rag_service.retrieval.query import AnswerRun
from rag_service.settings.answers import AnswerSettings
from rag_service.tables.asking.answers import ComputedAnswer
from rag_service.tables.model import StoredTable
from rag_service.tables.sentences import CitedCells, Computed, Sentence

_HEADINGS = 8  # shown of a file
_FIRST_SENTENCES = 2
_PLACE_QUOTES = 5
_PLACE_CHARACTERS = 800  # of them together
_COLUMNS = 12
_MIN_WORDS = 4  # of a sentence

Quote = tuple[int, str, Location]  # first character in the stored text, text, place


@dataclass(frozen=True, kw_only=True)
class FileOverviews:
    """Describes the files that a question names and asks nothing else about."""

    prompts: Prompts
    settings: AnswerSettings
    takes_doubtful: bool = False  # as in `ComputedAnswers`

    async def answer(self, run: AnswerRun) -> Draft | None:
        """As `Answerer.answer`."""
        found, files = run.found, run.found.files
        if files is None or not files.outlines or not found.hits:
            return None
        _, warning = tell_files(found, found.hits, self.prompts)
        described = describe_files(files, found.hits, run.language, warning)
        if described is None or (warning and not (run.model.only_quotes or self.takes_doubtful)):
            return None
        return await write_computed(
            run, described, doubt=Doubt.FILE_UNKNOWN, prompts=self.prompts, settings=self.settings
        )


def describe_files(files: NamedFiles, hits: Sequence[Hit], language: str, warning: str = "") -> ComputedAnswer | None:
    """The overview of each file, or what stands at the place in it that is asked for; None if there is nothing to say.

    Args:
        files: with their outlines.
        hits: the first passages of each file, or those of the place.
        language: ISO 639-1, of the answer.
        warning: said first, such as of files that are missing.
    """
    writer = _Writer(language)
    if warning:
        writer.sentences.append((warning.rstrip("."),))
    for outline in files.outlines:
        passages = [without_injections(hit) for hit in hits if hit.chunk.document.id == outline.file.id]
        if files.place is not None:
            writer.write_place(outline, passages, files.place, files.rest)
        else:
            writer.write_overview(outline, passages)
    if not writer.sentences:
        return None
    return ComputedAnswer(wording=Computed(sentences=tuple(writer.sentences), warning=warning), quotes=writer.quotes)


class _Writer:
    """Writes sentences with quotes."""

    def __init__(self, language: str):
        self._language = language
        self._labels = load_language(language).files.labels
        self._colon = self._labels["colon"]  # with the space that French writes before it
        self.sentences: list[Sentence] = []
        self.quotes: dict[CitedCells, str] = {}

    def write_overview(self, outline: Outline, passages: Sequence[Hit]) -> None:
        """What the whole file holds."""
        labels, colon, name = self._labels, self._colon, neutralise_metadata(outline.file.name)
        counts = {"pages": outline.pages, "slides": outline.slides}
        facts = [f"{labels[kind]}{colon} {count}" for kind, count in counts.items() if count]
        title = None if fold(outline.title) in fold(outline.file.name) else _find(outline.title, passages)
        lead = f"{name} – " if not (facts or title) else ""
        if title:
            text = "; ".join([*facts, f"{labels['title']}{colon} {quote_text(title[1], self._language)}"])
            self.sentences.append((f"{name} – {text}", self._cite(outline, title)))
        elif facts:
            self.sentences.append((f"{name} – {'; '.join(facts)}",))
        if headings := _main_headings(outline):
            shown = headings[:_HEADINGS]
            count = f" ({len(shown)} / {len(headings)})" if len(headings) > len(shown) else ""
            parts: list[str | CitedCells] = [f"{lead}{_capital(labels['headings'])}{count}{colon} "]
            lead = ""
            for number, heading in enumerate(shown):
                quote = heading.start, heading.text, heading.location
                parts += [
                    f"{', ' if number else ''}{quote_text(heading.text, self._language)}",
                    self._cite(outline, quote),
                ]
            self.sentences.append(tuple(parts))
        for table in outline.tables:
            self._write_table(outline, table, passages, lead)
            lead = ""
        if not outline.tables:
            said = outline.title if title else ""
            begins = (quote for quote in _sentences(passages) if quote[1] != said)
            for number, quote in enumerate(_take(begins, _FIRST_SENTENCES)):
                self._quote(outline, quote, f"{lead}{labels['begins']}{colon} " if not number else "")

    def write_place(self, outline: Outline, passages: Sequence[Hit], place: Place, question: str) -> None:
        """What stands at a place: the value of a cell, a row, or the first sentences of a page."""
        if place.kind == "page" or place.kind == "slide":
            quotes = list(_sentences(passages, place))
        else:
            quotes = list(_cells(passages, place))
            asked = f" {fold(question)} "
            quotes = [one for one in quotes if one[2].sheet and f" {fold(one[2].sheet)} " in asked] or quotes
        for quote in _take(quotes, _PLACE_QUOTES):
            location = quote[2]
            sheet = f", {self._labels['sheet']} {location.sheet}" if location.sheet else ""
            cell = f", {location.cell}" if place.kind == "cell" else ""
            self._quote(outline, quote, f"{neutralise_metadata(outline.file.name)}{sheet}{cell}{self._colon} ")

    def _write_table(self, outline: Outline, table: StoredTable, passages: Sequence[Hit], lead: str) -> None:
        names = [column.name for column in table.columns if column.name][:_COLUMNS]
        sheet = f"{self._labels['sheet']} {quote_text(table.sheet, self._language)}, " if table.sheet else ""
        text = f"{sheet}{self._labels['rows']}{self._colon} {table.row_count}"
        if names and not any(map(find_injections, names)):
            text += f", {self._labels['columns']}{self._colon} {', '.join(names)}"
        text = f"{lead}{_capital(text)}"
        row = next(iter(_first_row(passages, table.sheet)), None)
        self.sentences.append((text, self._cite(outline, row)) if row else (text,))

    def _quote(self, outline: Outline, quote: Quote, lead: str) -> None:
        self.sentences.append((f"{lead}{quote_text(quote[1].rstrip('.'), self._language)}", self._cite(outline, quote)))

    def _cite(self, outline: Outline, quote: Quote) -> CitedCells:
        start, text, location = quote
        cited = CitedCells(
            document_id=outline.file.id, start=start, end=start + len(text), location=location, formula=""
        )
        self.quotes[cited] = text
        return cited


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _main_headings(outline: Outline) -> list[Heading]:
    """The headings of the highest level that has several, without the title."""
    known = [heading for heading in outline.headings if not find_injections(heading.text)]
    for depth in range(1, 5):
        of_depth = [heading for heading in known if len(heading.path) == depth]
        if len(of_depth) > 1:
            return of_depth
    return known if known and known[0].text != outline.title else []


def _find(title: str, passages: Sequence[Hit]) -> Quote | None:
    """A title where it stands in the first passage."""
    if not passages or find_injections(title):
        return None
    chunk = passages[0].chunk
    at = chunk.text.find(title)
    return None if at < 0 else (chunk.start + at, title, _location(passages[0], chunk.start + at))


def _sentences(passages: Sequence[Hit], place: Place | None = None) -> Iterator[Quote]:
    """The sentences of passages, each once, with their places; headings are left out."""
    read = 0  # end of what was read: passages overlap
    for hit in passages:
        chunk = hit.chunk
        headings = {fold(heading).strip() for span in chunk.spans for heading in span.location.headings}
        for first, last in split_sentences(chunk.text):
            text = chunk.text[first:last]
            start = chunk.start + first
            location = _location(hit, start)
            if start < read or (place is not None and not place.holds(location)):
                continue
            read = start + len(text)
            if not HEADING.match(text) and fold(text).strip() not in headings and len(words(text)) >= _MIN_WORDS:
                yield start, text.strip(), location


def _cells(passages: Sequence[Hit], place: Place) -> Iterator[Quote]:
    """The cell or the rows of that number, one of each sheet."""
    seen: set[int] = set()
    for hit in passages:
        chunk = hit.chunk
        spans = [span for span in chunk.spans if place.holds(span.location)]
        if place.kind == "row":
            spans = _joined(spans)
        for span in spans:
            start, end = max(span.start, chunk.start), min(span.end, chunk.end)
            text = chunk.text[start - chunk.start : end - chunk.start].strip()
            if text and start not in seen:
                seen.add(start)
                yield start, text, span.location


def _joined(spans: Sequence[Span]) -> list[Span]:
    """One span for each sheet: from its first cell to its last."""
    by_sheet: dict[str | None, Span] = {}
    for span in spans:
        first = by_sheet.setdefault(span.location.sheet, span)
        by_sheet[span.location.sheet] = msgspec.structs.replace(first, end=max(first.end, span.end))
    return list(by_sheet.values())


def _first_row(passages: Sequence[Hit], sheet: str | None) -> Iterator[Quote]:
    """The first row of a sheet that is among the passages, which names its columns."""
    for hit in passages:
        chunk = hit.chunk
        for span in chunk.spans:
            if span.location.sheet == sheet and span.location.cell and span.start >= chunk.start:
                line = chunk.text[span.start - chunk.start :].partition("\n")[0]
                if line.strip():
                    yield span.start, line.rstrip(), span.location


def _take(quotes: Sequence[Quote] | Iterator[Quote], count: int) -> Iterator[Quote]:
    length = 0
    for number, quote in enumerate(quotes):
        length += len(quote[1])
        if number == count or (number and length > _PLACE_CHARACTERS):
            return
        yield quote


def _location(hit: Hit, start: int) -> Location:
    """The place of a character of the stored text."""
    holding = (span.location for span in hit.chunk.spans if span.start <= start < span.end)
    return next(holding, Location())
