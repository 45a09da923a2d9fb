# ruff: noqa: E501 - lines of files
"""Messages as Outlook, Gmail, Apple Mail and mailing programs send them."""

from __future__ import annotations

import base64
import quopri
from collections.abc import Callable, Iterator, Sequence

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.sample import Sample
from tests.unit.readers.samples import pdf


def _lines(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode("latin-1")


def _gmail() -> Iterator[Sample]:
    plain = quopri.encodestring(
        "La reserva 5512 está confirmada para el 9 de junio; el importe asciende a 1.240 € con desayuno.".encode()
    ).decode()
    page = quopri.encodestring(
        '<div dir="ltr">La reserva 5512 está confirmada para el 9 de junio<img src="cid:logo1" alt="Logotipo del hotel"></div><br>'
        '<div class="gmail_quote"><div class="gmail_attr">El lun, 3 jun 2024, Ana escribió:<br></div><blockquote class="gmail_quote">¿Hay sitio viejo?</blockquote></div>'.encode()
    ).decode()
    sheet = base64.encodebytes("Sala;Aforo\nAzul;40\n".encode("cp1252")).decode()
    raw = f"""Delivered-To: luis@norte.example
MIME-Version: 1.0
From: =?UTF-8?Q?Recepci=C3=B3n_Hotel?= =?UTF-8?Q?_Mar?= <hotel@mar.example>
Date: Mon, 3 Jun 2024 18:22:01 +0200
Subject: =?UTF-8?B?UmVzZXJ2YSA1NTEyOiBjb25maXJtYWNpw7Nu?=
 =?UTF-8?Q?_y_tarifa?=
To: Luis <luis@norte.example>
Content-Type: multipart/mixed; boundary="m"

--m
Content-Type: multipart/related; boundary="r"

--r
Content-Type: multipart/alternative; boundary="a"

--a
Content-Type: text/plain; charset="UTF-8"
Content-Transfer-Encoding: quoted-printable

{plain}
--a
Content-Type: text/html; charset="UTF-8"
Content-Transfer-Encoding: quoted-printable

{page}
--a--
--r
Content-Type: image/png; name="logo.png"
Content-ID: <logo1>
Content-Disposition: inline; filename="logo.png"
Content-Transfer-Encoding: base64

iVBORw0KGgo=
--r--
--m
Content-Type: text/csv; charset=windows-1252
Content-Disposition: attachment; filename*=UTF-8''aforo%20d%C3%ADa.csv
Content-Transfer-Encoding: base64

{sheet}
--m--
"""
    yield Sample(
        "eml",
        "gmail.eml",
        _lines(raw),
        {
            "From: Recepción Hotel Mar <hotel@mar.example>": {"part": "header"},
            "Subject: Reserva 5512: confirmación y tarifa": {"part": "header"},
            "La reserva 5512 está confirmada para el 9 de junio": {"part": None},
            "1.240 €": {"part": None},
            "Sala: Azul": {"part": "aforo día.csv"},
            "Aforo: 40": {"part": "aforo día.csv", "cell": "B2", "row": 2},
        },
        ("sitio viejo", "escribió", "=C3"),
    )


def _outlook_page() -> Iterator[Sample]:
    page = """<html xmlns:o="urn:schemas-microsoft-com:office:office"><head><meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1"></head><body>
<p class=MsoNormal>Bonjour,<o:p></o:p></p><p class=MsoNormal>Le devis passe \xe0 4\xa0310 \x80.</p>
<table class=MsoNormalTable><tr><td><b>Lot</b></td><td><b>Prix</b></td></tr><tr><td>Peinture</td><td>1 900 \x80</td></tr><tr><td>Sol</td><td>2 410 \x80</td></tr></table>
<p class=MsoNormal>Cordialement</p><div id="divRplyFwdMsg"><b>De :</b> Paul<br><b>Envoy\xe9 :</b> lundi<br><b>\xc0 :</b> Marie<br><b>Objet :</b> Devis</div><div>Ancien prix 3 999</div></body></html>"""
    raw = "From: Marie <m@x.example>\nTo: Paul <p@x.example>\nSubject: =?iso-8859-1?Q?RE=3A_Devis_r=E9vis=E9?=\nIn-Reply-To: <1@x>\nMIME-Version: 1.0\nContent-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit\n\n"
    yield Sample(
        "eml",
        "devis.eml",
        raw.encode() + page.encode("latin-1"),
        {
            "Subject: RE: Devis révisé": {"part": "header"},
            "Le devis passe à 4 310 €.": {},
            "Lot: Peinture": {},
            "Prix: 1 900 €": {},
            "Prix: 2 410 €": {},
            "Cordialement": {"headings": ()},
            "Ancien prix 3 999": {"headings": ("Paul, lundi: Devis",)},
        },
        ("Prix: Sol", "____"),
    )


def _wrong_charset() -> Iterator[Sample]:
    raw = b"From: Sales <s@x.example>\nTo: all@x.example\nSubject: Pre\xe7os de maio\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8; format=flowed\nContent-Transfer-Encoding: 8bit\n\n"
    raw += "A tabela de pre\u00e7os entra em vigor \nna segunda-feira, 6 de maio.\n\n> Texto antigo citado\n\nDesconto m\u00e1ximo: 15 %\n-- \nVendas, piso 4\n".encode(
        "cp1252"
    )
    yield Sample(
        "eml",
        "precos.eml",
        raw,
        {
            "A tabela de preços entra em vigor": {},
            "na segunda-feira, 6 de maio.": {},
            "Desconto máximo: 15 %": {},
        },
        ("�",),
    )


def _signed() -> Iterator[Sample]:
    event = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Budget meeting\nLOCATION:Room Oak\nDTSTART:20240611T090000Z\nEND:VEVENT\nEND:VCALENDAR\n"
    letter = base64.encodebytes(pdf("Enclosure: the lease ends on 30 June 2026.")).decode()
    raw = f"""From: Legal <legal@x.example>
To: Ops <ops@x.example>
Subject: Lease
MIME-Version: 1.0
Content-Type: multipart/signed; protocol="application/pkcs7-signature"; boundary="s"

--s
Content-Type: multipart/mixed; boundary="x"

--x
Content-Type: text/plain; charset=us-ascii
Content-Transfer-Encoding: 7bit

Please read clause 12 before Monday.

--x
Content-Type: application/octet-stream; name="lease.pdf"
Content-Disposition: attachment; filename="lease.pdf"
Content-Transfer-Encoding: base64

{letter}
--x
Content-Type: text/calendar; charset=utf-8; method=REQUEST

{event}
--x
Content-Type: message/rfc822

From: Notary <n@x.example>
Subject: Deed
Content-Type: text/html; charset=utf-8

<p>The deed number is 88/2024.</p>
--x--
--s
Content-Type: application/pkcs7-signature; name="smime.p7s"
Content-Transfer-Encoding: base64

MIAGCSqGSIb3DQEHAqCAMIACAQExDzAN
--s--
"""
    yield Sample(
        "eml",
        "lease.eml",
        _lines(raw),
        {
            "Please read clause 12 before Monday.": {"part": None},
            "the lease ends on 30 June 2026.": {"part": "lease.pdf", "page": 1},
            "The deed number is 88/2024.": {"part": "Deed.eml"},
            "Room Oak": {},
        },
        ("MIAGCSqG",),
    )


def _apple() -> Iterator[Sample]:
    page = "<html><body><div>The van is booked for 14 May.</div><div>Two drivers: Kim and Lee.</div><br><blockquote type='cite'><div>On 2 May, Jo wrote:</div><div>Is the old van free?</div></blockquote></body></html>"
    raw = (
        "From: Kim <k@x.example>\nTo: Jo <j@x.example>\nSubject: Re: Van\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: base64\n\n"
        + base64.encodebytes(page.encode()).decode()
    )
    yield Sample(
        "eml",
        "van.eml",
        raw.encode(),
        {"Two drivers: Kim and Lee.": {"headings": ()}, "Is the old van free?": {"headings": ("Jo, 2 May",)}},
        ("wrote:",),
    )
    data = office.msg(
        {"0037": "RES: Inventário de abril", "1000": "Olá,\r\n\r\no inventário fecha a 30 de abril.\r\n\r\n-----Mensagem original-----\r\nDe: Rui\r\nEnviada: 3 de junho de 2024 10:04\r\nPara: Ana\r\nAssunto: Inventário\r\n\r\nData velha 28\r\n", "0C1A": "Ana Dias", "5D01": "ana@x.example"},
        attachments=[("stock.csv", b"Artigo;Qtd\nParafuso;900\n")],
    )  # fmt: skip
    yield Sample(
        "msg",
        "inventario.msg",
        data,
        {
            "Subject: RES: Inventário de abril": {"part": "header"},
            "o inventário fecha a 30 de abril.": {"part": None},
            "Artigo: Parafuso": {"part": "stock.csv"},
            "Qtd: 900": {"part": "stock.csv", "cell": "B2"},
            "Data velha 28": {"headings": ("Rui, 3 de junho de 2024 10:04: Inventário",)},
        },
        ("-----",),
    )


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (_gmail, _outlook_page, _wrong_charset, _signed, _apple)
