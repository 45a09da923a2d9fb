# ruff: noqa: E501 - lines of files
"""Pages and books as browsers, Word and content systems write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.sample import Sample


def _bodiless() -> Iterator[Sample]:
    page = """<title>Normas de uso</title><h1>Normas de uso</h1><p>La sala abre a las 8:15.<p>El afo&shy;ro es de 40 per\u200bsonas.
    <dl><dt>Fianza<dd>60 euros<dt>Aval<dd>No se pide<dd>Salvo en agosto</dl>
    <ul><li>Llaves<ul><li>Copia azul en portería<li>Copia roja en caja 9</ul><li>Tarjetas</ul>
    <details><summary>Horario de verano</summary>Cierra a las 21:45</details>
    <noscript>Active JavaScript</noscript><template>plantilla vacía</template><p hidden>párrafo escondido</p>
    <p>Correo:<br>sala@norte.example<br>Tel. 600 100 200"""
    place = {"headings": ("Normas de uso",)}
    yield Sample(
        "html",
        "normas.html",
        page.encode(),
        {
            "La sala abre a las 8:15.": place,
            "El aforo es de 40 personas.": place,
            "Fianza": place,
            "60 euros": place,
            "No se pide": place,
            "Salvo en agosto": place,
            "- Copia azul en portería": place,
            "- Copia roja en caja 9": place,
            "- Tarjetas": place,
            "Cierra a las 21:45": place,
            "Horario de verano": place,
            "Tel. 600 100 200": place,
        },
        ("plantilla vacía", "párrafo escondido", "Active JavaScript"),
    )


def _tables() -> Iterator[Sample]:
    left = "<table><caption>Entrées</caption><thead><tr><th>Musée<th>Prix</thead><tbody><tr><td>Louvre<td>22 €<tr><td>Orsay<td>16 €</tbody><tfoot><tr><td>Moyenne<td>19 €</tfoot></table>"
    right = "<table><tr><th>Musée<th>Visiteurs<tr><td>Louvre<td>8 900 000<tr><td>Orsay<td>3 900 000</table>"
    page = f"""<html><body><div id=content><h2>Musées</h2><table role=presentation><tr><td>{left}</td><td>{right}</td></tr></table>
    <h2>Saisons</h2><table><tr><th rowspan=2>Ville<th colspan=2>Été<th colspan=2>Hiver<tr><th>Min<th>Max<th>Min<th>Max
    <tr><td>Nice<td>19°<td>28°<td>6°<td>13°<tr><th>Lille<td>13°<td>23°<td>2°<td>7°</table>
    <p>Remise<sup>1</sup> de 10&nbsp;%.</p><p><sup>1</sup> Sauf le dimanche.</p></div></body></html>"""
    first, second = {"headings": ("Musées",)}, {"headings": ("Saisons",)}
    yield Sample(
        "html",
        "musees.html",
        page.encode("cp1252", "xmlcharrefreplace"),
        {
            "Entrées": first,
            "Musée: Louvre | Prix: 22 €": {**first, "row": 2},
            "Musée: Orsay | Prix: 16 €": {**first, "row": 3},
            "Prix: 19 €": first,
            "Musée: Louvre | Visiteurs: 8 900 000": {**first, "row": 2},
            "Visiteurs: 3 900 000": {**first, "row": 3},
            "Ville: Nice": second,
            "Été Min: 19°": {**second, "row": 3},
            "Été Max: 28°": second,
            "Hiver Min: 6°": second,
            "Hiver Max: 7°": {**second, "row": 4},
            "Ville: Lille": second,
            "Sauf le dimanche.": second,
        },
        ("Prix: 8 900 000", "Visiteurs: 22", "Été Min: 6°", "Hiver Min: 19°"),
    )


def _word_page() -> Iterator[Sample]:
    page = """<html xmlns:o="urn:schemas-microsoft-com:office:office"><head><meta http-equiv=Content-Type content="text/html; charset=windows-1252">
    <!--[if gte mso 9]><xml><w:WordDocument><w:View>Print</w:View></w:WordDocument></xml><![endif]-->
    <style><!-- p.MsoNormal {margin:0cm} --></style></head><body lang=PT><div class=WordSection1>
    <h1>Condi\xe7\xf5es de venda<o:p></o:p></h1><p class=MsoNormal>O pre\xe7o inclui IVA a 23\xa0%<o:p></o:p></p>
    <p class=MsoListParagraph><![if !supportLists]><span style='mso-list:Ignore'>1.</span><![endif]>Pagamento a 30 dias</p>
    <p class=MsoNormal>\x93Entrega gr\xe1tis\x94 acima de 50 \x80</p><p class=MsoNormal><o:p>&nbsp;</o:p></p>
    <p class=MsoNormal><del>Texto antigo</del><ins>Devolu\xe7\xe3o em 14 dias</ins></p>
    <form><label>Pa\xeds</label><select><option>Portugal<option>Espanha</select><input type=hidden value=seg123></form></div></body></html>"""
    place = {"headings": ("Condições de venda",)}
    yield Sample(
        "html",
        "condicoes.htm",
        page.encode("latin-1"),
        {
            "O preço inclui IVA a 23 %": place,
            "Pagamento a 30 dias": place,
            "“Entrega grátis” acima de 50 €": place,
            "Devolução em 14 dias": place,
        },
        ("WordDocument", "MsoNormal", "margin", "seg123", "supportLists"),
    )


def _portal() -> Iterator[Sample]:
    page = """<!doctype html><html><head><meta charset=utf-8><script type="application/ld+json">{"name":"zzz"}</script></head><body>
    <div class="cookie-banner" role="dialog">We use cookies</div><nav aria-label="Breadcrumb"><a href=/>Home</a></nav>
    <article><h1>Parking rules</h1><div><div><span>Bay 7 is for visitors.</span></div><div>Bay 8 is for vans.</div></div>
    <h3>Fines</h3><figure><img src=x alt="Plan of the car park"><figcaption>Figure 2: the lower deck</figcaption></figure>
    <blockquote>A fine is 45 pounds.</blockquote><p>Call <a href="tel:+44123">0123 456</a> or \u200ewrite\u200f us.</p>
    <pre><code>gate --open 12</code></pre><p>Text <!-- old price 30 -->after a comment</p><svg><text>SVG label</text></svg>
    <math><mi>x</mi></math><p>2<sup>nd</sup> floor, H<sub>2</sub>O</p></article><section class="related"><h2>More</h2></section>
    <script>var price = 99;</script></body></html>"""
    yield Sample(
        "html",
        "parking.html",
        page.encode(),
        {
            "Bay 7 is for visitors.": {"headings": ("Parking rules",)},
            "Bay 8 is for vans.": {"headings": ("Parking rules",)},
            "Figure 2: the lower deck": {"headings": ("Parking rules", "Fines")},
            "Plan of the car park": {},
            "A fine is 45 pounds.": {"headings": ("Parking rules", "Fines")},
            "0123 456": {},
            "or write us.": {},
            "gate --open 12": {},
            "after a comment": {},
            "2nd floor, H2O": {},
        },
        ("Bay 7 is for visitors.Bay 8", "old price", "var price", "zzz", "Home"),
    )


def _book() -> Iterator[Sample]:
    chapters = [
        '<section><h1>Capítulo 1</h1><p>El faro mide 34 metros.<a href="#n1" epub:type="noteref" xmlns:epub="http://www.idpf.org/2007/ops">1</a></p>'
        '<aside id="n1"><p>Sin contar la linterna.</p></aside><p>La lám\u00adpara pesa 80&#160;kg.</p></section>',
        "<h1>Chapitre 2</h1><dl><dt>Phare</dt><dd>Tour de 34 m</dd></dl><ol><li>Monter<ol><li>Par l’escalier nord</li></ol></li></ol>"
        "<table><tr><th>Mois</th><th>Nuits</th></tr><tr><td>Mai</td><td>17</td></tr></table>",
    ]
    yield Sample(
        "epub",
        "faro.epub",
        office.epub(chapters, title="El faro"),
        {
            "El faro mide 34 metros.": {"headings": ("Capítulo 1",)},
            "Sin contar la linterna.": {},
            "La lámpara pesa 80 kg.": {"headings": ("Capítulo 1",)},
            "Tour de 34 m": {"headings": ("Chapitre 2",)},
            "Par l’escalier nord": {"headings": ("Chapitre 2",)},
            "Mois: Mai | Nuits: 17": {"headings": ("Chapitre 2",), "row": 2},
        },
    )


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (_bodiless, _tables, _word_page, _portal, _book)
