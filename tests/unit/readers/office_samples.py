# ruff: noqa: E501 - lines of files
"""Office files written by hand: presentations, OpenDocument, e-books, Outlook messages."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
_PRESENTATION = "http://schemas.openxmlformats.org/presentationml/2006/main"
_ALL = f'xmlns:p="{_PRESENTATION}" xmlns:a="{_DRAWING}/main" xmlns:r="{_OFFICE}" xmlns:c="{_DRAWING}/chart"'


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


# -- PowerPoint


def shape(*paragraphs: str, kind: str = "") -> str:
    placeholder = f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>' if kind else "<p:nvPr/>"
    lines = "".join(f"<a:p><a:r><a:t>{escape(text)}</a:t></a:r></a:p>" for text in paragraphs)
    return f"<p:sp><p:nvSpPr>{placeholder}</p:nvSpPr><p:txBody>{lines}</p:txBody></p:sp>"


def slide_table(*rows: Sequence[str]) -> str:
    """A text `<` continues the cell to its left, `^` the cell above."""

    def cell(text: str) -> str:
        merge = {"<": ' hMerge="1"', "^": ' vMerge="1"'}.get(text, "")
        shown = "" if merge else escape(text)
        return f"<a:tc{merge}><a:txBody><a:p><a:r><a:t>{shown}</a:t></a:r></a:p></a:txBody></a:tc>"

    lines = "".join(f"<a:tr>{''.join(map(cell, row))}</a:tr>" for row in rows)
    table = f'<a:tbl><a:tblPr firstRow="1"/>{lines}</a:tbl>'
    return f"<p:graphicFrame><a:graphic><a:graphicData>{table}</a:graphicData></a:graphic></p:graphicFrame>"


def chart_frame(relation: str) -> str:
    chart = f'<a:graphic><a:graphicData><c:chart r:id="{relation}"/></a:graphicData></a:graphic>'
    return f"<p:graphicFrame>{chart}</p:graphicFrame>"


def chart(title: str, categories: Sequence[str], series: Mapping[str, Sequence[str]]) -> str:
    def points(values: Sequence[str]) -> str:
        return "".join(f'<c:pt idx="{i}"><c:v>{escape(value)}</c:v></c:pt>' for i, value in enumerate(values))

    parts = "".join(
        f"<c:ser><c:tx><c:strRef><c:strCache>{points([name])}</c:strCache></c:strRef></c:tx>"
        f"<c:cat><c:strRef><c:strCache>{points(categories)}</c:strCache></c:strRef></c:cat>"
        f"<c:val><c:numRef><c:numCache>{points(values)}</c:numCache></c:numRef></c:val></c:ser>"
        for name, values in series.items()
    )
    heading = f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{escape(title)}</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    body = f"<c:chart>{heading}<c:plotArea><c:barChart>{parts}</c:barChart></c:plotArea></c:chart>"
    return f"<c:chartSpace {_ALL}>{body}</c:chartSpace>"


def pptx(*slides: Sequence[str], notes: Mapping[int, str] = {}, charts: Mapping[int, str] = {}) -> bytes:
    """A presentation of slides, each a list of shapes; notes and charts (relation `rIdC`) by slide number."""
    members: dict[str, str] = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Override PartName="/ppt/presentation.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"/></Types>',
        "_rels/.rels": _relations({"rId1": ("officeDocument", "ppt/presentation.xml")}),
        "ppt/_rels/presentation.xml.rels": _relations(
            {f"rId{number}": ("slide", f"slides/slide{number}.xml") for number in range(1, len(slides) + 1)}
        ),
    }
    listing = "".join(f'<p:sldId id="{255 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    members["ppt/presentation.xml"] = f"<p:presentation {_ALL}><p:sldIdLst>{listing}</p:sldIdLst></p:presentation>"
    for number, shapes in enumerate(slides, start=1):
        related: dict[str, tuple[str, str]] = {}
        if number in notes:
            related["rIdN"] = ("notesSlide", f"../notesSlides/notesSlide{number}.xml")
            members[f"ppt/notesSlides/notesSlide{number}.xml"] = (
                f"<p:notes {_ALL}><p:cSld><p:spTree>{shape(notes[number], kind='body')}{shape('7', kind='sldNum')}"
                "</p:spTree></p:cSld></p:notes>"
            )
        if number in charts:
            related["rIdC"] = ("chart", f"../charts/chart{number}.xml")
            members[f"ppt/charts/chart{number}.xml"] = charts[number]
        members[f"ppt/slides/slide{number}.xml"] = (
            f"<p:sld {_ALL}><p:cSld><p:spTree>{''.join(shapes)}</p:spTree></p:cSld></p:sld>"
        )
        members[f"ppt/slides/_rels/slide{number}.xml.rels"] = _relations(related)
    return zipped(members)


def _relations(related: Mapping[str, tuple[str, str]]) -> str:
    entries = "".join(
        f'<Relationship Id="{key}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for key, (kind, target) in related.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{entries}</Relationships>'


# -- OpenDocument

_ODF_NAMES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in (
        ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"),
        ("presentation", "presentation"), ("meta", "meta"), ("style", "style"),
    )
)  # fmt: skip


def odf(kind: str, body: str, *, title: str = "", styles: str = "") -> bytes:
    """A `text`, `spreadsheet` or `presentation` with this body and these automatic styles."""
    dublin = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    meta = f"<office:meta><dc:title>{escape(title)}</dc:title><dc:language>es-ES</dc:language></office:meta>"
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<office:document-content {_ODF_NAMES}><office:automatic-styles>{styles}"
            f"</office:automatic-styles><office:body><office:{kind}>{body}"
            f"</office:{kind}></office:body></office:document-content>",
            "meta.xml": f"<office:document-meta {_ODF_NAMES} {dublin}>{meta}</office:document-meta>",
        }
    )


def odf_cell(text: str, attributes: str = "") -> str:
    return f"<table:table-cell {attributes}><text:p>{escape(text)}</text:p></table:table-cell>"


def odf_table(*rows: Sequence[str], name: str = "T") -> str:
    lines = "".join(f"<table:table-row>{''.join(row)}</table:table-row>" for row in rows)
    return f'<table:table table:name="{name}">{lines}</table:table>'


# -- EPUB


def epub(chapters: Sequence[str], *, title: str, contents: str = "") -> bytes:
    """A book of XHTML chapters, each with a document type, as books have."""
    names = [f"chapter{number}.xhtml" for number in range(1, len(chapters) + 1)]
    manifest = "".join(f'<item id="{name}" href="text/{name}" media-type="x"/>' for name in names)
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>{escape(title)}</dc:title><dc:creator>Marta Ruiz</dc:creator><dc:language>es</dc:language></metadata>"
        f'<manifest><item id="toc" href="toc.xhtml" properties="nav" media-type="x"/>{manifest}</manifest>'
        f'<spine><itemref idref="toc"/>{spine}</spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    )
    members: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip", "META-INF/container.xml": container, "OEBPS/book.opf": package,
        "OEBPS/toc.xhtml": f"<html><body>{contents}</body></html>",
    }  # fmt: skip
    for name, chapter in zip(names, chapters, strict=True):
        members[f"OEBPS/text/{name}"] = (
            '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
            f"<head><title>x</title></head><body>{chapter}</body></html>"
        )
    return zipped(members)


# -- Outlook

Tree = Mapping[str, "bytes | Tree"]  # streams and storages by name


def compound_file(tree: Tree) -> bytes:
    """A compound file ([MS-CFB]); streams below 4,096 bytes are in the mini stream."""
    sectors: list[bytes] = []
    chains: list[int] = []  # the FAT
    small_sectors: list[bytes] = []
    small_chains: list[int] = []
    entries: list[bytes] = []

    def store(data: bytes, *, small: bool = False) -> int:
        size, kept, chained = (64, small_sectors, small_chains) if small else (512, sectors, chains)
        first = len(kept)
        parts = [data[at : at + size].ljust(size, b"\0") for at in range(0, len(data), size)]
        kept.extend(parts)
        chained.extend([*range(first + 1, first + len(parts)), 0xFFFFFFFE] if parts else [])
        return first if parts else 0xFFFFFFFE

    def entry(name: str, kind: int, child: int, right: int, start: int, size: int) -> bytes:
        encoded = name.encode("utf-16-le")
        length = len(encoded) + 2
        head = encoded.ljust(64, b"\0") + struct.pack("<HBB", length, kind, 1)
        links = struct.pack("<III", 0xFFFFFFFF, right, child)
        return head + links + bytes(16 + 4 + 16) + struct.pack("<IQ", start, size)

    def write(branch: Tree) -> int:
        """Write the entries of a storage; returns the index of the first, whose right siblings follow it."""
        first = 0xFFFFFFFF
        for name, content in reversed(list(branch.items())):
            if isinstance(content, bytes):
                made = entry(name, 2, 0xFFFFFFFF, first, store(content, small=len(content) < 4_096), len(content))
            else:
                made = entry(name, 1, write(content), first, 0, 0)
            first = len(entries)
            entries.append(made)
        return first

    entries.append(b"")
    child = write(tree)
    small = b"".join(small_sectors)
    entries[0] = entry("Root Entry", 5, child, 0xFFFFFFFF, store(small), len(small))
    small_table = struct.pack(f"<{len(small_chains)}I", *small_chains)
    small_table += b"\xff" * (-len(small_table) % 512)
    first_small_table = store(small_table)
    directory = store(b"".join(entries))
    fat_count = 1
    while fat_count * 128 < len(sectors) + fat_count:
        fat_count += 1
    first_fat = len(sectors)
    chains.extend([0xFFFFFFFD] * fat_count)
    table = struct.pack(f"<{len(chains)}I", *chains).ljust(fat_count * 512, b"\xff")
    sectors.append(table)
    places = [first_fat + number for number in range(fat_count)]
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    header += bytes(6) + struct.pack(
        "<IIIIIII", 0, fat_count, directory, 0, 4_096, first_small_table, len(small_table) // 512
    )
    header += struct.pack("<II", 0xFFFFFFFE, 0)
    header += struct.pack("<109I", *places, *[0xFFFFFFFF] * (109 - len(places)))
    return header + b"".join(sectors)


def msg(properties: Mapping[str, str], *, attachments: Sequence[tuple[str, bytes]] = (), html: bytes = b"") -> bytes:
    """An Outlook message with texts by property tag ("0037" is the subject)."""
    tree: dict[str, bytes | Tree] = {"__properties_version1.0": bytes(32)}
    tree |= {f"__substg1.0_{tag}001F": text.encode("utf-16-le") for tag, text in properties.items()}
    if html:
        tree["__substg1.0_10130102"] = html
    for number, (name, data) in enumerate(attachments):
        tree[f"__attach_version1.0_#{number:08X}"] = {
            "__properties_version1.0": bytes(8),
            "__substg1.0_3707001F": name.encode("utf-16-le"),
            "__substg1.0_37010102": data,
        }
    return compound_file(tree)
