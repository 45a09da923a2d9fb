"""XML of any kind by its text: articles (JATS, DocBook), feeds (RSS, Atom), catalogues and other data.

An element with text beside its elements, or a long text, is a paragraph; a title is the heading of the element that
contains it; what is left are short values, on one line for each element: "sku: A-17 | name: Hex bolt M8 | price: 0.35".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from html.entities import html5

from lxml import etree

from rag_service.domain import ParsedDocument
from rag_service.readers.common.blocks import BlockWriter
from rag_service.readers.common.builder import TextBuilder, clean, one_line
from rag_service.readers.common.equations import write_math
from rag_service.readers.common.list_numbers import NumberFormat, write_number
from rag_service.readers.common.names import choose_title, language_of
from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.common.xml import Element, local_name, parse_xml, whole_number
from rag_service.readers.web.html import read_page, read_rows, write_page

MEDIA_TYPE = "application/xml"
_DECLARATION = re.compile(r"\s*<\?xml[^>]{0,500}\?>")
# A document type that only names its definition, as articles do, and pictures beside the file, as patents do: nothing
# is fetched, and no text can stand for these names. Any other is refused.
_NAME, _QUOTED = r"[\w.:-]{1,200}", r"""(?:"[^"<>]{0,500}"\s*|'[^'<>]{0,500}'\s*)"""
_PICTURE = rf"<!ENTITY\s+{_NAME}\s+(?:SYSTEM|PUBLIC)\s+{_QUOTED}{{1,2}}NDATA\s+{_NAME}\s*>\s*"
_NAMED_TYPE = re.compile(rf"""<!DOCTYPE\s[^\[\]<>"']{{0,200}}{_QUOTED}{{0,2}}(?:\[\s*(?:{_PICTURE})*\]\s*)?>""")
_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,30};)")  # "&eacute;", which such a definition declares
_OF_XML = frozenset({"amp;", "lt;", "gt;", "quot;", "apos;"})
_GREEK = {  # ISO 8879 calls them "agr;", pages call them "alpha;"
    "a": "α", "b": "β", "g": "γ", "d": "δ", "e": "ε", "z": "ζ", "ee": "η", "th": "θ", "i": "ι", "k": "κ", "l": "λ",
    "m": "μ", "n": "ν", "x": "ξ", "o": "ο", "p": "π", "r": "ρ", "sf": "ς", "s": "σ", "t": "τ", "u": "υ", "ph": "φ",
    "kh": "χ", "ps": "ψ", "oh": "ω",
}  # fmt: skip
_TITLES = frozenset({"title", "article-title", "head", "heading"})
_PARAGRAPHS = frozenset({"p", "para", "simpara"})
_ITEMS = frozenset({"list-item", "listitem", "li", "step"})
_NUMBERED = frozenset({"orderedlist", "procedure", "substeps", "ol"})  # "list" tells by its type
_LISTS = _NUMBERED | {"list", "itemizedlist", "simplelist", "ul"}
_FORMATS = {
    "alpha-lower": NumberFormat.LOWER_LETTER, "loweralpha": NumberFormat.LOWER_LETTER,
    "alpha-upper": NumberFormat.UPPER_LETTER, "upperalpha": NumberFormat.UPPER_LETTER,
    "roman-lower": NumberFormat.LOWER_ROMAN, "lowerroman": NumberFormat.LOWER_ROMAN,
    "roman-upper": NumberFormat.UPPER_ROMAN, "upperroman": NumberFormat.UPPER_ROMAN,
    "order": NumberFormat.DECIMAL, "arabic": NumberFormat.DECIMAL,
}  # fmt: skip
_MARK = "rag-mark"  # the attribute with what stands before an item
_INLINE_BREAKS = _PARAGRAPHS | _ITEMS | _TITLES | _LISTS | {"br", "break", "td", "th", "tr"}
_MARKUP = re.compile(r"</?(?:p|br|div|ul|ol|li|a|b|i|em|strong|h[1-6]|table|span|img)\b[^<>]*>", re.IGNORECASE)
_MAX_VALUE = 200  # characters of a value on a line of values; a longer one is a paragraph
_MAX_LABEL = 100


def parse_xml_file(text: str, *, name: str) -> ParsedDocument:
    """Read the elements in document order. `headings` is the path of titles; `paragraph` counts blocks with text.

    Raises DocumentError: damaged, nested too deeply, without text, or with declarations of its own. TooLargeError.
    """
    source, count = _NAMED_TYPE.subn("", _DECLARATION.sub("", clean(text), count=1), count=1)
    unknown: dict[str, None] = {}
    source = _ENTITY.sub(partial(_character, unknown=unknown if count else None), source)
    root = parse_xml(source.encode(), name)
    for element in root.iter(etree.Element):
        element.tag = local_name(element)
    for group in list(root.iter("tgroup")):
        _settle_table(group)
    _settle_lists(root)
    _settle_equations(root)
    writer = BlockWriter(TextBuilder(name))
    if unknown:
        writer.builder.warn(f"Characters that only another file defines are left as their names: {', '.join(unknown)}.")
    _Writer(writer, name).write(root, level=1)
    return writer.builder.build(
        title=choose_title(name, _article_title(root), writer.title),
        media_type=MEDIA_TYPE,
        language=language_of(root.get("{http://www.w3.org/XML/1998/namespace}lang")),
    )


def _character(match: re.Match[str], unknown: dict[str, None] | None) -> str:
    """The character with a name; a name that is not known stays, and is noted in `unknown` unless that is None."""
    name = match[1]
    if name in _OF_XML:
        return match[0]
    letter = _GREEK.get(name.removesuffix("gr;").lower()) if name.endswith("gr;") else None
    found = html5.get(name) or (letter and (letter.upper() if name[0].isupper() else letter))
    if found is None and unknown is not None:
        unknown[match[0]] = None
        return f"&amp;{name}"
    return found or match[0]


def _settle_table(group: Element) -> None:
    """A table as DocBook and patents have it (CALS) becomes one as web pages have it."""
    outer, specs = group.getparent(), list(group.iterchildren("colspec"))
    columns = {spec.get("colname"): place for place, spec in enumerate(specs)}
    for spec in specs:
        group.remove(spec)
    for entry in list(group.iter("entry")):
        first, last = columns.get(entry.get("namest")), columns.get(entry.get("nameend"))
        width = last - first + 1 if first is not None and last is not None and last > first else 1
        height = whole_number(entry.get("morerows"), usual=0, digits=3) + 1
        entry.tag = "td"
        entry.attrib.clear()
        spans = {"colspan": width, "rowspan": height}
        entry.attrib.update({key: str(span) for key, span in spans.items() if span > 1})
    for part in list(group.iter("row", "thead", "tbody", "tfoot")):
        part.tag = "tr" if part.tag == "row" else part.tag
        part.attrib.clear()
    group.tag = "table"
    group.attrib.clear()
    if outer is not None and outer.tag == "table":
        outer.tag = "table-wrap"
        outer.attrib.clear()


def _settle_equations(root: Element) -> None:
    """Write equations on one line; one that stands there in TeX or as a picture as well is read once."""
    for choices in list(root.iter("alternatives")):
        if choices.find("math") is not None:
            for other in [other for other in choices if other.tag != "math"]:
                choices.remove(other)
    for formula in root.iter("disp-formula", "informalequation"):
        formula.tag = "p"
        formula.attrib.clear()
        for label in formula.iterchildren("label"):
            label.tail = " "
    for equation in list(root.iter("math")):
        text = write_math(equation)
        equation[:] = []
        equation.text = text
        equation.attrib.clear()
        outer = equation.getparent()
        if outer is not None and outer.tag == "alternatives" and len(outer) == 1 and not (outer.text or "").strip():
            outer.text = text
            outer.remove(equation)


def _settle_lists(root: Element) -> None:
    """Set `_MARK` on the items of lists: the label that they have, or the number that programs give them."""
    ends: dict[str | None, int] = {}  # id of a list → its last number; None: the list before
    for found in list(root.iter(*_LISTS)):
        items = list(found.iterchildren(*_ITEMS))
        if not items:  # of data
            continue
        format = _FORMATS.get(found.get("list-type") or found.get("numeration") or "")
        if found.tag in _NUMBERED:
            format = format or NumberFormat.DECIMAL
        number = whole_number(found.get("startingnumber") or found.get("start"), usual=1, digits=6) - 1
        if found.get("continuation") == "continues" or found.get("continued-from"):
            number = ends.get(found.get("continued-from"), 0)
        for item in items:
            number += 1
            label = item.find("label")
            if label is not None:
                mark = one_line(_text(label))
                item.remove(label)
            else:
                mark = "" if format is None else f"{write_number(number, format)}."
            item.set(_MARK, mark if any(map(str.isalnum, mark)) else "-")
        if format is not None:
            ends[None] = ends[found.get("id") or ""] = number
        found.attrib.clear()  # they say nothing else


def _article_title(root: Element) -> str | None:
    title = next(root.iter("article-title"), None)
    return None if title is None else one_line(_text(title))


class _Writer:
    """Writes elements; recursion ends at the depth that `parse_xml` allows."""

    def __init__(self, writer: BlockWriter, name: str):
        self._writer = writer
        self._name = name

    def write(self, element: Element, *, level: int) -> None:
        """Write an element; `level` is that of a title in it."""
        if element.tag == "table":
            for run in list(element.iter("sup", "sub")):
                _settle_run(run)
            rows = read_rows(element)
            if rows is not None:
                self._writer.write_table(rows)
                return
        if element.tag == "tr":  # the only one of its table
            self._writer.write_paragraph(" | ".join(filter(None, (one_line(_text(cell)) for cell in element))))
            return
        if element.tag in _ITEMS and any(child.tag in _LISTS for child in element):
            for part in _parts_of_item(element):
                self.write(part, level=level)
            return
        if element.tag in _PARAGRAPHS | _TITLES | _ITEMS or _is_mixed(element) or not len(element):
            if not len(element) and not (element.text or "").strip():
                self._write_values(list(_attributes(element, "")))
            self._write_text(element)
            return
        title = next((child for child in element if child.tag in _TITLES), None)
        number = element.find("label") if title is not None else None
        if title is not None and (heading := one_line(_text(title))):
            before = "" if number is None else f"{one_line(_text(number))} "
            self._writer.write_heading(f"{before}{heading}", level)
        else:
            title = number = None
        values = list(_attributes(element, "")) if title is None else []
        counts = Counter(child.tag for child in element)
        for child in element:
            if child is title or child is number:
                continue
            is_single = counts[child.tag] == 1
            flat = list(_flat_values(child, child.tag, is_single=is_single))
            if flat and is_single:
                values += flat
                continue
            self._write_values(values)
            values = []
            if flat:  # of a list: a line of its own
                self._write_values(flat)
                continue
            self.write(child, level=level + (title is not None))
        self._write_values(values)
        if title is not None:
            self._writer.end_section(level)

    def _write_values(self, values: Sequence[tuple[str, str]]) -> None:
        if values:
            line = " | ".join(f"{key[-_MAX_LABEL:]}: {value}" for key, value in values)
            self._writer.write_paragraph(line, ending="\n")

    def _write_text(self, element: Element) -> None:
        text = _text(element)
        if _MARKUP.search(text):  # a page in a feed
            write_page(self._writer, read_page(text, self._name))
        elif element.tag in _ITEMS:
            mark = element.get(_MARK, "-")
            self._writer.write_paragraph(f"{mark} {one_line(text)}".strip() if text.strip() else "", ending="\n")
        else:
            self._writer.write_paragraph(one_line(text))


def _parts_of_item(item: Element) -> Iterator[Element]:
    """A list item as one for each text of it, and the lists between them."""
    part = etree.Element(item.tag, {_MARK: item.get(_MARK, "-")})
    part.text = item.text
    for child in list(item):
        if child.tag not in _LISTS:
            part.append(child)
            continue
        yield part
        part = etree.Element(item.tag, {_MARK: ""})
        part.text, child.tail = child.tail, None
        yield child
    yield part


def _is_mixed(element: Element) -> bool:
    """Whether text stands beside elements: those only mark parts of it."""
    return bool(len(element)) and any(
        (piece or "").strip() for piece in (element.text, *(child.tail for child in element))
    )


def _flat_values(element: Element, label: str, *, is_single: bool) -> Iterator[tuple[str, str]]:
    """The short value of an element, or those of one that only groups a few; nothing for what is text or a list."""
    if element.tag in _PARAGRAPHS | _TITLES | _ITEMS or _is_mixed(element):
        return
    if not len(element):
        value = one_line(element.text or "")
        if len(value) <= _MAX_VALUE and not _MARKUP.search(value):
            if value:
                yield label, value
            yield from _attributes(element, f"{label} ")
        return
    children = list(element)
    if not is_single or len({child.tag for child in children}) < len(children):
        return
    if any(
        len(child) or child.tag in _PARAGRAPHS | _TITLES or len(child.text or "") > _MAX_VALUE for child in children
    ):
        return
    yield from _attributes(element, f"{label} ")
    for child in children:
        yield from _flat_values(child, f"{label} {child.tag}", is_single=True)


def _attributes(element: Element, label: str) -> Iterator[tuple[str, str]]:
    """Attributes as values, without those that only XML itself needs."""
    for key, value in element.attrib.items():
        name = key.rpartition("}")[2]
        if key.startswith(("{http://www.w3.org/2001/XMLSchema", "{http://www.w3.org/XML/")) or key == _MARK:
            continue
        if value.strip():
            yield f"{label}{name}", one_line(value)[:_MAX_VALUE]


def _settle_run(run: Element) -> None:
    text = "".join(run.itertext())
    run[:] = []
    run.text = raise_run(text) if run.tag == "sup" else lower_run(text)


def _text(element: Element) -> str:
    """All text of an element, with raised and lowered runs as all readers write them."""
    pieces: list[str] = []
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, inner in walk:
        if event == "start":
            if inner.tag in ("sup", "sub") and inner is not element:
                run = "".join(inner.itertext())
                pieces.append(raise_run(run) if inner.tag == "sup" else lower_run(run))
                walk.skip_subtree()
                continue
            mark = inner.get(_MARK) if inner is not element else None
            shown = f"{mark} {inner.text or ''}" if mark else inner.text or ""
            if inner.tag == "xref" and shown.isdecimal() and "".join(pieces[-2:])[-1:].isalnum():
                shown = raise_run(shown)  # the mark of a note or a source, which would be part of the word
            pieces += [" " if inner.tag in _INLINE_BREAKS else "", shown]
        elif inner is not element:
            pieces += [" " if inner.tag in _INLINE_BREAKS else "", inner.tail or ""]
    return "".join(pieces)
