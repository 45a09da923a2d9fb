# ruff: noqa: E501 - lines of files
"""PDF files."""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Callable, Mapping

from fpdf import FPDF
from PIL import Image, ImageDraw

from tests.golden.packages import DAY
from tests.unit.readers.samples import pdf_of_objects, stream


def _pdf(write: Callable[[FPDF], None]) -> bytes:
    file = FPDF()
    file.set_creation_date(DAY.replace(tzinfo=datetime.UTC))
    file.set_font("Helvetica", size=11)
    write(file)
    return bytes(file.output())


def _pdf_headings() -> bytes:
    def write(file: FPDF) -> None:
        file.add_page()
        for text, size in (("Terms of use", 20), ("Payment", 14)):
            file.set_font("Helvetica", style="B", size=size)
            file.cell(0, 12, text, new_x="LMARGIN", new_y="NEXT")
        file.set_font("Helvetica", size=11)
        file.multi_cell(
            0, 6, "Payment is due within thirty days after the invoice was sent to the customer by mail or by post."
        )

    return _pdf(write)


def _pdf_table() -> bytes:
    def write(file: FPDF) -> None:
        file.add_page()
        with file.table() as table:
            for row in (("Zone", "Fare"), ("North", "3.20"), ("South", "1.90")):
                table.row(row)

    return _pdf(write)


def _pdf_footer() -> bytes:
    def write(file: FPDF) -> None:
        for number, text in enumerate(("The gate is closed.", "The gate is open.", "The gate is gone."), start=1):
            file.add_page()
            file.multi_cell(
                0,
                6,
                f"{text} Nobody may pass. The guard has the key, and the office knows why.\n\nAsk there on day {number}.",
            )
            file.set_xy(10, 270)
            file.cell(0, 6, f"City line, page {number}")

    return _pdf(write)


def _pdf_columns() -> bytes:
    def write(file: FPDF) -> None:
        file.add_page()
        left = "The gate was closed in March because the guard had lost the key. Nobody knew where it was. " * 4
        right = "In April a new key was made. The gate has been open since then, and the guard keeps it. " * 4
        for x, text in ((10, left), (110, right)):
            file.set_xy(x, 30)
            file.multi_cell(85, 6, text)

    return _pdf(write)


def _pdf_list() -> bytes:
    def write(file: FPDF) -> None:
        file.add_page()
        for line in ("Steps:", "1. Fill in the form.", "2. Send it to the office.", "3. Wait for the answer."):
            file.cell(0, 8, line, new_x="LMARGIN", new_y="NEXT")

    return _pdf(write)


def _pdf_raised() -> bytes:
    def write(file: FPDF) -> None:
        file.add_page()
        file.write(6, "The fee is 500")
        file.char_vpos = "SUP"
        file.write(6, "1")
        file.char_vpos = "LINE"
        file.write(6, " euros for each of the members of the club who uses the gate.")

    return _pdf(write)


def _drawn(
    content: str,
    *,
    page: str = "/MediaBox[0 0 595 842]",
    resources: str = "",
    catalog: str = "",
    more: tuple[bytes, ...] = (),
) -> bytes:
    """A page of drawing operators with a plain font, F1, and a bold one, F2; objects `more` begin at number 7."""
    return pdf_of_objects(
        f"<</Type/Catalog/Pages 2 0 R{catalog}>>".encode(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R{page}/Contents 4 0 R/Resources<</Font<</F1 5 0 R/F2 6 0 R>>{resources}>>>>".encode(),
        stream(content.encode("cp1252")),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold/Encoding/WinAnsiEncoding>>",
        *more,
    )


def _at(x: float, y: float, *lines: str, size: float = 11, step: float = 14, font: str = "F1") -> str:
    """Lines one below the other, drawn one by one."""
    escaped = [line.replace("(", r"\(").replace(")", r"\)") for line in lines]
    return "".join(f"BT /{font} {size} Tf {x} {y - row * step} Td ({line}) Tj ET\n" for row, line in enumerate(escaped))


_FIRST_MEETING = (
    "The committee met on 4 March and heard the",
    "report of the treasurer, who explained that",
    "the reserve had fallen to 41,200 euros after",
    "the repair of the roof. Two members asked",
    "why the repair had not been tendered, and",
    "the chair answered that the storm had left",
    "no time for a tender.",
)
_SECOND_MEETING = (
    "At the second meeting the caretaker showed",
    "the new heating, which uses a third less",
    "oil than the old one did. It was bought for",
    "18,900 euros and will be paid in two parts.",
    "The first part falls due on 30 June and the",
    "second at the end of the year.",
)


def _pdf_spread() -> bytes:
    """Two pages of a book on one wide page, whose lines do not stand at the same height."""
    left = _at(60, 520, "First meeting", size=14, font="F2") + _at(60, 490, *_FIRST_MEETING) + _at(190, 40, "12")
    right = _at(480, 520, "Second meeting", size=14, font="F2") + _at(480, 486, *_SECOND_MEETING) + _at(610, 40, "13")
    return _drawn(left + right, page="/MediaBox[0 0 842 595]")


def _pdf_spread_table() -> bytes:
    """Two pages of a book on one wide page: prose, and a table that must not be mixed with it."""
    rows = (("Members", "412", "398"), ("Income", "51,300", "48,900"), ("Reserve", "41,200", "60,100"))
    table = _at(630, 490, "2024") + _at(700, 490, "2023")
    for row, values in enumerate(rows):
        for x, value in zip((480, 630, 700), values, strict=True):
            table += _at(x, 474 - 16 * row, value)
    pages = _at(60, 490, *_FIRST_MEETING) + _at(480, 520, "Figures of the year", size=14, font="F2") + table
    return _drawn(pages + _at(190, 40, "12") + _at(610, 40, "13"), page="/MediaBox[0 0 842 595]")


def _pdf_short_columns() -> bytes:
    """Columns of a few lines, headed by a name each."""
    return _drawn(
        _at(60, 790, "Our offices", size=16, font="F2")
        + _at(60, 750, "Hamburg", font="F2")
        + _at(
            60, 734, "The Hamburg office handles all sea", "freight and is open from seven in the", "morning until six."
        )
        + _at(320, 750, "Lyon", font="F2")
        + _at(
            320,
            734,
            "The Lyon office looks after customers",
            "in France and Spain and answers calls",
            "on working days.",
        )
        + _at(60, 650, "Both offices are closed on public holidays.")
        + "".join(
            _at(x, 600, *lines, size=10, step=13)
            for x, lines in (
                (50, ("We repair washing machines of", "all makes at your home within", "two working days.")),
                (225, ("We sell used machines that we", "have checked, with a warranty", "of twelve months.")),
                (400, ("We collect old machines free", "of charge when you buy a new", "one from us.")),
            )
        )
    )


def _pdf_bilingual() -> bytes:
    """A contract in two languages, paragraph beside paragraph."""
    english = (
        "Article 1",
        "The seller delivers the goods",
        "within thirty days.",
        "Article 2",
        "The buyer pays the price of",
        "9,400 euros on delivery.",
    )
    german = (
        "Artikel 1",
        "Der Verk\u00e4ufer liefert die Ware",
        "innerhalb von drei\u00dfig Tagen.",
        "Artikel 2",
        "Der K\u00e4ufer zahlt den Preis von",
        "9.400 Euro bei Lieferung.",
    )
    return _drawn(
        "".join(
            _at(x, y, *text[at : at + 3])
            for x, text in ((60, english), (320, german))
            for at, y in ((0, 780), (3, 720))
        )
    )


def _pdf_hidden() -> bytes:
    """Each second sentence cannot be seen, each in another way."""
    clear, layer = b"<</Type/ExtGState/ca 0>>", b"<</Type/OCG/Name(draft)>>"
    return _drawn(
        "0.1 0.2 0.4 rg 50 772 400 24 re f 1 g "
        + _at(60, 780, "White on a dark box is seen.")
        + _at(60, 750, "White on white is not.")
        + "0 g "
        + _at(60, 720, "Black on white is seen.")
        + _at(60, 690, "Under a box it is not.")
        + "0 g 55 685 300 18 re f "
        + _at(60, 660, "Beside a box it is seen.")
        + _at(60, 640, "Smaller than a point it is not.", size=0.5)
        + _at(60, 620, "Under a marker it is seen.")
        + "q /Pale gs 1 1 0 rg 55 615 200 18 re f Q "
        + "q /Clear gs "
        + _at(60, 590, "Transparent it is not.")
        + "Q "
        + _at(60, 560, "Printed over white-out it is seen.")
        + "1 g 55 530 300 18 re f 0 g "
        + "/OC /Draft BDC "
        + _at(60, 535, "On a layer that is switched off it is not.")
        + "EMC\n",
        resources="/ExtGState<</Clear 7 0 R/Pale 8 0 R>>/Properties<</Draft 9 0 R>>",
        catalog="/OCProperties<</OCGs[9 0 R]/D<</OFF[9 0 R]>>>>",
        more=(clear, b"<</Type/ExtGState/ca 0.4>>", layer),
    )


def _pdf_scan_layer() -> bytes:
    """A scan with its recognised text, which is invisible; the stamp under the picture is not on it."""
    width, height = 298, 421
    picture = Image.new("L", (width, height), 255)
    draw = ImageDraw.Draw(picture)
    for row in range(len(_FIRST_MEETING)):
        for x in range(30, 150, 6):  # about what letters look like
            draw.line((x, 31 + 7 * row, x + 2, 35 + 7 * row), fill=0)
    data = zlib.compress(picture.tobytes())
    keys = f"/Subtype/Image/Width {width}/Height {height}/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/FlateDecode"
    return _drawn(
        _at(60, 700, "Received on 9 March") + f"q 595 0 0 842 0 0 cm /Scan Do Q 3 Tr {_at(60, 772, *_FIRST_MEETING)}",
        resources="/XObject<</Scan 7 0 R>>",
        more=(stream(data, keys=keys),),
    )


def _pdf_printed_twice() -> bytes:
    """A total made bold by printing it twice, and a title with its shadow."""
    return _drawn(
        "0.6 g "
        + _at(61.5, 778.5, "Annual report", size=24, font="F2")
        + "0 g "
        + _at(60, 780, "Annual report", size=24, font="F2")
        + _at(60, 740, "Total due: 1,204.50 EUR")
        + _at(60.3, 740, "Total due: 1,204.50 EUR")
        + _at(60, 700, "no no, said the 22 men, no no")
    )


def _pdf_turned_page() -> bytes:
    """A page that is turned by its own setting, and text turned within it."""
    return _drawn(
        f"q 0 1 -1 0 595 0 cm {_at(60, 500, *_FIRST_MEETING)} Q BT /F1 9 Tf 60 20 Td (Internal use only 2024) Tj ET\n",
        page="/MediaBox[0 0 595 842]/Rotate 90",
    )


def _pdf_rows_in_box() -> bytes:
    """A table that draws one box around several rows."""
    rows = (
        ("Rent", "3 May", "900"),
        ("Water", "4 May", "31"),
        ("Power", "9 May", "77"),
        ("Insurance", "2 June", "140"),
        ("Lift", "7 June", "63"),
    )
    lines = [f"50 {y} m 500 {y} l S " for y in (790, 770, 710, 675)] + [
        f"{x} 675 m {x} 790 l S " for x in (50, 230, 370, 500)
    ]
    return _drawn(
        "0.5 w "
        + "".join(lines)
        + "".join(_at(x, 775, name, font="F2") for x, name in ((60, "Item"), (240, "Opened"), (380, "Amount")))
        + "".join(
            _at(x, 753 - 18 * row, value)
            for row, values in enumerate(rows)
            for x, value in zip((60, 240, 380), values, strict=True)
        )
    )


def _pdf_statement() -> bytes:
    """A statement with currency signs in columns of their own, negative sums in brackets, and footnote marks."""
    rows = (
        ("Net sales", "$", "4,204", "$", "3,981"),
        ("Cost of sales", "", "(2,711)", "", "(2,600)"),
        ("Net income", "$", "1,493", "$", "1,381"),
    )
    return _drawn(
        _at(250, 790, "2023", font="F2")
        + _at(330, 790, "2022", font="F2")
        + "".join(
            _at(x, 774 - 14 * row, value)
            for row, values in enumerate(rows)
            for x, value in zip((60, 230, 250, 310, 330), values, strict=True)
            if value
        )
        + _at(108.5, 778, "1", size=7)
        + _at(60, 700, "The hall has 450 m")
        + _at(155, 704, "2", size=7)
        + _at(161, 700, "and cost 3 x 10")
        + _at(235.7, 704, "6", size=7)
        + _at(242, 700, "euros.")
        + _at(60, 640, "1", size=6)
        + _at(65, 637, "Without the sale of the mill.", size=8)
    )


def _pdf_cropped() -> bytes:
    """A page that is cut to its middle."""
    text = _at(120, 700, "The visible part says 12 days.") + _at(120, 60, "Proof 4, not for release")
    return _drawn(text, page="/MediaBox[0 0 595 842]/CropBox[100 400 500 760]")


def _pdf_empty() -> bytes:
    return _pdf(lambda file: file.add_page())


def _pdf_numbers() -> bytes:
    """Decimals that stand apart, a dash that its font calls a soft hyphen, a fraction with a bar, a shifted copy."""
    rows = (("Total", "11,062.", "6"), ("Crime", "467.", "9"))
    figures = "".join(
        _at(60, 700 - 14 * row, name, size=8)
        + _at(250, 700 - 14 * row, whole, size=8)
        + _at(end, 700 - 14 * row, tenths, size=8)
        for row, (name, whole, tenths) in enumerate(rows)
        for end in (278.1 if row == 0 else 267.0,)
    )
    fraction = (
        _at(60, 640, "Take 2") + _at(93.3, 644.5, "1", size=7) + _at(93.3, 636, "2", size=7) + _at(102, 640, "cups.")
    )
    bar = "0.5 w 92 642.6 m 99 642.6 l S\n"
    copy = _at(60, 600, "Seeded: 140,000 per acre in May.") + _at(60.8, 600.2, "Seeded:140,") + _at(122.3, 600.2, "000")
    return _drawn(_at(60, 740, "27 sentences of 1\xad12 months, 1, 2 and 3.") + figures + fraction + bar + copy)


def _pdf_struck_and_cut() -> bytes:
    """A price and a time with a line through them, one under which a line lies, text outside of its frame."""
    struck = _at(60, 700, "The fee is 300 EUR") + _at(160, 700, "250 EUR, from") + "0.7 w 112 703.5 m 155 703.5 l S\n"
    under = _at(60, 670, "It is due in") + _at(116, 670, "May.") + "0.7 w 116 668.5 m 137 668.5 l S\n"
    cut = (
        "q 60 600 200 30 re W n\n"
        + _at(60, 610, "Inside it is 40.")
        + "Q q 60 600 200 30 re W n\n"
        + _at(60, 560, "Outside it was 90.")
        + "Q\n"
    )
    mark = b"<</Type/Annot/Subtype/StrikeOut/Rect[60 535 130 550]/QuadPoints[60 550 130 550 60 535 130 535]>>"
    noted = _at(60, 539, "Old: 8:30.") + _at(140, 539, "New: 9:15.")
    return _drawn(struck + under + cut + noted, page="/MediaBox[0 0 595 842]/Annots[7 0 R]", more=(mark,))


def _pdf_turned_names() -> bytes:
    """A ruled table whose columns are named upwards, below a paragraph that begins with a large letter."""
    rules = "".join(f"60 {y} m 360 {y} l S\n" for y in (560, 600, 640, 720))
    rules += "".join(f"{x} 560 m {x} 720 l S\n" for x in (60, 180, 270, 360))
    names = "".join(
        f"BT /F1 10 Tf 0 1 -1 0 {x} 650 Tm ({text}) Tj ET\n"
        for x, text in ((215, "Hours per week"), (315, "Pay in euros"))
    )
    cells = _at(70, 615, "Caretaker") + _at(200, 615, "12") + _at(300, 615, "480")
    cells += _at(70, 575, "Gardener") + _at(200, 575, "20") + _at(300, 575, "760")
    cap = (
        _at(60, 766, "T", size=34)
        + _at(82, 784, "he caretaker and the gardener")
        + _at(82, 770, "are paid by the month.")
    )
    return _drawn(cap + rules + names + cells)


PDF: Mapping[str, Callable[[], bytes]] = {
    "pdf/headings.pdf": _pdf_headings,
    "pdf/table.pdf": _pdf_table,
    "pdf/footer.pdf": _pdf_footer,
    "pdf/columns.pdf": _pdf_columns,
    "pdf/list.pdf": _pdf_list,
    "pdf/raised.pdf": _pdf_raised,
    "pdf/empty.pdf": _pdf_empty,
    "pdf/spread.pdf": _pdf_spread,
    "pdf/spread_table.pdf": _pdf_spread_table,
    "pdf/short_columns.pdf": _pdf_short_columns,
    "pdf/bilingual.pdf": _pdf_bilingual,
    "pdf/hidden.pdf": _pdf_hidden,
    "pdf/scan_layer.pdf": _pdf_scan_layer,
    "pdf/printed_twice.pdf": _pdf_printed_twice,
    "pdf/turned_page.pdf": _pdf_turned_page,
    "pdf/rows_in_box.pdf": _pdf_rows_in_box,
    "pdf/statement.pdf": _pdf_statement,
    "pdf/cropped.pdf": _pdf_cropped,
    "pdf/numbers.pdf": _pdf_numbers,
    "pdf/struck_and_cut.pdf": _pdf_struck_and_cut,
    "pdf/turned_names.pdf": _pdf_turned_names,
}
