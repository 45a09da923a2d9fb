# ruff: noqa: E501 - lines of files
"""Messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from email.message import EmailMessage
from typing import Any

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.sample import GRADES, TABLE, WRONG, Sample


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
        "eml",
        "re.eml",
        _mail("Re: Meeting", answer).as_bytes(),
        {"We meet on Tuesday.": {"headings": ()}, "Shall we meet on Friday?": {"headings": ("Luis, 3 Feb 2025",)}},
        ("wrote:",),
    )
    outlook = (
        "El martes, entonces.\n\n________________________________\nDe: Luis <luis@solaria.example>\n"
        "Enviado: lunes 10:04\nPara: Ana\nAsunto: Reunión\n\n¿El viernes?\n"
    )
    yield Sample(
        "eml",
        "rv.eml",
        _mail("RE: Reunión", outlook).as_bytes(),
        {"El martes, entonces.": {"headings": ()}, "¿El viernes?": {"headings": ("Luis, lunes 10:04: Reunión",)}},
        ("____",),
    )
    forwarded = "See below.\n\n---------- Forwarded message ---------\nFrom: Luis <l@x.example>\nDate: Mon 10:04\nSubject: S\n\nKey is 4711.\n"
    yield Sample("eml", "fw.eml", _mail("Fwd: S", forwarded).as_bytes(), {"See below.": {}, "Key is 4711.": {}})
    html = f"<p>Only HTML here: code 99.</p>{TABLE}<blockquote type='cite'>Old words</blockquote>"
    only_html = _mail("Re: Prices", None, html=html, reply=True)
    yield Sample(
        "eml",
        "html.eml",
        only_html.as_bytes(),
        {"Only HTML here: code 99.": {"part": None}, **GRADES, "Old words": {"part": "quoted"}},
        WRONG,
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
    web = office.msg({"0037": "Web"}, html=f"<html><body><p>Nur HTML: 99</p>{TABLE}</body></html>".encode())
    yield Sample("msg", "web.msg", web, {"Nur HTML: 99": {}, **GRADES}, WRONG)


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (
    _messages,
    _outlook,
)
