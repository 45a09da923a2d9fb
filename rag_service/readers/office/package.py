"""Office packages that the readers' libraries know only in another form: Strict Office Open XML, templates, macros.

Strict files differ in the names of their namespaces and relations (ISO/IEC 29500-4, annex A); templates and files with
macros in the content type of their main part. Macros are never kept.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping

from lxml import etree

from rag_service.readers.common.archive import check_members, open_archive
from rag_service.readers.common.builder import one_line
from rag_service.readers.common.xml import Element, local_name, read_member, read_part, read_xml, relations_of

MACROS = "The macros (programs) in the file were not read."
_TYPES, _RELATIONS = "[Content_Types].xml", "_rels/.rels"
_STRICT_MARK = b"http://purl.oclc.org/ooxml/"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_USUAL = rb"http://schemas.openxmlformats.org/\1/2006/"
_OFFICE = b"application/vnd.openxmlformats-officedocument."
_STYLES = {  # what of the styles of a workbook says how values are shown: elements and their attributes
    "styleSheet": (), "numFmts": (), "numFmt": ("numFmtId", "formatCode"), "fonts": (), "font": (), "b": ("val",),
    "strike": ("val",), "vertAlign": ("val",), "color": ("rgb", "theme", "indexed"), "fills": (), "fill": (),
    "patternFill": ("patternType",), "fgColor": ("rgb", "theme", "indexed"), "borders": (), "border": (),
    "cellXfs": (), "cellStyleXfs": (), "xf": ("numFmtId", "fontId", "fillId", "borderId", "xfId"),
}  # fmt: skip
_MAIN_TYPES = (
    (b"application/vnd.ms-word.document.macroEnabled.main+xml", b"wordprocessingml.document.main+xml"),
    (b"application/vnd.ms-excel.sheet.macroEnabled.main+xml", b"spreadsheetml.sheet.main+xml"),
    (b"application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml", b"presentationml.presentation.main+xml"),
    (_OFFICE + b"wordprocessingml.template.main+xml", b"wordprocessingml.document.main+xml"),
)


def usual_package(data: bytes, name: str) -> tuple[bytes, bool]:
    """The package as the readers know it, and whether it had macros.

    Raises DocumentError: damaged or hostile. TooLargeError: unpacks to too much.
    """
    archive = open_archive(data, name)
    types = read_member(archive, _TYPES, name) or b""
    is_strict = _STRICT_MARK in (read_member(archive, _RELATIONS, name) or b"")
    if not is_strict and not any(kind in types for kind, _ in _MAIN_TYPES):
        return data, False
    check_members(archive, name)
    changed = io.BytesIO()
    with zipfile.ZipFile(changed, "w", zipfile.ZIP_STORED) as usual:
        for member in archive.NameToInfo:
            if not member.lower().endswith("vbaproject.bin"):
                usual.writestr(member, _rewritten(member, read_member(archive, member, name) or b""))
    return changed.getvalue(), b"macroEnabled.main+xml" in types


def without_lost_parts(data: bytes, archive: zipfile.ZipFile, name: str) -> bytes:
    """The package without relations to parts that it lacks: Word shows the rest, but python-docx refuses all of it."""
    changed: dict[str, bytes] = {}
    for member in archive.NameToInfo:
        if not member.endswith(".rels"):
            continue
        of_part = member.replace("_rels/", "", 1) if member.startswith("_rels/") else member.replace("/_rels/", "/", 1)
        lost = {
            key
            for key, (_, path) in relations_of(archive, of_part.removesuffix(".rels"), name).items()
            if path not in archive.NameToInfo
        }
        root = read_xml(archive, member, name) if lost else None
        if root is None:
            continue
        for relation in list(root):
            if relation.get("Id") in lost and relation.get("TargetMode") != "External":
                root.remove(relation)
        changed[member] = etree.tostring(root)
    if not changed:
        return data
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_STORED) as package:
        for member in archive.NameToInfo:
            package.writestr(member, changed.get(member) or read_member(archive, member, name) or b"")
    return kept.getvalue()


def read_properties(archive: zipfile.ZipFile, name: str) -> Mapping[str, str]:
    """The properties of a document by their names, such as title, creator and language; none if they are damaged."""
    path = next((path for kind, path in relations_of(archive, "", name).values() if kind == "core-properties"), "")
    root = read_part(archive, path, name, [])
    return {} if root is None else {local_name(part): one_line(part.text or "")[:500] for part in root}


def without_decoration(archive: zipfile.ZipFile, name: str) -> bytes:
    """A workbook without its properties, and with those of its styles that say how values are shown."""
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_STORED) as package:
        for member in archive.NameToInfo:
            if member.endswith("styles.xml"):
                package.writestr(member, _plain_styles(read_xml(archive, member, name)))
            elif not member.startswith("docProps/"):
                package.writestr(member, read_member(archive, member, name) or b"")
    return kept.getvalue()


def _plain_styles(root: Element) -> bytes:
    for element in list(root.iter()):
        attributes = _STYLES.get(local_name(element))
        if attributes is None:
            if element.getparent() is not None:
                element.getparent().remove(element)
            continue
        for key in set(element.attrib).difference(attributes):
            del element.attrib[key]
    return bytes(etree.tostring(root))


def _rewritten(member: str, content: bytes) -> bytes:
    if member == _TYPES:
        for kind, usual in _MAIN_TYPES:
            content = content.replace(kind, _OFFICE + usual)
    return _STRICT.sub(_USUAL, content) if member.endswith((".xml", ".rels")) else content
