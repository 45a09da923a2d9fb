"""What takes the certainty from a computed answer: words of the question that its plan does not use.

A plan uses a word as the name of a column, as a value, as an operation, or as the title of its table. A word that
stands in some other cell of the row may ask for that cell: "hotel limit in London?" over `Hotel | £110 | London: £165`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_service.domain import Chunk, Hit
from rag_service.language.sentences import split_sentences
from rag_service.language.words import fold_words, words
from rag_service.tables.asking.execute import MAX_ROWS, Result, UsedRow
from rag_service.tables.asking.planning.plans import Operation
from rag_service.tables.asking.planning.question import Comparison, Question
from rag_service.tables.headers import header_words
from rag_service.tables.vocabulary import Word, read_words


def settle(question: Question, results: Sequence[Result]) -> list[Result]:
    """The results that answer the question, doubtful ones marked as such."""
    kept = [one for one in results if not _says_little(question, one)]
    kept = _settle_sums(kept)
    if any(one.count for one in kept) and not all(one.count for one in kept):  # of several readings
        kept = [_doubt(one) for one in kept if one.count]
    asked = _unused_words(question, kept)
    return [_show_rows(one) if _leaves_cells(one, asked) else one for one in kept]


def _doubt(result: Result) -> Result:
    return replace(result, plan=replace(result.plan, is_doubtful=True))


def _show_rows(result: Result) -> Result:
    return replace(_doubt(result), shows_rows=True)


def _says_little(question: Question, result: Result) -> bool:
    """Whether it counts no row without a value, or a single row for a question not understood to the last word, or
    names only what the question has named: "Rows where Task = Permit: Permit"."""
    plan = result.plan
    if plan.operation is Operation.LOOKUP:
        named = set[str]().union(*(_keys_in(row, plan.key) for row in result.rows))
        is_named = plan.column == plan.key and plan.best is None
        return is_named and bool(named) and named <= {word.key for word in question.words}
    is_absent = any(one.comparison is Comparison.EMPTY for one in plan.filters)
    is_compared = any(not one.shown or one.comparison is Comparison.MONTH for one in plan.filters)
    little = 2 if plan.is_doubtful and not is_compared else int(is_absent)
    return plan.operation is Operation.COUNT and result.count < little


def _settle_sums(results: Sequence[Result]) -> list[Result]:
    """Rows beside their total that nobody asked for: of one row only the row, of many only the total."""
    totals = [one for one in results if one.plan.is_part and one.plan.operation is Operation.SUM]
    if not totals:
        return list(results)
    if totals[0].count == 1:
        return [one for one in results if one not in totals]
    shown = [one for one in results if one not in totals and one.count <= MAX_ROWS]
    return [*shown, *map(_doubt, totals)]


def _unused_words(question: Question, results: Sequence[Result]) -> set[str]:
    """The keys of the words that are no operation, no name of a column computed with and no whole value."""
    headers: list[Word] = []
    values: set[str] = set()
    for plan in (one.plan for one in results):
        headers += header_words(f"{plan.table.columns[plan.key].name} {plan.table.columns[plan.column or 0].name}")
        whole = (one for one in plan.filters if one.comparison is not Comparison.CONTAINS)
        values.update(key for one in whole for text in one.shown for key in fold_words(text).split())
    return {
        word.key
        for place, word in enumerate(question.words)
        if word.is_content and not question.used[place] and not any(word.is_like(one) for one in headers)
    } - values


def _leaves_cells(result: Result, asked: set[str]) -> bool:
    """Whether a word that the plan of a look-up does not use names another column, or is in its cell of such a row."""
    plan = result.plan
    if plan.operation is not Operation.LOOKUP or plan.column == plan.key or plan.best is not None:
        return False
    used = {plan.column, plan.key, *(one.column for one in plan.filters if one.comparison is not Comparison.CONTAINS)}
    others = (column.name for place, column in enumerate(plan.table.columns) if place not in used)
    if asked & {word.key for name in others for word in header_words(name)}:
        return bool(result.rows)
    return any(
        (asked - _keys_in(row, plan.key, *row.description(plan.table))) & _keys_in(row, place)
        for row in result.rows
        for place in range(len(row.cells))
        if place not in used
    )


def _keys_in(row: UsedRow, *places: int) -> set[str]:
    return {key for place in places for key in fold_words(row.text(place)).split()}


def states(question: Question, hits: Sequence[Hit]) -> bool:
    """Whether a sentence of the passages, which is no row, holds a figure and every word that the question is about."""
    asked = [word for place, word in enumerate(question.words) if word.is_content and not question.used[place]]
    if not asked:
        return False
    return any(_holds_all(found, asked) for hit in hits for found in _sentences(hit.chunk, question.language))


def _sentences(chunk: Chunk, language: str) -> list[tuple[Word, ...]]:
    rows = [(span.start - chunk.start, span.end - chunk.start) for span in chunk.spans if span.location.cell]
    return [
        read_words(words(chunk.text[start:end]), language)
        for start, end in split_sentences(chunk.text, language=language)
        if not any(begins < end and start < ends for begins, ends in rows)
    ]


def _holds_all(found: Sequence[Word], asked: Sequence[Word]) -> bool:
    has_figure = any(word.text[0].isdigit() for word in found)
    return has_figure and all(any(one.forms & word.forms for word in found) for one in asked)
