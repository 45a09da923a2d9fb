"""A figure of a report in words: with its title, the name of its column and its unit."""

from __future__ import annotations

from decimal import Decimal

from rag_service.domain import Location
from rag_service.language.languages import TableWords, languages_of, load_language
from rag_service.language.words import words
from rag_service.tables.figures.search import Figure, FigureRow, Found
from rag_service.tables.sentences import CitedCells, Computed, Sentence, round_to, write_number

_TENTH = Decimal("0.1")


def write_figures(found: Found) -> Computed:
    """The answer in the question's language: one sentence for each reading."""
    data = load_language(found.question.language).tables
    if found.other_years is not None:
        return _other_years(found.other_years, found, data)
    sentences: list[Sentence] = [_sentence(one, found, data) for one in found.figures]
    warning = ""
    if not found.is_certain:
        warning = data.answers["readings" if len(found.figures) > 1 else "nearest"]
        sentences.insert(0, (warning,))
    return Computed(sentences=tuple(sentences), warning=warning)


def _other_years(row: FigureRow, found: Found, data: TableWords) -> Computed:
    """That the row is there, and the year is not."""
    filled = [place for place in range(1, len(row.cells)) if row.cells[place] is not None]
    one = Figure(row=row, column=filled[0], earlier=filled[-1]) if filled else Figure(row=row, column=0)
    text = data.answers["other_years"].format(
        label=row.label,
        years=data.answers["and"].join(map(str, found.question.years)),
        columns="; ".join(row.columns[place].name for place in filled),
        table=_title(one),
    )
    return Computed(sentences=((text, _cells(one)),), warning=text)


def _sentence(one: Figure, found: Found, data: TableWords) -> Sentence:
    row, whether = one.row, found.question.whether
    told = {
        "label": row.label,
        "column": row.columns[one.column].name,
        "value": _value(one, one.column),
        "table": _title(one),
    }
    if one.earlier is not None:
        told |= {"before": _value(one, one.earlier), "earlier": row.columns[one.earlier].name}
        told |= {"after": _value(one, one.column), "change": _change(one, data)}
        text = data.answers["moved"].format(**told)
    else:
        text = data.answers["figure"].format(**told)
    holds = _holds(one, whether)
    if holds is not None:
        text = f"{data.answers['yes' if holds else 'no']}: {text}"
    return text, _cells(one)


def _title(one: Figure) -> str:
    """Document, title of the table and unit of its figures."""
    title = one.row.caption.rpartition("\n")[2].rstrip(":")
    path = one.row.section
    unit = one.row.unit if one.row.unit and one.row.unit not in title else ""
    return ", ".join(dict.fromkeys(part for part in (one.row.document, title, path, unit) if part))


def _value(one: Figure, column: int) -> str:
    cell = one.row.cells[column]
    return "—" if cell is None else " ".join(cell[0].split())


def _change(one: Figure, data: TableWords) -> str:
    before, after = _compared(one)
    number = write_number(after - before, data)
    if not before or (before < 0) is not (after < 0):
        return number
    share = round_to(100 * (after - before) / abs(before), _TENTH)
    return f"{number} ({write_number(share, data)} %)"


def _compared(one: Figure) -> tuple[Decimal, Decimal]:
    """Both figures; expenses and losses, which some reports write as negative, by their amount."""
    before, after = one.row.number_in(one.earlier or 0) or Decimal(0), one.row.number_in(one.column) or Decimal(0)
    if before <= 0 and after <= 0 and not _names(one, gains=True):
        return abs(before), abs(after)
    return before, after


def _names(one: Figure, *, gains: bool) -> bool:
    spoken = set(words(one.row.label))
    every = [data.tables.figures for data in languages_of(None)]
    return any(spoken & (figures.gains if gains else figures.loses) for figures in every)


def _holds(one: Figure, whether: str) -> bool | None:
    """Whether what is asked for yes or no is so; None if it is not asked."""
    number = one.row.number_in(one.column)
    if whether in ("loss", "profit") and one.earlier is None and number is not None:
        is_loss = number < 0 or (_names(one, gains=False) and not _names(one, gains=True))
        return is_loss if whether == "loss" else not is_loss
    if whether in ("rise", "fall") and one.earlier is not None:
        before, after = _compared(one)
        return after > before if whether == "rise" else after < before
    return None


def _cells(one: Figure) -> CitedCells:
    """The row up to its furthest cell used, so that its name is quoted with its figures."""
    columns = [one.column] if one.earlier is None else [one.column, one.earlier]
    found = [cell for place in (0, *columns) if (cell := one.row.cells[place]) is not None]
    page, name = one.row.page, f"{one.row.columns[one.column].letter}{one.row.number}"
    values = "; ".join(f"{one.row.columns[place].name}: {_value(one, place)}" for place in columns)
    return CitedCells(
        document_id=one.row.document_id,
        start=min(start for *_, start in found),
        end=max(start + len(text) for text, _, _, start in found),
        location=Location(cell=name, row=one.row.number) if page is None else Location(page=page),
        formula=f"{one.row.label} ({values})",
    )
