"""Tables of a PDF with rules between their cells: a cell's lines belong together, and columns keep their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from fpdf import FPDF
from fpdf.enums import TableBordersLayout

from rag_service.readers.parse import parse
from tests.timing import seconds_of
from tests.unit.readers.samples import pdf_of_objects, pdf_with_stream

FLEET = (
    ("Plate", "Model", "Lease ends", "Remarks"),
    ("KX21 ABC", "Ford Transit", "14 March 2027", "Needs new tyres before the winter; booked for 2 December"),
    ("LM70 RTY", "VW Caddy", "30 June 2027", "Windscreen chip"),
    ("YD19 QWE", "Skoda Octavia", "1 February 2027", "Pool car"),
)
FLEET_LINES = [
    "Plate: KX21 ABC | Model: Ford Transit | Lease ends: 14 March 2027 | "
    "Remarks: Needs new tyres before the winter; booked for 2 December",
    "Plate: LM70 RTY | Model: VW Caddy | Lease ends: 30 June 2027 | Remarks: Windscreen chip",
    "Plate: YD19 QWE | Model: Skoda Octavia | Lease ends: 1 February 2027 | Remarks: Pool car",
]


def lines_of(draw: Callable[[FPDF], None], *, orientation: str = "portrait") -> list[str]:
    file = FPDF(orientation=orientation)
    file.set_font("Helvetica", size=11)
    file.add_page()
    draw(file)
    return read(bytes(file.output()))


def read(data: bytes) -> list[str]:
    return [line for line in parse(data, file_name="table.pdf").text.split("\n") if line]


def table(file: FPDF, rows: Sequence[Sequence[str]], width: float = 110, **options: object) -> None:
    with file.table(rows, width=width, first_row_as_headings=False, align="LEFT", **options):
        pass


def test_the_lines_of_a_cell_belong_together_and_columns_keep_their_names() -> None:
    def draw(file: FPDF) -> None:
        file.cell(text="Our fleet of this year.", new_x="LMARGIN", new_y="NEXT")
        table(file, FLEET)
        file.cell(text="The excess for each claim is 500 euros.")

    assert lines_of(draw) == ["Our fleet of this year.", *FLEET_LINES, "The excess for each claim is 500 euros."]


@pytest.mark.parametrize("width", [0.2, 2.0])
def test_rules_may_be_boxes_and_drawn_in_a_drawing_of_its_own(width: float) -> None:
    places = [(50, 150), (50, 100), (50, 50)]
    boxes = [f"50 {y} 200 {width} re" for y in (200, 150, 100, 50)] + [f"{x} 50 {width} 150 re" for x in (50, 120, 250)]
    words = [
        f"BT /F1 10 Tf {x + 5} {y + high} Td ({text}) Tj ET"
        for (x, y), cells in zip(places, (("Role", "Person"), ("Chair", "Ana"), ("Clerk", "Luis")), strict=True)
        for x, text, high in ((x, cells[0], 30), (x + 70, cells[1], 30), (x + 70, "Soler" * (y < 150), 10))
        if text
    ]
    drawing = "\n".join(["q", *boxes, "f", "Q"]).encode()
    content = b"q 1 0 0 1 20 30 cm /D Do Q\n" + "\n".join(["q 1 0 0 1 20 30 cm", *words, "Q"]).encode()
    data = pdf_of_objects(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 400] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> /XObject << /D 6 0 R >> >> >>",
        b"<< /Length %d >> stream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 400 400] /Length %d >> stream\n%s\nendstream"
        % (len(drawing), drawing),
    )
    assert read(data) == ["Role: Chair | Person: Ana Soler", "Role: Clerk | Person: Luis Soler"]


def test_merged_cells_stand_in_each_of_their_rows_and_name_each_of_their_columns() -> None:
    def draw(file: FPDF) -> None:
        with file.table(width=150, first_row_as_headings=False) as cells:
            for texts, spans in (
                (("Site", "Staff of the year", None), {1: {"colspan": 2}}),
                (("Lyon, with the\nold depot", "12", "14"), {0: {"rowspan": 2}}),
                ((None, "3", "5"), {}),
            ):
                row = cells.row()
                for place, text in enumerate(texts):
                    if text is not None:
                        row.cell(text, **spans.get(place, {}))

    assert lines_of(draw) == [
        "Site: Lyon, with the old depot | Staff of the year: 12 | Staff of the year: 14",
        "Site: Lyon, with the old depot | Staff of the year: 3 | Staff of the year: 5",
    ]


def test_a_table_that_goes_on_overleaf_keeps_its_names() -> None:
    rows = [FLEET[0], *((f"AA{n} BCD", "VW Caddy", "30 June 2027", "None") for n in range(10, 80))]
    lines = lines_of(lambda file: table(file, rows))
    assert lines == [
        f"Plate: AA{n} BCD | Model: VW Caddy | Lease ends: 30 June 2027 | Remarks: None" for n in range(10, 80)
    ]


def test_another_table_overleaf_has_names_of_its_own() -> None:
    def draw(file: FPDF) -> None:
        for rows in (FLEET, (("Room", "Floor", "Seats", "Phone"), ("Garonne", "two", "12", "4402"))):
            if rows is not FLEET:
                file.add_page()
            with file.table(rows, width=110):  # names in bold
                pass

    assert lines_of(draw) == [*FLEET_LINES, "Room: Garonne | Floor: two | Seats: 12 | Phone: 4402"]


def test_text_between_them_parts_tables_of_two_pages() -> None:
    def draw(file: FPDF) -> None:
        table(file, FLEET)
        for number in range(3):
            file.cell(text=f"Line {number} below the table.", new_x="LMARGIN", new_y="NEXT")
        file.add_page()
        table(file, (("Room", "Floor", "Seats", "Phone"), ("Garonne", "two", "12", "4402")))

    assert lines_of(draw)[-1] == "Room: Garonne | Floor: two | Seats: 12 | Phone: 4402"


def test_a_table_within_a_cell_is_read_within_it() -> None:
    def draw(file: FPDF) -> None:
        for x, y, width, height in ((20, 20, 160, 60), (20, 20, 160, 10), (20, 30, 40, 50), (60, 30, 120, 50)):
            file.rect(x, y, width, height)
        for x, y, text in ((22, 26, "Site"), (62, 26, "Hours"), (22, 50, "Pau")):
            file.text(x, y, text)
        for row, (day, hours) in enumerate((("Day", "Open"), ("Monday", "9 to 12"))):
            for column, text in enumerate((day, hours)):
                file.rect(70 + 40 * column, 40 + 10 * row, 40, 10)
                file.text(72 + 40 * column, 46 + 10 * row, text)
        file.line(60, 20, 60, 30)

    assert lines_of(draw) == ["Site: Pau | Hours: Day: Monday | Open: 9 to 12"]


def test_long_cells_divide_a_page_and_are_read_one_after_the_other() -> None:
    left = " ".join(f"Word {number} of the first part." for number in range(25))
    right = " ".join(f"Word {number} of the other part." for number in range(25))
    text = "\n".join(lines_of(lambda file: table(file, (("First", "Other"), (left, right)), width=180)))
    assert text.startswith("First   Other".replace("   ", "  "))
    assert text.replace("\n", " ").endswith(f"{left} {right}")


def test_a_table_on_a_turned_page_is_read_as_a_table() -> None:
    def draw(file: FPDF) -> None:
        with file.rotation(90, x=100, y=100):
            table(file, FLEET)

    assert lines_of(draw) == FLEET_LINES


@pytest.mark.parametrize("align", ["LEFT", "RIGHT"])
@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        pytest.param(
            (("Year", "Sales", "Costs"), ("2023\n2024\n2025", "10\n20\n30", "70\n80\n90")),
            [
                "Year: 2023 | Sales: 10 | Costs: 70",
                "Year: 2024 | Sales: 20 | Costs: 80",
                "Year: 2025 | Sales: 30 | Costs: 90",
            ],
            id="figures",
        ),
        pytest.param(
            (("Role", "Person"), ("Chair\nClerk", "Ana Soler\nLuis Mas")),
            ["Role: Chair | Person: Ana Soler", "Role: Clerk | Person: Luis Mas"],
            id="words",
        ),
        pytest.param(
            (
                ("Site", "Handled", "Open"),
                ("Pau\nRepairs for the old depot at the port\nLyon", "1,204\n987\n\n1,530", "56\n31\n\n88"),
                ("Metz\nTours", "412\n733", "9\n18"),
            ),
            [
                "Site: Pau | Handled: 1,204 | Open: 56",
                "Site: Repairs for the old depot at the port | Handled: 987 | Open: 31",
                "Site: Lyon | Handled: 1,530 | Open: 88",
                "Site: Metz | Handled: 412 | Open: 9",
                "Site: Tours | Handled: 733 | Open: 18",
            ],
            id="one of them wraps",
        ),
        pytest.param(
            (("Site", "Handled", "Open"), ("Costs of the old sites abroad\nLyon", "\n987\n1,530", "\n31\n88")),
            ["Site: Costs of the old sites abroad | Handled: 987 | Open: 31", "Site: Lyon | Handled: 1,530 | Open: 88"],
            id="figures beside the last line",
        ),
    ],
)  # fmt: skip
def test_rows_within_the_same_rules_are_rows_of_their_own(
    rows: Sequence[Sequence[str]], wanted: Sequence[str], align: str
) -> None:
    assert lines_of(lambda file: table(file, rows, text_align=align)) == wanted


def test_lines_of_text_that_do_not_tell_the_rows_stay_text() -> None:
    rows = (("Site", "Sales", "Change"), ("Pau", "1,204\n(8)", "10\n(2)"), ("Lyon", "987\n(3)", "20\n(4)"))
    assert lines_of(lambda file: table(file, rows, text_align="RIGHT", v_align="TOP")) == [
        "Site  Sales  Change", "Pau  1,204  10", "(8)  (2)", "Lyon  987  20", "(3)  (4)"
    ]  # fmt: skip


@pytest.mark.parametrize("align", ["LEFT", "RIGHT", "CENTER"])
def test_texts_that_wrap_side_by_side_are_one_row(align: str) -> None:
    damage, remark = "Scratch along the left door", "Booked in for the 2 December"
    rows = [("Plate", "Damage", "Remarks"), *((f"KX2{n} ABC", f"{damage} {n}", f"{remark} {n}") for n in range(3))]
    assert lines_of(lambda file: table(file, rows, text_align=align)) == [
        f"Plate: KX2{n} ABC | Damage: {damage} {n} | Remarks: {remark} {n}" for n in range(3)
    ]


def test_figures_in_rules_keep_the_labels_beside_them() -> None:
    def draw(file: FPDF) -> None:
        for row, label in enumerate(("Net income", "Interest", "Taxes paid")):
            file.text(20, 26 + 10 * row, label)
            for column in range(2):
                file.rect(80 + 40 * column, 20 + 10 * row, 40, 10)
                file.text(82 + 40 * column, 26 + 10 * row, f"{row + 4}{column},000")

    assert lines_of(draw) == ["Net income  40,000  41,000", "Interest  50,000  51,000", "Taxes paid  60,000  61,000"]


def test_the_grid_of_a_chart_is_no_table() -> None:
    def draw(file: FPDF) -> None:
        for number in range(11):
            file.line(20 + 10 * number, 20, 20 + 10 * number, 120)
            file.line(20, 20 + 10 * number, 120, 20 + 10 * number)
        for x, y, text in ((22, 26, "Sales"), (82, 26, "Costs"), (22, 96, "2024"), (92, 96, "2025")):
            file.text(x, y, text)

    assert lines_of(draw) == ["Sales  Costs", "2024  2025"]


def test_borders_on_the_inside_suffice() -> None:
    assert lines_of(lambda file: table(file, FLEET, borders_layout=TableBordersLayout.INTERNAL)) == FLEET_LINES


@pytest.mark.parametrize("count", [2_000, 30_000])
def test_a_page_full_of_rules_takes_no_longer_than_a_second(count: int) -> None:
    def draw(file: FPDF) -> None:
        table(file, FLEET)
        for number in range(count):
            file.line(10 + number % 190, 120 + number // 190, 14 + number % 190, 120 + number // 190)
            file.line(10 + number % 190, 120, 10 + number % 190, 125 + number // 190)

    file = FPDF()
    file.set_font("Helvetica", size=11)
    file.add_page()
    draw(file)
    data = bytes(file.output())
    assert seconds_of(lambda: read(data)) < 5, "tenths of a second when linear"


def test_paragraphs_side_by_side_are_no_table() -> None:
    words = ["law", "does not provide", "for a right to call", "meetings", "unless", "that is", "granted"]
    columns = [[" ".join(words[(row * step + k) % 7] for k in range(step)) for row in range(18)] for step in (2, 3, 2)]

    def draw(file: FPDF) -> None:
        file.set_font("Helvetica", size=8)
        for place, column in enumerate(columns):
            for row, text in enumerate(column):
                file.text(20 + 60 * place, 40 + 4 * row + 1.2 * (row // (4 + place)), text)

    assert all(": " not in line and " | " not in line for line in lines_of(draw))


def test_a_strip_too_low_for_a_text_does_not_end_the_names_of_columns() -> None:
    """The same names stand below two wide ones, and a section follows behind a double rule."""

    def draw(file: FPDF) -> None:
        rows = [(30, 40), (40, 50), (50, 51), (51, 61), (61, 71)]
        for top in sorted({edge for row in rows for edge in row}):
            file.line(20, top, 170, top)
        for left in (20, 170):
            file.line(left, 30, left, 71)
        for left, start, end in ((50, 30, 51), (110, 30, 51), (80, 40, 51), (140, 40, 51)):
            file.line(left, start, left, end)
        for left in (50, 80, 110, 140):
            file.line(left, 61, left, 71)
        texts = [
            (22, 37, "Loan"), (52, 37, "Standard"), (112, 37, "Package"), (52, 47, "Rate"), (82, 47, "Fee"),
            (112, 47, "Rate"), (142, 47, "Fee"), (22, 58, "Fixed"), (22, 68, "1 year"), (52, 68, "4.0%"),
            (82, 68, "5.3%"), (112, 68, "3.8%"), (142, 68, "5.1%"),
        ]  # fmt: skip
        for left, top, text in texts:
            file.text(left, top, text)

    assert lines_of(draw)[-1] == (
        "Loan: 1 year | Standard Rate: 4.0% | Standard Fee: 5.3% | Package Rate: 3.8% | Package Fee: 5.1%"
    )


def test_upright_rules_that_end_within_a_row_part_the_names_of_groups_from_those_below_them() -> None:
    groups = (("Pre-Pawn", 100), ("Return to Seller", 220))
    lines = [(60, 60, 60, 168), (100, 60, 100, 168), (220, 60, 220, 168), (340, 60, 340, 168)]
    lines += [(x, 60, x, 144) for x in (140, 180, 260, 300)]  # they end between the two lines of names
    lines += [(60, y, 340, y) for y in (168, 120, 90, 60)]
    words = [(62, 128, "State"), *((left + 60 - 2.2 * len(name), 150, name) for name, left in groups)]
    words += [(x + 3, 128, name) for x, name in zip(range(100, 340, 40), ("Hand", "Long", "Other") * 2, strict=True)]
    for y, name, figures in ((98, "Utah", range(11, 17)), (68, "Ohio", range(21, 27))):
        words += [(62, y, name), *((x + 20, y, str(n)) for x, n in zip(range(100, 340, 40), figures, strict=True))]
    content = ["0.55 0 0 0.55 0 0 cm", *(f"{x} {y} m {right} {top} l S" for x, y, right, top in lines)]
    content += [f"BT /F1 8 Tf {x} {y} Td ({text}) Tj ET" for x, y, text in words]
    assert read(pdf_with_stream("\n".join(content).encode())) == [
        "State: Utah | Pre-Pawn Hand: 11 | Pre-Pawn Long: 12 | Pre-Pawn Other: 13 | "
        "Return to Seller Hand: 14 | Return to Seller Long: 15 | Return to Seller Other: 16",
        "State: Ohio | Pre-Pawn Hand: 21 | Pre-Pawn Long: 22 | Pre-Pawn Other: 23 | "
        "Return to Seller Hand: 24 | Return to Seller Long: 25 | Return to Seller Other: 26",
    ]


def test_even_lines_beside_figures_are_rows_in_columns_as_narrow_as_their_words() -> None:
    names, kinds = ("Aurora", "Borealis", "Corona", "Dagmar"), ("tug", "ferry", "barge", "tug")
    counts = ("4000", "500", "6000", "7000")
    rows = (("Ship", "Kind", "Crew"), ("\n".join(names), "\n".join(kinds), "\n".join(counts)))
    lines = lines_of(lambda file: table(file, rows, width=45, col_widths=(20, 12, 13)))
    assert lines == [
        f"Ship: {name} | Kind: {kind} | Crew: {count}" for name, kind, count in zip(names, kinds, counts, strict=True)
    ]
