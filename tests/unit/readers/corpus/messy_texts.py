# ruff: noqa: E501 - lines of files
"""Data, subtitles, notes and archives as programs and people leave them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.sample import Sample
from tests.unit.readers.samples import pdf


def _json() -> Iterator[Sample]:
    mixed = [
        {"ref": "A-1", "precio": 12.5, "stock": None, "tags": ["rojo", 7, True], "dim": {"alto": "30 cm", "notas": []}},
        "texto suelto 44",
        ["doble", {"clave": "valor hondo"}],
        {"ref": "B-2", "precio": "a convenir", "descripcion": "Línea uno\nLínea dos", "vacío": ""},
        42,
    ]
    yield Sample(
        "json",
        "mixto.json",
        b"\xef\xbb\xbf" + json.dumps(mixed, ensure_ascii=False, indent=1).encode(),
        {
            "A-1": {"path": "[0].ref"},
            "12.5": {"path": "[0].precio"},
            "30 cm": {"path": "[0].dim.alto"},
            "texto suelto 44": {"path": "[1]"},
            "valor hondo": {"path": "[2][1].clave"},
            "a convenir": {"path": "[3].precio"},
            "Línea dos": {"path": "[3].descripcion"},
            "42": {"path": "[4]"},
        },
        ("precio: A-1",),
    )
    lines = '{"t": "2024-05-01", "msg": "Démarrage"}\r\n\r\n{"t": "2024-05-02", "msg": "Arrêt", "ctx": {"code": 137}}\r\n["x", "y9"]\r\n'
    yield Sample(
        "json",
        "journal.ndjson",
        lines.encode(),
        {
            "Démarrage": {"row": 1, "path": "msg"},
            "Arrêt": {"row": 3},
            "137": {"row": 3, "path": "ctx.code"},
            "y9": {"row": 4},
        },
    )


def _subtitles() -> Iterator[Sample]:
    talk = """WEBVTT
Kind: captions
Language: pt

STYLE
::cue { color: red }

REGION
id:fred

intro
00:00.500 --> 00:03.000 line:0
<v.loud Marta Silva>O prazo <c.yellow>termina</c> sexta.</v>

00:02.500 --> 00:05.000
<v João>E a <i>caução</i>?
- São 90 euros.

NOTE
comentário interno

100:00:01.000 --> 100:00:04.000
{\\an8}Última frase &lt;fim&gt;
"""
    yield Sample(
        "vtt",
        "debate.vtt",
        talk.encode(),
        {
            "Marta Silva: O prazo termina sexta.": {"time": "00:00:00"},
            "João: E a caução?": {"time": "00:00:02"},
            "São 90 euros.": {"time": "00:00:02"},
            "Última frase <fim>": {"time": "100:00:01"},
        },
        ("comentário interno", "color", "fred", "-->", "captions"),
    )
    srt = '\ufeff1\n00:00:01,200 --> 00:00:03,000 X1:40 X2:600\n<font color="#fff">Le pont ouvre</font>\nà 6 h 40.\n\n\n2\n00:00:02,000 --> 00:00:04,000\n{\\an8}- Et le péage ?\n- 3,20 €\n\n3\n00:59:59,000 --> 01:00:01,000\nFIN 2024\n'
    yield Sample(
        "srt",
        "pont.srt",
        srt.encode("utf-16"),
        {
            "Le pont ouvre": {"time": "00:00:01"},
            "à 6 h 40.": {"time": "00:00:01"},
            "Et le péage ?": {"time": "00:00:02"},
            "3,20 €": {"time": "00:00:02"},
            "FIN 2024": {"time": "00:59:59"},
        },
        ("font", "an8", "X1:40"),
    )


def _notes() -> Iterator[Sample]:
    guide = """---
title: Guía de taller
tags: [taller, seguridad]
---
Guía de taller
==============

El horno llega a **240 °C**[^1].

Piezas
------

| Pieza | Peso | Precio |
|:------|-----:|-------:|
| Eje \\| A | 3 kg | 41 € |
| Rueda | 1 kg | 12 € |

* Nivel uno
    * Nivel dos con `código 5`
        1. Nivel tres

> Cita: usar guantes.

```sh
# no es un título
hornear --grados 240
```

<details><summary>Más</summary>Repuestos en el estante 9</details>

[^1]: Con el filtro nuevo.
"""
    piece = {"headings": ("Guía de taller", "Piezas")}
    yield Sample(
        "markdown",
        "taller.md",
        guide.encode(),
        {
            "El horno llega a": {"headings": ("Guía de taller",)},
            "Rueda": piece,
            "12 €": piece,
            "Nivel dos con": piece,
            "Nivel tres": piece,
            "usar guantes.": piece,
            "hornear --grados 240": piece,
            "Repuestos en el estante 9": piece,
            "Con el filtro nuevo.": {},
        },
        ("tags: [",),
    )
    old = "PROC\u00c8S-VERBAL\r\n\r\nLa s\u00e9ance s\u2019ouvre \u00e0 9 h 15.\r\nPr\u00e9sents : 14\r\n\r\n\r\n1) Budget\u00a0: 88\u00a0000 \u20ac\r\n2) Divers\r\n\x0cPage deux : cl\u00f4ture \u00e0 11 h.\x1a"
    yield Sample(
        "text",
        "pv.txt",
        old.encode("cp1252"),
        {
            "La séance s’ouvre à 9 h 15.": {"paragraph": 2},
            "Présents : 14": {"paragraph": 2},
            "Page deux : clôture à 11 h.": {},
        },
        ("\x1a", "\x0c"),
    )


def _archives() -> Iterator[Sample]:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("facturas/año 2023.txt", "Factura de enero: 310 euros.")  # UTF-8, marked
        archive.writestr("leer\\notas.txt", "Nota con barra de Windows 7.")
        archive.writestr("vacía/", "")
        archive.writestr("datos.csv", "Mes;Total\nMayo;77\n")
        archive.writestr("carta.eml", "From: a@x.example\nSubject: Carta\n\nLa carta cita el expediente 909.\n")
        archive.writestr("plano.pdf", pdf("Plano del sótano, cota -3."))
        archive.writestr("hoja.odt", office.odf("text", "<text:p>Hoja con sello 15.</text:p>"))
        archive.writestr("desktop.ini", "[.ShellClassInfo]")
        archive.writestr("Se#al.txt", "La señal es verde 21.")
    data = buffer.getvalue().replace(
        b"Se#al.txt", "Señal.txt".encode("cp437")
    )  # without the mark, as old programs write it
    facts = {
        "Factura de enero: 310 euros.": {"part": "facturas/año 2023.txt"},
        "Nota con barra de Windows 7.": {},
        "Mes: Mayo": {"part": "datos.csv"},
        "Total: 77": {"part": "datos.csv", "cell": "B2"},
        "La carta cita el expediente 909.": {"part": "carta.eml"},
        "Plano del sótano, cota -3.": {"part": "plano.pdf", "page": 1},
        "Hoja con sello 15.": {"part": "hoja.odt"},
        "La señal es verde 21.": {"part": "Señal.txt"},
    }
    yield Sample("zip", "varios.zip", data, facts, ("ShellClassInfo",))


def _prints() -> Iterator[Sample]:
    pages = pdf(
        "Informe trimestral\n\nLas ventas crecieron un 12 % en Galicia.\nEl margen fue de 3,4 millones.",
        "Rapport trimestriel\n\nLes ventes ont reculé de 4 % en Savoie.",
        "Relatório trimestral\n\nO lucro foi de 220 mil euros em Braga.",
    )
    yield Sample(
        "pdf",
        "trimestre.pdf",
        pages,
        {
            "Las ventas crecieron un 12 % en Galicia.": {"page": 1},
            "El margen fue de 3,4 millones.": {"page": 1},
            "Les ventes ont reculé de 4 % en Savoie.": {"page": 2},
            "O lucro foi de 220 mil euros em Braga.": {"page": 3},
        },
    )


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (_json, _subtitles, _notes, _archives, _prints)
