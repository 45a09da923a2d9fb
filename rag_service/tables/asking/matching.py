"""A question held against one table: columns, values, years and comparisons that its words name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import product

from rag_service.language.languages import language_codes, load_language
from rag_service.language.words import is_stop_word, words
from rag_service.tables.asking.question import Bound, Comparison, Question, year_of
from rag_service.tables.model import Column, Kind, StoredTable, currency_of
from rag_service.tables.vocabulary import Word, column_word

# What a word adds to the score of a table: as the table writes it, and by another word for the same.
_LITERAL, _SAME_MEANING = 2, 1

Values = Mapping[int, Mapping[str, str]]  # column → {key: text}


@dataclass(frozen=True, kw_only=True)
class Filter:
    column: int
    comparison: Comparison
    values: tuple[str, ...] | tuple[Decimal, ...]  # keys of texts, or numbers
    shown: tuple[str, ...] = ()  # the texts as the table writes them


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A word, or words, of the question that name a column; several candidates where they do not tell which."""

    place: int
    columns: tuple[int, ...]


class Match:
    """A question held against one table: what its words name, and which of them are not accounted for."""

    def __init__(self, question: Question, table: StoredTable, values: Values):
        self.question = question
        self.table = table
        self.words = question.words
        self.filters: list[Filter] = []  # by values, parts of values and years
        self.mentions: list[Mention] = []  # of columns, in the order of the question
        self.value_places: set[int] = set()  # words that name values
        self.names_table = False  # whether the question names the table's subject: "how many tents"
        self.score = 0
        self._values = values
        self._used = list(question.used)
        self._data = load_language(question.language).tables
        self._headers = [_header(column.name) for column in table.columns]
        self._match_columns(lambda count: count > 1)
        self._match_values()
        self._match_columns(lambda count: True)
        self._match_parts()
        self._match_years()
        self._match_rest()
        self.mentions.sort(key=lambda mention: mention.place)

    @property
    def is_complete(self) -> bool:
        """Whether every word with a meaning is accounted for, and no value stands in two columns."""
        rest = (word for word, used in zip(self.words, self._used, strict=True) if not used)
        return self.score >= 0 and not any(word.is_content for word in rest)

    def _take(self, places: Iterable[int], *, weight: int = _LITERAL) -> None:
        """Words are accounted for; those that the table itself uses weigh more than words for the same."""
        for place in places:
            self._used[place] = True
            self.score += weight * self.words[place].is_content

    def _match_columns(self, wanted: Callable[[int], bool]) -> None:
        """Columns all of whose words stand in the question; longer names first."""
        order = sorted(range(len(self._headers)), key=lambda place: -len(self._headers[place]))
        for column in order:
            header = self._headers[column]
            if not header or not wanted(len(header)):
                continue
            places = [place for word in header if (place := self._place_of(word)) is not None]
            if len(places) == len(header):
                same = tuple(other for other in order if _is_same(self._headers[other], header))
                self.mentions.append(Mention(place=min(places), columns=tuple(sorted(same))))
                self._take(places)

    def _place_of(self, word: Word) -> int | None:
        return next(
            (
                place
                for place, asked in enumerate(self.words)
                if not self._used[place] and (asked.is_content or asked.text == word.text) and asked.forms & word.forms
            ),
            None,
        )

    def _match_values(self) -> None:
        """Values of the table that stand in the question, the longest first."""
        keys = [word.key for word in self.words]
        found: list[tuple[int, int, int, str]] = []  # (length, start, column, key)
        for column, values in self._values.items():
            for key in values:
                parts = key.split()
                for start in range(len(keys) - len(parts) + 1):
                    end = start + len(parts)
                    if keys[start:end] == parts and any(word.is_content for word in self.words[start:end]):
                        found.append((len(parts), start, column, key))
        taken: dict[int, list[tuple[int, str]]] = {}
        for length, start, column, key in sorted(found, key=lambda one: (-one[0], one[1], one[2])):
            places = range(start, start + length)
            if any(self._used[place] for place in places) and start not in taken:
                continue
            if start in taken and len(taken[start][0][1].split()) != length:
                continue
            if start not in taken:
                self._take(places)
                self.value_places.update(places)
            taken.setdefault(start, []).append((column, key))
        self._add_value_filters(taken)

    def _add_value_filters(self, taken: Mapping[int, list[tuple[int, str]]]) -> None:
        """One filter for each column; several values of one column are alternatives."""
        by_column: dict[int, list[str]] = {}
        for start in sorted(taken):
            candidates = taken[start]
            if len(candidates) > 1:  # in several columns: the one that the question names, else nothing is sure
                named = {column for mention in self.mentions for column in mention.columns}
                candidates = [one for one in candidates if one[0] in named] or candidates
            if len({column for column, _ in candidates}) > 1:
                self.score = -1_000_000
            by_column.setdefault(candidates[0][0], []).append(candidates[0][1])
        for column, keys in by_column.items():
            shown = tuple(self._values[column][key] for key in keys)
            self.filters.append(Filter(column=column, comparison=Comparison.EQUAL, values=tuple(keys), shown=shown))

    def _match_parts(self) -> None:
        """Words that name a column in part, or by another word for the same: "price" for "Unit price"."""
        for by_concept in (False, True):
            for place, word in enumerate(self.words):
                if self._used[place] or not (word.is_content or word.concepts):
                    continue
                if by_concept and not word.is_content and "date" not in word.concepts:
                    continue
                columns = tuple(
                    column
                    for column, header in enumerate(self._headers)
                    if any(
                        (word.concepts & other.concepts) if by_concept else (word.forms & other.forms)
                        for other in header
                    )
                )
                if not columns and by_concept and "date" in word.concepts and not word.is_content:
                    columns = tuple(self.of_kind(Kind.DATE))
                if columns:
                    narrower = [set(mention.columns) & set(columns) for mention in self.mentions]
                    common = next((both for both in narrower if both), None)
                    if common is None:
                        self.mentions.append(Mention(place=place, columns=columns))
                    elif len(common) < len(self.mentions[narrower.index(common)].columns):
                        at = narrower.index(common)
                        self.mentions[at] = replace(self.mentions[at], columns=tuple(sorted(common)))
                    self._take([place], weight=_SAME_MEANING if by_concept else _LITERAL)

    def of_kind(self, *kinds: Kind) -> list[int]:
        """Columns of these kinds."""
        return [place for place, column in enumerate(self.table.columns) if column.kind in kinds]

    def _match_years(self) -> None:
        """A year alone: a period of the dates, or a value of a column of years."""
        for place, word in enumerate(self.words):
            year = None if self._used[place] else year_of(word)
            if year is None:
                continue
            named = [column for mention in self.mentions for column in mention.columns]
            dates = [column for column in self.of_kind(Kind.DATE) if column in named or self._is_plain_date(column)]
            years = [
                column
                for column in self.of_kind(Kind.NUMBER)
                if any("year" in other.concepts for other in self._headers[column])
            ]
            if len(years) == 1:
                self.filters.append(
                    Filter(column=years[0], comparison=Comparison.EQUAL, values=(Decimal(year),), shown=(word.text,))
                )
            elif len(dates) == 1:
                days = (Decimal(date(year, 1, 1).toordinal()), Decimal(date(year, 12, 31).toordinal()))
                self.filters.append(
                    Filter(column=dates[0], comparison=Comparison.BETWEEN, values=days, shown=(word.text,))
                )
            else:
                continue
            self._take([place])

    def _is_plain_date(self, column: int) -> bool:
        """Whether a column is the date of its row, "Date", not that of something else: "Date of birth"."""
        (*others, last) = self._headers[column] or (None,)
        return not others and last is not None and "date" in last.concepts

    def _match_rest(self) -> None:
        """The table's own name, words that ask for nothing, and values that are named in part."""
        for place, word in enumerate(self.words):
            if self._used[place] or not word.is_content:
                continue
            if self.names_document(place, or_caption=True):
                self.names_table = True
                self._take([place])
            elif word.text in self._data.filler:
                self._take([place], weight=0)
            elif word.text in self._data.rows:
                self.names_table = True
                self._take([place], weight=0)
            elif self._is_unit(word):
                self._take([place], weight=0)
        self._match_value_parts()

    def names_document(self, place: int, *, or_caption: bool = False) -> bool:
        """Whether a word stands in the name of the file or the sheet."""
        asked, table = self.words[place], self.table
        title = f"{table.document} {table.sheet or ''} {table.caption if or_caption else ''}"
        named = map(column_word, words(title))
        return any(asked.forms & other.forms or asked.concepts & other.concepts for other in named)

    def _is_unit(self, word: Word) -> bool:
        """Whether a word is the unit of a column that the question names: "kg", "euros"."""
        if (sign := currency_of(word.text)) is not None:
            return any(column.unit == sign for column in self.table.columns)
        units = load_language(self.question.language).proof.units
        canonical = next((unit for unit, names in units.items() if word.text in names), word.text)
        return any(column.unit is not None and column.unit.lower() == canonical for column in self.table.columns)

    def _match_value_parts(self) -> None:
        """Words left over that stand together in values of one column: "bolts" for two kinds of bolt."""
        place = 0
        while place < len(self.words):
            run = place
            while run < len(self.words) and not self._used[run] and self.words[run].is_content:
                run += 1
            if run == place:
                place += 1
                continue
            keys = [word.key for word in self.words[place:run]]
            holding = {
                column: [key for key in values if set(keys) <= set(key.split())]
                for column, values in self._values.items()
            }
            columns = [column for column, held in holding.items() if held]
            taken = {one.column for one in self.filters}
            if len(columns) == 1 and columns[0] not in taken and not all(key.isdigit() for key in keys):
                held = holding[columns[0]]
                shown = tuple(self._values[columns[0]][key] for key in held)
                self.filters.append(
                    Filter(column=columns[0], comparison=Comparison.CONTAINS, values=tuple(keys), shown=shown)
                )
                self._take(range(place, run))
            place = run

    def bound_filters(self) -> list[tuple[Filter, ...]] | None:
        """The filters, in each reading of the comparisons; None if a comparison has no column."""
        choices: list[list[Filter]] = []
        for bound in self.question.bounds:
            columns = self._columns_of(bound)
            if not columns:
                return None
            choices.append([_bind(bound, column, self.table.columns[column]) for column in columns])
        return [(*self.filters, *chosen) for chosen in product(*choices)]

    def _columns_of(self, bound: Bound) -> list[int]:
        """The columns that a comparison may be about."""
        kinds = (Kind.DATE,) if bound.is_date else (Kind.NUMBER, Kind.CURRENCY, Kind.PERCENTAGE)
        if bound.is_year and bound.comparison in (Comparison.BETWEEN, *_BY_TIME) and self.of_kind(Kind.DATE):
            kinds = (Kind.DATE, *kinds) if any(self._mentioned((*kinds,))) else (Kind.DATE,)
        fitting = self.of_kind(*kinds)
        if bound.concepts:
            return [place for place in fitting if self.has_concept(place, bound.concepts)]
        named = self._mentioned(kinds)
        if named:
            return list(min(named, key=lambda mention: abs(mention.place - bound.place)).columns)
        if Kind.DATE in kinds:
            fitting = list(filter(self._is_plain_date, fitting))
        signed = [place for place in fitting if self.table.columns[place].unit in self.question.signs]
        return signed or (fitting if len(fitting) == 1 else [])

    def _mentioned(self, kinds: Sequence[Kind]) -> list[Mention]:
        """Mentions of columns of these kinds, narrowed to them."""
        found = []
        for mention in self.mentions:
            columns = tuple(place for place in mention.columns if self.table.columns[place].kind in kinds)
            if columns:
                found.append(replace(mention, columns=columns))
        return found

    def has_concept(self, column: int, concepts: frozenset[str]) -> bool:
        """Whether a column holds one of these: prices, weights, dates."""
        if any(word.concepts & concepts for word in self._headers[column]):
            return True
        return "date" in concepts and self.table.columns[column].kind is Kind.DATE


_BY_TIME = (Comparison.GREATER, Comparison.GREATER_OR_EQUAL, Comparison.LESS, Comparison.LESS_OR_EQUAL)


def _bind(bound: Bound, place: int, column: Column) -> Filter:
    """The comparison with a column; a year compared with dates is its first or last day."""
    values = bound.values
    if bound.is_year and column.kind is Kind.DATE:
        starts = [Decimal(date(int(value), 1, 1).toordinal()) for value in values]
        ends = [Decimal(date(int(value), 12, 31).toordinal()) for value in values]
        late = bound.comparison in (Comparison.GREATER, Comparison.LESS_OR_EQUAL)
        values = (starts[0], ends[1]) if bound.comparison is Comparison.BETWEEN else ((ends if late else starts)[0],)
    return Filter(column=place, comparison=bound.comparison, values=values)


def _header(name: str) -> tuple[Word, ...]:
    """The words of a column's name that carry its meaning."""
    every = [column_word(word) for word in words(name)]
    return tuple(word for word in every if not any(is_stop_word(word.text, code) for code in language_codes()))


def _is_same(one: Sequence[Word], other: Sequence[Word]) -> bool:
    return [word.key for word in one] == [word.key for word in other]
