# ruff: noqa: E501 - lines of files
"""E-books, archives, messages and pictures."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

from PIL import Image

from tests.golden.packages import fixed
from tests.unit.readers import office_samples as office
from tests.unit.readers.samples import with_members


def _epub() -> bytes:
    return office.epub(
        ["<h1>One</h1><p>It was late.</p>", "<h1>Two</h1><ol><li>Wait.</li><li>Go.</li></ol>"], title="Nights"
    )


def _book_notes() -> bytes:
    return office.epub(
        ["<h1>Part one</h1><h2>Night</h2><p>It was late<sup>1</sup>.</p><aside><p>1 Very late.</p></aside>", "<p>No heading here.</p>"],
        title="Nights",
    )  # fmt: skip


def _styled_book() -> bytes:
    chapter = '<link rel="stylesheet" href="../s.css"/><h1>One</h1><p>The toll is 30 euros.</p><p class="print">Printed for 20 euros.</p>'
    return with_members(office.epub([chapter], title="Harbour"), {"OEBPS/s.css": b".print { display: none }"})


def _archive() -> bytes:
    return office.zipped(
        {"a/notes.txt": "Gate 4 is closed.", "prices.csv": "Item,Price\nChair,40\n", "photo.bin": bytes(64)}
    )


def _nested_archive() -> bytes:
    inner = fixed(office.zipped({"deep.txt": "Gate 4 is closed."}))
    return office.zipped(
        {"inner.zip": inner, "../outside.txt": "Gate 5 is open.", "__MACOSX/._x": b"x", "año.md": "# Año\n\nTexto."}
    )


def _outlook() -> bytes:
    tags = {"0037": "Gate", "0C1A": "Ana Ruiz", "0E04": "Luis Gil", "1000": "Gate 4 is closed.\r\n"}
    return office.msg(tags, attachments=[("list.csv", b"Name,Age\nAna,3\n")])


def _compressed_body() -> bytes:
    """The example of [MS-OXRTFCP], section 4.1.1."""
    body = "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    tree: dict[str, bytes | office.Tree] = {
        "__properties_version1.0": bytes(32),
        "__substg1.0_0037001F": "Greeting".encode("utf-16-le"),
        "__substg1.0_10090102": bytes.fromhex(body),
    }
    return office.compound_file(tree)


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (120, 60), 200).save(buffer, "PNG")
    return buffer.getvalue()


def _webp() -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (120, 60), 200).save(buffer, "WEBP")
    return buffer.getvalue()


OTHER: Mapping[str, Callable[[], bytes]] = {
    "epub/book.epub": _epub,
    "zip/archive.zip": _archive,
    "epub/notes.epub": _book_notes,
    "zip/nested.zip": _nested_archive,
    "mail/outlook.msg": _outlook,
    "image/picture.png": png,
    "image/picture.webp": _webp,
    "epub/styled.epub": _styled_book,
    "mail/compressed_body.msg": _compressed_body,
}
