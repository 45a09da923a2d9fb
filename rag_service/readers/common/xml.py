"""XML of untrusted files as lxml elements, and what the office formats share."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from lxml import etree

from rag_service.errors import DocumentError
from rag_service.readers.common.archive import check_xml, damaged

Element = Any  # lxml's elements are untyped


def parse_xml(data: bytes, name: str) -> Element:
    """The root element.

    Raises DocumentError for damaged XML, a document type or entities declared, and deep nesting; `name` is the file's.
    """
    check_xml(io.BytesIO(data), name)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise damaged(name) from error


def whole_number(text: str | None, *, usual: int, digits: int) -> int:
    """The number in an attribute; `usual` without one, or if it has more digits than programs write."""
    return int(text) if text and text.isdecimal() and len(text) <= digits else usual


def read_member(archive: zipfile.ZipFile, member: str, name: str) -> bytes | None:
    """The bytes of a member of `open_archive`, or None without it; raises DocumentError if it is damaged."""
    if member not in archive.NameToInfo:
        return None
    try:
        return archive.read(member)
    except Exception as error:  # zipfile lets zlib's and others' errors through
        raise damaged(name) from error


def read_xml(archive: zipfile.ZipFile, member: str, name: str) -> Element | None:
    """The root element of a member, or None without it; raises as `parse_xml`."""
    data = read_member(archive, member, name)
    return None if data is None else parse_xml(data, name)


def read_part(archive: zipfile.ZipFile, member: str, name: str, lost: list[str]) -> Element | None:
    """The root element of a member that a document can do without; a damaged one is added to `lost` instead."""
    try:
        return read_xml(archive, member, name)
    except DocumentError:
        lost.append(posixpath.basename(member))
        return None


def parts_lost(members: Sequence[str]) -> str:
    """A warning that members were not read."""
    return f"Parts of the file were not read, because they are damaged: {', '.join(dict.fromkeys(members))}."


def relations_of(archive: zipfile.ZipFile, member: str, name: str) -> Mapping[str, tuple[str, str]]:
    """Relationship id → (last word of its type, member) of a part of an Office package, without external targets."""
    folder, file = posixpath.split(member)
    root = read_xml(archive, posixpath.join(folder, "_rels", f"{file}.rels"), name)
    found: dict[str, tuple[str, str]] = {}
    for relation in [] if root is None else root:
        if relation.get("TargetMode") == "External":
            continue
        target = relation.get("Target") or ""
        path = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
        found[relation.get("Id") or ""] = ((relation.get("Type") or "").rpartition("/")[2], path)
    return found


def local_name(element: Element) -> str:
    """The tag without its namespace; empty for comments."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
