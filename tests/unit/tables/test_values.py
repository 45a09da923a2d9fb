"""The kind of a column is decided by all of its cells; what is not certain stays text."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.language.languages import load_language
from rag_service.language.words import fold_words
from rag_service.tables.model import Kind, write_cells
from rag_service.tables.reading.values import read_column, split_unit
from rag_service.tables.sentences import rounded, write_duration, write_number
from tests.timing import seconds_of


def numbers(*texts: str, decimal: str | None = None) -> list[str | None]:
    found = read_column(texts, decimal=decimal)
    return [None if number is None else str(number) for number in map(found.number_of, texts)]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1.234,56", "12,5"], ["1234.56", "12.5"]),
        (["1,234.56", "12.5"], ["1234.56", "12.5"]),
        (["1,850", "640", "98"], ["1850", "640", "98"]),  # hundreds beside it
        (["£310,500", "(£8,900)"], ["310500", "-8900"]),  # no amount has three decimals
        (["1.234", "56,7"], ["1234", "56.7"]),  # the other cell shows that the point parts thousands
        (["1,234", "56.7"], ["1234", "56.7"]),
        (["1 250", "980"], ["1250", "980"]),
        (["1'250.50", "980.00"], ["1250.50", "980.00"]),
        (["(120,00)", "95,00"], ["-120.00", "95.00"]),
        (["−5", "+3", "-2"], ["-5", "3", "-2"]),
        (["12", "—", "n/a", "14"], ["12", None, None, "14"]),
        (["10", "20", "30", "40", "#DIV/0!"], ["10", "20", "30", "40", None]),
        (["10", "20", "=SUM(A1:A2)"], ["10", "20", None]),
        (["10", "20", "30", "40", "pending"], ["10", "20", "30", "40", None]),
        (["1,5*", "2,5"], ["1.5", "2.5"]),
        (["500 ¹", "640 ²,³", "120 ⁽⁴⁾"], ["500", "640", "120"]),  # marks
        (["10²", "20", "30"], [None, None, None]),  # a power is no number of the column
        (["2.5 kg", "3 kg"], ["2.5", "3"]),
        (["8,437", "74,745", "15,023"], ["8437", "74745", "15023"]),  # always three digits behind the comma
        ([".610", "1.000"], ["0.610", "1.000"]),
        (["1.83 m (6 ft 0 in)", "1.9 m (6 ft 3 in)"], ["1.83", "1.9"]),
        (["76 (24)", "−18 (0)"], ["76", "-18"]),  # the same in another unit
        (["7", "−", "―", "9[a]"], ["7", None, None, "9"]),
        (["1", "2", "3", "4", "9" * 16], ["1", "2", "3", "4", None]),  # a code
        (["1", "2", "3", "4.0", "0." + "3" * 31], ["1", "2", "3", "4.0", None]),
        (["999,999,999,999,999", "0.30000000000000004"], ["9" * 15, "0.30000000000000004"]),
    ],
)
def test_figures_are_read_by_the_whole_column(texts: list[str], expected: list[str | None]) -> None:
    assert numbers(*texts) == expected


@pytest.mark.parametrize(
    ("language", "number", "cell", "written"),
    [
        ("es", "3267.60", "3.267,60 €", "3.267,60"),
        ("es", "3267.60", "3267,60 €", "3267,60"),
        ("es", "3267.60", "", "3267,6"),
        ("fr", "3267.60", "3 267,60 €", "3\u202f267,60"),
    ],
)
def test_a_figure_of_four_digits_is_grouped_as_in_its_cell(language: str, number: str, cell: str, written: str) -> None:
    assert write_number(Decimal(number), load_language(language).tables, cell=cell) == written


@pytest.mark.parametrize(
    "texts",
    [
        ["1,850", "64", "9"],
        ["1.234", "5.678"],  # thousands, or a little over one
        ["1,459 €", "1,612 €"],  # a litre of petrol, or thousands
        ["1.5", "1,5"],
        ["00123", "00456"],  # codes
        ["12 kg", "300 g"],
        ["12", "high", "low"],
        ["12 %", "15"],
        ["+34 91 555 12 34", "+34 91 555 99 88"],
        ["03/04/2025", "05/06/2025"],  # day or month first
        ["2025-02-30", "2025-01-01"],
        ["30 February 2024", "1 May 2024"],
        ["3:10", "2:45"],  # a score, or minutes
        ["T1", "T2"],
        ["W 12–8", "45-41"],
    ],
)
def test_what_is_not_certain_stays_text(texts: list[str]) -> None:
    found = read_column(texts)
    assert found.kind is Kind.TEXT
    assert {found.number_of(text) for text in texts} == {None}


def test_an_open_separator_is_read_as_the_rest_of_the_file_writes_it() -> None:
    assert numbers("1.234", "5.678", decimal=",") == ["1234", "5678"]
    assert numbers("1.234", "5.678", decimal=".") == ["1.234", "5.678"]


@pytest.mark.parametrize(
    ("texts", "kind", "unit"),
    [
        (["12 €", "1.499,00 €"], Kind.CURRENCY, "€"),
        (["$12.50", "-$3.00"], Kind.CURRENCY, "$"),
        (["CHF 12", "CHF 9"], Kind.CURRENCY, "CHF"),
        (["12%", "7,5 %"], Kind.PERCENTAGE, "%"),
        (["3 kg", "4 kg"], Kind.NUMBER, "kg"),
        (["16A", "20A"], Kind.NUMBER, "A"),  # no ordinals
        (["2025-03-01", "2024-12-31 10:30"], Kind.DATE, None),
        (["31/12/2024", "01/02/2025"], Kind.DATE, None),
        (["12/31/2024", "01/02/2025"], Kind.DATE, None),
        (["TRUE", "FALSE"], Kind.BOOLEAN, None),
        (["sí", "no", "sí"], Kind.BOOLEAN, None),
    ],
)
def test_kinds_and_units(texts: list[str], kind: Kind, unit: str | None) -> None:
    found = read_column(texts)
    assert (found.kind, found.unit) == (kind, unit)


@pytest.mark.parametrize(
    "text",
    [
        *("12 January 2024", "January 12, 2024", "Fri, Jan. 12th 2024", "12-Jan-2024", "12 January 2024 (aged 30)"),
        *("12 de enero de 2024", "viernes, 12 de enero de 2024", "12 ene 2024"),
        *("12 janvier 2024", "vendredi 12 janv. 2024"),
        *("12 de janeiro de 2024", "sexta-feira, 12 jan 2024"),
    ],
)
def test_days_are_read_in_words(text: str) -> None:
    found = read_column([text])
    assert (found.kind, found.number_of(text)) == (Kind.DATE, Decimal(date(2024, 1, 12).toordinal()))


def test_a_short_month_is_no_weekday() -> None:
    """ "mar" is mars and marzo, and mardi."""
    assert read_column(["mar. 5 mar. 2024"]).number_of("mar. 5 mar. 2024") is None
    assert numbers("5 mar 2024") == [str(date(2024, 3, 5).toordinal())]


def test_a_column_of_dates_may_hold_some_other_words() -> None:
    texts = ["4 March 1789", "5 March 1791", "1 May 1795", "2 May 1797", "incumbent"]
    found = read_column(texts)
    assert found.kind is Kind.DATE
    assert [found.number_of(text) is None for text in texts] == [False] * 4 + [True]
    assert read_column(["1927", "1930", "December 1938"]).kind is Kind.TEXT
    assert read_column(["July 2002", "May 2003"]).number_of("July 2002") == Decimal(date(2002, 7, 1).toordinal())


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2nd", "18th (sf)", "DNF", "1st", "4th", "3rd"], ["2", "18", None, "1", "4", "3"]),
        (["1er", "2e", "3ème"], ["1", "2", "3"]),
        (["1º", "2ª", "3.º"], ["1", "2", "3"]),
        (["1", "T2", "T2", "4"], ["1", "2", "2", "4"]),
        (["1.", "2.", "#3"], ["1", "2", "3"]),
    ],
)
def test_ordinals_are_places(texts: list[str], expected: list[str | None]) -> None:
    assert read_column(texts).kind is Kind.ORDER
    assert numbers(*texts) == expected


def test_durations_are_counted_in_seconds_and_written_as_cells_are() -> None:
    texts = ["1:23:45", "3:45.2", "59:01"]
    assert read_column(texts).kind is Kind.DURATION
    assert numbers(*texts) == ["5025", "225.2", "3541"]
    assert [write_duration(Decimal(number)) for number in ("5025", "225.2", "3541")] == texts
    assert read_column(["3:45", "4:10"], concepts=frozenset({"time"})).kind is Kind.DURATION


@pytest.mark.parametrize(
    ("texts", "language", "first"),
    [
        (["1.234", "15.020", "870.000"], "es", "1234"),
        (["1.234", "15.020", "870.000"], "en", "1.234"),
        (["1.234", "15.020", "870.000"], None, None),
        (["8,437", "74,745", "15,023"], "es", None),  # kilos and grams, or thousands
        (["1,459", "1,512", "1,380"], "en", None),
    ],
)
def test_the_language_settles_an_open_separator_where_the_thousands_vary(
    texts: list[str], language: str | None, first: str | None
) -> None:
    number = read_column(texts, language=language).number_of(texts[0])
    assert number == (None if first is None else Decimal(first))


def test_days_and_months_are_told_apart_by_the_column() -> None:
    european, american = read_column(["31/12/2024", "01/02/2025"]), read_column(["12/31/2024", "01/02/2025"])
    assert european.number_of("01/02/2025") == Decimal(date(2025, 2, 1).toordinal())
    assert american.number_of("01/02/2025") == Decimal(date(2025, 1, 2).toordinal())


@pytest.mark.parametrize("texts", [["2024-03", "2025-12"], ["03/2024", "12/2025"], ["3-2024", "12-2025"], ["03.2024"]])
def test_months_are_dates_in_columns_that_are_called_so(texts: list[str]) -> None:
    found = read_column(texts, concepts=frozenset({"month"}))
    assert found.kind is Kind.DATE
    assert found.number_of(texts[0]) == Decimal(date(2024, 3, 1).toordinal())
    assert read_column(texts).kind is not Kind.DATE  # the numbers of invoices
    assert read_column([*texts, "2024-13"], concepts=frozenset({"month"})).kind is Kind.TEXT


def test_mixed_currencies_are_no_figures() -> None:
    found = read_column(["12 €", "$15", "3 €"])
    assert (found.kind, found.mixed) == (Kind.TEXT, ("$", "€"))


def test_units_of_headers() -> None:
    assert split_unit("Weight (kg)") == ("Weight", "kg")
    assert split_unit("Price [EUR]") == ("Price", "€")
    assert split_unit("(net)") == ("(net)", None)


def test_numbers_of_any_length_are_rounded() -> None:
    assert rounded(Decimal("1e40") / 3) == round(Decimal("1e40") / 3)
    assert rounded(Decimal("-0.00005")) == Decimal("-0.0001")


def test_words_are_compared_without_plural_and_gender() -> None:
    assert fold_words("Tiendas rojas") == fold_words("tienda rojo")
    assert fold_words("Almacenes") == fold_words("almacén")
    assert fold_words("Boxes") == fold_words("box")
    assert fold_words("M8") != fold_words("M10")


def test_cells_are_written_as_ranges() -> None:
    assert write_cells("D", [2, 3, 4, 9, 11, 12]) == "D2:D4,D9,D11:D12"


@given(st.lists(st.decimals(min_value=-(10**9), max_value=10**9, places=2), min_size=2, max_size=20))
def test_european_figures_come_back(values: list[Decimal]) -> None:
    written = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in values]
    assert list(map(read_column(written).number_of, written)) == values


def test_a_long_run_of_spaces_takes_no_longer_than_other_text() -> None:
    gap = " " * 15_000
    seconds = seconds_of(lambda: (split_unit(f"Weight{gap}of a thing"), numbers("12", f"13{gap}x")))
    assert seconds < 1, "milliseconds; seconds when every space was a beginning"
    assert split_unit(f"Weight{gap}of a thing") == (f"Weight{gap}of a thing", None)
