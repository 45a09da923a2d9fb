"""Documents for the page: a report of three pages, a workbook, and one that tries to do harm."""

from __future__ import annotations

from typing import Any

from tests.unit.readers.samples import pdf, xlsx

REPORT = pdf(
    "Plant report for the board. It covers deliveries and the customer service of the year.",
    "The service rate of the Lille plant was 97.4 percent in the last quarter.",
    "Le prochain audit de l'usine de Lille dure deux jours. La auditoria de Sevilla dura cinco dias.",
)
WORKBOOK = xlsx(
    [
        ("Product", "Warehouse", "Stock", "Safety stock"),
        ("Hex bolt M8", "Lyon", 120, 150),
        ("Ball valve DN25", "Lyon", 36, 20),
        ("Gasket kit", "Sevilla", 75, 90),
    ],
    sheet="Stocks",
)
MAIL = (
    b"From: Rui <rui@example.org>\r\nTo: Ana <ana@example.org>\r\nSubject: Pallets for Porto\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n\r\n"
    b"The supplier delivers the pallets to Porto on 14 March.\r\n"
)
HOSTILE = (
    "# Notes\n\n<script>window.hacked = 1</script> The warehouse in Metz holds 640 barrels of oil "
    "<img src=http://evil.example/p.png onerror='window.hacked=1'>.\n\n"
    "[click me](javascript:window.hacked=1) ![pixel](http://evil.example/pixel.png) "
    "<b onclick='window.hacked=1'>x</b>\n"
)


def upload_of(name: str, data: bytes | str) -> Any:
    """A file as Playwright puts it into an input."""
    content = data.encode() if isinstance(data, str) else data
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}
