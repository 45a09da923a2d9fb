"""Columns of prose are read one after the other, tables row by row, whatever the page does above and below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpdf import FPDF

from rag_service.readers.parse import parse
from tests.unit.readers.samples import pdf_with_stream

HARBOUR = [
    "The canteen opens at half past seven and",
    "serves a hot lunch from noon until two in",
    "the afternoon. A lunch costs six euros for",
    "the staff and nine for their guests, and a",
    "dish without meat is there on every day of",
    "the week, as it was in all the years before",
]
BICYCLES = [
    "The new shed behind the hall has room for",
    "a hundred bicycles. The key is handed out",
    "by the guard at the gate against a deposit",
    "of twenty euros, which is given back later",
    "to whoever brings the key. Bicycles with a",
    "motor may be charged there without paying.",
]
PARTY = [
    "The party takes place in the yard in June",
    "and all of the staff may bring a guest who",
    "likes to dance. Please tell the office who",
    "comes until the middle of the month, since",
    "last year there was not enough to eat, and",
    "the band played until late in the evening.",
]


def read(columns: Mapping[float, Sequence[str]], *, top: float = 40, size: int = 10) -> str:
    """The text of a page with lines at the given distances from its left side."""
    return text_of([(columns, top, size)])


def text_of(blocks: Sequence[tuple[Mapping[float, Sequence[str]], float, int]]) -> str:
    file = FPDF()
    file.add_page()
    for columns, top, size in blocks:
        file.set_font("Helvetica", size=size)
        rows = max(map(len, columns.values()))
        for row in range(rows):  # drawn row by row, as some programs do
            for left, lines in columns.items():
                if row < len(lines) and lines[row]:
                    file.text(left, top + row * size * 0.45, lines[row])
    return parse(bytes(file.output()), file_name="a.pdf").text


def test_two_columns_are_read_one_after_the_other() -> None:
    assert read({15: HARBOUR, 110: BICYCLES}) == "\n".join([*HARBOUR, "", *BICYCLES])


def test_a_quotation_mark_that_hangs_out_of_a_column_joins_no_lines() -> None:
    left = [*BICYCLES, *HARBOUR]
    left[2] += ", now."  # the longest, which nearly reaches the other column
    quote = f'"{PARTY[0]}'
    right = {95: [*PARTY, "", *PARTY[1:]], 91.5: [*[""] * 6, quote]}
    assert read({15: left, **right}) == "\n".join([*left, "", *PARTY, quote, *PARTY[1:]])


def test_columns_of_prose_and_items_are_read_one_after_the_other() -> None:
    """A bullet stands as far from its item as a column from the next."""
    marks = ["\x95"] * 12  # bullets in the encoding of the font
    items = {20: [*[""] * 6, *PARTY, *PARTY], 117: [*[""] * 6, *PARTY, *PARTY]}
    text = read({13: [*HARBOUR, *marks], 110: [*BICYCLES, *marks], **items})
    assert text.index(HARBOUR[0]) < text.index(PARTY[-1]) < text.index(BICYCLES[0])
    assert f"•  {PARTY[2]}\n" in text


def test_stretched_lines_of_narrow_columns_are_prose() -> None:
    """Their spaces are as wide as a gap between columns, but all alike."""
    left, right = [*HARBOUR, *PARTY], [*BICYCLES, *HARBOUR]
    stretched = [" ".join(line.split()[:6]) for line in left]
    left = [line if row % 3 == 0 else stretched[row] for row, line in enumerate(left)]
    drawn = "".join(
        f"{3.2 * (line in stretched)} Tw 1 0 0 1 {x} {190 - 5 * row} Tm ({line}) Tj "
        for row, pair in enumerate(zip(left, right, strict=True))
        for x, line in zip((5, 105), pair, strict=True)
    )
    text = parse(pdf_with_stream(f"BT /F1 4 Tf {drawn} ET".encode()), file_name="a.pdf").text
    assert text.index(PARTY[3]) < text.index(BICYCLES[0])


def test_a_sentence_goes_on_in_the_next_column() -> None:
    left = [*HARBOUR[:-1], "the week. The machine for rolls and coffee"]
    right = ["is out of order until its pump has arrived.", *BICYCLES[:-1]]
    assert read({15: left, 110: right}) == "\n".join([*left, *right])
    hyphenated = [*HARBOUR[:-1], "the week. The people who ask for the inver-"]
    right[0] = "sion of this rule are in the end very few."
    assert "for the inversion\nof this rule" in read({15: hyphenated, 110: right})


def test_what_begins_anew_in_the_next_column_is_apart() -> None:
    open_ended = [*HARBOUR[:-1], "the week. The machine for rolls and coffee"]
    ended = [*HARBOUR[:-1], "the week. The machine for rolls is broken."]
    goes_on = ["is out of order until its pump has arrived.", *BICYCLES[:-1]]
    for left, first in (
        (ended, goes_on[0]),
        (open_ended, BICYCLES[0]),
        (open_ended, "b) the shed, its keys and all bicycles"),
    ):
        assert read({15: left, 110: [first, *BICYCLES[1:]]}) == "\n".join([*left, "", first, *BICYCLES[1:]])


def test_a_line_of_few_words_that_fills_its_column_is_no_row() -> None:
    file = FPDF()
    file.add_page()
    file.set_font("Helvetica", size=10)
    file.multi_cell(
        58, text="The new edition of May replaces edition 6 (2023). Questions: office.of.the.harbour@norte.example"
    )
    for left, text in ((10, "Pump"), (40, "40 kg"), (70, "Vigo, hall 3"), (120, "2 years")):
        file.text(left, 60, text)
    lines = parse(bytes(file.output()), file_name="a.pdf").text.split("\n")
    assert "edition 6 (2023). Questions:" in lines
    assert "Pump  40 kg  Vigo, hall 3  2 years" in lines


def test_three_columns_too() -> None:
    narrow = [[line[:24] for line in lines] for lines in (HARBOUR, BICYCLES, PARTY)]
    text = read(dict(zip((10, 75, 140), narrow, strict=True)))
    assert text.split("\n\n") == ["\n".join(" ".join(line.split()) for line in lines) for lines in narrow]


def test_headings_at_different_heights_do_not_mix_the_columns() -> None:
    parts = [lines[start : start + 3] for lines in (HARBOUR, BICYCLES, PARTY) for start in (0, 3)]
    left = [line for part in parts[:4] for line in ("Title", "", *part, "")]
    right = ["", *(line for part in parts[2:] for line in ("Title", "", *part, ""))]
    assert read({15: left, 110: right}).split() == " ".join([*left, *right]).split()


def test_a_table_of_two_texts_beside_a_label_is_read_by_rows() -> None:
    labels = ["Meals", "", "", "", "Sheds", "", "", ""]
    text = read({10: labels, 40: [*HARBOUR[:3], "", *BICYCLES[:3]], 125: [*PARTY[:2], "", "", *PARTY[2:5]]})
    assert f"Meals  {HARBOUR[0]}  {PARTY[0]}" in text
    assert f"Sheds  {BICYCLES[0]}  {PARTY[2]}" in text


def test_columns_of_unequal_length_stay_whole() -> None:
    assert read({15: [*HARBOUR, *PARTY], 110: BICYCLES}) == "\n".join([*HARBOUR, *PARTY, "", *BICYCLES])


def test_what_stands_over_the_whole_width_parts_the_page_into_bands() -> None:
    wide = ["All of this goes over the whole width of the page and has no room in its middle for any gap."] * 2
    text = text_of([
        ({15: ["A long title of the gazette over both of the columns"]}, 25, 16),
        ({15: HARBOUR, 110: BICYCLES}, 40, 10),
        ({15: wide}, 80, 10),
        ({15: BICYCLES, 110: PARTY}, 100, 10),
    ])  # fmt: skip
    places = [text.index(part) for part in ("A long", HARBOUR[0], BICYCLES[0], wide[0], PARTY[0])]
    assert places == sorted(places)
    assert text.count("\n".join(HARBOUR)) == 1
    assert text.count("\n".join(BICYCLES)) == 2


def test_headings_of_a_column_are_found() -> None:
    file = FPDF()
    file.add_page()
    for left, heading, lines in ((15, "Canteen", HARBOUR), (110, "Bicycles", BICYCLES)):
        for row, line in enumerate([heading, *lines]):
            file.set_font("Helvetica", size=14 if line == heading else 10)
            file.text(left, 40 + row * 6, line)
    parsed = parse(bytes(file.output()), file_name="a.pdf")
    assert list(dict.fromkeys(span.location.headings for span in parsed.spans)) == [("Canteen",), ("Bicycles",)]


def test_a_table_of_terms_and_their_meaning_is_read_by_rows() -> None:
    terms = ["Shift allowance", "Notice", "Company holidays", "Leave of absence", "Probation period", "Night work"]
    assert read({15: terms, 80: BICYCLES}).splitlines() == [
        f"{term}  {line}" for term, line in zip(terms, BICYCLES, strict=True)
    ]


def test_a_table_with_a_column_of_figures_is_read_by_rows() -> None:
    shares = ["20 %", "10 %", "1 %", "5 %", "7 %", "3 %"]
    assert read({15: HARBOUR, 95: shares, 120: PARTY}).splitlines()[0] == f"{HARBOUR[0]}  20 %  {PARTY[0]}"


def test_figures_beside_labels_are_no_columns() -> None:
    figures = ["1,058", "815", "12", "7", "1", "0"]
    assert read({15: HARBOUR, 120: figures}).splitlines()[0] == f"{HARBOUR[0]}  1,058"


def test_a_heading_below_columns_stays_with_what_it_heads() -> None:
    wide = ["All of this goes over the whole width of the page and has no room in its middle for any gap."] * 2
    text = text_of([
        ({15: HARBOUR, 110: BICYCLES}, 40, 10), ({15: ["Opening hours"]}, 78, 14), ({15: wide}, 86, 10),
    ])  # fmt: skip
    assert text == "\n".join([*HARBOUR, "", *BICYCLES, "", "Opening hours", "", *wide])


def test_a_footer_on_the_left_comes_last() -> None:
    text = text_of([({15: HARBOUR, 110: BICYCLES}, 40, 10), ({15: ["Page 3"]}, 280, 10)])
    assert text == "\n".join([*HARBOUR, "", *BICYCLES, "", "Page 3"])


def test_a_few_lines_side_by_side_are_columns_if_their_sentences_go_on() -> None:
    assert read({15: HARBOUR[:3], 110: BICYCLES[:3]}) == "\n".join([*HARBOUR[:3], "", *BICYCLES[:3]])


def test_rows_of_phrases_are_no_columns() -> None:
    """Nothing goes on from line to line."""
    tasks = ["Replace the pumps in the cellar", "Paint the stairs of the house", "Clean the gutters of the roof"]
    names = ["Offer by the firm of Huber", "Order to the firm of Lang", "Offer by the firm of Berg"]
    assert read({15: tasks, 110: names}) == "\n".join("  ".join(row) for row in zip(tasks, names, strict=True))


def test_a_short_heading_between_columns_divides_them() -> None:
    columns = {15: HARBOUR, 110: BICYCLES}, {15: PARTY, 110: HARBOUR}
    text = text_of([(columns[0], 40, 10), ({15: ["Parties"]}, 85, 18), (columns[1], 97, 10)])
    assert text == "\n".join([*HARBOUR, "", *BICYCLES, "", "Parties", "", *PARTY, "", *HARBOUR])


def test_a_list_of_contents_in_two_columns_is_read_one_after_the_other() -> None:
    left = [
        f"{name} {'.' * 20} {page}"
        for page, name in enumerate(
            (
                "The Brown Bear",
                "The Great Grey Wolf",
                "The Northern Lynx",
                "The Little Red Fox",
                "The Big Snowy Owl",
                "Deer of the Woods",
            )
        )
    ]
    right = [f"{name} of the Hills and Rivers {'.' * 20} {page}" for page, name in enumerate("ABCDEF", start=10)]
    assert read({15: left, 110: right}).replace("  ", " ") == "\n".join([*left, "", *right])


def test_columns_whose_lines_stand_at_heights_of_their_own_are_read_one_after_the_other() -> None:
    """A list with figures beside prose: neither is prose enough alone."""
    items = [f"({place}) Morpheridine {'.' * 28} {9600 + place}" for place in range(12)]
    prose = [*HARBOUR, *BICYCLES]
    blocks = [({column: [line]}, 40 + row * step, 10) for column, lines, step in ((15, items, 4.5), (110, prose, 5.1))
              for row, line in enumerate(lines)]  # fmt: skip
    text = text_of(sorted(blocks, key=lambda block: block[1]))
    assert [line.replace("  ", " ") for line in text.split("\n") if line] == [*items, *prose]


def test_labels_in_the_middle_of_their_texts_are_read_with_them() -> None:
    labels = [({15: [f"Rule {place}"]}, 42.25 + place * 9, 10) for place in range(12)]
    texts = [({80: [line]}, 40 + row * 4.5, 10) for row, line in enumerate([*HARBOUR, *BICYCLES] * 2)]
    lines = text_of(sorted([*labels, *texts], key=lambda block: block[1])).split("\n")
    first, last = (next(at for at, line in enumerate(lines) if f"Rule {place} " in f"{line} ") for place in (0, 11))
    assert first < 3
    assert last > len(lines) - 4
