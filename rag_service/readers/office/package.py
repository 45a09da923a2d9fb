"""Office packages that the readers' libraries know only in another form: Strict Office Open XML, templates, macros.

Strict files differ in the names of their namespaces and relations (ISO/IEC 29500-4, annex A); templates and files with
macros in the content type of their main part. Macros are never kept.
"""

from __future__ import annotations

import io
import re
import zipfile

from lxml import etree

from rag_service.readers.common.archive import check_members, open_archive
from rag_service.readers.common.xml import read_member, read_xml, relations_of

MACROS = "The macros (programs) in the file were not read."
_TYPES, _RELATIONS = "[Content_Types].xml", "_rels/.rels"
_STRICT_MARK = b"http://purl.oclc.org/ooxml/"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_USUAL = rb"http://schemas.openxmlformats.org/\1/2006/"
_OFFICE = b"application/vnd.openxmlformats-officedocument."
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


def _rewritten(member: str, content: bytes) -> bytes:
    if member == _TYPES:
        for kind, usual in _MAIN_TYPES:
            content = content.replace(kind, _OFFICE + usual)
    return _STRICT.sub(_USUAL, content) if member.endswith((".xml", ".rels")) else content
