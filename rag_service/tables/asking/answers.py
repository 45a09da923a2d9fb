"""Computed answers: from a question and the passages found for it to a value with its cells."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from uuid import UUID

import psycopg
import structlog

from rag_service.domain import Hit, Identity
from rag_service.errors import InputError
from rag_service.language.languages import language_codes, load_language
from rag_service.language.words import fold_word, is_stop_word, words
from rag_service.store.database import Connection, Database
from rag_service.store.rows import fetch_value
from rag_service.tables.asking.certainty import settle, states
from rag_service.tables.asking.comparison import compare_columns, compare_files, read_comparison, write_comparison
from rag_service.tables.asking.execute import execute, read_quotes
from rag_service.tables.asking.planning.plans import Operation, Plan
from rag_service.tables.asking.planning.question import Question, read_question
from rag_service.tables.asking.planning.resolving import make_plans, may_concern
from rag_service.tables.asking.proposals import AskedOperation, describe_tables, is_named, read_operation
from rag_service.tables.asking.several_columns import compute_several_columns
from rag_service.tables.asking.wording import write_answer
from rag_service.tables.figures.question import FigureQuestion, Synonyms, read_figure_question
from rag_service.tables.figures.search import find_figures
from rag_service.tables.figures.wording import write_figures
from rag_service.tables.model import StoredTable
from rag_service.tables.sentences import CitedCells, Computed
from rag_service.tables.storage import find_examples, find_tables, find_values
from rag_service.turns import Turns

log = structlog.get_logger(__name__)

STATEMENT_MS = 2_000  # time limit of a statement
MAX_DOCUMENTS = 5  # whose tables one question looks at, those of the best passages
# Phrases without one of which no operation is asked for.
_OPERATION_PHRASES = (
    "count", "amount", "sum", "mean", "median", "maximum", "minimum", "difference", "ratio", "share",
    "more", "at_least", "less", "at_most", "after", "since", "before", "between", "none_left", "pending",
)  # fmt: skip
_CONTRACTED = "t"  # of "hasn't"
_AT_ONCE = 1  # transactions over tables of one process
_SEVERAL = re.compile(r"\?\s+\w|\n")  # questions in one text, such as a follow-up after the one before
_EXTENSION = re.compile(r"\w\.[A-Za-z]{3,4}\b")  # of a file that the question names


@dataclass(frozen=True, kw_only=True)
class ComputedAnswer:
    """A computed answer and the stored text of its cells."""

    wording: Computed
    quotes: dict[CitedCells, str]
    counts_all: bool = False  # it is the number of all rows of a table


def asks_otherwise(text: str, language: str) -> bool:
    """Return whether a question asks why, how, or whether one may: no rows and no figures answer it."""
    return language in language_codes() and _other_phrases(language).search(" ".join(words(text))) is not None


@cache
def _other_phrases(language: str) -> re.Pattern[str]:
    phrases = "|".join(map(re.escape, load_language(language).tables.phrases["other"]))
    return re.compile(rf"\b(?:{phrases})\b")


def may_ask_operation(text: str, language: str) -> bool:
    """Return whether a word of a question may ask for an operation, a row by its order, a period or what is missing.

    A look that finds more than the planner does: without one of these words, only a cell can be asked for.
    """
    found = words(text)
    if any(word[0].isdigit() for word in found):
        return True
    single, phrases = _operation_words(language)
    return not single.isdisjoint(found) or phrases.search(" ".join(found)) is not None


@cache
def _operation_words(language: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """Return the words, and the pattern of the phrases, that may ask for an operation."""
    data = load_language(language)
    tables, proof = data.tables, data.proof
    by_side = (*tables.superlatives.values(), *tables.comparatives.values())
    single = tables.most.union(
        tables.least, tables.than, tables.first, tables.last, proof.negations, *proof.months, *proof.weekdays,
        *(names for concepts in by_side for names in concepts.values()), _CONTRACTED,
    )  # fmt: skip
    phrases = [phrase for name in _OPERATION_PHRASES for phrase in tables.phrases[name]]
    compared = (phrase.partition(" ") for phrase in phrases)  # "higher" of "higher than"
    before_than = [first for first, _, last in compared if last in tables.than]
    return single.union(before_than), re.compile(rf"\b(?:{'|'.join(map(re.escape, phrases))})\b")


class _TooSlowError(Exception):
    """A statement took longer than `STATEMENT_MS`."""


class TableAnswers:
    """Answers questions from the tables of the documents that a search found."""

    def __init__(self, database: Database, *, synonyms: Synonyms = ()):
        """Prepare the answers.

        Args:
            synonyms: groups of expressions for the same figure of a report, as people and as reports say it.
        """
        self._database = database
        self._synonyms = synonyms
        self.turns = Turns("tables", limit=_AT_ONCE)

    async def compute(
        self, text: str, hits: Sequence[Hit], *, language: str, identity: Identity
    ) -> ComputedAnswer | None:
        """Return the computed answer; None if the question is not one for these tables. No model is called.

        Without a cell or a page of a document with tables among the passages, the database is not asked. A question
        that asks for no operation and shares no cell with a table is not read any further. Several questions in one
        text are not computed: "the total of Ventas?" and "and of Compras?" would become one total of both.

        Raises:
            StoreError: the database fails.
        """
        may_ask_rows = language in language_codes() and not asks_otherwise(text, language)
        names_files = len(_EXTENSION.findall(text)) > 1
        if not (may_ask_rows or names_files) or _SEVERAL.search(text.strip()):
            return None
        documents = list(dict.fromkeys(hit.chunk.document.id for hit in hits if _may_hold_rows(hit)))
        documents = documents[:MAX_DOCUMENTS]
        if not documents:
            return None
        question = None
        asks = may_ask_rows and may_ask_operation(text, language)
        try:
            async with self._limited(identity) as connection:
                if not (asks or names_files or await _may_hold_answer(connection, documents, _keys_of(text, language))):
                    return None
                question = read_question(text, language) if may_ask_rows else None
                if question is None and not names_files:
                    return None
                tables = await find_tables(connection, documents)
                found = None
                if asks or names_files:
                    found = await _compare(connection, text if names_files else None, language, question, tables)
                if found is None and question is not None:
                    best = hits[0].chunk.document.id if _may_hold_rows(hits[0]) else None
                    found = await _compute(connection, question, tables, asks=asks, best=best)
                if found is not None and (found.wording.warning or found.counts_all):
                    is_stated = question is not None and states(question, hits)
                    found = None if names_files or is_stated else found  # a text says it better
                if found is None and question is not None:
                    figure = read_figure_question(text, language, self._synonyms)
                    found = None if figure is None else await _find(connection, figure, documents)
                return found
        except _TooSlowError:
            log.warning("table_statement_too_slow", limit_ms=STATEMENT_MS)
            if question is None or not question.asks:
                return None
            told = load_language(language).tables.answers["too_slow"]
            return ComputedAnswer(wording=Computed(sentences=((told,),), warning=told), quotes={})

    async def run(
        self, asked: AskedOperation, document_id: UUID, *, question: str = "", language: str, identity: Identity
    ) -> ComputedAnswer | None:
        """Return the result of an operation over a table of a document; None: there is none.

        It is certain if the words of the question ask for the same operation, and for no other.

        Raises:
            InputError: it cannot be done with the tables of the document, whose names and columns the message tells.
            StoreError: the database fails.
        """
        async with self._limited(identity) as connection:
            tables = await find_tables(connection, [document_id])
            try:
                plan = read_operation(asked, tables)
            except InputError as error:
                named = [one for one in tables if asked.sheet is not None and is_named(asked, one)] or tables
                examples = await find_examples(connection, [table.id for table in named])
                told = describe_tables(named, examples) or "The document has no table."
                raise InputError(f"{error.message} {told}", field=error.field) from error
            is_proposed = not await _asks_for(connection, read_question(question, language), plan, tables)
            result = await execute(connection, plan)
            if asked.operation == Operation.LOOKUP and asked.column is None:
                result = replace(result, shows_rows=True)
            computed = write_answer([result], language, is_proposed=is_proposed)
            log.info("table_computed", operations=[plan.operation.value], proposed=is_proposed)
            if computed is None:
                return None
            return await _with_quotes(connection, computed)

    @asynccontextmanager
    async def _limited(self, identity: Identity) -> AsyncIterator[Connection]:
        """A transaction whose statements have a time limit; one at a time, which leaves the processor to search."""
        async with self.turns.take(identity.user_id), self._database.transaction(identity) as connection:
            try:
                await connection.execute(f"SET LOCAL statement_timeout = {STATEMENT_MS}")
                yield connection
            except psycopg.errors.QueryCanceled as error:
                raise _TooSlowError from error


def _keys_of(text: str, language: str) -> list[str]:
    """Return the words of a question that cells may hold, as cells are compared: those with a meaning, and names."""
    named = {word for part in text.split()[1:] if part[0].isupper() for word in words(part)}
    empty = load_language(language).tables.before_nouns if language in language_codes() else ()
    return [
        fold_word(word) for word in words(text) if word in named or not (word in empty or is_stop_word(word, language))
    ]


async def _may_hold_answer(connection: Connection, documents: Sequence[UUID], keys: Sequence[str]) -> bool:
    """Return whether tables of documents may answer a question that asks for no operation.

    They hold one of its words in a cell, as far as cells are kept together, a column of yes and no, which is asked for
    by its name, or figures by periods, which go by many names.
    """
    query = """
        SELECT EXISTS (
            SELECT FROM tables t WHERE t.document_id = ANY(%s::uuid[])
            AND (t.by_period OR t.columns @> '[{"kind": "boolean"}]' OR EXISTS (
                SELECT FROM table_texts c WHERE c.table_id = t.id AND (c.keys IS NULL OR EXISTS (
                    SELECT FROM unnest(c.keys) AS key WHERE string_to_array(key, ' ') && %s::text[])))))"""
    return bool(await fetch_value(connection, query, [list(documents), list(keys)]))


async def _compare(
    connection: Connection, text: str | None, language: str, question: Question | None, tables: Sequence[StoredTable]
) -> ComputedAnswer | None:
    """Two files, or two columns of a table, row by row; `text` is the question if it names two files."""
    asked = None if text is None else read_comparison(text, language, [table.document for table in tables])
    if asked is not None:
        found = await compare_files(connection, asked, tables, language)
    else:
        found = None if question is None else await compare_columns(connection, question, tables)
    if found is None:
        return None
    log.info("tables_compared", kind=found.kind, rows=len(found.pairs))
    return await _with_quotes(connection, write_comparison(found, language))


async def _compute(
    connection: Connection, question: Question, found: Sequence[StoredTable], *, asks: bool, best: UUID | None
) -> ComputedAnswer | None:
    """Return the result of the operation that the words of a question ask for.

    Args:
        asks: as `may_ask_operation`; without one no columns are added up or compared.
        best: the document of the best passage if it may hold rows.
    """
    tables = [table for table in found if may_concern(question, table)]
    if not tables:
        return None
    ids = [table.id for table in tables]
    values = await find_values(connection, ids, question.content, whole=question.runs)
    if asks:
        several = await compute_several_columns(connection, question, tables, values, best=best)
        if several is not None:
            log.info("table_computed", operations=["several_columns"])
            return await _with_quotes(connection, several)
    plans = make_plans(question, tables, values, best=best)
    if not plans:
        return None
    results = settle(question, [await execute(connection, plan) for plan in plans])
    computed = write_answer(results, question.language) if results else None
    if computed is None:
        return None
    log.info("table_computed", operations=[plan.operation.value for plan in plans])
    counts_all = any(one.plan.operation is Operation.COUNT and not one.plan.filters for one in results)
    return replace(await _with_quotes(connection, computed), counts_all=counts_all)


async def _asks_for(
    connection: Connection, question: Question | None, plan: Plan, tables: Sequence[StoredTable]
) -> bool:
    """Return whether the words of a question ask for a plan that somebody else proposed, and for no other."""
    if question is None:
        return False
    values = await find_values(connection, [table.id for table in tables], question.content, whole=question.runs)
    readings = make_plans(question, tables, values, best=plan.table.document_id)
    return len(readings) == 1 and not readings[0].is_doubtful and readings[0].computes(plan)


async def _find(connection: Connection, question: FigureQuestion, documents: Sequence[UUID]) -> ComputedAnswer | None:
    """Return the figures of reports that a question asks for."""
    found = await find_figures(connection, question, documents)
    if found is None:
        return None
    log.info("figures_found", readings=len(found.figures), certain=found.is_certain)
    return await _with_quotes(connection, write_figures(found))


async def _with_quotes(connection: Connection, computed: Computed) -> ComputedAnswer:
    cited = [part for sentence in computed.sentences for part in sentence if isinstance(part, CitedCells)]
    stored = [one for one in cited if one.start is not None]
    quotes = await read_quotes(connection, [(one.document_id, one.start, one.end) for one in stored])
    texts = {one: one.text for one in cited} | dict(zip(stored, quotes, strict=True))
    return ComputedAnswer(wording=computed, quotes=texts)


def _may_hold_rows(hit: Hit) -> bool:
    return hit.chunk.document.has_tables and any(span.location.cell or span.location.page for span in hit.chunk.spans)
