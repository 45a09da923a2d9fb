# ruff: noqa: E501 - lines of files
"""A corpus of messy files in every format, made by code, with marked facts and their places."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

import docx
from openpyxl import Workbook

from tests.unit.readers import office_samples as office
from tests.unit.readers.samples import pdf, saved


@dataclass(frozen=True)
class Sample:
    """A file, the facts that must be found with the fields of their place, and what must not stand in the text."""

    format: str
    name: str
    data: bytes
    facts: Mapping[str, Mapping[str, Any]]
    wrong: Sequence[str] = field(default=())


_GRADES = {
    "Hotel Madrid: 160 EUR": {"row": 3}, "Hotel Paris: 190 EUR": {"row": 3}, "Grade: B": {"row": 3},
    "Hotel Madrid / Hotel Paris: 100 EUR": {"row": 4},
}  # fmt: skip
_WRONG = ("| 190 EUR", "| 160 EUR", "Grade: 160", "Meals: 160", "Grade: 190")


def make_corpus() -> list[Sample]:
    """All files."""
    makers: Sequence[Callable[[], Iterator[Sample]]] = (
        _presentations, _web_pages, _messages, _outlook, _books, _texts, _sheets, _slides, _rich_texts, _json, _subtitles,
        _archives, _word, _excel, _others,
    )  # fmt: skip
    return [sample for make in makers for sample in make()]


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
        (*_WRONG, "Page 2", "\n7\n"),
    )
    merged = office.slide_table(["Grade", "Hotel", "<"], ["^", "Madrid", "Paris"], ["B", "160 EUR", "190 EUR"])
    yield Sample(
        "pptx",
        "merged.pptx",
        office.pptx([office.shape("Rates", kind="title"), merged]),
        {"Hotel Madrid: 160 EUR": {"slide": 1}, "Hotel Paris: 190 EUR": {"slide": 1, "row": 3}, "Grade: B": {"row": 3}},
        _WRONG,
    )


_TABLE = """<table><tr><th rowspan=2>Grade</th><th colspan=2>Hotel</th></tr><tr><th>Madrid</th><th>Paris</th></tr>
<tr><td>B</td><td>160 EUR</td><td>190 EUR</td></tr><tr><td>C</td><td colspan="2">100 EUR</td></tr></table>"""


def _web_pages() -> Iterator[Sample]:
    page = f"""<!DOCTYPE html><html lang="en"><head><title>Travel | Solaria</title><style>p {{color: red}}</style></head>
    <body><header><nav><ul><li><a href="/">Start</a></li></ul></nav></header><div class="menu"><a href="/x">Shop</a></div>
    <main><h1>Travel</h1><p>Staff travel by <b>night&nbsp;train</b>.<script>track()</script></p>
    <h2>Rates</h2>{_TABLE}<h2>Steps</h2><ol><li>Ask <a href="https://solaria.example/form">the form</a></li>
    <li><p>Wait two days</p></li></ol><dl><dt>Desk</dt><dd>Room 14</dd></dl><p style="display:none">secret words</p>
    <pre>code 77\n  line</pre><img src="a.png" alt="Map of stations"></main><aside>Our offers</aside>
    <footer>Imprint 2025</footer></body></html>"""
    facts = {
        "Staff travel by night train.": {"headings": ("Travel",), "paragraph": 2},
        **{fact: {**place, "headings": ("Travel", "Rates")} for fact, place in _GRADES.items()},
        "- Ask [the form](https://solaria.example/form)": {"headings": ("Travel", "Steps")},
        "- Wait two days": {"headings": ("Travel", "Steps")},
        "Room 14": {},
        "code 77\n  line": {},
        "Map of stations": {},
    }
    wrong = (*_WRONG, "Start", "Shop", "secret words", "Our offers", "Imprint", "track", "color")
    yield Sample("html", "page.html", page.encode(), facts, wrong)
    yield Sample("html", "no-ending", page.encode("utf-16"), facts, wrong)
    links = b"<html><body><ul>" + b"<li><a href=x>Rules of 2024</a>" * 9
    yield Sample("html", "links.html", links, {"- Rules of 2024": {}})
    old = """<html><head><meta charset="iso-8859-2"><title>Cennik</title></head><body>
    <ul><li><a href=1>Dom</a><li><a href=2>Oferta firmy</a><li><a href=3>Kontakt</a><li><a href=4>Mapa</a></ul>
    <table><tr><td><h1>Ceny</h1>Łódź żółta<td>prawo</table><p>Koniec</body>"""
    yield Sample(
        "html",
        "stary.htm",
        old.encode("iso-8859-2"),
        {"Łódź żółta": {"headings": ("Ceny",)}, "Koniec": {}, "prawo": {}},
        ("Oferta firmy",),
    )


def _mail(subject: str, plain: str | None, *, html: str | None = None, reply: bool = False) -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Ana Gómez <ana@solaria.example>"
    message["To"] = "Luis Peña <luis@solaria.example>"
    message["Date"] = "Mon, 03 Feb 2025 10:00:00 +0100"
    message["Subject"] = subject
    if reply:
        message["In-Reply-To"] = "<1@solaria.example>"
    if plain is not None:
        message.set_content(plain)
    if html is not None:
        (message.add_alternative if plain is not None else message.set_content)(html, subtype="html")
    return message


def _messages() -> Iterator[Sample]:
    message = _mail("Pedido número 12: válvulas", "Hola, Luis:\n\nel pedido llega el lunes 10 de febrero.\n\nAna\n")
    rates = office.pptx([office.shape("Rates of May", kind="title")], notes={1: "Not yet final."})
    message.add_attachment(b"Item;Price\nBolt M8;3,50\n", maintype="text", subtype="csv", filename="precios.csv")
    message.add_attachment(rates, maintype="application", subtype="octet-stream", filename="tarifas.pptx")
    message.add_attachment(_mail("Older mail", "The older mail names Berta."))
    message.add_attachment(bytes(300), maintype="application", subtype="octet-stream", filename="blob.bin")
    yield Sample(
        "eml",
        "pedido.eml",
        message.as_bytes(),
        {
            "From: Ana Gómez <ana@solaria.example>": {"part": "header"},
            "Subject: Pedido número 12: válvulas": {"part": "header"},
            "el pedido llega el lunes 10 de febrero.": {"part": None, "paragraph": 2},
            "Bolt M8": {"part": "precios.csv", "row": 2, "cell": "A2"},
            "3,50": {"part": "precios.csv", "cell": "B2"},
            "Rates of May": {"part": "tarifas.pptx", "slide": 1},
            "Not yet final.": {"part": "tarifas.pptx > notes", "slide": 1},
            "The older mail names Berta.": {"part": "Older mail.eml"},
        },
        ("Item: 3,50",),
    )
    answer = (
        "We meet on Tuesday.\n\nOn 3 Feb 2025, Luis <luis@solaria.example> wrote:\n> Shall we meet on Friday?\n> Luis\n"
    )
    yield Sample(
        "eml", "re.eml", _mail("Re: Meeting", answer).as_bytes(), {"We meet on Tuesday.": {}}, ("Friday", "wrote:")
    )
    outlook = (
        "El martes, entonces.\n\n________________________________\nDe: Luis <luis@solaria.example>\n"
        "Enviado: lunes 10:04\nPara: Ana\nAsunto: Reunión\n\n¿El viernes?\n"
    )
    yield Sample("eml", "rv.eml", _mail("RE: Reunión", outlook).as_bytes(), {"El martes, entonces.": {}}, ("viernes",))
    forwarded = "See below.\n\n---------- Forwarded message ---------\nFrom: Luis <l@x.example>\nDate: Mon 10:04\nSubject: S\n\nKey is 4711.\n"
    yield Sample("eml", "fw.eml", _mail("Fwd: S", forwarded).as_bytes(), {"See below.": {}, "Key is 4711.": {}})
    html = f"<p>Only HTML here: code 99.</p>{_TABLE}<blockquote type='cite'>Old words</blockquote>"
    only_html = _mail("Re: Prices", None, html=html, reply=True)
    yield Sample(
        "eml", "html.eml", only_html.as_bytes(), {"Only HTML here: code 99.": {}, **_GRADES}, (*_WRONG, "Old words")
    )
    raw = b"From: =?iso-8859-1?q?Jos=E9?= <j@x.example>\nTo: a@x.example\nSubject: =?x-unknown?b?zzz?=\nDate: soon\n"
    raw += b"Content-Type: text/plain; charset=x-none\nContent-Transfer-Encoding: 8bit\n\nCaf\xe9 a las 5\n"
    yield Sample(
        "eml", "broken", raw, {"From: José <j@x.example>": {"part": "header"}, "Café a las 5": {"paragraph": 1}}
    )


def _outlook() -> Iterator[Sample]:
    data = office.msg(
        {
            "0037": "Oferta 7",
            "1000": "Hola:\r\n\r\nla oferta vale hasta mayo.\r\n",
            "0C1A": "Ana",
            "5D01": "ana@x.example",
        },
        attachments=[("notas.md", b"# Plazos\n\nEntrega en junio.\n"), ("largo.txt", b"Linea 4711. " * 600)],
    )
    facts: dict[str, dict[str, Any]] = {
        "From: Ana <ana@x.example>": {"part": "header"},
        "Subject: Oferta 7": {"part": "header"},
        "la oferta vale hasta mayo.": {"part": None, "paragraph": 2},
        "Entrega en junio.": {"part": "notas.md", "headings": ("Plazos",)},
        "Linea 4711. Linea 4711.": {"part": "largo.txt"},
    }
    yield Sample("msg", "oferta.msg", data, facts)
    web = office.msg({"0037": "Web"}, html=f"<html><body><p>Nur HTML: 99</p>{_TABLE}</body></html>".encode())
    yield Sample("msg", "web.msg", web, {"Nur HTML: 99": {}, **_GRADES}, _WRONG)


def _books() -> Iterator[Sample]:
    chapters = [
        "<h1>La salida</h1><p>El tren salió a las 7:40 &amp; llegó tarde.</p>",
        f"<h1>La llegada</h1><h2>Precios</h2>{_TABLE}<ul><li>Llevar agua</li></ul>",
    ]
    book = office.epub(chapters, title="Viaje al norte", contents="<nav><ol><li>La salida</li></ol></nav>")
    place = {"headings": ("La llegada", "Precios")}
    yield Sample(
        "epub",
        "viaje.epub",
        book,
        {
            "El tren salió a las 7:40 & llegó tarde.": {"headings": ("La salida",), "paragraph": 2},
            **{fact: {**where, **place} for fact, where in _GRADES.items()},
            "- Llevar agua": place,
        },
        _WRONG,
    )


_ODF_GRADES = office.odf_table(
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
        f"{_ODF_GRADES}<text:p><draw:frame><draw:text-box><text:p>In the box: 4711</text:p></draw:text-box></draw:frame></text:p>"
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
            **{fact: {**where, **place} for fact, where in _GRADES.items()},
            "In the box: 4711": place,
        },
        (*_WRONG, "deleted words"),
    )


def _sheets() -> Iterator[Sample]:
    many = '<table:table-cell table:number-columns-repeated="16384"/>'
    stock = office.odf_table(
        [office.odf_cell("Item"), office.odf_cell("Price"), many],
        [office.odf_cell("Bolt"), office.odf_cell("3,50 €")],
        [many],
        name="Precios",
    )
    empty = '<table:table-row table:number-rows-repeated="1048576"><table:table-cell/></table:table-row>'
    hours = f'<table:table table:name="Horas">{empty}</table:table>'
    yield Sample(
        "ods",
        "precios.ods",
        office.odf("spreadsheet", stock + hours + _ODF_GRADES),
        {
            "Bolt": {"sheet": "Precios", "cell": "A2", "row": 2},
            "3,50 €": {"sheet": "Precios", "cell": "B2"},
            "190 EUR": {"sheet": "T", "cell": "C3"},
            "Hotel Paris: 190 EUR": {"sheet": "T", "cell": "C3", "row": 3},
        },
        _WRONG,
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
        ("Kopf", "hidden", "HYPERLINK", "8950", "Arial"),
    )


def _json() -> Iterator[Sample]:
    order = {
        "id": 7,
        "customer": {"name": "Ana", "city": "León"},
        "lines": [{"sku": "A1", "n": 2}, {"sku": "B2", "n": 1}],
    }
    text = json.dumps({"title": "Orders of May", "open": True, "orders": [order], "tags": ["x", "y"], "none": None})
    facts = {
        "Orders of May": {"path": "title"},
        "true": {"path": "open"},
        "orders id: 7": {"path": "orders[0].id"},
        "Ana": {"path": "orders[0].customer.name"},
        "León": {"path": "orders[0].customer.city"},
        "orders lines sku: A1": {"path": "orders[0].lines[0].sku"},
        "1": {"path": "orders[0].lines[1].n"},
        "x, y": {"path": "tags"},
    }
    yield Sample("json", "orders.json", text.encode(), facts, ("name: León", "city: Ana"))
    lines = '{"price": 1.10, "who": "Ana"}\n\n{"price": 12345678901234567890.5, "who": "Luis"}\n'
    numbers = {"price: 1.10": {"row": 1, "path": "price"}, "Ana": {"row": 1}, "Luis": {"row": 3, "path": "who"}}
    yield Sample("json", "log.jsonl", lines.encode(), {**numbers, "price: 12345678901234567890.5": {"row": 3}})


def _subtitles() -> Iterator[Sample]:
    talk = (
        "WEBVTT - Talk\n\nNOTE internal\n\n1\n00:00:01.000 --> 00:00:04.000 align:start\n<v Ana>Welcome to <b>Solaria</b>.\n\n"
        "00:00:04.500 --> 00:00:06.000\n<v Ana>The fee is 40 euros.\n\n01:01:04.500 --> 01:01:06.000\n<v Luis>Why &amp; when?\n"
    )
    facts = {
        "Ana: Welcome to Solaria.": {"time": "00:00:01"}, "The fee is 40 euros.": {"time": "00:00:04"},
        "Luis: Why & when?": {"time": "01:01:04"},
    }  # fmt: skip
    yield Sample("vtt", "talk.vtt", talk.encode(), facts, ("internal", "align", "-->", "Ana: Why"))
    srt = "1\r\n00:00:01,000 --> 00:00:04,000\r\nLa cuota es\r\n\r\n2\r\n00:00:04,000 --> 00:00:05,000\r\n<i>40 euros.</i>\r\n"
    yield Sample(
        "srt",
        "charla.srt",
        srt.encode("cp1252"),
        {"La cuota es": {"time": "00:00:01"}, "40 euros.": {"time": "00:00:04"}},
    )


def _archives() -> Iterator[Sample]:
    inner = office.zipped({"deep.txt": "The deepest word is Ostende."})
    members = {
        "docs/nota.txt": "La nota dice 4711.", "docs/deck.pptx": office.pptx([office.shape("Slide words", kind="title")]),
        "informe.pdf": pdf("First page.", "Second page has 88."), "inner.zip": inner, ".DS_Store": b"junk",
        "__MACOSX/docs/._nota.txt": b"junk", "photo.bin": bytes(400), "año.md": "# Año\n\nTexto del año.",
    }  # fmt: skip
    facts: dict[str, dict[str, Any]] = {
        "La nota dice 4711.": {"part": "docs/nota.txt", "paragraph": 1},
        "Slide words": {"part": "docs/deck.pptx", "slide": 1},
        "Second page has 88.": {"part": "informe.pdf", "page": 2},
        "The deepest word is Ostende.": {"part": "inner.zip > deep.txt"},
        "Texto del año.": {"part": "año.md", "headings": ("Año",)},
    }
    yield Sample("zip", "all.zip", office.zipped(members), facts, ("junk",))


def _word() -> Iterator[Sample]:
    document = docx.Document()
    document.add_heading("Travel", 1)
    document.add_paragraph("Trains are free.")
    table = document.add_table(4, 3)
    rows = [("Grade", "Hotel", ""), ("", "Madrid", "Paris"), ("B", "160 EUR", "190 EUR"), ("C", "100 EUR", "")]
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            table.cell(number, column).text = text
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(0, 0).merge(table.cell(1, 0))
    table.cell(3, 1).merge(table.cell(3, 2))
    place = {"headings": ("Travel",)}
    facts = {
        "Trains are free.": {**place, "paragraph": 2},
        **{key: {**where, **place} for key, where in _GRADES.items()},
    }
    yield Sample("docx", "travel.docx", saved(document), facts, _WRONG)


def _excel() -> Iterator[Sample]:
    book = Workbook()
    sheet = book.active
    sheet.title = "Rates"
    for row in (
        ("Grade", "Hotel", None),
        (None, "Madrid", "Paris"),
        ("B", "160 EUR", "190 EUR"),
        ("C", "100 EUR", None),
    ):
        sheet.append(row)
    for area in ("B1:C1", "A1:A2", "B4:C4"):
        sheet.merge_cells(area)
    buffer = io.BytesIO()
    book.save(buffer)
    facts = {
        "160 EUR": {"sheet": "Rates", "cell": "B3"}, "190 EUR": {"sheet": "Rates", "cell": "C3", "row": 3},
        "100 EUR": {"cell": "B4:C4", "row": 4},
    }  # fmt: skip
    yield Sample("xlsx", "rates.xlsx", buffer.getvalue(), facts, _WRONG)


def _others() -> Iterator[Sample]:
    yield Sample(
        "pdf", "a.pdf", pdf("The first page.", "The second page has 4711."), {"The second page has 4711.": {"page": 2}}
    )
    yield Sample(
        "csv",
        "a.csv",
        "Año;Total\n2024;1,5\n".encode("cp1252"),
        {"2024": {"cell": "A2"}, "1,5": {"cell": "B2", "row": 2}},
    )
    yield Sample("markdown", "a.md", b"# A\n\n## B\n\nText 7.\n", {"Text 7.": {"headings": ("A", "B")}})
    listed = b"To bring:\n\n- a card\n- a coat\n\n1. Pay\n2. Go\n"
    yield Sample("text", "a.txt", listed, {"- a card\n- a coat\n": {"paragraph": 2}, "1. Pay\n2. Go": {"paragraph": 3}})
