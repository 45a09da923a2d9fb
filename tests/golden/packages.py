"""What files of several formats share: a day, the ZIP package, its Strict and its macro-enabled variant."""

from __future__ import annotations

import datetime
import io
import re
import zipfile

from tests.unit.readers import office_samples as office
from tests.unit.readers.samples import with_members

DAY = datetime.datetime(2026, 3, 2, 10, 0)


def fixed(data: bytes) -> bytes:
    """A ZIP file without the time at which it was made."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            new.writestr(
                zipfile.ZipInfo(member.filename, (2026, 3, 2, 10, 0, 0)), old.read(member), zipfile.ZIP_DEFLATED
            )
    return buffer.getvalue()


def strict(data: bytes) -> bytes:
    """The package in the namespaces of Strict Office Open XML, as Office saves it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    usual = re.compile(rb"http://schemas\.openxmlformats\.org/(\w+)/2006/(?!metadata|content-types)")
    for name, content in members.items():
        if name.endswith((".xml", ".rels")) and name != "[Content_Types].xml":
            kept = content.replace(b"openxmlformats.org/package/2006", b"openxmlformats.org/package!2006")
            kept = usual.sub(rb"http://purl.oclc.org/ooxml/\1/", kept)
            members[name] = kept.replace(b"openxmlformats.org/package!2006", b"openxmlformats.org/package/2006")
    return office.zipped(members)


def with_macros(data: bytes, kind: bytes, usual: bytes, folder: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        types = archive.read("[Content_Types].xml")
    main = b"application/vnd.openxmlformats-officedocument." + usual
    changed = types.replace(main, b"application/vnd.ms-" + kind + b".macroEnabled.main+xml")
    return with_members(data, {"[Content_Types].xml": changed, f"{folder}/vbaProject.bin": b"Sub AutoOpen()"})
