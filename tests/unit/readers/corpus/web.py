# ruff: noqa: E501 - lines of files
"""Web pages and books."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.sample import GRADES, TABLE, WRONG, Sample


def _web_pages() -> Iterator[Sample]:
    page = f"""<!DOCTYPE html><html lang="en"><head><title>Travel | Solaria</title><style>p {{color: red}}</style></head>
    <body><header><nav><ul><li><a href="/">Start</a></li></ul></nav></header><div class="menu"><a href="/x">Shop</a></div>
    <main><h1>Travel</h1><p>Staff travel by <b>night&nbsp;train</b>.<script>track()</script></p>
    <h2>Rates</h2>{TABLE}<h2>Steps</h2><ol><li>Ask <a href="https://solaria.example/form">the form</a></li>
    <li><p>Wait two days</p></li></ol><dl><dt>Desk</dt><dd>Room 14</dd></dl><p style="display:none">secret words</p>
    <pre>code 77\n  line</pre><img src="a.png" alt="Map of stations"></main><aside>Our offers</aside>
    <footer>Imprint 2025</footer></body></html>"""
    facts = {
        "Staff travel by night train.": {"headings": ("Travel",), "paragraph": 2},
        **{fact: {**place, "headings": ("Travel", "Rates")} for fact, place in GRADES.items()},
        "1. Ask [the form](https://solaria.example/form)": {"headings": ("Travel", "Steps")},
        "2. Wait two days": {"headings": ("Travel", "Steps")},
        "Room 14": {},
        "code 77\n  line": {},
        "Map of stations": {},
    }
    wrong = (*WRONG, "Start", "Shop", "secret words", "Our offers", "Imprint", "track", "color")
    yield Sample("html", "page.html", page.encode(), facts, wrong)
    yield Sample("html", "no-ending", page.encode("utf-16"), facts, wrong)
    links = b"<html><body><ul>" + b"<li><a href=x>Rules of 2024</a>" * 9
    yield Sample("html", "links.html", links, {"- Rules of 2024": {}})
    languages = "".join(f'<li><a href="{code}" hreflang="{code}">In {code}</a>' for code in ("es", "fr", "de", "it"))
    topics = "".join(f"<li><a href={number}>Topic {number}</a>" for number in range(5))
    article = f"<html><main><ul>{languages}</ul><h1>Ducks</h1>{'<p>They swim all day.</p>' * 9}<ul>{topics}</ul></main>"
    yield Sample("html", "article.html", article.encode(), {"- Topic 4": {"headings": ("Ducks",)}}, ("In es", "In fr"))
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


def _books() -> Iterator[Sample]:
    chapters = [
        "<h1>La salida</h1><p>El tren salió a las 7:40 &amp; llegó tarde.</p>",
        f"<h1>La llegada</h1><h2>Precios</h2>{TABLE}<ul><li>Llevar agua</li></ul>",
    ]
    book = office.epub(chapters, title="Viaje al norte", contents="<nav><ol><li>La salida</li></ol></nav>")
    place = {"headings": ("La llegada", "Precios")}
    yield Sample(
        "epub",
        "viaje.epub",
        book,
        {
            "El tren salió a las 7:40 & llegó tarde.": {"headings": ("La salida",), "paragraph": 2},
            **{fact: {**where, **place} for fact, where in GRADES.items()},
            "- Llevar agua": place,
        },
        WRONG,
    )


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (
    _web_pages,
    _books,
)
