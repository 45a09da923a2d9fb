"""Which row names the columns: a wrong guess pairs what does not belong together, and a citation would prove it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import docx
import pytest
from docx.oxml import OxmlElement
from openpyxl import Workbook
from openpyxl.styles import Font, PatternFill

from rag_service.readers.parse import parse
from tests.timing import seconds_of
from tests.unit.readers.samples import saved, xlsx

Rows = Sequence[Sequence[str]]

MINUTES = [
    ("Lieu", "Salle Garonne, siège de Bordeaux"),
    ("Secrétaire de séance", "Karim Benali"),
    ("Date", "12 mai 2025"),
]
UNKNOWN = [("Vessel", "Aurora"), ("Berth", "North quay"), ("Cargo hold", "Empty"), ("Master", "J. Olsen")]


def word_lines(rows: Rows, *, bold: Sequence[tuple[int, int]] = (), header: bool = False) -> list[str]:
    document = docx.Document()
    table = document.add_table(len(rows), len(rows[0]))
    for row, texts in enumerate(rows):
        for column, text in enumerate(texts):
            run = table.cell(row, column).paragraphs[0].add_run(text)
            run.bold = (row, column) in bold or None
    if header:
        table.rows[0]._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    return parse(saved(document), file_name="a.docx").text.strip().splitlines()


def sheet_lines(rows: Sequence[Sequence[object]]) -> list[str]:
    return parse(xlsx(rows), file_name="a.xlsx").text.splitlines()[1:]


def test_minutes_pair_each_label_with_its_own_value() -> None:
    assert word_lines(MINUTES) == [f"{label}: {value}" for label, value in MINUTES]


@pytest.mark.parametrize(
    "rows",
    [
        [("Nombre", "Ana"), ("Edad", "34"), ("Teléfono", "912 345 678")],
        [("Name:", "Ana"), ("Hobby:", "Chess"), ("Shoes :", "41")],
        [("Nom", "Benali"), ("Prénom", "Karim"), ("Poste", "Directeur")],
        [("Poste", "Directeur"), ("Nom", "Benali"), ("Prénom", "Karim")],
        [("Date", "12/05/2025"), ("Lieu", "Salle Garonne"), ("Président", "Karim Benali")],
    ],
)
def test_forms_are_never_read_as_a_table_with_a_header(rows: Rows) -> None:
    separators = (": ", " | ", " ")
    for lines in (word_lines(rows), sheet_lines(rows)):
        for line, (label, value) in zip(lines, rows, strict=True):
            assert line in [f"{label}{separator}{value}" for separator in separators]


def test_where_nothing_says_what_the_first_row_is_rows_stay_plain() -> None:
    assert word_lines(UNKNOWN) == [f"{label} | {value}" for label, value in UNKNOWN]


def test_bold_labels_are_labels() -> None:
    lines = word_lines(UNKNOWN, bold=[(row, 0) for row in range(4)])
    assert lines == [f"{label}: {value}" for label, value in UNKNOWN]


@pytest.mark.parametrize("marks", [{"bold": [(0, 0), (0, 1)]}, {"header": True}], ids=["bold", "header row"])
def test_a_first_row_that_the_file_marks_names_the_columns(marks: dict[str, object]) -> None:
    lines = word_lines([("Vessel", "Berth"), ("Aurora", "North quay"), ("Sirius", "Pier 3")], **marks)  # type: ignore[arg-type]  # one of the two
    assert lines == ["Vessel: Aurora | Berth: North quay", "Vessel: Sirius | Berth: Pier 3"]


@pytest.mark.parametrize(
    ("rows", "second"),
    [
        ([("Country", "Limit"), ("France", "120 €"), ("Spain", "95 €")], "Country: France | Limit: 120 €"),
        ([("Nombre", "Cargo"), ("Ana Ruiz", "Tesorera"), ("Luis Mora", "Vocal")], "Nombre: Ana Ruiz | Cargo: Tesorera"),
        ([("Trámite", "Plazo máximo"), ("Alta", "3 días"), ("Baja", "9 días")], "Trámite: Alta | Plazo máximo: 3 días"),
        ([("Event", "When"), ("Start", "12 May 2025"), ("End", "3 June 2026")], "Event: Start | When: 12 May 2025"),
        ([("Team", "Who"), ("Sales", "Ana"), ("Sales", "Luis")], "Team: Sales | Who: Ana"),
        ([("Rule", "What holds"), ("1", "No smoking"), ("2", "Wear gloves")], "Rule: 1 | What holds: No smoking"),
    ],
)  # fmt: skip
def test_real_headers_of_two_columns_still_name_their_values(rows: Rows, second: str) -> None:
    assert word_lines(rows)[0] == second
    assert sheet_lines([[int(text) if text.isdigit() else text for text in row] for row in rows])[0] == second


@pytest.mark.parametrize("style", [{"font": Font(bold=True)}, {"fill": PatternFill("solid", fgColor="DDDDDD")}])
def test_names_of_a_sheet_may_be_bold_or_on_a_ground_of_their_own(style: dict[str, object]) -> None:
    book = Workbook()
    for row in [("Vessel", "Berth"), ("Aurora", "North quay"), ("Sirius", "Pier 3")]:
        book.active.append(row)
    for cell in book.active[1]:
        for name, value in style.items():
            setattr(cell, name, value)
    assert "Vessel: Aurora | Berth: North quay" in parse(saved(book), file_name="a.xlsx").text


@pytest.mark.parametrize("gap", [[], [[]]], ids=["right below", "after a blank row"])
def test_a_note_below_a_table_is_no_value_of_its_first_column(gap: list[list[object]]) -> None:
    note = "Payment is due 30 days after the invoice."
    rows: list[list[object]] = [["Country", "Limit", "Until"], ["France", 120, 2026], ["Spain", 95, 2026], *gap, [note]]
    assert sheet_lines(rows)[-1] == note
    two: list[list[object]] = [["Country", "Limit"], ["France", 120], ["Spain", 95], *gap, [note]]
    assert sheet_lines(two)[-1] == note


def test_a_form_below_a_table_takes_no_names_from_it() -> None:
    lines = sheet_lines([["Country", "Limit"], ["France", 120], [], ["Contact", "Ana"], ["Phone", 5]])
    assert lines == ["Country: France | Limit: 120", "Contact | Ana", "Phone | 5"]


def test_a_form_right_above_a_wider_table_leaves_the_table_its_names() -> None:
    lines = sheet_lines([["Plant", "Valencia"], ["Manager", "Ana"], ["Product", "Stock", "Min"], ["Bolt", 1, 2]])
    assert lines == ["Plant | Valencia", "Manager | Ana", "Product: Bolt | Stock: 1 | Min: 2"]


def test_a_form_above_a_table_leaves_the_table_its_names() -> None:
    lines = sheet_lines([["Plant", "Valencia"], ["Manager", "Ana"], [], ["Product", "Stock"], ["Bolt", 1], ["Nut", 2]])
    assert lines == ["Plant | Valencia", "Manager | Ana", "Product: Bolt | Stock: 1", "Product: Nut | Stock: 2"]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (
            [["Employee", datetime.date(2026, 11, 2), datetime.date(2026, 11, 3)], ["Ana", "early", "late"]],
            "Employee: Ana | 2026-11-02: early | 2026-11-03: late",
        ),
        ([["Person", 44, 45], ["Ana", "early", "late"]], "Person: Ana | 44: early | 45: late"),
        ([["Role", 2024, 2025], ["Chair", "Ana Roca", "Eva Mur"]], "Role: Chair | 2024: Ana Roca | 2025: Eva Mur"),
        ([["Item", 2024, 2025], ["Income", 100, 120]], "Item: Income | 2024: 100 | 2025: 120"),
        ([[None, 2024, 2025], ["Income", 100, 120]], "Income | 2024: 100 | 2025: 120"),
        ([[None, 2024, 2025], ["Income", 100, 120], [None, 100, 120]], "Income | 2024: 100 | 2025: 120"),
        ([[None, 7, 8], ["Income", 100, 120]], "7 | 8"),
        ([["Ana", 1, 2], ["Luis", 3, 4]], "Ana | 1 | 2"),  # figures over figures name nothing
        ([["Ana", 5, 5], ["Luis", "x", "y"]], "Ana | 5 | 5"),  # nor do equal ones
    ],
)
def test_figures_beside_a_word_or_an_empty_corner_name_columns_where_they_are_a_series_or_stand_over_words(
    rows: list[list[object]], line: str
) -> None:
    assert parse(xlsx(rows), file_name="a.xlsx").text.splitlines()[1] == line


@pytest.mark.parametrize(
    "years", [("2023 (€)", "2024 (€)"), ("2023*", "2024*"), ("2024", "2025 (est.)"), ("2024 €", "2025 €")]
)
def test_years_with_a_unit_or_a_remark_name_columns(years: tuple[str, str]) -> None:
    first, second = years
    assert word_lines([("Poste", first, second), ("Loyer", "90", "95"), ("Salaires", "120", "140")]) == [
        f"Poste: Loyer | {first}: 90 | {second}: 95",
        f"Poste: Salaires | {first}: 120 | {second}: 140",
    ]


def test_a_table_below_a_title_and_a_gap_brings_its_own_names() -> None:
    budget = [["Team", "Head", "Budget"], ["IT", "Luis", 120000], []]
    watch = [["On call"], ["Week", "Person", "Phone"], [48, "Neus", 600112233]]
    assert parse(xlsx([*budget, *watch]), file_name="a.xlsx").text.splitlines()[1:] == [
        "Team: IT | Head: Luis | Budget: 120000",
        "On call",
        "Week: 48 | Person: Neus | Phone: 600112233",
    ]
    parts = [["North"], ["Bolt", "M8", 2]]  # of one table, under titles of their own
    text = parse(xlsx([["Item", "Size", "Stock"], *parts, [], ["South"], ["Nut", "M8", 4]]), file_name="a.xlsx").text
    assert text.splitlines()[-1] == "Item: Nut | Size: M8 | Stock: 4"


def test_the_time_of_a_row_grows_with_its_columns_not_with_their_square() -> None:
    columns = 10_000
    data = "\n".join(",".join(f"{row}{column}" for column in range(columns)) for row in ["name", 1, 2, 3, 4, 5])
    texts: list[str] = []
    seconds = seconds_of(lambda: texts.append(parse(data.encode(), file_name="wide.csv").text))
    assert seconds < 4  # 0.4 seconds; 9 when each cell looked at all others
    assert texts[0].count("name9999: ") == 5


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        ([["Item", "Stock", "Checked by"], ["Bolt", 5, None], ["Nut", 7, None]], ["Checked by"]),
        ([["Item", "Stock", "Checked by"], ["Bolt", 5, None], ["Nut", 7, "Ana"]], []),
    ],
)
def test_the_name_of_a_column_that_is_empty_in_all_rows_is_kept(
    rows: Sequence[Sequence[object]], last: list[str]
) -> None:
    lines = sheet_lines(rows)
    assert (lines[0], lines[2:]) == ("Item: Bolt | Stock: 5", last)


def test_a_name_over_several_columns_is_kept_once() -> None:
    book = Workbook()
    for row in [["Item", "Plan", None], ["Bolt", None, 5], ["Nut", None, 7]]:
        book.active.append(row)
    book.active.merge_cells("B1:C1")
    text = parse(saved(book), file_name="a.xlsx").text
    assert text.count("Plan") == 2


def test_years_above_the_names_of_their_columns_are_part_of_them_in_each_table_of_a_sheet() -> None:
    book = Workbook()
    for first in (1, 8):
        book.active.cell(first, 2, "Financial period")
        book.active.merge_cells(start_row=first, start_column=2, end_row=first, end_column=5)
        for column, year in ((2, 2024), (4, 2025)):
            book.active.cell(first + 1, column, year)
            book.active.merge_cells(start_row=first + 1, start_column=column, end_row=first + 1, end_column=column + 1)
        for column, text in enumerate(("Qtr 1", "Qtr 2", "Qtr 1", "Qtr 2"), start=2):
            book.active.cell(first + 2, column, text)
        for column, value in enumerate(("Budget", 75, 85, 95, 90), start=1):
            book.active.cell(first + 3, column, value)
    lines = parse(saved(book), file_name="a.xlsx").text.splitlines()[1:]
    row = "Budget | 2024 Qtr 1: 75 | 2024 Qtr 2: 85 | 2025 Qtr 1: 95 | 2025 Qtr 2: 90"
    assert lines == ["Financial period", row] * 2


def test_a_first_row_with_an_amount_like_those_below_it_names_nothing() -> None:
    rows = [["Budget allocation"], ["Marketing", "$100,000"], ["R&D", "$150,000"], ["Operations", "$50,000"]]
    assert sheet_lines(rows) == ["Budget allocation", "Marketing | $100,000", "R&D | $150,000", "Operations | $50,000"]


def test_ranges_below_a_wide_name_are_names_where_the_other_names_go_on_beside_them() -> None:
    book = Workbook()
    for row in [["Road", "Share", None, None], [None, "<=10", "10-20", ">20"], ["Motorway", 0.92, 1.02, 1.11]]:
        book.active.append(row)
    book.active.merge_cells("A1:A2")
    book.active.merge_cells("B1:D1")
    line = parse(saved(book), file_name="a.xlsx").text.splitlines()[-1]
    assert line == "Road: Motorway | Share <=10: 0.92 | Share 10-20: 1.02 | Share >20: 1.11"


def test_names_that_stand_above_groups_of_columns_with_a_gap_between_them_name_all_of_the_group() -> None:
    rows = [
        ["In millions", None, "January 2023", None, None, "January 2022"],
        [None, "Goodwill", "Assets", None, "Goodwill", "Assets"],
        [],
        ["Zone NA", 0, -9, None, 7, -285],
        ["Zone EUR", 0, -23, None, 8, 12],
    ]
    book = Workbook()
    for row in rows:
        book.active.append(row)
    for cell in book.active[1]:
        cell.font = Font(bold=True)
    document = parse(saved(book), file_name="a.xlsx")
    assert document.text.splitlines()[1:] == [
        f"In millions: {zone} | January 2023 Goodwill: 0 | January 2023 Assets: {assets} | "
        f"January 2022 Goodwill: {before} | January 2022 Assets: {last}"
        for zone, assets, before, last in (("Zone NA", -9, 7, -285), ("Zone EUR", -23, 8, 12))
    ]
    assert {span.location.cell for span in document.spans} >= {"A4:F4", "C4", "E5"}


def test_a_lone_row_above_a_gap_names_columns_only_if_what_stands_below_shows_it() -> None:
    assert sheet_lines([["Harbour walk", "North side"], [], ["Lighthouse", "Fish market"]]) == [
        "Harbour walk | North side",
        "Lighthouse | Fish market",
    ]
    assert sheet_lines([["Part", "Price"], [], ["Bolt", 12], ["Nut", 3]])[0] == "Part: Bolt | Price: 12"


def test_ages_among_the_names_below_each_wide_cell_are_names() -> None:
    ages = ["Women", "Men", "15-24"]
    document = docx.Document()
    table = document.add_table(4, 7)
    for column, name in ((1, "Norway"), (4, "Sweden")):
        table.cell(0, column).merge(table.cell(0, column + 2)).text = name
    for row, texts in enumerate((["", *ages, *ages], ["2024", *"567890"], ["2025", *"678901"]), start=1):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    lines = parse(saved(document), file_name="a.docx").text.strip().splitlines()
    assert lines[0] == (
        "2024 | Norway Women: 5 | Norway Men: 6 | Norway 15-24: 7 | Sweden Women: 8 | Sweden Men: 9 | Sweden 15-24: 0"
    )
