# ruff: noqa: E501 - lines of files
"""Text documents and slides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import docx

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.sample import GRADES, WRONG, Sample
from tests.unit.readers.samples import add_word_table, saved


def _presentations() -> Iterator[Sample]:
    rows = (["Grade", "Hotel Madrid", "Hotel Paris"], ["B", "160 EUR", "190 EUR"])
    deck = office.pptx(
        [
            office.shape("Travel policy 2025", kind="ctrTitle"),
            office.shape("For all staff of Solaria", kind="subTitle"),
        ],
        [
            office.shape("Rates", kind="title"),
            office.slide_table(*rows),
            office.chart_frame("rIdC"),
            office.shape("Page 2", kind="ftr"),
        ],
        [office.shape("Rules", kind="title"), office.shape("Book three weeks ahead", "Trains before planes")],
        notes={2: "The rates hold until the council meets in May.", 3: "Ask Ramón about night trains."},
        charts={2: office.chart("Trips by year", ["2023", "2024"], {"Madrid": ["412", "398"], "Paris": ["77", "81"]})},
    )
    yield Sample(
        "pptx",
        "policy.pptx",
        deck,
        {
            "For all staff of Solaria": {"slide": 1, "headings": ("Travel policy 2025",)},
            "Hotel Madrid: 160 EUR": {"slide": 2, "row": 2, "headings": ("Rates",)},
            "Hotel Paris: 190 EUR": {"slide": 2, "row": 2},
            "Trips by year": {"slide": 2},
            "2024 | Madrid: 398 | Paris: 81": {"slide": 2},
            "The rates hold until the council meets in May.": {"slide": 2, "part": "notes"},
            "Trains before planes": {"slide": 3, "headings": ("Rules",)},
            "Ask Ramón about night trains.": {"slide": 3, "part": "notes"},
        },
        (*WRONG, "Page 2", "\n7\n"),
    )
    merged = office.slide_table(["Grade", "Hotel", "<"], ["^", "Madrid", "Paris"], ["B", "160 EUR", "190 EUR"])
    yield Sample(
        "pptx",
        "merged.pptx",
        office.pptx([office.shape("Rates", kind="title"), merged]),
        {"Hotel Madrid: 160 EUR": {"slide": 1}, "Hotel Paris: 190 EUR": {"slide": 1, "row": 3}, "Grade: B": {"row": 3}},
        WRONG,
    )


def _word() -> Iterator[Sample]:
    document = docx.Document()
    document.add_heading("Travel", 1)
    document.add_paragraph("Trains are free.")
    rows = [("Grade", "Hotel", ""), ("", "Madrid", "Paris"), ("B", "160 EUR", "190 EUR"), ("C", "100 EUR", "")]
    table = add_word_table(document, rows)
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(0, 0).merge(table.cell(1, 0))
    table.cell(3, 1).merge(table.cell(3, 2))
    place = {"headings": ("Travel",)}
    facts = {
        "Trains are free.": {**place, "paragraph": 2},
        **{key: {**where, **place} for key, where in GRADES.items()},
    }
    yield Sample("docx", "travel.docx", saved(document), facts, WRONG)


ODF_GRADES = office.odf_table(
    [office.odf_cell("Grade", 'table:number-rows-spanned="2"'), office.odf_cell("Hotel", 'table:number-columns-spanned="2"'),
     "<table:covered-table-cell/>"],
    ["<table:covered-table-cell/>", office.odf_cell("Madrid"), office.odf_cell("Paris")],
    [office.odf_cell("B"), office.odf_cell("160 EUR"), office.odf_cell("190 EUR")],
    [office.odf_cell("C"), office.odf_cell("100 EUR", 'table:number-columns-spanned="2"'), "<table:covered-table-cell/>"],
)  # fmt: skip


def _texts() -> Iterator[Sample]:
    note = (
        '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>'
        "<text:p>Except in August.</text:p></text:note-body></text:note>"
    )
    body = (
        '<text:h text:outline-level="1">Travel</text:h><text:h text:outline-level="2">Trains</text:h>'
        f"<text:p>Night trains<text:s/>are<text:s text:c='2'/>free{note}.<office:annotation><text:p>Check with Berta"
        "</text:p></office:annotation></text:p><text:tracked-changes><text:p>deleted words</text:p></text:tracked-changes>"
        "<text:list><text:list-item><text:p>Bring the card</text:p></text:list-item></text:list>"
        f"{ODF_GRADES}<text:p><draw:frame><draw:text-box><text:p>In the box: 4711</text:p></draw:text-box></draw:frame></text:p>"
    )
    place = {"headings": ("Travel", "Trains")}
    yield Sample(
        "odt",
        "viaje.odt",
        office.odf("text", body, title="Guía de viaje"),
        {
            "Night trains are  free.": place,
            "Except in August.": {**place, "part": "footnote 1"},
            "Check with Berta": {"part": "comment"},
            "- Bring the card": place,
            **{fact: {**where, **place} for fact, where in GRADES.items()},
            "In the box: 4711": place,
        },
        (*WRONG, "deleted words"),
    )


def _slides() -> Iterator[Sample]:
    def page(title: str, text: str, notes: str) -> str:
        return (
            f'<draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>{title}</text:p></draw:text-box>'
            f"</draw:frame><draw:frame><draw:text-box><text:list><text:list-item><text:p>{text}</text:p></text:list-item>"
            f"</text:list></draw:text-box></draw:frame><presentation:notes><draw:frame><draw:text-box><text:p>{notes}"
            "</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
        )

    deck = office.odf(
        "presentation", page("Inicio", "Uno de mayo", "Saludar") + page("Cierre", "Dos de mayo", "Despedirse")
    )
    facts = {
        "Uno de mayo": {"slide": 1, "headings": ("Inicio",)}, "Saludar": {"slide": 1, "part": "notes"},
        "Dos de mayo": {"slide": 2, "headings": ("Cierre",)}, "Despedirse": {"slide": 2, "part": "notes"},
    }  # fmt: skip
    yield Sample("odp", "charla.odp", deck, facts)


def _rich_texts() -> Iterator[Sample]:
    source = (
        rb"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fnil\fcharset0 Arial;}{\f1\fnil\fcharset238 Times;}}"
        rb"{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}}{\info{\title El informe}{\author Luis}}"
        rb"{\header Kopf 9}\pard\plain\s1 Resumen\par\pard\plain\s0 El caf\'e9 cuesta 3\u8364? hoy{\footnote\pard Salvo lunes.}.\par"
        rb"\pard\f1 \'a3\'f3d\'9f\f0\par{\pict\pngblip 89504e47}{\*\unknown hidden}{\field{\*\fldinst HYPERLINK x}{\fldrslt clic}}\par"
        rb"\trowd\cellx1\cellx2\pard\intbl Country\cell Limit\cell\row\pard\intbl France\cell 120 EUR\cell\row\pard Fin \u-10179?\u-8704?\par}"
    )
    yield Sample(
        "rtf",
        "informe.rtf",
        source,
        {
            "El café cuesta 3€ hoy.": {"headings": ("Resumen",), "paragraph": 2},
            "Salvo lunes.": {"part": "footnote 1"},
            "Łódź": {},
            "clic": {},
            "Country: France | Limit: 120 EUR": {"row": 2, "headings": ("Resumen",)},
            "Fin 😀": {},
        },
        ("hidden", "HYPERLINK", "8950", "Arial"),
    )


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (
    _presentations,
    _word,
    _texts,
    _slides,
    _rich_texts,
)
