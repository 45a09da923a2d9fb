"""Figures that an operation over a table gave, as evidence for the sentences of a chat model that asked for it.

No passage holds such a figure. What proves a sentence is the operation: its value with its unit, its column, and the
cells that it was limited to. A sentence that leaves one of them out, or adds a word, says something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_service.answering.proof.analysis import Analysis, Token, analyse
from rag_service.answering.proof.computed import is_near, value_of
from rag_service.answering.proof.lexicon import load_lexicon
from rag_service.answering.proof.passage import Passage
from rag_service.domain import Citation, ProofMethod
from rag_service.language.languages import FALLBACK_LANGUAGE, language_codes, load_language
from rag_service.language.words import words
from rag_service.tables.asking.answers import ComputedAnswer
from rag_service.tables.asking.planning.plans import Filter, Operation, Plan
from rag_service.tables.asking.planning.question import Comparison
from rag_service.tables.model import Kind
from rag_service.tables.sentences import CitedCells

_OPERATIONS = ("mean", "median", "maximum", "minimum", "difference", "ratio", "share")  # keys of their phrases
_TO_BE_NAMED = ("mean", "median", "share")  # a figure without such a word reads as a sum
_NOT_EXACTLY = re.compile(r"[<>≤≥≈~+±×÷^]")


@dataclass(frozen=True)
class TableValue:
    """One value with the cells behind it."""

    value: float
    told: str  # the sentence that tells it
    operation: Operation
    column: str  # name of the column that was computed; "": rows were counted
    limits: tuple[str, ...]  # the values that its rows are equal to
    elsewhere: str  # words of the table that a sentence may not say unless they are told
    cells: CitedCells
    quote: str
    question: str  # whose words a sentence may repeat
    language: str
    is_certain: bool  # whether the question asks for this operation, and for no other

    @cached_property
    def _told(self) -> Analysis:
        return analyse(self.told, self.language)

    @cached_property
    def _told_words(self) -> frozenset[str]:
        return frozenset(token.stem for token in self._told.tokens)

    @cached_property
    def _limits(self) -> frozenset[str]:
        return frozenset(token.stem for limit in self.limits for token in analyse(limit, self.language).tokens)

    @cached_property
    def _column(self) -> Sequence[Token]:
        return analyse(self.column, self.language).content

    @cached_property
    def _free(self) -> frozenset[str]:
        """Stems of the question that say nothing about rows or columns of the table."""
        return analyse(self.question, self.language).stems - analyse(self.elsewhere, self.language).stems

    @cached_property
    def _names_of_operations(self) -> dict[str, frozenset[str]]:
        code = self.language if self.language in language_codes() else FALLBACK_LANGUAGE
        phrases = load_language(code).tables.phrases
        return {name: frozenset(word for phrase in phrases[name] for word in words(phrase)) for name in _OPERATIONS}

    def proves(self, claim: Analysis, passage: Passage, context: frozenset[str]) -> bool:
        """Whether a sentence says that this is the value, and no more.

        Args:
            passage: of the same document; its words tell whether a word of the claim is one of its cells.
            context: stems of the document's title.
        """
        figures = [number for number in claim.numbers if self._is_value(number)]
        others = {number.stem for number in claim.numbers if number not in figures}
        said = {token.stem for token in claim.tokens}
        if len(figures) != 1 or not others <= self._limits or not self._limits <= said:
            return False
        if not all(token.stem in said or _unit(token) == figures[0].unit for token in self._column):
            return False
        if claim.bound(figures[0]) or _NOT_EXACTLY.search(claim.text) or claim.is_negative != self._told.is_negative:
            return False
        free = (self._free | context) - passage.stems
        return self._names_operation(claim) and all(
            token.stem in self._told_words or not self._adds(token, free)
            for token in claim.tokens
            if token not in claim.numbers
        )

    def _names_operation(self, claim: Analysis) -> bool:
        """Whether the claim names an operation that has to be named."""
        name = self.operation.value
        held = {token.kind.folded for token in claim.tokens if token.kind is not None}
        return name not in _TO_BE_NAMED or not held.isdisjoint(self._names_of_operations[name])

    def _adds(self, token: Token, free: frozenset[str]) -> bool:
        """Whether a word that is not told may say more than was computed: a condition, a comparison, another
        operation, a name, a month, or a word that neither the question nor the title has."""
        lexicon = load_lexicon(self.language)
        kind = token.kind
        if kind is None:
            return True
        sums = lexicon.operations["sum"] if self.operation is Operation.SUM else frozenset()
        if kind.folded in sums:
            return False
        others = frozenset().union(*lexicon.operations.values())
        if kind.poles or kind.folded in lexicon.conditions or kind.folded in others - lexicon.operations["sum"]:
            return True
        named = kind.folded in others or any(kind.folded in one for one in self._names_of_operations.values())
        return kind.content and (named or token.name or kind.calendar or token.stem not in free)

    def _is_value(self, number: Token) -> bool:
        """Whether it is the value, in its unit."""
        shown = [told for told in self._told.numbers if _is_near(told, self.value)]
        units = {told.unit for told in shown} | {unit for token in self._column if (unit := _unit(token))}
        return _is_near(number, self.value) and number.unit in units


def _is_near(number: Token, value: float) -> bool:
    """Whether it is the value, rounded to the decimals that it is written with."""
    said = value_of(number)
    return said is not None and is_near(said, value, decimals=len(number.stem.partition(".")[2]))


def _unit(token: Token) -> str | None:
    """The unit that a word names."""
    return (token.kind.unit if token.kind is not None else "") or None


def read_values(computed: Sequence[ComputedAnswer], *, question: str, language: str) -> list[TableValue]:
    """The values of the operations that gave one: a sum, a count, a highest value, and no list."""
    found = []
    for one in computed:
        if one.result is None or len(one.quotes) != 1 or one.result.figure is None:
            continue
        ((cells, quote),) = one.quotes.items()
        plan = one.result.plan
        limits = [_limit(by, plan) for by in plan.filters]
        if None in limits:
            continue
        (told,) = (each for each in one.wording.sentences if cells in each)
        value = TableValue(
            float(one.result.figure),
            told="".join(part for part in told if isinstance(part, str)),
            operation=plan.operation,
            column="" if plan.column is None else plan.table.columns[plan.column].name,
            limits=tuple(text for limit in limits for text in limit or ()),
            elsewhere="; ".join((*(column.name for column in plan.table.columns), *one.asked_cells)),
            cells=cells,
            quote=quote,
            question=question,
            language=language,
            is_certain=not one.wording.warning,
        )
        found.append(value)
    return found


def _limit(by: Filter, plan: Plan) -> tuple[str, ...] | None:
    """The values that a filter wants, as a sentence has to name them; None: it wants something else than equal ones."""
    if by.comparison is not Comparison.EQUAL or by.relation is not None or by.other is not None:
        return None
    if by.shown:
        return by.shown
    is_number = plan.table.columns[by.column].kind in (Kind.NUMBER, Kind.CURRENCY)
    return tuple(f"{value:f}" for value in by.values if not isinstance(value, str)) if is_number else None


def proved_by_tables(citations: Sequence[Citation], values: Sequence[TableValue]) -> bool | None:
    """Whether the values that prove sentences of an answer are all certain; None: none proves any."""
    certain = {value.cells.formula: value.is_certain for value in values}
    used = [one.formula for one in citations if one.method is ProofMethod.COMPUTED and one.formula in certain]
    return all(certain[formula] for formula in used) if used else None
