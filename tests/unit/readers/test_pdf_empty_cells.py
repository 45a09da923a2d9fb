"""Rows of tables without rules show which of their cells are empty, so that each figure stays in its column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpdf import FPDF

from rag_service.readers.parse import parse

LEFTS = (15, 40, 60, 80, 100, 120)
PUPS = (
    ("Dose", "Number", "Weight", "Percent", "Number", "Weight"),
    ("0", "39", "5.8", "", "10", "8.8"),
    ("250", "30", "5.9", "102", "10", "9.0"),
    ("500", "33", "6.0", "103", "", "8.6"),
    ("1,000", "31", "", "100", "10", ""),
)


def lines_of(rows: Sequence[Sequence[str]], lefts: Sequence[float] = LEFTS) -> list[str]:
    return lines_at({60 + 7 * place: dict(zip(lefts, row, strict=True)) for place, row in enumerate(rows)})


def lines_at(texts: Mapping[float, Mapping[float, str]]) -> list[str]:
    file = FPDF()
    file.set_font("Helvetica", size=10)
    file.add_page()
    for top, row in texts.items():
        for left, text in row.items():
            if text:
                file.text(left, top, text)
    return [line for line in parse(bytes(file.output()), file_name="table.pdf").text.split("\n") if line]


def test_an_empty_cell_is_a_dash_at_its_place() -> None:
    assert lines_of(PUPS)[1:] == [
        "0  39  5.8  —  10  8.8",
        "250  30  5.9  102  10  9.0",
        "500  33  6.0  103  —  8.6",
        "1,000  31  —  100  10  —",
    ]


def test_the_total_of_some_columns_keeps_them() -> None:
    rows = (
        ("Under 1 year", "0.0156", "", "3,533"), ("20 - 29 years", "0.1803", "0.2650", "40,839"),
        ("30 - 39 years", "0.1392", "0.2046", "31,526"), ("Total", "", "", "226,545"),
    )  # fmt: skip
    lines = lines_of(rows, (15, 60, 90, 120))
    assert lines[0] == "Under 1 year  0.0156  —  3,533"
    assert lines[-1] == "Total  —  —  226,545"


def test_a_shorter_list_beside_another_has_no_empty_cells() -> None:
    ages = [(f"{age} years", f"{3_000 + age}", f"{age + 40} years" * (age < 5), f"{2_000 + age}" * (age < 5))
            for age in range(1, 8)]  # fmt: skip
    assert not any("—" in line for line in lines_of(ages, (15, 50, 90, 125)))


def test_rows_of_which_none_is_full_and_years_over_several_columns_stay_as_they_are() -> None:
    apart = [("Rent", "120", "", ""), ("Heat", "", "40", ""), ("Water", "", "", "15"), ("Light", "22", "", "")]
    assert lines_of(apart, (15, 60, 90, 120)) == ["Rent  120", "Heat  40", "Water  15", "Light  22"]
    years = [("Year", "2024", "", "2025", ""), *((name, "10", "20", "30", "40") for name in ("Rent", "Heat", "Water"))]
    assert lines_of(years, (15, 60, 80, 100, 120))[0] == "Year  2024  2025"


def test_signs_between_figures_are_no_columns() -> None:
    rows = [("Revenue", "$", "1,200", "$", "1,100"), ("Cost", "", "900", "", "800"), ("Tax", "", "30", "", "20"),
            ("Profit", "$", "270", "$", "280")]  # fmt: skip
    assert lines_of(rows, (15, 55, 60, 85, 90))[1] == "Cost  900  800"
