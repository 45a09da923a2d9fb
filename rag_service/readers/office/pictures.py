"""Pictures in Office files: read by text recognition where it is on, and told in one warning where they are not."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping

from rag_service.readers.common.builder import TextBuilder, pictures_not_read
from rag_service.readers.common.embedded_files import Parts
from rag_service.readers.common.xml import Element, local_name, read_member
from rag_service.readers.ocr.recognition import HOW_TO_INSTALL, is_installed, may_recognise

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_BLIP, _IMAGE = _A + "blip", "{urn:schemas-microsoft-com:vml}imagedata"  # of today's drawings, and of old ones
_RELATIONS = (_R + "embed", _R + "link", _R + "id", "{urn:schemas-microsoft-com:office:office}relid")
_SIZES = (f"{_A}xfrm/{_A}ext", f"{{*}}spPr/{_A}xfrm/{_A}ext", "{*}extent", "{*}ext")
_NOT_SHOWN = frozenset({"Fallback", "del", "moveFrom"})
_HOLDERS = frozenset({"p", "spTree", "grpSp", "wgp", "wsDr"})  # of drawings, whose size is another
_STYLE = re.compile(r"(?:^|;)(?:width|height):([\d.]+)pt")
_ORNAMENT = 32  # pixels; what is smaller both ways is an icon
_EMU, _POINTS = 9525, 0.75  # of a pixel
_RECOGNISED = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|II\*\0|MM\0\*|RIFF....WEBP", re.DOTALL)  # as `images` reads
_MAX_PLACES = 300  # characters of a warning

Relations = Mapping[str, tuple[str, str]]  # as `relations_of` gives them


class Pictures:
    """The pictures of a document, each once."""

    def __init__(self, archive: zipfile.ZipFile, name: str, parts: Parts):
        self._archive, self._name, self._parts = archive, name, parts
        self._seen: set[str] = set()
        self._texts = 0
        self._unread: Counter[str] = Counter()  # by place
        self._warnings: list[str] = []

    def read(self, element: Element, related: Relations, *, place: str) -> Iterator[tuple[str, str]]:
        """(part, text) of the recognised pictures in an element, which stands at a place: "slide 3"."""
        for mark in element.iter(_BLIP, _IMAGE):
            relation = next((value for key in _RELATIONS if (value := mark.get(key))), None)
            if relation is None or not _is_shown(mark) or max(_shown_size(mark), default=_ORNAMENT) < _ORNAMENT:
                continue
            yield from self.read_file(related.get(relation, ("", ""))[1], place=place)

    def read_file(self, member: str, *, place: str) -> Iterator[tuple[str, str]]:
        """(part, text) of a picture by its member, if it has text; an empty member lies outside the file."""
        if member in self._seen:
            return
        if member in self._archive.NameToInfo:
            self._seen.add(member)
            with self._archive.open(member) as source:
                head = source.read(32)
            if max(_pixels(head), default=_ORNAMENT) < _ORNAMENT:
                return
            if _RECOGNISED.match(head) and may_recognise():
                data = read_member(self._archive, member, self._name) or b""
                part = f"picture {self._texts + 1}"
                found = self._parts.recognise(data, path=part)
                if found is not None:
                    text, warnings = found
                    self._warnings += [f"{part}: {warning}" for warning in warnings]
                    self._texts += bool(text)
                    yield from [(part, text)] if text else ()
                    return
        self._unread[place] += 1

    def warn(self, builder: TextBuilder) -> None:
        """Tell which pictures were not read, in one warning."""
        for warning in self._warnings:
            builder.warn(warning)
        count = self._unread.total()
        if not count:
            return
        listed = ""
        for place, number in self._unread.items():
            entry = place if number == 1 else f"{place} ({number})"
            if len(listed) + len(entry) > _MAX_PLACES:
                listed += ", …"
                break
            listed += f", {entry}" if listed else entry
        told = pictures_not_read(count, f": {listed}")
        builder.warn(told if is_installed() else f"{told} {HOW_TO_INSTALL}")


def _is_shown(mark: Element) -> bool:
    """Whether a picture is neither deleted nor the double of another for old programs."""
    return not any(local_name(above) in _NOT_SHOWN for above in mark.iterancestors())


def _shown_size(mark: Element) -> list[float]:
    """Width and height in pixels as the drawing says them; nothing if it does not."""
    if mark.tag == _IMAGE:
        found = _STYLE.findall((mark.getparent().get("style") or "").replace(" ", ""))
        return [float(length) / _POINTS for length in found if length.count(".") < 2] if len(found) == 2 else []
    for above in mark.iterancestors():
        if local_name(above) in _HOLDERS:
            break
        for path in _SIZES:
            size = above.find(path)
            lengths = () if size is None else (size.get("cx") or "", size.get("cy") or "")
            if lengths and all(length.isdecimal() and len(length) < 15 for length in lengths):
                return [int(length) / _EMU for length in lengths]
    return []


def _pixels(head: bytes) -> list[int]:
    """Width and height of a PNG or GIF file; nothing for others."""
    if head.startswith(b"\x89PNG"):
        return [int.from_bytes(head[at : at + 4]) for at in (16, 20)]
    if head.startswith(b"GIF8"):
        return [int.from_bytes(head[at : at + 2], "little") for at in (6, 8)]
    return []
