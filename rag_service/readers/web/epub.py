"""E-books (EPUB): the chapters in reading order."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from urllib.parse import unquote

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError, ProtectedError
from rag_service.readers.common.archive import damaged, open_archive
from rag_service.readers.common.blocks import BlockWriter
from rag_service.readers.common.builder import TextBuilder, one_line
from rag_service.readers.common.encoding import decode_text
from rag_service.readers.common.names import choose_title, language_of
from rag_service.readers.common.xml import Element, local_name, read_member, read_xml
from rag_service.readers.web.html import read_page, write_page

MEDIA_TYPE = "application/epub+zip"


def parse_epub(data: bytes, *, name: str) -> ParsedDocument:
    """Read the chapters of a book. `headings` is the path within a chapter.

    Raises DocumentError: damaged, hostile, or protected against copying. TooLargeError.
    """
    archive = open_archive(data, name)
    if "META-INF/encryption.xml" in archive.NameToInfo and "META-INF/rights.xml" in archive.NameToInfo:
        raise ProtectedError(f'"{name}" is protected against copying and cannot be read.')
    container = read_xml(archive, "META-INF/container.xml", name)
    package = next((file.get("full-path") for file in _named(container, "rootfile")), None)
    book = None if package is None else read_xml(archive, package, name)
    if book is None or package is None:
        raise damaged(name)
    folder = posixpath.dirname(package)
    files = {item.get("id"): item for item in _named(book, "item")}
    writer = BlockWriter(TextBuilder(name))
    missing = 0
    for reference in _named(book, "itemref"):
        item = files.get(reference.get("idref"))
        if item is None or "nav" in (item.get("properties") or "").split():
            continue  # the table of contents repeats the headings
        path = posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or "")))
        try:
            content = read_member(archive, path, name)
        except DocumentError:  # one chapter is damaged; the others are read
            content = None
        text = None if content is None else decode_text(content)
        if text is None:
            missing += 1
            continue
        writer.begin()
        page = read_page(text, name)
        for note in _named(page, "aside"):
            note.tag = "div"  # a remark of the book, often a footnote; on a page of the web it is furniture
        write_page(writer, page, style=_linked_styles(page, archive, path, name))
    if missing:
        what = "1 chapter of the book is" if missing == 1 else f"{missing} chapters of the book are"
        writer.builder.warn(f"{what} missing, damaged or no text.")
    title, author, language = (next(_texts(book, tag), None) for tag in ("title", "creator", "language"))
    return writer.builder.build(
        title=choose_title(name, title, writer.title),
        media_type=MEDIA_TYPE,
        language=language_of(language),
        metadata={"author": author[:500]} if author else {},
    )


def _linked_styles(page: Element | None, archive: zipfile.ZipFile, path: str, name: str) -> str:
    """The style sheets that a chapter refers to."""
    sheets = []
    for link in _named(page, "link"):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(link.get("href") or "")))
        if "stylesheet" in (link.get("rel") or "").lower().split():
            sheets.append(decode_text(read_member(archive, target, name) or b"") or "")
    return "\n".join(sheets)


def _named(root: Element | None, tag: str) -> Iterator[Element]:
    return (element for element in ([] if root is None else root.iter()) if local_name(element) == tag)


def _texts(root: Element, tag: str) -> Iterator[str]:
    return filter(None, (one_line(element.text or "") for element in _named(root, tag)))
