"""Words of a PDF: whole, as the page means them, and none lost."""

from __future__ import annotations

from functools import partial

import pytest

from rag_service.readers.common.builder import HIDDEN
from rag_service.readers.parse import parse
from tests.timing import seconds_of, takes_linear_time
from tests.unit.readers import samples


def text_of(content: bytes, **options: object) -> str:
    return parse(samples.pdf_with_stream(content, **options), file_name="a.pdf").text  # type: ignore[arg-type]


def lines(*texts: str) -> bytes:
    return b"BT /F1 10 Tf 20 150 Td " + b" 0 -12 Td ".join(b"(%s) Tj" % text.encode() for text in texts) + b" ET"


def letter_by_letter(text: str) -> bytes:
    return b"BT /F1 10 Tf 20 100 Td " + b" ".join(b"(%s) Tj" % char.encode() for char in text) + b" ET"


def test_a_compound_over_a_line_end_keeps_its_hyphen() -> None:
    assert text_of(lines("a well-", "known fact")) == "a well-known\nfact"


def test_a_code_without_a_meaning_is_not_taken_for_a_hyphen() -> None:
    assert text_of(b"BT /F1 10 Tf 20 100 Td (one\x02two) Tj ET") == "onetwo"


def test_text_drawn_twice_for_boldness_is_read_once() -> None:
    bold = b"BT /F1 10 Tf %s 100 Td (Total) Tj ET "
    assert text_of(bold % b"20" + bold % b"20.3") == "Total"


def test_time_grows_with_the_number_of_texts_however_they_lie() -> None:
    """One word all over the page, and a line whose texts are each printed over the one before."""
    places = [(number * 97 % 1999 / 10, number * 61 % 1993 / 10, "a ") for number in range(14_000)]
    backwards = [(190 - number / 35, 100, f"wide{number} ") for number in range(6_000)]

    def read(texts: list[tuple[float, float, str]]) -> str:
        drawn = (b"/F1 3 Tf 1 0 0 1 %.3f %.3f Tm (%s) Tj" % (x, y, text.encode()) for x, y, text in texts)
        return text_of(b"BT " + b" ".join(drawn) + b" ET")

    assert len(read(places)) > 14_000
    for texts in (places, backwards):
        half = texts[: len(texts) // 2]
        assert takes_linear_time(partial(read, texts), partial(read, half), bound=4)  # one takes .9


def test_frames_of_many_corners_take_no_more_time_for_many_texts() -> None:
    frames = b"q " + b"0 0 m 1 1 l 200 200 l 200 0 l h W n " * 300
    places = [(190 - number / 35, number) for number in range(2_000)]
    texts = b" ".join(b"/F1 3 Tf 1 0 0 1 %.3f 100 Tm (wide%d ) Tj" % place for place in places)
    assert text_of(frames + b"BT " + texts + b" ET Q").count("wide")
    seconds = seconds_of(lambda: text_of(frames + b"BT " + texts + b" ET Q"))
    assert seconds < 2, "about 0.3, and 5 when each text looks at all corners"


def test_a_line_of_words_drawn_twice_for_boldness_is_read_once() -> None:
    once = b"BT /F1 10 Tf 20 100 Td (In 2011 sold 11) Tj ET "
    again = b"BT /F1 10 Tf 20.3 100 Td (In ) Tj (2011 ) Tj (sold 11) Tj ET"  # the parts differ: PDFium keeps both
    assert text_of(once + again) == "In 2011 sold 11"


def test_figures_one_below_the_other_are_no_number() -> None:
    text = text_of(b"BT /F1 8 Tf 20 150 Td (1) Tj 0 -14 Td (2) Tj ET BT /F1 8 Tf 60 150 Td (C) Tj ET")
    assert sorted(text.split()) == ["1", "2", "C"]


def test_a_minus_without_a_meaning_stays_and_raises_no_number() -> None:
    """Its font is another one, whose characters are higher."""
    amount = b"BT /F1 16 Tf 20 100 Td (_) Tj /F1 8 Tf 2 Ts (0.9393) Tj ET"
    assert text_of(amount, unicode={"_": "\x03"}) == "\u22120.9393"


def test_what_a_cell_cuts_off_is_not_read_into_the_cells_beside_it() -> None:
    cut = b"q 20 90 60 30 re W n BT /F1 10 Tf 20 100 Td (Bill 141, 142, 143, 144) Tj ET Q "
    data = samples.pdf_with_stream(cut + b"BT /F1 10 Tf 82 100 Td (26406576) Tj ET")
    document = parse(data, file_name="a.pdf")
    assert (document.text, document.warnings) == ("Bill 141, 142, 26406576", (HIDDEN,))


@pytest.mark.parametrize("font", ["Helvetica", "Times-Italic", "Times-BoldItalic"])
def test_letters_drawn_one_by_one_make_words_without_a_loss(font: str) -> None:
    text = "all 1100 staff differ off the official www"
    assert text_of(letter_by_letter(text), font=font) == text


@pytest.mark.parametrize(("font", "step"), [("Times-Italic", 2.2), ("Times-BoldItalic", 2.8)])
def test_a_letter_that_hangs_over_its_like_is_not_taken_for_a_second_print_of_it(font: str, step: float) -> None:
    """PDFium does, and reads "af ect"."""
    letters = f"(a) Tj 5 0 Td (f) Tj {step} 0 Td (f) Tj {step} 0 Td (ect of) Tj"
    assert text_of(f"BT /F1 10 Tf 20 100 Td {letters} ET".encode(), font=font) == "affect of"


def test_kerning_parts_no_word() -> None:
    assert text_of(b"BT /F1 10 Tf 20 100 Td [(P) 60 (articipant) 40 ('s T) 120 (otal)] TJ ET") == "Participant’s Total"


def test_a_number_close_to_its_heading_is_a_word_of_its_own() -> None:
    text = b"BT /F1 10 Tf 20 100 Td (2.5) Tj 15.5 0 Td (Base Pay of MacDonald 10b) Tj ET"
    assert text_of(text) == "2.5 Base Pay of MacDonald 10b"


@pytest.mark.parametrize(
    ("meaning", "reads"),
    [
        ("\uf0b7", "·"),  # as symbol fonts have it, in the private use area
        ("\uf078", "x"),
        ("\U0001f600", "😀"),  # two units of UTF-16
        ("ffi", "ffi"),
    ],
)
def test_what_the_font_says_of_a_glyph_is_read(meaning: str, reads: str) -> None:
    assert text_of(b"BT /F1 10 Tf 20 100 Td (a of) Tj ET", unicode={"a": meaning}) == f"{reads} of"


def unexplained(*lines: str) -> bytes:
    """A page of a heading and of lines in an embedded font that does not say which letters its codes are."""
    drawn = b"".join(b" 0 -20 Td <%s> Tj" % line.encode("utf-16-be").hex().encode() for line in lines)
    return samples.pdf_of_objects(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R/F2 6 0 R>>>>>>",
        samples.stream(b"BT /F1 10 Tf 20 150 Td (Annual report) Tj /F2 10 Tf%s ET" % drawn),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Type/Font/Subtype/Type0/BaseFont/Serif/Encoding/Identity-H/DescendantFonts[7 0 R]>>",
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/Serif/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)"
        b"/Supplement 0>>/DW 600>>",
    )


def test_numbers_of_glyphs_are_not_taken_for_letters_and_digits() -> None:
    """They would be figures that are not on the page."""
    document = parse(unexplained("\x10\x11\x03\x30\x32\x13\x14", "1.45"), file_name="a.pdf")
    assert (document.text, len(document.warnings)) == ("Annual report", 1)
    assert "fonts do not say which letters" in document.warnings[0]


def test_a_font_with_the_codes_of_letters_and_a_ligature_is_read() -> None:
    document = parse(unexplained("Sales of the year 2008", "di\x0eculty 1.45"), file_name="a.pdf")
    assert (document.text.split("\n")[1:], document.warnings) == (["Sales of the year 2008", "diculty 1.45"], ())


def miscalled(content: bytes) -> bytes:
    """A page whose font /F2 calls a dash "2", a point ":", a comma ";" and signs by the names of other marks."""
    names = {"\xb1": "2", ".": ":", ",": ";", "<": ",", "=": "\xbc"}
    letters = [f"<{ord(code):02x}><{ord(name):04x}>" for code, name in names.items()]
    return samples.pdf_of_objects(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R/F2 6 0 R>>>>>>",
        samples.stream(content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 7 0 R>>",
        samples.stream("\n".join(["begincmap", f"{len(letters)} beginbfchar", *letters, "endbfchar endcmap"]).encode()),
    )


def test_a_font_that_calls_its_signs_by_the_names_of_digits_makes_no_figures() -> None:
    """Symbol fonts of publishers do: "25:714" for \u22125.714."""
    parts = [
        (1, b"loss "),
        (2, b"\xb1"),
        (1, b"5"),
        (2, b"."),
        (1, b"714"),
        (2, b","),
        (1, b" p "),
        (2, b"<"),
        (1, b" 0.1 n"),
    ]
    text = b" ".join(b"/F%d 10 Tf (%s) Tj" % part for part in [*parts, (2, b"="), (1, b" 40 by "), (2, b"\xb1")])
    document = parse(miscalled(b"BT 20 100 Td %s ET" % text), file_name="a.pdf")
    assert (document.text.split(), len(document.warnings)) == (
        ["loss", "\u22125.714,", "p", "0.1", "n", "40", "by", "\u2212"],
        1,
    )


def test_places_stay_right_after_a_character_of_two_units_and_one_without_a_meaning() -> None:
    text = b"BT /F1 10 Tf 20 100 Td (a) Tj 0 -24 Td (b one) Tj 60 0 Td (two) Tj ET"
    assert text_of(text, unicode={"a": "\U0001f600", "b": "\0"}).split("\n") == ["😀", "", "one  two"]


@pytest.mark.parametrize(
    ("picture", "shown"),
    [
        (b"", ["seen"]),
        (b"/I Do ", ["seen"]),  # a picture elsewhere
        (b"q 200 0 0 200 0 0 cm /I Do Q ", ["recognised", "seen"]),
    ],
)
def test_text_that_nobody_sees_is_left_out_unless_it_is_behind_a_scan(picture: bytes, shown: list[str]) -> None:
    text = b"BT /F1 9 Tf 20 150 Td (seen) Tj 300 0 Td (beyond) Tj -300 -30 Td 3 Tr (recognised) Tj ET"
    data = samples.pdf_of_objects(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 6 0 R/Resources 4 0 R>>",
        b"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>/XObject<</I 5 0 R>>>>",
        samples.stream(b"\xff", keys="/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8"),
        samples.stream(picture + text),
    )
    document = parse(data, file_name="a.pdf")
    assert sorted(document.text.split()) == shown
    assert HIDDEN in document.warnings


def test_text_from_right_to_left_is_read_in_its_order() -> None:
    letters = dict(zip("abcdef", "גבאוהד", strict=True))
    assert text_of(b"BT /F1 10 Tf 20 100 Td (abc) Tj 22 0 Td (def) Tj ET", unicode=letters).split() == ["דהו", "אבג"]


def test_text_in_form_objects_is_read() -> None:
    form = samples.stream(
        b"BT /F1 9 Tf 20 100 Td (In a form) Tj ET", keys="/Subtype/Form/BBox[0 0 200 200]/Resources 4 0 R"
    )
    data = samples.pdf_of_objects(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 6 0 R/Resources 4 0 R>>",
        b"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>/XObject<</X 5 0 R>>>>",
        form,
        samples.stream(b"BT /F1 9 Tf 20 120 Td (Before) Tj ET /X Do"),
    )
    assert parse(data, file_name="a.pdf").text == "Before\n\nIn a form"


def columns(*rows: tuple[tuple[int, str], ...], drawn: str = "") -> bytes:
    """Rows of texts, each with its distance from the left, in letters of 6 points."""
    texts = [
        f"BT /F1 10 Tf {left} {150 - 20 * number} Td ({text}) Tj ET"
        for number, row in enumerate(rows)
        for left, text in row
    ]
    return " ".join([drawn, *texts]).encode()


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([((20, "Text"), (74, "Debit")), ((20, "ref 26406576"), (88, "156.40"))], id="printed over"),
        pytest.param([((20, "ref 4711"), (92, "23.10")), ((20, "ref 26406576"), (92, "156.40"))], id="left"),
        pytest.param([((20, "ref 4711"), (98, "23.10")), ((20, "ref 26406576"), (92, "156.40"))], id="right"),
        pytest.param([((20, "ref 4711"), (92, "-3.10")), ((20, "ref 26406576"), (92, "-156.40"))], id="signs"),
    ],
)
def test_numbers_of_two_columns_that_touch_are_two(rows: list[tuple[tuple[int, str], ...]]) -> None:
    last = text_of(columns(*rows), font="Courier").split("\n")[-1]
    assert last == f"ref 26406576  {rows[-1][1][1]}"


def test_a_rule_between_columns_parts_numbers_that_touch() -> None:
    rules = "".join(f"{x} 50 m {x} 165 l S " for x in (10, 91, 140)) + "".join(
        f"10 {y} m 140 {y} l S " for y in (165, 145, 125, 105)
    )
    rows = ((20, "Ref"), (95, "Debit")), ((20, "4711"), (95, "8.00")), ((32, "2640657690"), (92, "156.40"))
    assert text_of(columns(*rows, drawn=rules), font="Courier").split("\n") == [
        "Ref: 4711 | Debit: 8.00", "Ref: 2640657690 | Debit: 156.40"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(((92, "1"), (98, "56.40")), id="no gap in its place"),
        pytest.param(((56, "26406576156.40"),), id="drawn at once"),
        pytest.param(tuple((56 + 6 * n, figure) for n, figure in enumerate("26406576156.40")), id="figure by figure"),
    ],
)
def test_a_number_drawn_in_pieces_is_one(row: tuple[tuple[int, str], ...]) -> None:
    other = (20, "ref"), (56, "4711"), (98, "23.10")
    last = text_of(columns(other, row), font="Courier").split("\n")[-1]
    assert last == "".join(text for _, text in row)


def test_figures_of_two_columns_drawn_at_once_with_wide_spaces_are_two() -> None:
    rows = (70, "[(3)-4000(7)] TJ"), (60, "24 Tc (00) Tj"), (50, "[(5)-4000(9)] TJ")
    drawn = " ".join(f"BT /F1 6 Tf 20 {y} Td {text} ET" for y, text in rows)
    assert text_of(drawn.encode()).split("\n") == ["3  7", "0  0", "5  9"]
    assert text_of(b"BT /F1 6 Tf 20 60 Td 6 Tc (2024) Tj ET") == "2024"  # nothing says that it is two


def test_old_style_figures_of_a_font_without_a_height_are_not_raised() -> None:
    """Their boxes are those of the glyphs: a "1" is small beside a "3" that reaches below the line."""
    glyphs = [b"500 0 0 -200 500 500 d1 0 -200 500 700 re f", b"500 0 0 0 500 450 d1 0 0 500 450 re f"]
    data = samples.pdf_of_objects(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        samples.stream(b"BT /F1 10 Tf 20 100 Td (31) Tj ET"),
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 500 450]/FontMatrix[0.001 0 0 0.001 0 0]/FirstChar 49/LastChar 51"
        b"/Widths[500 500 500]/Encoding<</Differences[49/one 51/three]>>/CharProcs<</three 6 0 R/one 7 0 R>>>>",
        *map(samples.stream, glyphs),
    )
    assert parse(data, file_name="a.pdf").text == "31"


@pytest.mark.parametrize(
    ("line", "reads"),
    [("24 103.2 5 0.9 re f", "\u22120.5"), ("17 103.2 5 0.9 re f", "0.5"), ("24 106.8 5 0.9 re f", "0.5")],
    ids=["right before it", "apart, as at an axis", "above it"],
)
def test_a_short_line_drawn_right_before_a_number_is_its_minus(line: str, reads: str) -> None:
    """Matplotlib draws the minus as a shape, not as text."""
    assert text_of(b"BT /F1 10 Tf 29.5 100 Td (0.5) Tj ET " + line.encode()) == reads


def test_a_line_between_two_numbers_is_no_minus() -> None:
    content = b"BT /F1 10 Tf 18 100 Td (5) Tj 11.5 0 Td (7) Tj ET 24 103.2 5 0.9 re f"
    assert "\u2212" not in text_of(content)


def test_a_fraction_with_a_slash_stays_in_its_line() -> None:
    fraction = b"/F1 6 Tf 0 3 Td (1) Tj 1.2 -3 Td (~4) Tj /F1 10 Tf"
    content = b"BT /F1 10 Tf 20 112 Td (One line) Tj 0 -12 Td (up to) Tj 26 0 Td " + fraction + b" 9 0 Td (inch) Tj ET"
    assert text_of(content, unicode={"~": "\u2044"}) == "One line\nup to 1/4 inch"


def test_glyphs_without_a_letter_are_left_out_with_a_warning() -> None:
    data = samples.pdf_with_stream(lines("Acidosis", "x"), unicode={"x": "\x94"})
    document = parse(data, file_name="a.pdf")
    assert document.text == "Acidosis"
    assert any("font" in warning for warning in document.warnings)


def test_a_small_figure_in_the_middle_of_a_large_letter_is_not_raised() -> None:
    """Frames of drawings hold a large sign and a tolerance in the middle of it."""
    assert text_of(b"BT /F1 16 Tf 20 100 Td (L) Tj /F1 10 Tf 14 1.5 Td (0,1) Tj ET") == "L 0,1"
    assert text_of(b"BT /F1 16 Tf 20 100 Td (L) Tj /F1 10 Tf 14 6 Td (2) Tj ET") == "L ²"
