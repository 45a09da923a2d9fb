"""Compares two tables row by row: files of different names and column names, or two columns of one table.

The key column is the pair of columns whose values are the same most often; the tables tell, not the names. Compiled to
one parameterised statement, as the operations over one table are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rag_service.language.languages import TableWords, language_codes, load_language
from rag_service.language.words import fold, words
from rag_service.store.database import Connection
from rag_service.tables.asking.phrases import cite_cells
from rag_service.tables.asking.planning.plans import key_column
from rag_service.tables.asking.planning.question import Question
from rag_service.tables.asking.planning.several_columns import is_named
from rag_service.tables.headers import FIGURES, header_words
from rag_service.tables.model import Kind, StoredTable
from rag_service.tables.sentences import CitedCells, Computed, Sentence, write_number
from rag_service.tables.vocabulary import Word, read_words

MAX_NAMED = 10  # rows named in an answer
_MIN_SHARED = 0.5  # of the keys of the smaller table
_MAX_READ = 2_000  # rows of the comparison


@dataclass(frozen=True, kw_only=True)
class Side:
    """A table, its key column and the column that is compared."""

    table: StoredTable
    key: int
    column: int | None  # None: only whether a key is there


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A key with its values in both tables."""

    name: str  # as a table writes it
    values: tuple[Decimal | None, Decimal | None]
    is_in: tuple[bool, bool]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    kind: str  # "compare", "missing" (in the first but not in the second), "both"
    sides: tuple[Side, Side]
    pairs: tuple[Pair, ...]  # the largest differences first
    spans: tuple[tuple[int, int, int, int], ...]  # of each side: first row, last row, first and last character


@dataclass(frozen=True, kw_only=True)
class ComparisonQuestion:
    kind: str
    words: tuple[Word, ...]  # without names of files and words that ask for a comparison
    names: tuple[str, ...]  # of the files, in the question's order


def read_comparison(text: str, language: str, documents: Sequence[str]) -> ComparisonQuestion | None:
    """What a question asks of two tables; None if it names no two files, or asks for no comparison."""
    if language not in language_codes():
        return None
    folded = fold(text)
    places = {name: folded.find(fold(name)) for name in dict.fromkeys(documents)}
    names = sorted((name for name, place in places.items() if place >= 0), key=lambda name: places[name])
    if len(names) != 2:
        return None
    for name in names:
        folded = folded.replace(fold(name), " ")
    found = words(folded)
    data = load_language(language).tables
    for kind in ("missing", "both", "compare"):
        for phrase in sorted(data.comparison[kind], key=len, reverse=True):
            asked = words(phrase)
            start = next((at for at in range(len(found)) if found[at : at + len(asked)] == asked), None)
            if start is not None:
                rest = [*found[:start], *found[start + len(asked) :]]
                return ComparisonQuestion(kind=kind, words=read_words(rest, language), names=tuple(names))
    return None


async def compare_files(
    connection: Connection, question: ComparisonQuestion, tables: Sequence[StoredTable], language: str
) -> Comparison | None:
    """The comparison of the two files; None if their tables have no key in common, or words are left over."""
    both = [[table for table in tables if table.document == name] for name in question.names]
    if any(len(found) != 1 for found in both):
        return None  # which sheet is meant nobody says
    first, second = both[0][0], both[1][0]
    keys = await _find_keys(connection, first, second)
    if keys is None:
        return None
    columns: list[int | None] = [None, None]
    if question.kind == "compare":
        columns = [_measure(question.words, table) for table in (first, second)]
        if None in columns:
            return None
    used = [
        Side(table=table, key=key, column=column)
        for table, key, column in zip((first, second), keys, columns, strict=True)
    ]
    if not _accounts_for(question.words, used, language):
        return None
    return await _compare(connection, question.kind, (used[0], used[1]))


async def compare_columns(
    connection: Connection, question: Question, tables: Sequence[StoredTable]
) -> Comparison | None:
    """The difference between two columns of one table for each of its rows: "between 2022 and 2023 sales by store"."""
    if "difference" not in question.operations or question.negations:
        return None
    left = [word for word, used in zip(question.words, question.used, strict=True) if not used]
    found: list[tuple[Side, Side]] = []
    for table in tables:
        columns = [place for place in table.of_kind(*FIGURES) if is_named(table.columns[place], question.words)]
        key = key_column(table)
        if len(columns) != 2 or table.columns[key].kind is not Kind.TEXT:
            continue
        earlier, later = (Side(table=table, key=key, column=column) for column in columns)
        if _accounts_for(left, (later, earlier), question.language):
            found.append((later, earlier))
    return await _compare(connection, "compare", found[0]) if len(found) == 1 else None


def _names(name: str, asked: Sequence[Word]) -> bool:
    return any(word.is_like(other) for word in header_words(name) for other in asked if other.is_content)


def _measure(asked: Sequence[Word], table: StoredTable) -> int | None:
    """The column of figures that the question names, or the only one."""
    figures = table.of_kind(*FIGURES)
    named = [place for place in figures if _names(table.columns[place].name, asked)]
    found = named or figures
    return found[0] if len(found) == 1 else None


def _accounts_for(asked: Sequence[Word], sides: Sequence[Side], language: str) -> bool:
    """Whether each word with a meaning is a column, a word for rows, the name of a table, or asks for nothing."""
    data = load_language(language).tables
    spoken = [
        word
        for side in sides
        for column in (side.key, side.key if side.column is None else side.column)
        for word in header_words(side.table.columns[column].name)
    ]
    spoken += [word for side in sides for word in header_words(f"{side.table.document} {side.table.sheet or ''}")]
    empty = data.filler | data.rows | {word for phrase in data.phrases["between"] for word in words(phrase)}
    return all(word.text in empty or any(map(word.is_like, spoken)) for word in asked if word.is_content)


async def _find_keys(connection: Connection, first: StoredTable, second: StoredTable) -> tuple[int, int] | None:
    """The columns of both tables whose values are most often the same; None without one, or if two fit as well."""
    cursor = await connection.execute(
        """WITH held AS (
               SELECT DISTINCT r.table_id, c.place::int - 1 AS place, c.cell ->> 1 AS key
               FROM table_rows r, jsonb_array_elements(r.cells) WITH ORDINALITY AS c(cell, place)
               WHERE r.table_id = ANY(%b::uuid[]) AND r.is_data AND jsonb_typeof(c.cell) = 'array'
                 AND c.cell ->> 1 <> '')
           SELECT a.place, b.place, count(*) FROM held a JOIN held b ON a.key = b.key
           WHERE a.table_id = %b AND b.table_id = %b GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2""",
        [[first.id, second.id], first.id, second.id],
    )
    shared: Mapping[tuple[int, int], int] = {
        (one, other): count
        for one, other, count in await cursor.fetchall()
        if not (first.columns[one].kind.is_figure or second.columns[other].kind.is_figure)
        and count >= _MIN_SHARED * min(first.columns[one].distinct, second.columns[other].distinct)
        and first.columns[one].distinct == first.columns[one].filled
    }
    best = [places for places, count in shared.items() if count == max(shared.values())]
    return best[0] if len(best) == 1 else None


async def _compare(connection: Connection, kind: str, sides: tuple[Side, Side]) -> Comparison | None:
    parameters: dict[str, Any] = {"rows": _MAX_READ}
    for name, side in zip("ab", sides, strict=True):
        column = side.key if side.column is None else side.column
        parameters |= {f"t{name}": side.table.id, f"k{name}": side.key, f"v{name}": column}
    parts = ", ".join(_side_sql(name) for name in "ab")
    cursor = await connection.execute(
        f"""WITH {parts} SELECT coalesce(a.name, b.name), a.value, b.value, a.key IS NOT NULL, b.key IS NOT NULL,
                a.first, a.last, a.starts, a.ends, b.first, b.last, b.starts, b.ends
            FROM a FULL JOIN b ON a.key = b.key
            ORDER BY abs(a.value - b.value) DESC NULLS LAST, 1 LIMIT %(rows)s""",  # noqa: S608 - fixed text
        parameters,
    )
    rows = await cursor.fetchall()
    if not rows or len(rows) == _MAX_READ:
        return None  # more than can be told
    spans = []
    for at in (5, 9):
        places = [row[at : at + 4] for row in rows if row[at] is not None]
        if not places:
            return None
        firsts, lasts, starts, ends = zip(*places, strict=True)
        spans.append((min(firsts), max(lasts), min(starts), max(end for end in ends if end is not None)))
    pairs = tuple(Pair(name=row[0], values=(row[1], row[2]), is_in=(row[3], row[4])) for row in rows)
    return Comparison(kind=kind, sides=sides, pairs=pairs, spans=tuple(spans))


def _side_sql(name: str) -> str:
    """The rows of a table by key; `name` is one of the two names in `_compare`."""
    key, value = f"r.cells -> %(k{name})s::int", f"r.cells -> %(v{name})s::int"
    return f"""{name} AS (
        SELECT {key} ->> 1 AS key, min({key} ->> 0) AS name, sum(({value} ->> 2)::numeric) AS value,
               min(r.number) AS first, max(r.number) AS last, min(({key} ->> 3)::int) AS starts,
               max(({value} ->> 3)::int + length({value} ->> 0)) AS ends
        FROM table_rows r WHERE r.table_id = %(t{name})s AND r.is_data AND {key} ->> 1 <> '' GROUP BY 1)"""  # noqa: S608 - fixed text


def write_comparison(found: Comparison, language: str) -> Computed:
    """The answer in the question's language: what differs, and what stands in one table only."""
    data = load_language(language).tables
    first, second = found.sides
    cited = [_cells(found, number) for number in (0, 1)]
    key = first.table.columns[first.key].name
    sentences: list[Sentence] = []
    if found.kind == "compare":
        sentences.append((_differences(found, data, key), *cited))
    if found.kind == "both":
        shared = [pair for pair in found.pairs if all(pair.is_in)]
        sentences.append((_list(data, "in_both", shared, key, first.table.document, second.table.document), *cited))
        return Computed(sentences=tuple(sentences))
    names = (first.table.document, second.table.document)
    for number, other in ((0, 1), (1, 0)):
        alone = [pair for pair in found.pairs if pair.is_in[number] and not pair.is_in[other]]
        if found.kind == "missing" and number == 0:
            text = _list(data, "only_in" if alone else "none_only_in", alone, key, names[0], names[1])
            return Computed(sentences=((text, cited[0], cited[1]),))
        if alone:
            sentences.append((_list(data, "only_in", alone, key, names[number], names[other]), cited[number]))
    return Computed(sentences=tuple(sentences))


def _differences(found: Comparison, data: TableWords, key: str) -> str:
    shared = [pair for pair in found.pairs if all(pair.is_in)]
    different = [pair for pair in shared if pair.values[0] != pair.values[1]]
    titles = [_title(found, number, data) for number in (0, 1)]
    template = data.answers["compared" if different else "all_equal"]
    listed = "; ".join(_pair(pair, data) for pair in different[:MAX_NAMED])
    more = " …" if len(different) > MAX_NAMED else ""
    return template.format(
        key=key,
        first=titles[0],
        second=titles[1],
        equal=len(shared) - len(different),
        count=len(different),
        names=listed + more,
    )


def _pair(pair: Pair, data: TableWords) -> str:
    first, second = pair.values
    shown = " / ".join("—" if value is None else write_number(value, data) for value in pair.values)
    if first is None or second is None:
        return f"{pair.name}: {shown}"
    change = first - second
    return f"{pair.name}: {shown} ({'+' if change > 0 else ''}{write_number(change, data)})"


def _title(found: Comparison, number: int, data: TableWords) -> str:
    side = found.sides[number]
    column = data.answers["quoted"].format(text=side.table.columns[side.column or 0].name)
    same = found.sides[0].table.id == found.sides[1].table.id
    return column if same else f"{column} ({side.table.document})"


def _list(data: TableWords, name: str, pairs: Sequence[Pair], key: str, here: str, there: str) -> str:
    listed = ", ".join(pair.name for pair in pairs[:MAX_NAMED]) + (" …" if len(pairs) > MAX_NAMED else "")
    return data.answers[name].format(key=key, here=here, there=there, count=len(pairs), names=listed)


def _cells(found: Comparison, number: int) -> CitedCells:
    side = found.sides[number]
    first, last, start, end = found.spans[number]
    column = side.table.columns[side.key if side.column is None else side.column]
    cells = f"{column.letter}{first}:{column.letter}{last}"
    formula = f"{column.name}: {cells}"
    return cite_cells(side.table, cells, row=first, page=side.table.page, span=(start, end), formula=formula)
