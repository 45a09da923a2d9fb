"""A question held against one table: columns, values, years and comparisons that its words name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import product

from rag_service.language.languages import load_language
from rag_service.language.words import words
from rag_service.tables.asking.planning.plans import (
    BY_TIME,
    Filter,
    Mention,
    Values,
    bind,
    find_runs,
    narrowed,
    total_columns,
)
from rag_service.tables.asking.planning.question import Bound, Comparison, Question, year_of
from rag_service.tables.kinds import EARNED, FIGURES, MONEY, Headers, find_by_kind
from rag_service.tables.model import Kind, StoredTable
from rag_service.tables.spoken_values import has_unit, read_ordinal, read_value
from rag_service.tables.vocabulary import MONTH, Word, column_word, is_verb

# What a word adds to the score of a table: as the table writes it, and by another word for the same.
_LITERAL, _SAME_MEANING = 2, 1
_STOCK = frozenset({"stock"})
_NEAR = 3  # words between a column and its number, or a negation and its column


class Match(Headers):
    """A question held against one table: what its words name, and which of them are not accounted for."""

    def __init__(self, question: Question, table: StoredTable, values: Values):
        super().__init__(table)
        self.question = question
        self.words = question.words
        self.filters: list[Filter] = []  # by values, parts of values and years
        self.mentions: list[Mention] = []  # of columns, in the order of the question
        self.value_places: set[int] = set()  # words that name values
        self.name_places: set[int] = set()  # words of a column's whole name: "price per night"
        self.names_table = False  # whether the question names the table's subject: "how many tents"
        self.score = 0
        self.first_or_last: str | None = None  # operation on the dates of the column named: "who joined first"
        self.is_doubtful = False  # whether a word was not understood, or only by its beginning
        self._values = values
        self._used = list(question.used)
        self._data = load_language(question.language).tables
        self._free_headers()
        self._match_columns(at_least=2)
        self._match_stretches()
        self._match_values()
        self._match_columns(at_least=1)
        self._match_parts()
        self._match_years()
        self._match_months()
        self._match_ordinals()
        self._match_numbers()
        self._match_rest()
        self._match_absence()
        self._match_first_and_last()
        self.is_doubtful |= any(map(self._is_year_alone, self.mentions))
        self.mentions.sort(key=lambda mention: mention.place)

    @property
    def is_complete(self) -> bool:
        """Whether every word with a meaning is accounted for, and no value stands in two columns."""
        return self.score >= 0 and not self.left

    @property
    def left(self) -> list[int]:
        """The places of words with a meaning that are not accounted for."""
        return [place for place, word in enumerate(self.words) if word.is_content and not self._used[place]]

    @property
    def asked_for(self) -> set[int]:
        """The places of the nouns right behind "how many" and "how much", articles between left out."""
        ends = [self.question.operations[name] for name in ("count", "amount") if name in self.question.operations]
        places, articles = range(len(self.words)), self._data.before_nouns
        return {next((at for at in places[end:] if self.words[at].text not in articles), -1) for end in ends}

    def overlook(self, place: int) -> None:
        """Accounts for a word that was not understood."""
        self._used[place] = self.is_doubtful = True

    def _take(self, places: Iterable[int], *, weight: int = _LITERAL) -> None:
        """Words are accounted for; those that the table itself uses weigh more than words for the same."""
        for place in places:
            self._used[place] = True
            self.score += weight * self.words[place].is_content

    def _match_columns(self, *, at_least: int) -> None:
        """Columns all of whose words stand in the question, of `at_least` so many; longer names first."""
        order = sorted(range(len(self._headers)), key=lambda place: -len(self._headers[place]))
        for column in order:
            header = self._headers[column]
            if len(header) < at_least:
                continue
            places = [place for word in header if (place := self._place_of(word)) is not None]
            if len(places) == len(header):
                keys = [word.key for word in header]
                same = tuple(other for other in order if [word.key for word in self._headers[other]] == keys)
                self.mentions.append(Mention(place=min(places), columns=tuple(sorted(same))))
                self._take(places)
                self.name_places.update(places[1:])

    def _place_of(self, word: Word) -> int | None:
        return next(
            (place for place, asked in enumerate(self.words) if not self._used[place] and asked.forms & word.forms),
            None,
        )

    def _match_values(self) -> None:
        """Values of the table that stand in the question, the longest first."""
        found = list(find_runs(self.words, self._values))
        self._free_names(found)
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

    def _match_stretches(self) -> None:
        """ "From June to August" of a column of months: those between too. Without such a column nothing is sure."""
        for one in self.question.stretches:
            columns = [column for column, values in self._values.items() if one.keys_in(values)]
            if len(columns) != 1:
                self.score = -1_000_000
                continue
            keys = tuple(one.keys_in(self._values[columns[0]]))
            shown = tuple(self._values[columns[0]][key] for key in keys)
            self.filters.append(Filter(column=columns[0], comparison=Comparison.EQUAL, values=keys, shown=shown))
            self._take(range(one.start, one.end))
            self.value_places.update(range(one.start, one.end))
            self.is_doubtful |= not one.is_within(self._values[columns[0]])  # "to December", and it ends in October

    def _free_headers(self) -> None:
        """Words of a column's name ask for no operation beside another: "the lowest average stay" of "Average stay"."""
        asked = self.question.operations
        for header in self._headers:
            forms = frozenset[str]().union(*(word.forms for word in header))
            inner = {name for name, end in asked.items() if self.words[end - 1].forms & forms}
            others = asked.keys() - inner or self.question.superlative
            if inner and others and all(any(one.forms & word.forms for word in self.words) for one in header):
                self._free(inner)
                return

    def _free(self, names: Iterable[str]) -> None:
        """Operations whose words are those of a name."""
        for name in names:
            self._used[self.question.operations[name] - 1] = False
        kept = {name: end for name, end in self.question.operations.items() if name not in names}
        self.question = replace(self.question, operations=kept)

    def _free_names(self, found: Iterable[tuple[int, int, int, str]]) -> None:
        """Words of a longer value ask for no operation: "Plaza Mayor" for no maximum."""
        for length, start, _, _ in found:
            run = range(start, start + length)
            asked = {name for name, end in self.question.operations.items() if end - 1 in run}
            if asked and any(self.words[place].is_content and not self._used[place] for place in run):
                self._free(asked)

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
                columns = tuple(
                    column
                    for column, header in enumerate(self._headers)
                    if any(
                        (word.concepts & other.concepts) if by_concept else (word.forms & other.forms)
                        for other in header
                    )
                )
                if not columns and by_concept and "quantity" in word.concepts:
                    columns = tuple(c for c in self.table.of_kind(Kind.NUMBER) if self.has_concept(c, _STOCK))
                # "Sold" is no name of a file of sales, but asks for what they brought in.
                means_money = bool(word.concepts & EARNED)
                is_name = by_concept and self.names_document(place, or_caption=True, by_meaning=not means_money)
                by_kind = by_concept and not is_name and word.text not in self._data.last  # "who started last"
                figures = narrowed(
                    self.mentions, self.table, FIGURES
                )  # "how much gas did we spend", "by planned amount"
                if (
                    not columns
                    and by_kind
                    and word.concepts & MONEY
                    and figures
                    and (
                        not is_verb(word.text, self.question.language)
                        or any(m.place in self.asked_for for m in figures)
                    )
                ):
                    self._take([place], weight=0)
                    self.is_doubtful = True
                    continue
                if not columns and by_kind and (columns := self.columns_by_kind(word.concepts)):
                    self.is_doubtful = True
                if not columns and by_concept and "date" in word.concepts:
                    columns = tuple(self.table.of_kind(Kind.DATE))
                    if word.is_content and not any(set(m.columns) & set(columns) for m in self.mentions):
                        continue
                if columns:
                    narrower = [set(mention.columns) & set(columns) for mention in self.mentions]
                    common = next((both for both in narrower if both), None)
                    if common is None:
                        self.mentions.append(Mention(place=place, columns=columns))
                    elif len(common) < len(self.mentions[narrower.index(common)].columns):
                        at = narrower.index(common)
                        self.mentions[at] = replace(self.mentions[at], columns=tuple(sorted(common)))
                    self._take([place], weight=_SAME_MEANING if by_concept else _LITERAL)

    def _is_year_alone(self, mention: Mention) -> bool:
        """Whether only a year names columns of something of that year: "in 2024" for "Cost 2024"."""
        if year_of(self.words[mention.place]) is None:
            return False
        rest = [word for column in mention.columns for word in self._headers[column] if year_of(word) is None]
        return bool(rest) and not any(asked.is_like(word) for asked in self.words for word in rest)

    def columns_by_kind(self, concepts: frozenset[str]) -> tuple[int, ...]:
        """The columns of amounts, times or percentages that may be meant where none is called so; else a total."""
        found = find_by_kind(self.table, self._headers, concepts)
        if found or not concepts & MONEY:
            return found
        return tuple(total_columns(self.table))

    def _match_years(self) -> None:
        """A year alone: a period of the dates, or a value of a column of years."""
        for place, word in enumerate(self.words):
            year = None if self._used[place] else year_of(word)
            if year is None:
                continue
            years = [
                column
                for column in self.table.of_kind(Kind.NUMBER)
                if any("year" in other.concepts for other in self._headers[column])
            ]
            if len(years) == 1:
                self.filters.append(
                    Filter(column=years[0], comparison=Comparison.EQUAL, values=(Decimal(year),), shown=(word.text,))
                )
            elif len(dates := self._dates()) == 1:
                days = (Decimal(date(year, 1, 1).toordinal()), Decimal(date(year, 12, 31).toordinal()))
                self.filters.append(
                    Filter(column=dates[0], comparison=Comparison.BETWEEN, values=days, shown=(word.text,))
                )
            else:
                continue
            self._take([place])

    def _dates(self) -> list[int]:
        """The dates that a period may be about: those named, that of the row, or the only one, perhaps not meant."""
        named = [column for mention in narrowed(self.mentions, self.table, (Kind.DATE,)) for column in mention.columns]
        found = named or list(filter(self._is_plain_date, self.table.of_kind(Kind.DATE)))
        self.is_doubtful |= not found
        return found or self.table.of_kind(Kind.DATE)

    def _match_months(self) -> None:
        """A month without a year: of the dates, in every year that they have, which may not be meant."""
        for place in self.left:
            months = [concept for concept in self.words[place].concepts if concept.startswith(MONTH)]
            if len(months) == 1 and len(dates := self._dates()) == 1:
                number = Decimal(months[0].removeprefix(MONTH))
                shown = (self.words[place].text,)
                self.filters.append(Filter(column=dates[0], comparison=Comparison.MONTH, values=(number,), shown=shown))
                self._take([place])
                self.is_doubtful = True

    def _match_ordinals(self) -> None:
        """ "The third floor", where floors are numbers."""
        for place in self.left:
            if (value := read_ordinal(self.words, place, self.question.language)) is None:
                continue
            beside = [
                m
                for m in narrowed(self.mentions, self.table, FIGURES)
                if m.place in (place - 1, value.end) and len(m.columns) == 1
            ]
            if beside:
                column = beside[0].columns[0]
                self.filters.append(Filter(column=column, comparison=Comparison.EQUAL, values=(value.number,)))
                self._take(range(place, value.end))

    def _match_numbers(self) -> None:
        """A number right behind the name of a column of figures: "stock 0", "VAT of 21 %"."""
        for place in self.left:
            value = read_value(self.words, place, self.question.language)
            near = [m for m in narrowed(self.mentions, self.table, FIGURES) if m.place < place]
            if value is None or value.is_date or not near or not self.words[place].text[0].isdigit():
                continue
            mention = max(near, key=lambda one: one.place)
            between = range(mention.place + 1, place)
            follows = next((self.words[at] for at in range(value.end, len(self.words))), None)
            alone = follows is None or not follows.is_content or bool(self._with_unit(follows))
            if len(mention.columns) == 1 and len(between) <= _NEAR and not set(between) & set(self.left) and alone:
                (column,) = mention.columns
                self.filters.append(Filter(column=column, comparison=Comparison.EQUAL, values=(value.number,)))
                self._take(range(place, value.end))

    def _match_absence(self) -> None:
        """ "no return date", "not returned": the column named behind the negation is empty, or zero."""
        if not self.question.negations:
            return
        first, place = self.question.negations[0], self.question.negations[-1]
        behind = [mention for mention in self.mentions if mention.place > first]
        plain = not (self.question.bounds or self.question.superlative or self.question.operations.keys() - {"count"})
        columns = {column for mention in behind for column in mention.columns}
        reach = range(place + 1, place + _NEAR + 2)
        fits = len(columns) == len(behind) == 1 and behind[0].place in reach
        if not plain or not fits or self.value_places & set(range(first, behind[0].place)):
            self.score = -1_000_000
            return
        (column,) = columns
        shown = (self._data.answers["no"].lower(),) if column in self.table.of_kind(Kind.BOOLEAN) else ()
        header = self._headers[column]
        self.is_doubtful |= not all(any(word.forms & asked.forms for asked in self.words) for word in header)
        if self.is_doubtful and len(header) > 1:
            self.score = -1_000_000  # "come back" is not "due back"
        self.filters.append(Filter(column=column, comparison=Comparison.EMPTY, values=(Decimal(0),), shown=shown))

    def _match_first_and_last(self) -> None:
        """ "Who joined first", "the last order": by the dates of the column that is named."""
        for place in [] if self.question.asks else self.left:
            for words_of, operation in ((self._data.first, "minimum"), (self._data.last, "maximum")):
                named = narrowed(self.mentions, self.table, (Kind.DATE,))
                if self.words[place].text in words_of and len(dates := self._dates()) == 1:
                    self.is_doubtful |= not named  # "the last invoice" may be that of the highest number
                    self.mentions.append(Mention(place=place, columns=tuple(dates)))
                    self.first_or_last = operation
                    self._take([place], weight=0)

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
            elif columns := self._with_unit(word):
                if not narrowed(self.mentions, self.table, FIGURES) and place in self.asked_for:  # "how many kilos"
                    self.mentions.append(Mention(place=place, columns=tuple(columns)))
                self._take([place], weight=0)
        self._match_value_parts()

    def names_document(self, place: int, *, or_caption: bool = False, by_meaning: bool = True) -> bool:
        """Whether a word stands in the name of the file or the sheet, or there is another word for the same."""
        asked, table = self.words[place], self.table
        title = f"{table.document} {table.sheet or ''} {table.caption if or_caption else ''}"
        named = list(map(column_word, words(title)))
        return any(asked.forms & other.forms or (by_meaning and asked.concepts & other.concepts) for other in named)

    def _with_unit(self, word: Word) -> list[int]:
        """The columns whose unit a word is: "kg", "euros"."""
        columns = enumerate(self.table.columns)
        return [place for place, column in columns if has_unit(column, word.text, self.question.language)]

    def _match_value_parts(self) -> None:
        """Words left over that stand together in values of one column: "bolts" for two kinds of bolt, "club de judo".

        Longer runs first.
        """
        left = self.left
        for size in range(len(left), 0, -1):
            for at in range(len(left) - size + 1):
                run = left[at : at + size]
                if not any(self._used[run[0] : run[-1] + 1]):
                    self._match_run(run)

    def _match_run(self, run: Sequence[int]) -> None:
        keys = [self.words[place].key for place in run]
        holding = {
            column: [key for key in values if set(keys) <= set(key.split())] for column, values in self._values.items()
        }
        columns = [column for column, held in holding.items() if held]
        taken = {one.column for one in self.filters}
        if len(columns) == 1 and columns[0] in taken and self._add_value(columns[0], holding[columns[0]]):
            self._take(run)
            self.value_places.update(run)
            return
        if len(columns) == 1 and columns[0] not in taken and not all(key.isdigit() for key in keys):
            shown = tuple(self._values[columns[0]][key] for key in holding[columns[0]])
            self.filters.append(
                Filter(column=columns[0], comparison=Comparison.CONTAINS, values=tuple(keys), shown=shown)
            )
            self._take(run)
            self.value_places.update(run)

    def _add_value(self, column: int, held: Sequence[str]) -> bool:
        """Another value of a column beside one that is named already: "Ben and Tom"; whether each names one value."""
        (before, *more) = [one for one in self.filters if one.column == column]
        keys = [key for key, shown in self._values[column].items() if shown in before.shown]
        plain = before.comparison in (Comparison.EQUAL, Comparison.CONTAINS)
        if more or not plain or len(held) != 1 or len(keys) != len(before.shown) or held[0] in keys:
            return False
        if before.comparison is Comparison.CONTAINS and len(keys) != 1:
            return False
        keys.append(held[0])
        shown = tuple(self._values[column][key] for key in keys)
        self.filters[self.filters.index(before)] = Filter(
            column=column, comparison=Comparison.EQUAL, values=tuple(keys), shown=shown
        )
        return True

    def bound_filters(self) -> list[tuple[Filter, ...]] | None:
        """The filters, in each reading of the comparisons; None if a comparison has no column."""
        choices: list[list[Filter]] = []
        for bound in self.question.bounds:
            columns = self._columns_of(bound)
            if not columns:
                return None
            choices.append([bind(bound, column, self.table.columns[column]) for column in columns])
        return [(*self.filters, *chosen) for chosen in product(*choices)]

    def _columns_of(self, bound: Bound) -> list[int]:
        """The columns that a comparison may be about."""
        kinds = (Kind.DATE,) if bound.is_date else FIGURES
        if bound.is_year and bound.comparison in (Comparison.BETWEEN, *BY_TIME) and self.table.of_kind(Kind.DATE):
            kinds = (Kind.DATE,)
        fitting = self.table.of_kind(*kinds)
        if bound.concepts:
            return [place for place in fitting if self.has_concept(place, bound.concepts)]
        named = narrowed(self.mentions, self.table, kinds)
        if named:
            return list(min(named, key=lambda mention: abs(mention.place - bound.place)).columns)
        if Kind.DATE in kinds:
            fitting = self._dates()
        units = self.words[bound.end : bound.end + 1]
        measured = {place for word in units for place in self._with_unit(word)}
        return sorted(measured.intersection(fitting)) or (fitting if len(fitting) == 1 else [])
