"""Web pages: the main content as headings, paragraphs, lists and tables.

Left out: scripts, styles, controls, what is hidden or struck out, and navigation. Navigation is what the page declares
as such (by element, role, class or id), everything outside `main` where a page has it, and lists that consist of links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from lxml import etree, html

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError, TooLargeError
from rag_service.readers.common.blocks import BlockWriter
from rag_service.readers.common.builder import HIDDEN, STRUCK_OUT, TextBuilder, clean, one_line
from rag_service.readers.common.cells import Cell, Row, is_number_like
from rag_service.readers.common.equations import write_math
from rag_service.readers.common.names import choose_title, language_of
from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.common.xml import Element, local_name, whole_number
from rag_service.readers.web.html_hidden import drop_hidden
from rag_service.readers.web.html_numbering import NUMBER, settle_numbers

MEDIA_TYPE = "text/html"
_SKIPPED = frozenset({
    "script", "style", "noscript", "template", "iframe", "svg", "object", "embed", "button", "select",
    "option", "textarea", "input", "nav", "aside", "footer", "canvas", "audio", "video", "map", "head",
})  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset({
    "p", "div", "section", "article", "main", "header", "ul", "ol", "dl", "dt", "dd", "li", "blockquote", "pre",
    "table", "figure", "figcaption", "address", "fieldset", "form", "hr", "body", "html", "details", "summary",
    "center", "legend", "tr", "td", "th", "caption",
}) | set(_HEADINGS)  # fmt: skip
_NAVIGATION_ROLES = frozenset({"navigation", "search", "menu", "menubar", "banner", "contentinfo", "complementary"})
_NAVIGATION_NAMES = frozenset({
    "nav", "navbar", "navigation", "menu", "breadcrumb", "breadcrumbs", "footer", "sidebar", "cookie", "cookies",
    "cookie-banner", "cookie-notice", "skip-link", "skiplink", "social", "share", "sharing", "pagination",
    "advertisement",
})  # fmt: skip
_LINKS_SHARE, _MIN_LINKS = 0.8, 4  # of the text of a list in links: navigation
_MIN_MAIN = 100  # characters; a `main` with less is filled by a script
_MAX_LINK = 200  # characters of a target that is written; longer ones track the reader
_BEFORE, _AFTER = re.compile(r"[$€£¥] ?\(?|\("), re.compile(r"\) ?%?|%")  # signs of an amount
_SIGN = re.compile(f"{_BEFORE.pattern}|{_AFTER.pattern}")
_MAX_SPAN = 200  # columns or rows that a merged cell may cover
_MAX_CELLS = 200_000
_BULLET = "- "


def parse_html(text: str, *, name: str) -> ParsedDocument:
    """Read a saved or fetched page. `headings` is the path by `h1` to `h6`; `paragraph` counts blocks with text.

    Raises DocumentError without text, and TooLargeError.
    """
    root = read_page(text, name)
    writer = BlockWriter(TextBuilder(name))
    write_page(writer, root)
    if root is not None and root.find(".//iframe") is not None:
        writer.builder.warn("The page embeds other pages, which were not read.")
    title = None if root is None else root.findtext(".//title")
    description = None if root is None else root.find('.//meta[@name="description"]')
    shown = one_line(description.get("content") or "")[:500] if description is not None else ""
    return writer.builder.build(
        title=choose_title(name, writer.title, title),
        media_type=MEDIA_TYPE,
        language=None if root is None else language_of(root.get("lang") or root.get("xml:lang")),
        metadata={"description": shown} if shown else {},
    )


def read_page(text: str, name: str) -> Element | None:
    """The root of a page, whose errors libxml2 repairs; None for an empty one.

    Raises DocumentError for a page nested so deeply that libxml2 drops the rest of it; `name` is the file's.
    """
    parser = html.HTMLParser(
        remove_comments=True, remove_pis=True, no_network=True, encoding="utf-8", huge_tree=True
    )  # huge: 2,048 levels instead of 256, which old pages with unclosed tags exceed
    try:
        root = html.document_fromstring(clean(text).encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):  # an empty page
        return None
    if any(error.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for error in parser.error_log):
        raise DocumentError(f'"{name}" is nested too deeply to be read. Print the page to a PDF and upload that.')
    return root


def write_page(writer: BlockWriter, root: Element | None, *, style: str = "") -> None:
    """Write the main content of a page; `style` is the text of its style sheets that are files of their own."""
    if root is None:
        return
    looks = drop_hidden(root, style)
    if _settle_characters(root, looks.kinds):
        writer.builder.warn(STRUCK_OUT)
    settle_numbers(root)
    body = root.find("body")
    top = root if body is None else body
    mains = [found for found in top.iter("main") if len("".join(found.itertext()).strip()) >= _MIN_MAIN]
    mains = mains or [found for found in top.xpath("//*[@role='main']") if len(found.text_content()) >= _MIN_MAIN]
    if any(not mains or mains[0] in (place, *place.iterancestors()) for place in looks.emptied):
        writer.builder.warn(HIDDEN)
    before = len(writer.builder)
    for part in mains[:1] or [top]:
        _Page(writer, has_main=bool(mains)).write(part)
    if len(writer.builder) == before and not mains:
        _Page(writer, has_main=True, is_navigation=True).write(top)  # a page of links: they are what it is for


def _settle_characters(root: Element, styled: Mapping[Element, str]) -> bool:
    """Write equations, raised and lowered runs as all readers do, and drop what is struck out; whether anything was."""
    for equation in list(root.iter("math")):
        shown = write_math(equation) or one_line(equation.get("alttext") or "")
        equation[:] = []
        equation.text = shown
    struck: list[Element] = []
    scripts: list[Element] = []
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        kind = styled.get(element) or _kind_of_tag(element)
        if kind == "struck" and element is not root:
            struck.append(element)
            walk.skip_subtree()
        elif kind in ("sup", "sub") and not any(local_name(inner) in _BLOCKS for inner in element.iter()):
            scripts.append(element)
            walk.skip_subtree()
    for element in scripts:
        text = element.text_content()
        element[:] = []
        kind = styled.get(element) or _kind_of_tag(element)
        element.text = raise_run(text) if kind == "sup" else lower_run(text)
    for element in struck:
        element.drop_tree()
    return bool(struck)


def _kind_of_tag(element: Element) -> str:
    """struck, sup or sub; or another tag."""
    tag = local_name(element)
    return "struck" if tag in ("s", "strike", "del") else tag


class _Page:
    """Writes blocks while it walks the elements, without recursion: pages may be nested as deep as they like."""

    def __init__(self, writer: BlockWriter, *, has_main: bool, is_navigation: bool = False):
        self._writer = writer
        self._has_main = has_main
        self._keeps_navigation = is_navigation
        self._pieces: list[str] = []  # of the block that is open
        self._heading: int | None = None
        self._mark: str | None = None  # of the list item that has begun and has no text yet
        self._keeps_lines = 0
        self._skip: Element | None = None  # a table that was written, or something left out: only its tail remains

    def write(self, root: Element) -> None:
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            tag = local_name(element).lower()
            if event == "end":
                self._leave(element, tag, is_root=element is root)
                continue
            if element is not root and self._is_skipped(element, tag):
                walk.skip_subtree()
                continue
            if tag == "table" and (rows := read_rows(element)) is not None:
                self._flush()
                self._writer.write_paragraph(_caption(element))
                self._writer.write_table(rows)
                walk.skip_subtree()
                self._skip = element
                continue
            self._enter(element, tag)

    def _is_skipped(self, element: Element, tag: str) -> bool:
        if not tag or tag in _SKIPPED or self._is_navigation(element, tag):
            self._skip = element
            return True
        return False

    def _is_navigation(self, element: Element, tag: str) -> bool:
        if self._keeps_navigation:
            return False
        if (element.get("role") or "") in _NAVIGATION_ROLES:
            return True
        names = {word.lower() for key in ("class", "id") for word in (element.get(key) or "").split()}
        if tag in ("div", "ul", "ol", "section", "p", "header") and names & _NAVIGATION_NAMES:
            return True
        if tag == "header" and not self._has_main and element.find(".//h1") is None:
            return True
        return tag in ("ul", "ol") and _is_link_list(element) and (not self._has_main or _names_languages(element))

    def _enter(self, element: Element, tag: str) -> None:
        if tag in _BLOCKS:
            self._flush()
        if tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag == "blockquote":
            self._writer.begin_quote(is_cited=_is_cited(element))
        elif tag == "li":
            self._mark = _mark(element, within=self._mark)
        elif tag == "br":
            self._pieces.append("\n")
        elif tag == "pre":
            self._keeps_lines += 1
        elif tag == "img" and (words := one_line(element.get("alt") or "")):
            self._pieces.append(f" {words} ")
        elif tag == "a" and _target(element):
            self._pieces.append("[")
        self._add(element.text)

    def _leave(self, element: Element, tag: str, *, is_root: bool) -> None:
        if element is self._skip:
            self._skip = None
        else:
            if tag == "a" and (target := _target(element)):
                self._pieces.append(f"]({target})")
            if tag in _BLOCKS or is_root:
                self._flush()
            if tag == "blockquote":
                self._writer.end_quote()
            if tag == "pre":
                self._keeps_lines -= 1
            if tag == "li":
                self._mark = None
        if not is_root:
            self._add(element.tail)

    def _add(self, text: str | None) -> None:
        if text:
            self._pieces.append(text if self._keeps_lines else re.sub(r"\s+", " ", text))

    def _flush(self) -> None:
        text = "".join(self._pieces)
        if not self._keeps_lines:
            text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
        text = text.strip()
        self._pieces.clear()
        heading, self._heading = self._heading, None
        if not text:
            return
        mark = self._mark or ""
        if heading is None:
            self._writer.write_paragraph(mark + text, ending="\n\n" if self._mark is None else "\n")
        else:
            self._writer.write_heading(text if mark == _BULLET else mark + text, heading)
        if heading is None or mark != _BULLET:
            self._mark = None


def _mark(item: Element, *, within: str | None) -> str:
    """What stands before an item: a dash or its number, after that of the item `within` which it is the first text."""
    number = item.get(NUMBER)
    if number is None:
        return _BULLET
    above = "" if within in (None, _BULLET) else within
    return f"{above}{number} " if number else f"{above}"


def _is_cited(quote: Element) -> bool:
    """Whether a mail program quotes a message, as it says in the type or the class."""
    return (quote.get("type") or "").lower() == "cite" or "quote" in (quote.get("class") or "").lower()


def _is_link_list(element: Element) -> bool:
    links = [one_line("".join(link.itertext())) for link in element.iter("a")]
    whole = len(one_line("".join(element.itertext())))
    return len(links) >= _MIN_LINKS and sum(map(len, links)) >= _LINKS_SHARE * whole


def _names_languages(element: Element) -> bool:
    """Whether the links of a list lead to the page in other languages, as they declare."""
    return all(link.get("hreflang") for link in element.iter("a"))


def _target(link: Element) -> str:
    """The target of a link, if it leads out of the page and says more than the words of the link."""
    target = (link.get("href") or "").strip()
    if len(target) > _MAX_LINK or not target.startswith(("https://", "http://", "mailto:")):
        return ""
    if any(character in target for character in " ()<>\n") or not "".join(link.itertext()).strip():
        return ""
    return "" if "".join(link.itertext()).strip() in (target, target.removeprefix("mailto:")) else target


def _caption(table: Element) -> str:
    caption = table.find("caption")
    return "" if caption is None else one_line("".join(caption.itertext()))


def read_rows(table: Element) -> list[Row] | None:
    """The rows of a table of data; None for one that only lays out the page, whose cells are blocks."""
    if (table.get("role") or "") in ("presentation", "none"):
        return None
    if table.find(".//table") is not None or any(table.find(f".//{tag}") is not None for tag in _HEADINGS):
        return None
    rows = _join_signs(list(_read_rows(table)))
    return rows if len(rows) > 1 and any(len(row.cells) > 1 for row in rows) else None


def _join_signs(rows: Sequence[Row]) -> list[Row]:
    """The rows with each figure in one cell: financial reports put "$" and ")" into columns of their own.

    Such a column holds nothing else, besides cells that go on over the next one.
    """
    texts: dict[int, set[str]] = {}
    for row in rows:
        spanned = {cell.column for cell in row.cells if cell.is_spanned}
        for cell in row.values:
            if cell.column + 1 not in spanned:
                texts.setdefault(cell.column, set()).add(cell.text)
    signs = {column for column, found in texts.items() if all(map(_SIGN.fullmatch, found))}
    return [replace(row, cells=_joined_cells(row.cells, signs)) for row in rows] if signs else list(rows)


def _joined_cells(cells: Sequence[Cell], signs: Set[int]) -> list[Cell]:
    joined: list[Cell] = []
    for cell in cells:
        last = joined[-1] if joined else None
        if last is None or cell.column != last.column + 1:
            joined.append(cell)
        elif last.column in signs and _BEFORE.fullmatch(last.text) and _is_amount(cell):
            joined[-1] = replace(cell, text=last.text + cell.text, is_text=False)
        elif cell.column in signs and _AFTER.fullmatch(cell.text) and _is_amount(last):
            joined[-1] = replace(last, text=last.text + cell.text)
        else:
            joined.append(cell)
    return joined


def _is_amount(cell: Cell) -> bool:
    return not cell.is_spanned and (not cell.is_text or cell.text in ("-", "–", "—"))


def _read_rows(table: Element) -> Iterator[Row]:
    """Rows with text. Cells merged downwards are repeated in each row; those over several columns name them all."""
    merged: dict[int, tuple[int, Cell]] = {}  # column → (rows left, cell)
    count = 0
    in_order = sorted(table.iter("tr"), key=lambda row: local_name(row.getparent()) == "tfoot")  # a page shows it last
    for number, row in enumerate(in_order, start=1):
        repeated, column = merged, 1
        merged = {place: (left - 1, cell) for place, (left, cell) in repeated.items() if left > 1}
        cells = [cell for _, cell in repeated.values()]
        parts = [cell for cell in row if local_name(cell) in ("td", "th")]
        for part in parts:
            while column in repeated:
                column += 1
            width, height = _span(part, "colspan"), _span(part, "rowspan")
            text = one_line(_cell_text(part))
            strong = local_name(part) == "th" or _is_bold(part)
            for place in range(column, column + width if text else column):
                cell = Cell(place, text, not is_number_like(text), is_spanned=place > column, is_strong=strong)
                cells.append(cell)
                if height > 1:
                    merged[place] = (height - 1, cell)
            column += width
        count += len(cells)
        if count > _MAX_CELLS:
            raise TooLargeError(f"A table of the page has more than {_MAX_CELLS:,} cells. Split the file.")
        if cells:
            in_head = local_name(row.getparent()) == "thead"
            all_names = bool(parts) and all(local_name(part) == "th" for part in parts)
            yield Row(number, sorted(cells, key=lambda cell: cell.column), is_header=in_head or all_names)


def _cell_text(cell: Element) -> str:
    pieces: list[str] = []
    for event, element in etree.iterwalk(cell, events=("start", "end")):
        tag = local_name(element)
        if event == "start":
            pieces.append(" " if tag in _BLOCKS or tag == "br" else "")
            pieces.append(f"{element.get(NUMBER)} " if element.get(NUMBER) else "")
            pieces.append(element.text or "" if tag not in ("script", "style") else "")
        elif element is not cell:
            pieces += [" " if tag in _BLOCKS else "", element.tail or ""]
    return "".join(pieces)


def _is_bold(cell: Element) -> bool:
    marked = "".join("".join(part.itertext()) for part in cell if local_name(part) in ("b", "strong"))
    return bool(marked.strip()) and one_line(marked) == one_line("".join(cell.itertext()))


def _span(cell: Element, attribute: str) -> int:
    return min(max(whole_number(cell.get(attribute), usual=1, digits=5), 1), _MAX_SPAN)
