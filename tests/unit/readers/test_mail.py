"""Forwarded and quoted messages within a mail are sections, headed by who wrote them, when and about what."""

from __future__ import annotations

import base64
import struct
import time
from email.message import EmailMessage
from email.policy import EmailPolicy

import pytest

from rag_service.answering.quoting.sentences import read_sentences
from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError, TooLargeError
from rag_service.readers.parse import parse
from tests.unit.readers.office_samples import compound_file

SAID = "The crates are ready on 16 November."


def read(plain: str = "", *, html: str = "", subject: str = "Fwd: Loan of the paintings") -> ParsedDocument:
    message = EmailMessage()
    message["From"] = "Luis Peña <luis@norte.example>"
    message["Subject"] = subject
    message.set_content(html or plain, subtype="html" if html else "plain")
    return parse(message.as_bytes(), file_name="mail.eml")


def headings_of(document: ParsedDocument, text: str) -> tuple[str, ...]:
    start = document.text.index(text)
    return next(span.location.headings for span in document.spans if span.start <= start < span.end)


@pytest.mark.parametrize(
    ("headers", "heading"),
    [
        (
            "---------- Forwarded message ---------\nFrom: Ana Gil <ana@mar.example>\nDate: Wed, 16 Sep 2026 at 11:05\n"
            "Subject: Loan\nTo: Luis <luis@norte.example>,\n  Eva <eva@norte.example>\nCc: Rui <rui@norte.example>",
            "Ana Gil, Wed, 16 Sep 2026 at 11:05: Loan",
        ),
        (
            "________________________________\n*From:* Gil, Ana [mailto:ana@mar.example]\n*Sent:* 5 May 2026 11:05 AM\n"
            "*To:* Luis <luis@norte.example>\n*Subject:* RE: Loan",
            "Gil, Ana, 5 May 2026 11:05 AM: RE: Loan",
        ),
        (
            "-------- Message transféré --------\nDe\u00a0: Ana <ana@mar.example>\nEnvoyé : mer. 16 sept. 2026 09:32\n"
            "À : Luis <luis@norte.example>\nObjet : TR : Prêt des œuvres",
            "Ana, mer. 16 sept. 2026 09:32: TR : Prêt des œuvres",
        ),
        (
            "-------- Mensaje reenviado --------\nAsunto: Préstamo\nFecha: 5/10/2026 9:32\n"
            "De: ana@mar.example\nPara: luis@norte.example",
            "ana@mar.example, 5/10/2026 9:32: Préstamo",
        ),
        (
            "-----Mensagem original-----\nDe: Ana\nEnviada em: 5 de outubro de 2026 09:32\n"
            "Para: luis@norte.example\nAssunto:",
            "Ana, 5 de outubro de 2026 09:32",
        ),
    ],
)
def test_a_forwarded_message_is_a_section(headers: str, heading: str) -> None:
    document = read(f"See below.\n\n{headers}\n\nHello,\n\n{SAID}\n")
    assert headings_of(document, SAID) == (heading,)
    assert headings_of(document, "See below.") == ()
    assert "---" not in document.text and "___" not in document.text
    assert "luis@norte.example" in document.text
    assert ("eva@norte.example" in headers) == ("Eva <eva@norte.example>\nCc: Rui" in document.text)
    for language in ("en", "fr"):
        quotes = [one.text for one in read_sentences(document.text, language, document.spans, document.title)]
        assert SAID in quotes and not any(quote in heading for quote in quotes)


def test_each_message_of_a_thread_is_a_section() -> None:
    older = "From: {0} <a@x.example>\nSent: {1} May 2026 10:00\nTo: B\nSubject: Keys\n\nThe key is {2}.\n\n"
    document = read("Look.\n\n" + older.format("Ana", 5, "blue") + older.format("Eva", 4, "red"))
    assert headings_of(document, "The key is blue.") == ("Ana, 5 May 2026 10:00: Keys",)
    assert headings_of(document, "The key is red.") == ("Eva, 4 May 2026 10:00: Keys",)


def test_a_forwarded_page_is_a_section_too() -> None:
    headers = (
        "<b>De :</b> Ana &lt;<a href='mailto:ana@mar.example'>ana@mar.example</a>&gt;<br><b>Envoyé :</b> lundi<br>"
    )
    page = f"<p>Voir.</p><p>{headers}<b>À :</b> Luis<br><b>Objet :</b> Devis</p><p>{SAID}</p>"
    assert headings_of(read(html=page), SAID) == ("Ana, lundi: Devis",)


@pytest.mark.parametrize(
    "rule",
    [
        "---------- Forwarded message ---------",
        "---------- Mensagem encaminhada ----------",
        "-------- Message transféré --------",
        "-------- Mensaje reenviado --------",
    ],
)
def test_a_message_forwarded_or_quoted_in_a_reply_is_a_section(rule: str) -> None:
    headers = f"{rule}\nFrom: Ana <ana@mar.example>\nDate: 5 May 2026 09:32\nSubject: Crates\nTo: Luis"
    text = f"As asked.\n\n{headers}\n\n{SAID}\n"
    assert headings_of(read(text, subject="RE: Crates"), SAID) == ("Ana, 5 May 2026 09:32: Crates",)
    lines = headers.replace("<", "&lt;").replace("\n", "<br>")
    page = f"<p>As asked.</p><div class='gmail_quote'>{lines}<p>{SAID}</p></div>"
    assert SAID in read(html=page, subject="RE: Crates").text
    quoted = read(text.replace(rule, "----- Original message -----"), subject="RE: Crates")
    assert headings_of(quoted, SAID) == ("Ana, 5 May 2026 09:32: Crates",)


@pytest.mark.parametrize(
    "introduction",
    [
        "Begin forwarded message:",
        "Inicio del mensaje reenviado:",
        "Début du message réexpédié :",
        "Início da mensagem reencaminhada:",
    ],
)
@pytest.mark.parametrize("subject", ["Fwd: Crates", "RE: Crates"])
@pytest.mark.parametrize("quote", ["> ", ""])
def test_a_message_that_apple_mail_forwards_is_a_section(introduction: str, subject: str, quote: str) -> None:
    lines = ["From: Ana <ana@mar.example>", "Subject: Crates", "Date: 5 May 2026 at 09:32", "To: Luis", "", SAID, "Ana"]
    quoted = "\n".join(f"{quote}{line}" for line in lines)
    document = read(f"As asked.\n\n{introduction}\n\n{quoted}\n\n", subject=subject)
    assert headings_of(document, SAID) == ("Ana, 5 May 2026 at 09:32: Crates",)
    assert headings_of(document, "As asked.") == ()
    assert "\n>" not in document.text and introduction not in document.text


@pytest.mark.parametrize(
    ("attribution", "heading"),
    [
        ("On Wed, 10 Jun 2026 at 16:20, Tom <tom@x.example> wrote:", "Tom, Wed, 10 Jun 2026 at 16:20"),
        ("On Wed, Jun 10, 2026 at 4:20 PM Tom Lee <\ntom@x.example> wrote:", "Tom Lee, Wed, Jun 10, 2026 at 4:20 PM"),
        (
            "El mié, 10 jun 2026 a las 16:20, Ana Gil (<ana@x.example>) escribió:",
            "Ana Gil, mié, 10 jun 2026 a las 16:20",
        ),
        (
            "Le mer. 10 juin 2026 à 16:20, Ève Le Goff <e@x.example> a\nécrit\u00a0:",
            "Ève Le Goff, mer. 10 juin 2026 à 16:20",
        ),
        (
            "Em qua., 10 de jun. de 2026 às 16:20, Rui <rui@x.example> escreveu:",
            "Rui, qua., 10 de jun. de 2026 às 16:20",
        ),
        ("Tom Lee wrote on 10 June 2026:", "Tom Lee, 10 June 2026"),
        ("2026-06-10 16:20 GMT+02:00 Tom <tom@x.example>:", "Tom, 2026-06-10 16:20 GMT+02:00"),
        ("Tom <tom@x.example> wrote:", "Tom"),
    ],
)
def test_quoted_history_is_a_section_of_its_sender(attribution: str, heading: str) -> None:
    document = read(
        f"Please follow this.\n\n{attribution}\n> {SAID}\n> > An older word.\n\nAna\n", subject="Re: Crates"
    )
    assert headings_of(document, SAID) == (heading,)
    assert headings_of(document, "Please follow this.") == ()
    assert document.text.count(heading) == 1 and attribution.split("\n")[-1] not in document.text
    assert [span.location for span in document.spans if "older" in document.text[span.start : span.end]] == [
        Location(headings=(heading,), part="quoted")
    ]
    assert document.warnings == ()


def test_what_follows_quoted_history_is_the_sender_s_own_again() -> None:
    document = read(
        f"On 3 May 2026, Ana wrote:\n> Are they ready?\n\n{SAID}\n\n> Who calls?\n\nEva calls.\n", subject="Re: Crates"
    )
    assert headings_of(document, "Are they ready?") == headings_of(document, "Who calls?") == ("Ana, 3 May 2026",)
    assert headings_of(document, SAID) == headings_of(document, "Eva calls.") == ("Luis Peña",)
    assert [line for line in document.text.split("\n") if line in ("Ana, 3 May 2026", "Luis Peña")] == [
        "Ana, 3 May 2026", "Luis Peña", "Ana, 3 May 2026", "Luis Peña"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [
        "<p>Yes.</p><div class='gmail_quote'><div>On 3 May 2026, Ana &lt;a@x.example&gt; wrote:<br></div>"
        f"<blockquote class='gmail_quote'><p>{SAID}</p></blockquote></div>",
        f"<p>Yes.</p><blockquote type='cite'><div>On 3 May 2026, Ana wrote:</div><div>{SAID}</div></blockquote>",
        f"<p>Yes.</p><div>Ana wrote on 3 May 2026:</div><blockquote>{SAID}</blockquote>",
        "<p>Yes.</p><div id='divRplyFwdMsg'><b>Von:</b> Ana &lt;a@x.example&gt;<br><b>Datum:</b> 3 May 2026<br>"
        f"<b>An:</b> Luis</div><div>{SAID}</div>",
    ],
)
def test_quoted_history_of_a_page_is_a_section_too(page: str) -> None:
    document = read(html=page, subject="Re: Crates")
    assert headings_of(document, SAID)[0].startswith("Ana")
    assert headings_of(document, "Yes.") == ()


def test_a_thread_of_thousands_of_levels_is_read() -> None:
    levels = (f"{'>' * n} On 3 May {n}, Ana wrote:\n{'>' * (n + 1)} Word {n}." for n in range(1, 2001))
    document = read("Look.\n\n" + "\n".join(levels), subject="Re: Crates")
    assert headings_of(document, "Word 1999.") == ("Ana, 3 May 1999",)


def test_what_is_quoted_from_nobody_keeps_its_marks() -> None:
    document = read("The load:\n\n> 5 kg is too much.\n\nWeigh it.", subject="Load")
    assert "\n\n> 5 kg is too much.\n\nWeigh it." in document.text
    (place,) = [span.location for span in document.spans if "5 kg" in document.text[span.start : span.end]]
    assert place == Location(part="quoted")


def test_a_sentence_about_forwarded_messages_introduces_none() -> None:
    text = "How to handle a forwarded message:\n\n> Do not open it.\n\nAsk the help desk."
    assert "Do not open it." in read(text).text and "---" not in read(text).text


@pytest.mark.parametrize(
    "text",
    [
        "From: Madrid\nTo: Vigo\nDate: 5 May 2026\nPrice: 40 euros",
        "Subject: maths\nDate: 5 May\nRoom: 12",
        "Name: Ana Gil\nPhone: 555 0188\nE-mail: ana@mar.example",
        "We can go on from: here or there.\nSent: nothing so far.",
    ],
)
def test_other_labels_stay_text(text: str) -> None:
    document = read(f"Hello,\n\n{text}\n\n{SAID}\n")
    assert text in document.text
    assert headings_of(document, SAID) == ()


@pytest.mark.parametrize(
    "subject", ["Loan of the paintings", "Fwd: Loan of the paintings", "TR : RE : Prêt des œuvres"]
)
def test_the_subject_is_not_quoted(subject: str) -> None:
    document = read(SAID, subject=subject)
    quotes = [one.text for one in read_sentences(document.text, "en", document.spans, document.title)]
    assert quotes == ["From: Luis Peña <luis@norte.example>", SAID]


def mailbox(*messages: EmailMessage, ending: str = "\n") -> bytes:
    texts = [b"From - Mon Jan  5 10:00:00 2026\n" + message.as_bytes().rstrip() + b"\n" for message in messages]
    return b"\n".join(texts).replace(b"\n", ending.encode())


def message_of(subject: str, body: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Ana <ana@mar.example>"
    message["Subject"] = subject
    message.set_content(body)
    return message


def test_a_message_may_begin_with_the_separator_of_its_mailbox() -> None:
    document = parse(mailbox(message_of("Crane", "The inspection is at 07:45.")), file_name="crane.eml")
    assert document.text.startswith("From: Ana <ana@mar.example>\nSubject: Crane\n\nThe inspection")
    assert document.title == "Crane"


@pytest.mark.parametrize(("name", "ending"), [("Sent.mbox", "\n"), ("Sent", "\r\n")])
def test_each_message_of_a_mailbox_has_its_place(name: str, ending: str) -> None:
    with_file = message_of("Prices 7/2026", "See the list.\n\n>From May on, berth 7 costs 40 €.")
    with_file.add_attachment("Berth 9 is closed.", filename="notes.txt")
    data = mailbox(
        message_of("Año nuevo", "Cerramos el 2 de enero.\n\nFrom here on: nothing."), with_file, ending=ending
    )
    document = parse(data, file_name=name)

    def part_of(text: str) -> str:
        start = document.text.index(text)
        return next(span.location.part or "" for span in document.spans if span.start <= start < span.end)

    assert part_of("Cerramos") == part_of("From here on") == "1 Año nuevo.eml"
    assert part_of("From May on") == "2 Prices 7-2026.eml"
    assert part_of("Berth 9") == "2 Prices 7-2026.eml > notes.txt"
    assert document.media_type == "application/mbox"


def test_a_message_encoded_as_a_whole_is_read() -> None:
    inner = b"From: ana@mar.example\nSubject: Loan\n\n" + SAID.encode()
    outer = (
        b"From: luis@norte.example\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
        b"--b\n\nHello.\n--b\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
    )
    assert SAID in parse(outer + base64.encodebytes(inner) + b"--b--\n", file_name="mail.eml").text


def test_texts_of_an_outlook_message_are_in_the_code_page_that_it_names() -> None:
    """Few letters beside Latin ones look like accents."""
    tree = {
        "__properties_version1.0": bytes(32) + struct.pack("<HHIQ", 3, 0x3FFD, 6, 950),
        "__substg1.0_0037001E": "Loan of paintings 測試".encode("cp950"),
        "__substg1.0_1000001E": SAID.encode(),
    }
    assert parse(compound_file(tree), file_name="mail.msg").text.startswith("Subject: Loan of paintings 測試")


@pytest.mark.parametrize(("code_pages", "declared"), [((950, 1251), b""), ((1251, 0), b""), ((0, 0), b"windows-1251")])
def test_the_page_of_an_outlook_message_is_in_the_code_page_that_it_names(
    code_pages: tuple[int, int], declared: bytes
) -> None:
    texts, pages = code_pages
    named = struct.pack("<HHIQ", 3, 0x3FFD, 6, texts) + struct.pack("<HHIQ", 3, 0x3FDE, 6, pages)
    head = b'<meta http-equiv="Content-Type" content="text/html; charset=%s">' % declared if declared else b""
    tree = {
        "__properties_version1.0": bytes(32) + named,
        "__substg1.0_0037001F": "Loan".encode("utf-16-le"),
        "__substg1.0_10130102": b"<html>" + head + "<body><p>Loan of paintings из музея</p></body>".encode("cp1251"),
    }
    assert "Loan of paintings из музея" in parse(compound_file(tree), file_name="mail.msg").text


def test_a_message_of_a_mailbox_that_cannot_be_read_is_a_warning() -> None:
    broken = b"From - Mon Jan  5 10:00:00 2026\nX-Data: " + bytes(range(256)) * 4
    document = parse(broken + b"\n\n" + mailbox(message_of("Fee", "It is 3 €.")), file_name="a.mbox")
    assert "It is 3 €." in document.text
    (warning,) = document.warnings
    assert warning.startswith("1 message.eml was not read: it is a binary file")
    with pytest.raises(DocumentError, match=r"without any readable message: 1 message.eml was not read"):
        parse(broken, file_name="a.mbox")


def test_a_mailbox_with_too_many_messages_is_refused() -> None:
    with pytest.raises(TooLargeError, match=r"contains 201 messages; the limit for a mailbox is 200"):
        parse(mailbox(*[message_of("Fee", "It is 3 €.")] * 201), file_name="a.mbox")


def ber(tag: int, content: bytes, *, indefinite: bool) -> bytes:
    if indefinite and tag & 0x20:
        return bytes([tag, 0x80]) + content + b"\0\0"
    return bytes([tag, 0x82]) + len(content).to_bytes(2, "big") + content


@pytest.mark.parametrize("indefinite", [True, False])
def test_a_message_within_its_signature_is_read(indefinite: bool) -> None:
    """As Outlook (definite lengths) and OpenSSL (indefinite ones) write it."""

    def pack(tag: int, *contents: bytes) -> bytes:
        return ber(tag, b"".join(contents), indefinite=indefinite)

    def oid(last: int) -> bytes:
        return pack(0x06, bytes.fromhex("2a864886f70d0107") + bytes([last]))

    inner = f"Content-Type: text/plain\n\n{SAID}\n".encode()
    octets = pack(0x24, pack(0x04, inner[:9]), pack(0x04, inner[9:])) if indefinite else pack(0x04, inner)
    content = pack(0x30, oid(1), pack(0xA0, octets))
    data = pack(0x30, oid(2), pack(0xA0, pack(0x30, pack(0x02, b"\1"), pack(0x31), content)))
    message = EmailMessage()
    message["Subject"] = "Crates"
    message.set_content(data, "application", "pkcs7-mime", params={"smime-type": "signed-data"}, filename="smime.p7m")
    document = parse(message.as_bytes(), file_name="mail.eml")
    assert SAID in document.text and document.warnings == ()


@pytest.mark.parametrize("data", [b"", b"\x30\x80", b"\x30\x80" * 500, b"\x30\x82\xff\xff\x06", bytes(range(256))])
def test_an_encrypted_message_is_told(data: bytes) -> None:
    message = EmailMessage()
    message["Subject"] = "Crates"
    message.set_content(data, "application", "pkcs7-mime", filename="smime.p7m")
    document = parse(message.as_bytes(), file_name="mail.eml")
    assert document.text.strip() == "Subject: Crates"
    assert [warning.partition(";")[0] for warning in document.warnings] == ["The message is encrypted"]


def test_signatures_and_encrypted_parts_are_no_attachments() -> None:
    signed = 'Subject: S\nContent-Type: multipart/signed; boundary="b"\n\n--b\n\nText.\n--b\n'
    signed += "Content-Type: application/pgp-signature; name=s.asc\n\n-----BEGIN PGP SIGNATURE-----\n--b--\n"
    document = parse(signed.encode(), file_name="mail.eml")
    assert document.text.strip() == "Subject: S\n\nText." and document.warnings == ()
    encrypted = 'Subject: S\nContent-Type: multipart/encrypted; boundary="b"\n\n--b\nContent-Type: '
    encrypted += "application/pgp-encrypted\n\nVersion: 1\n--b\n\n-----BEGIN PGP MESSAGE-----\n--b--\n"
    document = parse(encrypted.encode(), file_name="mail.eml")
    assert document.text.strip() == "Subject: S" and "is encrypted" in document.warnings[0]


def test_an_endless_subject_is_cut_with_a_warning_and_costs_no_minute() -> None:
    words = "\r\n ".join(["=?utf-8?q?w=C3=B6rd?="] * 20_000)
    started = time.process_time()
    document = parse(f"Subject: {words}\r\n\r\n{SAID}\r\n".encode(), file_name="mail.eml")
    assert time.process_time() - started < 10  # a minute before
    assert SAID in document.text
    assert "wördwörd" in document.text
    assert any("Subject was cut" in warning for warning in document.warnings)


def test_a_header_that_the_standard_library_raises_at_is_shown_as_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise IndexError("pop from an empty deque")

    monkeypatch.setattr(EmailPolicy, "header_fetch_parse", fail)
    document = parse(f"Subject: Loan of paintings\r\n\r\n{SAID}\r\n".encode(), file_name="mail.eml")
    assert "Subject: Loan of paintings" in document.text
    assert SAID in document.text
