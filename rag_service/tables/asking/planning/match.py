"""A question held against one table: what its words name, and which of them are not accounted for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rag_service.language.languages import load_language
from rag_service.language.words import words
from rag_service.tables.asking.planning.plans import Filter, Mention, Operation, Values, total_columns
from rag_service.tables.asking.planning.question import Question
from rag_service.tables.headers import MONEY, Headers, find_by_kind
from rag_service.tables.model import Kind, StoredTable
from rag_service.tables.question_values import has_unit, unit_of
from rag_service.tables.vocabulary import Word, column_word

# What a word adds to the score of a table: as the table writes it, and by another word for the same.
LITERAL, SAME_MEANING = 2, 1


class Match(Headers):
    """What the steps of `match_steps` find, each of which takes words."""

    def __init__(self, question: Question, table: StoredTable, values: Values):
        super().__init__(table)
        self.question = question
        self.words = question.words
        self.filters: list[Filter] = []  # by values, parts of values and years
        self.mentions: list[Mention] = []  # of columns, in the order of the question
        self.value_places: set[int] = set()  # words that name values
        self.name_places: set[int] = set()  # words of a column's whole name: "price per night"
        self.names_table = False  # whether the question names the table's subject: "the dearest of the tents"
        self.row_places: set[int] = set()  # words for the rows: of the table's own title, "rows", "entries"
        self.score = 0
        self.is_refused = False  # whether the question is none for this table, whatever its words name
        self.first_or_last: Operation | None = None  # of the rows in order: "who joined first", "the last row"
        self.order: int | None = None  # the column that tells their order
        self.is_doubtful = False  # whether a word was not understood
        self.values = values
        self.used = list(question.used)
        self.data = load_language(question.language).tables

    @property
    def is_complete(self) -> bool:
        """Whether every word with a meaning is accounted for, and no value stands in two columns."""
        return not (self.is_refused or self.left)

    @property
    def ranks(self) -> bool:
        """Whether the question asks for the highest or the lowest."""
        asked = self.question
        return asked.superlative is not None or bool({"maximum", "minimum"} & asked.operations.keys())

    @property
    def wanted(self) -> int | None:
        """The column that is asked for: "which year", "what song"."""
        years = {c for c in self.table.of_kind(Kind.NUMBER) if self.has_concept(c, frozenset({"year"}))}
        names = years.union(self.labels, self.table.of_kind(Kind.DATE))
        behind = (m for m in self.mentions if m.place > 0 and self.words[m.place - 1].text in self.data.which)
        found = (m.columns[0] for m in behind if len(m.columns) == 1 and m.columns[0] in names)
        return next(filter(self.is_named, found), None)

    def is_named(self, column: int) -> bool:
        """Whether all words of a column's name stand in the question."""
        return all(any(one.is_like(word) for one in self.words) for word in self.headers[column])

    @property
    def left(self) -> list[int]:
        """The places of words with a meaning that are not accounted for."""
        return [place for place, word in enumerate(self.words) if word.is_content and not self.used[place]]

    @property
    def asked_for(self) -> set[int]:
        """The places of the nouns right behind "how many" and "how much", articles between left out."""
        return self.behind("count", "amount")

    def behind(self, *names: str) -> set[int]:
        """The places of the nouns right behind the words for some operations."""
        ends = [end for name, end in self.question.operations.items() if name in names]
        places, articles = range(len(self.words)), self.data.before_nouns
        return {next((at for at in places[end:] if self.words[at].text not in articles), -1) for end in ends}

    def is_beside_superlative(self, place: int) -> bool:
        """ "The shortest walk", "el artículo más caro", "la randonnée la plus courte"."""
        superlative = self.question.superlative
        if superlative is None or not superlative.places:
            return False
        start = superlative.places.start
        has_article = start > 0 and self.words[start - 1].text in self.data.before_nouns
        return place in (start - 1 - has_article, superlative.places.stop)

    def overlook(self, place: int) -> None:
        """Accounts for a word that was not understood."""
        self.used[place] = self.is_doubtful = True

    def take(self, places: Iterable[int], *, weight: int = LITERAL) -> None:
        """Words are accounted for; those that the table itself uses weigh more than words for the same."""
        for place in places:
            self.used[place] = True
            self.score += weight * self.words[place].is_content

    def columns_by_kind(self, concepts: frozenset[str]) -> tuple[int, ...]:
        """The columns of amounts, times or percentages that may be meant where none is called so; else a total."""
        found = find_by_kind(self.table, self.headers, concepts)
        if found or not concepts & MONEY:
            return found
        return tuple(total_columns(self.table))

    def names_title(self, place: int) -> bool:
        """Whether a word stands in the table's own title: what its rows are."""
        title = f"{self.table.sheet or ''} {self.table.caption} {self.table.document if self.table.is_whole else ''}"
        return any(self.words[place].is_like(column_word(word)) for word in words(title))

    def names_document(self, place: int, *, or_caption: bool = False, by_meaning: bool = True) -> bool:
        """Whether a word stands in the name of the file or the sheet, or there is another word for the same."""
        asked, table = self.words[place], self.table
        title = f"{table.document} {table.sheet or ''} {table.caption if or_caption else ''}"
        named = list(map(column_word, words(title)))
        if or_caption and unit_of(asked.text, self.question.language) in (other.text for other in named):
            return True  # "production in kg"
        return any(asked.forms & other.forms or (by_meaning and asked.concepts & other.concepts) for other in named)

    def with_unit(self, word: Word) -> list[int]:
        """The columns whose unit a word is: "kg", "euros"."""
        columns = enumerate(self.table.columns)
        return [place for place, column in columns if has_unit(column, word.text, self.question.language)]

    def free(self, names: Iterable[str]) -> None:
        """Operations whose words are those of a name."""
        for name in names:
            self.used[self.question.operations[name] - 1] = False
        kept = {name: end for name, end in self.question.operations.items() if name not in names}
        self.question = replace(self.question, operations=kept)

    def free_superlative(self) -> None:
        """A superlative whose words are those of a value."""
        if self.question.superlative is not None:
            for place in self.question.superlative.places:
                self.used[place] = False
            self.question = replace(self.question, superlative=None)
