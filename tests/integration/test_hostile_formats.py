"""Hostile mail, web pages, slides and archives: in the sandbox each ends in time, as a clear error or as safe text."""

from __future__ import annotations

import time
from email.message import EmailMessage

import pytest

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers.sandbox import parse_in_sandbox
from tests.unit.readers import office_samples as office
from tests.unit.readers import samples

pytestmark = pytest.mark.slow

DECK = office.pptx([office.shape("Good words", kind="title")])
TEXT = office.odf("text", "<text:p>Good words</text:p>")
BOOK = office.epub(["<p>Good words</p>"], title="Book")
SECRET = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY s SYSTEM "file:///etc/passwd">]>'
SECONDS = 50.0  # for each, on a loaded machine; the sandbox ends at 60


def nested_zip(depth: int) -> bytes:
    data = b"Good words"
    name = "a.txt"
    for _ in range(depth):
        data, name = office.zipped({name: data, "b.txt": "Other words"}), "inner.zip"
    return data


def wide_zip() -> bytes:
    """Archives of archives of files: 27,000 files in 12 KB, if all were read."""
    level: dict[str, str | bytes] = {f"{number}.txt": "Good words" for number in range(30)}
    for _ in range(2):
        packed = office.zipped(level)
        level = {f"{number}.zip": packed for number in range(30)}
    return office.zipped(level)


def mail(subject: str = "Good words") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@x.example", "b@x.example", subject
    message.set_content("Good words\n")
    return message


def mail_with_attachments(count: int) -> bytes:
    message = mail()
    for number in range(count):
        message.add_attachment(b"Word %d" % number, maintype="text", subtype="markdown", filename=f"{number}.md")
    return message.as_bytes()


def nested_mail(depth: int) -> bytes:
    head = b"From: a@x.example\nTo: b@x.example\nSubject: s\nMIME-Version: 1.0\n"
    return head + b"Content-Type: message/rfc822\n\n" * depth + b"Subject: end\n\nGood words\n"


def nested_multipart(depth: int) -> bytes:
    head = b"From: a@x.example\nTo: b@x.example\nSubject: s\nMIME-Version: 1.0\n"
    opened = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(depth))
    return head + opened + b"\n\nGood words\n"


def endless_message() -> bytes:
    """A compound file whose allocation table runs in a circle."""
    data = bytearray(office.msg({"0037": "Good words", "1000": "x" * 9_000}))
    start = 512 * (1 + int.from_bytes(data[76:80], "little"))
    for place in range(start, start + 512, 4):
        if data[place : place + 4] not in (b"\xff\xff\xff\xff", b"\xfd\xff\xff\xff"):
            data[place : place + 4] = b"\0\0\0\0"
    return bytes(data)


REPEATED = office.odf_cell("x", 'table:number-columns-repeated="16384"')
FULL_SHEET = (
    f'<table:table table:name="S"><table:table-row table:number-rows-repeated="1048576">{REPEATED}</table:table-row>'
    "</table:table>"
)
SPANS = b"<table>" + b"<tr>" + b"<td colspan=1000 rowspan=65000>x</td>" * 500 + b"</tr>" + b"<tr><td>y" * 5_000

FILES: list[tuple[str, bytes, str, str | None]] = [
    # what it is, file, name, what a refusal says, or None: it is read
    (
        "slides that unpack to 250 MB",
        samples.with_zeros(DECK, "ppt/media/z.bin", 250 * 2**20),
        "a.pptx",
        "far more data",
    ),
    (
        "a slide of entities",
        samples.with_members(DECK, {"ppt/slides/slide1.xml": samples.BILLION_LAUGHS}),
        "a.pptx",
        "attackers",
    ),
    ("slides with macros", samples.with_members(DECK, {"ppt/vbaProject.bin": b"x"}), "a.pptx", "macros"),
    (
        "a text with an external entity",
        samples.with_members(TEXT, {"content.xml": SECRET + b"<x>&s;</x>"}),
        "a.odt",
        "attackers",
    ),
    ("a full sheet of repeated cells", office.odf("spreadsheet", FULL_SHEET), "a.ods", None),
    ("an OpenDocument bomb", samples.with_zeros(TEXT, "content.xml2", 250 * 2**20), "a.odt", "far more data"),
    (
        "a book of entities",
        samples.with_members(BOOK, {"OEBPS/book.opf": samples.BILLION_LAUGHS}),
        "a.epub",
        "attackers",
    ),
    (
        "a chapter of entities",
        samples.with_members(BOOK, {"OEBPS/text/chapter1.xhtml": samples.BILLION_LAUGHS}),
        "a.epub",
        None,
    ),
    ("a book bomb", samples.with_zeros(BOOK, "z.xhtml", 250 * 2**20), "a.epub", "far more data"),
    ("100,000 nested elements", b"<html><body>" + b"<div>" * 100_000 + b"Good words", "a.html", "too deeply"),
    ("100,000 nested lists", b"<html><body>" + b"<ul><li>x" * 100_000, "a.html", "too deeply"),
    ("100,000 nested tables", b"<html><body>" + b"<table><tr><td>x" * 100_000, "a.html", "too deeply"),
    (
        "700 nested lists with much below",
        b"<html><body>" + b"<ul><li>" * 700 + b"<a>Good words</a> " * 300_000,
        "a.html",
        None,
    ),
    ("cells over thousands of rows and columns", b"<html><body>" + SPANS, "a.html", "200,000 cells"),
    ("a page with an external entity", SECRET + b"<html><body><p>Good words &s;</p></body></html>", "a.xhtml", None),
    ("a page of scripts", b"<html><body>" + b"<script>x()</script>" * 100_000 + b"<p>Good words", "a.html", None),
    ("500 attachments", mail_with_attachments(500), "a.eml", None),
    ("nested messages", nested_mail(3_000), "a.eml", "deep"),
    ("nested parts", nested_multipart(3_000), "a.eml", "deep"),
    (
        "headers of 5 MB",
        b"From: a@x.example\nSubject: " + b"=?utf-8?q?x?= " * 350_000 + b"\n\nGood words\n",
        "a.eml",
        None,
    ),
    ("an Outlook message in a circle", endless_message(), "a.msg", None),
    ("20 archives in each other", nested_zip(20), "a.zip", None),
    ("27,000 files in archives", wide_zip(), "a.zip", None),
    (
        "an archive bomb",
        samples.with_zeros(office.zipped({"a.txt": "x"}), "z.txt", 250 * 2**20),
        "a.zip",
        "far more data",
    ),
    ("5,000 files", office.zipped({f"{n}.txt": "x" for n in range(4_000)}), "a.zip", "4,000 files"),
    ("100,000 nested lists of JSON", b"[" * 100_000 + b"1" + b"]" * 100_000, "a.json", "not valid JSON"),
    ("500 nested objects of JSON", b'{"a":' * 500 + b"1" + b"}" * 500, "a.json", None),
    ("100,000 nested groups", b"{\\rtf1 " + b"{" * 100_000 + b"Good words", "a.rtf", "too deeply"),
    ("an RTF of control words", b"{\\rtf1 " + b"\\b0\\b1" * 400_000 + b"Good words}", "a.rtf", None),
    ("subtitles without ends", b"WEBVTT\n\n" + b"00:01.000 --> 00:02.000\n<v x\n" * 100_000, "a.vtt", None),
]


@pytest.mark.parametrize(("data", "name", "says"), [file[1:] for file in FILES], ids=[file[0] for file in FILES])
async def test_hostile_file_ends_as_a_clear_error_or_as_safe_text(data: bytes, name: str, says: str | None) -> None:
    started = time.perf_counter()
    outcome: ParsedDocument | DocumentError
    try:
        outcome = await parse_in_sandbox(data, file_name=name)
    except DocumentError as error:
        outcome = error
    assert time.perf_counter() - started < SECONDS
    if isinstance(outcome, DocumentError):
        assert says is not None, outcome.message
        assert says in outcome.message
        return
    assert says is None, outcome.text[:200]
    assert "root:" not in outcome.text
    assert "x()" not in outcome.text


async def test_what_was_left_out_is_told() -> None:
    many = await parse_in_sandbox(mail_with_attachments(500), file_name="a.eml")
    assert "Word 199" in many.text
    assert "Word 200" not in many.text
    assert any("More than 200 embedded files" in warning for warning in many.warnings)
    deep = await parse_in_sandbox(nested_zip(20), file_name="a.zip")
    assert "Other words" in deep.text
    assert any("nested too deeply" in warning for warning in deep.warnings)
