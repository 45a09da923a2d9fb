"""A comparison of two tables in words."""

from __future__ import annotations

from collections.abc import Sequence

from rag_service.domain import Location
from rag_service.language.languages import TableWords, load_language
from rag_service.tables.asking.comparison import MAX_NAMED, Comparison, Pair
from rag_service.tables.sentences import CitedCells, Computed, Sentence, shortened, write_number

_MAX_QUOTE = 1_000


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
    page = side.table.page
    return CitedCells(
        document_id=side.table.document_id,
        start=start,
        end=min(end, start + _MAX_QUOTE),
        location=Location(sheet=side.table.sheet, cell=cells, row=first) if page is None else Location(page=page),
        formula=shortened(f"{column.name}: {cells}", 300),
    )
