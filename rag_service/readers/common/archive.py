"""Checks the ZIP container of an Office file before any library opens it.

Office libraries trust their input. Here every member is measured and every XML member is read once with defusedxml,
so that zip bombs, entities and extreme nesting never reach them.
"""

from __future__ import annotations

import codecs
import io
import re
import zipfile
import zlib
from contextlib import suppress
from typing import IO
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler

from defusedxml.common import DefusedXmlException
from defusedxml.sax import parse as defused_parse
from lxml import etree

from rag_service.errors import DocumentError, ProtectedError, TooLargeError

MAX_MEMBERS = 5_000
MAX_UNPACKED = 200 * 1024 * 1024  # bytes of all members together, as declared; zipfile never reads more
MAX_RATIO = 200  # unpacked to packed, of a member above `_RATIO_FROM`; real sheets reach about 50
_RATIO_FROM = 10 * 1024 * 1024
MAX_DEPTH = 200  # nested elements; Word's nested tables stay below 100, libxml2 stops at 256
_CHUNK = 1024 * 1024
# The beginning of a web page, which Word documents may contain: its document type only has a name.
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^<>]{0,200}\?>\s*)?<!doctype\s+html[^<>\[\]]{0,300}>", re.IGNORECASE
)
_PAGE_HEAD = 600  # bytes that it may take


class _DepthGuard(ContentHandler):
    """Rejects deep nesting, which would exhaust the stack of recursive readers."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def startElement(self, name: str, attrs: object) -> None:  # noqa: N802 - SAX
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _TooDeepError

    def endElement(self, name: str) -> None:  # noqa: N802 - SAX
        self._depth -= 1


class _TooDeepError(Exception):
    pass


def open_archive(data: bytes, name: str) -> zipfile.ZipFile:
    """Open a ZIP file and check its list of members, without unpacking any.

    Raises:
        DocumentError: damaged, cut off, password-protected, or with unusual compression.
        TooLargeError: too many members, too large, or a bomb by its declared sizes. A false declaration ends as a
            damaged member.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError) as error:
        raise damaged(name) from error
    members = archive.infolist()
    if len(members) > MAX_MEMBERS or sum(member.file_size for member in members) > MAX_UNPACKED:
        raise _bomb(name)
    for member in members:
        if member.file_size > _RATIO_FROM and member.file_size > MAX_RATIO * max(member.compress_size, 1):
            raise _bomb(name)
        if member.flag_bits & 0x1:
            raise ProtectedError(f'"{name}" is protected by a password. Save a copy without it and upload that.')
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DocumentError(f'"{name}" uses an unusual compression. Open it, save it again and upload that.')
    return archive


def check_members(archive: zipfile.ZipFile, name: str) -> None:
    """Unpack every member of an archive of `open_archive` once; parse with defusedxml what looks like XML.

    Broken XML is left to the reader that needs it: most often it is the data of some program.

    Raises DocumentError: damaged, an XML bomb (document type or entities declared), or deep nesting.
    """
    for member in archive.infolist():
        try:
            with archive.open(member) as source:
                # To the end in both cases, where zipfile compares the checksum.
                head = source.read(_PAGE_HEAD)
                if _begins_like_xml(head) and not _PAGE.match(head):
                    source.seek(0)
                    _check_member(source.read(), name)
                else:
                    while source.read(_CHUNK):
                        pass
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise damaged(name) from error


def _check_member(data: bytes, name: str) -> None:
    """`check_xml`, but what only expat cannot read is left to lxml, which the readers use, if it declares nothing."""
    try:
        check_xml(io.BytesIO(data), name)
    except DocumentError as error:
        if not isinstance(error.__cause__, SAXParseException):
            raise
        with suppress(etree.XMLSyntaxError):
            root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
            if root.getroottree().docinfo.internalDTD is not None:
                raise


def check_xml(source: IO[bytes], name: str) -> None:
    """Parse XML with defusedxml to its end; raises DocumentError as `check_members`."""
    try:
        defused_parse(source, _DepthGuard(), forbid_dtd=True)
    except DefusedXmlException as error:
        raise DocumentError(
            f'"{name}" contains XML declarations (a document type or entities) that documents do not need, but that '
            "attackers use. It was not read. Save it again with the program that made it and upload the new file."
        ) from error
    except _TooDeepError as error:
        raise DocumentError(
            f'"{name}" is nested too deeply to be read. Simplify its tables, or upload it as a PDF.'
        ) from error
    except (SAXParseException, ValueError) as error:
        raise damaged(name) from error


def damaged(name: str) -> DocumentError:
    return DocumentError(
        f'"{name}" is damaged or incomplete. Open it in your Office program, save it again and upload that.'
    )


def _bomb(name: str) -> TooLargeError:
    return TooLargeError(
        f'"{name}" unpacks to far more data than a document holds, and was not read. '
        "If it is genuine, split it or export it as CSV or PDF."
    )


def _begins_like_xml(head: bytes) -> bool:
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        head = head.removeprefix(mark)
    return head.lstrip(b" \t\r\n\x00").startswith(b"<")
