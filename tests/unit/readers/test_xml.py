"""XML files are read by their text and attributes, without tags."""

from __future__ import annotations

import pytest

from rag_service.errors import DocumentError
from rag_service.readers.parse import parse
from tests.unit.readers.samples import at

ARTICLE = """<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving DTD v1.0//EN" "JATS-archivearticle1.dtd">
<article xml:lang="en"><front><article-meta><article-id pub-id-type="doi">10.1/2</article-id>
<title-group><article-title>Bolts &amp; caf&eacute;s</article-title></title-group></article-meta></front>
<body><sec id="s1"><label>1</label><title>Methods</title><p>We took <italic>ten</italic> bolts of 10<sup>6</sup> N.</p>
<sec><title>Sample</title><p>All were new.</p></sec><p>Then we waited.</p></sec><sec><title>Results</title>
<table><tr><th>Bolt</th><th>Load</th></tr><tr><td>M8</td><td>12 kN</td></tr></table></sec></body></article>"""


def test_sections_of_an_article_are_sections() -> None:
    document = parse(ARTICLE.encode(), file_name="a.xml")
    assert (document.title, document.language) == ("Bolts & cafés", "en")
    assert at(document, "We took ten bolts of 10⁶ N.").headings == ("1 Methods",)
    assert at(document, "All were new.").headings == ("1 Methods", "Sample")
    assert at(document, "Then we waited.").headings == ("1 Methods",)
    assert "Bolt: M8 | Load: 12 kN" in document.text
    assert "<" not in document.text


@pytest.mark.parametrize(
    "subset", ["[ ]", '[<!ENTITY D0.TIF SYSTEM "D0.TIF" NDATA TIF>\n<!ENTITY D1 PUBLIC "p" "D1" NDATA TIF>]']
)
def test_a_document_type_may_name_pictures_beside_the_file(subset: str) -> None:
    source = f'<!DOCTYPE grant SYSTEM "grant-v44.dtd" {subset}>\n<grant><p>A bolt &amp; a nut.</p></grant>'
    assert parse(source.encode(), file_name="a.xml").text.strip() == "A bolt & a nut."


def test_a_table_of_docbook_has_rows_with_the_names_of_their_columns() -> None:
    source = """<article><table frame="none"><title>Loads</title><tgroup cols="3" colsep="0">
    <colspec colname="a"/><colspec colname="b"/><colspec colname="c"/>
    <thead><row><entry>Bolt</entry><entry>Load</entry><entry>Price</entry></row></thead><tbody valign="top">
    <row><entry>M8</entry><entry>12 m<sup>2</sup></entry><entry morerows="1">5 €</entry></row>
    <row><entry>M9</entry><entry/></row>
    <row><entry>M10</entry><entry namest="b" nameend="c">on demand</entry></row></tbody></tgroup></table></article>"""
    document = parse(source.encode(), file_name="a.xml")
    assert document.text.split("\n") == [
        "Loads",
        "",
        "Bolt: M8 | Load: 12 m² | Price: 5 €",
        "Bolt: M9 | Price: 5 €",
        "Bolt: M10 | Load / Price: on demand",
        "",
        "",
    ]


def test_short_values_have_the_name_of_their_element() -> None:
    source = """<catalog><product sku="A-17"><name>Bolt</name><price currency="EUR">0.35</price>
    <size><l>10</l></size></product>
    <product sku="A-18"><name>Nut</name></product><edge from="a" to="b"/><edge from="b" to="c"/></catalog>"""
    assert parse(source.encode(), file_name="a.xml").text.splitlines()[:4] == [
        "sku: A-17 | name: Bolt | price: 0.35 | price currency: EUR | size l: 10",
        "sku: A-18 | name: Nut",
        "edge from: a | edge to: b",
        "edge from: b | edge to: c",
    ]


def test_items_of_a_feed_are_sections() -> None:
    source = """<rss version="2.0"><channel><title>Port news</title><item><title>Berth 9</title>
    <pubDate>1 June</pubDate>
    <description>&lt;p&gt;Closed until &lt;b&gt;5 June&lt;/b&gt;.&lt;/p&gt;</description></item></channel></rss>"""
    document = parse(source.encode("utf-16"), file_name="feed.xml")
    assert at(document, "Closed until 5 June.").headings == ("Port news", "Berth 9")
    assert at(document, "pubDate: 1 June").headings == ("Port news", "Berth 9")


@pytest.mark.parametrize(("above", "shown"), [("¯", "x̄"), ("_", "x̄"), ("^", "x̂"), ("", "x")])
def test_a_letter_has_the_accent_that_stands_above_it(above: str, shown: str) -> None:
    source = f"<article><p>Mean <math><mover><mi>x</mi><mo>{above}</mo></mover></math></p></article>"
    assert parse(source.encode(), file_name="a.xml").text.strip() == f"Mean {shown}"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "declarations"),
        ('<!DOCTYPE a SYSTEM "x.dtd" [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "declarations"),
        ('<!DOCTYPE a [<!ENTITY p SYSTEM "p" NDATA n><!ENTITY x "y">]><a>&x;</a>', "declarations"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a>&x;</a>', "damaged"),
        ("<a><b></a>", "damaged"),
        ("<a>" * 300 + "x" + "</a>" * 300, "nested too deeply"),
        ('<a b=""/>', "contains no text"),
    ],
)
def test_hostile_and_damaged_xml_is_refused(source: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        parse(source.encode(), file_name="a.xml")


def test_many_elements_take_linear_time() -> None:
    document = parse(b"<a>" + b"<b><c>1</c></b>" * 20_000 + b"</a>", file_name="a.xml")
    assert document.text.count("c: 1\n") == 20_000


def test_a_text_file_with_xml_stays_as_it_is() -> None:
    assert parse(b"<?xml version='1.0'?><a>x</a>", file_name="a.txt").text == "<?xml version='1.0'?><a>x</a>"
