"""Figures that an operation over a table gave, as evidence for the sentences of a chat model that asked for it.

No passage holds such a figure. What proves a sentence is the operation: its value, its columns and the cells that it
was limited to. A word that stands in other cells would say more than was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_service.answering.proof.analysis import Analysis, Token, analyse
from rag_service.answering.proof.computed import is_near, value_of
from rag_service.answering.proof.passage import Passage
from rag_service.domain import Citation, ProofMethod
from rag_service.tables.asking.answers import ComputedAnswer
from rag_service.tables.asking.planning.question import Comparison
from rag_service.tables.sentences import CitedCells

_KNOWN_SHARE = 0.8  # of a sentence's words, as for figures that it reckons itself


@dataclass(frozen=True)
class TableValue:
    """One value with the cells behind it."""

    value: float
    told: str  # the sentence that tells it
    limits: str  # the values that its rows are equal to
    cells: CitedCells
    quote: str
    question: str  # whose words a sentence may repeat
    language: str
    is_certain: bool  # whether the question asks for this operation, and for no other

    @cached_property
    def _told(self) -> Analysis:
        return analyse(self.told, self.language)

    @cached_property
    def _question(self) -> Analysis:
        return analyse(self.question, self.language)

    def proves(self, claim: Analysis, passage: Passage, context: frozenset[str]) -> bool:
        """Whether a sentence says no more than that this is the value.

        Args:
            passage: of the same document; its words tell whether a word of the claim is one of its cells.
            context: stems of the document's title.
        """
        figures = [number for number in claim.numbers if self._is_value(number)]
        others = [number for number in claim.numbers if number not in figures]
        limits = {number.stem for number in analyse(self.limits, self.language).numbers}
        if len(figures) != 1 or claim.bound(figures[0]) or claim.is_negative != self._told.is_negative:
            return False
        said = [token for token in claim.content if token not in claim.numbers]
        computed = self._told.stems | context
        free = self._question.stems - passage.stems
        held = [token for token in said if token.stem in computed or (token.stem in free and not token.name)]
        strange = [token for token in said if token not in held]
        return (
            all(number.stem in limits for number in others)
            and not any(token.name or token.stem in passage.stems for token in strange)
            and len(held) >= _KNOWN_SHARE * len(said)
        )

    def _is_value(self, number: Token) -> bool:
        said = value_of(number)
        return said is not None and is_near(said, self.value, decimals=len(number.stem.partition(".")[2]))


def read_values(computed: Sequence[ComputedAnswer], *, question: str, language: str) -> list[TableValue]:
    """The values of the operations that gave one: a sum, a count, a highest value, and no list."""
    found = []
    for one in computed:
        if one.result is None or len(one.quotes) != 1 or one.result.figure is None:
            continue
        ((cells, quote),) = one.quotes.items()
        sentences = ["".join(part for part in each if isinstance(part, str)) for each in one.wording.sentences]
        equal = [by.shown for by in one.result.plan.filters if by.comparison is Comparison.EQUAL and not by.relation]
        value = TableValue(
            float(one.result.figure),
            told=sentences[-1],
            limits="; ".join(text for shown in equal for text in shown),
            cells=cells,
            quote=quote,
            question=question,
            language=language,
            is_certain=not one.wording.warning,
        )
        found.append(value)
    return found


def proved_by_tables(citations: Sequence[Citation], values: Sequence[TableValue]) -> bool | None:
    """Whether the values that prove sentences of an answer are all certain; None: none proves any."""
    certain = {value.cells.formula: value.is_certain for value in values}
    used = [one.formula for one in citations if one.method is ProofMethod.COMPUTED and one.formula in certain]
    return all(certain[formula] for formula in used) if used else None
