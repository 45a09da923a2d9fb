"""Writes headings, paragraphs, lists and tables of formats that flow: Word, web pages, e-books, slides, mail."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from rag_service.domain import Location
from rag_service.readers.common.builder import TextBuilder, clean, one_line
from rag_service.readers.common.cells import Row
from rag_service.readers.common.tables import write_table


class BlockWriter:
    """Tracks the heading path and the paragraph number while blocks are written.

    `Location.paragraph` counts paragraphs with text, from 1; table rows have the number of the previous paragraph and
    their own `row` and `cell`. Paragraphs of slides are not counted.
    """

    def __init__(self, builder: TextBuilder):
        self.builder = builder
        self.title: str | None = None  # the first heading of level 1 or title
        self._path: list[tuple[int, str]] = []
        self._paragraph = 0
        self._slide: int | None = None
        self._is_in_list = False

    def begin(self, *, slide: int | None = None) -> None:
        """A new slide or chapter: headings above it do not hold."""
        self._end_list()
        self._path, self._slide = [], slide

    @property
    def where(self) -> str:
        """Where the writer stands, in words for a warning."""
        if self._slide is not None:
            return f"slide {self._slide}"
        return f'section "{self._path[-1][1][:80]}"' if self._path else f"paragraph {max(self._paragraph, 1)}"

    def begin_quote(self, *, is_cited: bool) -> None:
        """A quotation begins, of another message if it `is_cited`; only mails tell them apart."""

    def end_quote(self) -> None:
        """The innermost quotation ends."""

    def write_heading(self, text: str, level: int) -> None:
        """Write a heading; level 0 is a document's title, which is no section."""
        text = one_line(text)
        if not text:
            return
        if level <= 1 and self.title is None:
            self.title = text
        if level:
            self._path = [entry for entry in self._path if entry[0] < level] + [(level, text)]
        self.write_paragraph(text)

    def end_section(self, level: int) -> None:
        """Headings of this level and below it do not hold for what follows."""
        self._end_list()
        self._path = [entry for entry in self._path if entry[0] < level]

    def write_paragraph(self, text: str, *, part: str | None = None, ending: str = "\n\n") -> None:
        """Write a paragraph, a list item (`ending` is one line end) or a remark of a `part`."""
        text = clean(text).strip()
        if not text:
            return
        if ending != "\n":
            self._end_list()
        self._is_in_list = ending == "\n"
        if part is None and self._slide is None:
            self._paragraph += 1
        number = self._paragraph or None if part is None else None
        self.builder.write(text, self._place(paragraph=number, part=part))
        self.builder.write(ending)

    def _end_list(self) -> None:
        """An empty line after the items of a list."""
        self.builder.write("\n" if self._is_in_list else "")
        self._is_in_list = False

    def write_table(self, rows: Iterable[Row], *, part: str | None = None) -> None:
        """Write rows as labelled lines."""
        self._end_list()
        before = len(self.builder)
        write_table(self.builder, rows, place=self._places_of_rows(part))
        self.builder.write("\n" if len(self.builder) > before else "")

    def _places_of_rows(self, part: str | None) -> Callable[[int, str | None], Location]:
        """Cells are named as in a spreadsheet, as Word's own formulas do."""

        def place(row: int, cell: str | None) -> Location:
            return msgspec.structs.replace(
                self._place(paragraph=self._paragraph or None, row=row, part=part), cell=cell
            )

        return place

    def _place(self, *, paragraph: int | None, row: int | None = None, part: str | None = None) -> Location:
        headings = tuple(text for _, text in self._path)
        return Location(headings=headings, paragraph=paragraph, row=row, slide=self._slide, part=part)
