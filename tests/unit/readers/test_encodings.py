"""Encodings from before Unicode: short texts are read rightly, and what may be wrong is reported."""

from __future__ import annotations

import pytest

from rag_service.domain import ENCODING_GUESSED
from rag_service.readers.common.encoding import decode_text, guessed_encoding
from rag_service.readers.parse import parse

WESTERN = (
    "El año pasado la cuota subió un 5 %. Próxima reunión: miércoles.",
    "La réunion est à 9 heures à l'école. Congé payé : 25 jours.",
    "As informações não são públicas. A licença é de 120 dias úteis.",
    "Die Straße ist für Fußgänger gesperrt. Größe: 12 m.",
)
POLISH = "Zażółć gęślą jaźń. Opłata wynosi dwanaście złotych."
CZECH = "Příliš žluťoučký kůň. Poplatek činí dvanáct korun, otevřeno každý den."
HUNGARIAN = "Az időpont szerda. A díj húsz forint, a gyűlés öt órakor kezdődik."
RUSSIAN = "Отпуск составляет двадцать восемь дней. Собрание в среду."
PRICES = "Fatura;Valor (€)\n1;1.250,00 €\n"
JAPANESE = "有給休暇は年間二十日です。残業は上長の許可が必要です。"
CHINESE = "年假有十五天。试用期为三个月。"
CASES = [
    *((text, encoding) for text in WESTERN for encoding in ("cp1252", "mac_roman", "cp850")),
    (PRICES, "cp1252"),
    *((text, "cp437") for text in (WESTERN[0], WESTERN[1], WESTERN[3])),
    *((text, encoding) for text in (POLISH, CZECH) for encoding in ("cp1250", "iso8859-2", "cp852")),
    (HUNGARIAN, "cp1250"),
    *((RUSSIAN, encoding) for encoding in ("cp1251", "koi8-r", "cp866", "iso8859-5")),
    ("Η άδεια διαρκεί είκοσι ημέρες.", "iso8859-7"),
    ("Yıllık izin süresi on dört gündür. Ücret değişti.", "cp1254"),
    (JAPANESE, "cp932"), (JAPANESE, "euc_jp"), ("会議室予約", "cp932"), (CHINESE, "gb18030"),
    ("年假有十五天。試用期為三個月。", "big5"), ("연차 휴가는 십오 일입니다.", "cp949"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "encoding"), CASES)
def test_a_short_text_is_read_in_its_encoding(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding)) == text


def test_the_most_common_files_are_no_guess() -> None:
    common = [(text, encoding) for text, encoding in CASES if encoding in ("cp1252", "cp932", "koi8-r")]
    assert [text for text, encoding in common if guessed_encoding(text.encode(encoding))] == []


def test_the_price_keeps_its_currency_in_mac_roman() -> None:
    text = "La réunion est à 9 heures à l’école. Le tarif est de 12 €."
    assert parse(text.encode("mac_roman"), file_name="a.txt").text == text


def test_a_text_that_two_encodings_read_equally_well_says_that_it_was_guessed() -> None:
    document = parse("会議室予約".encode("euc_jp"), file_name="a.txt")
    (warning,) = document.warnings
    assert warning.startswith("The encoding was guessed (")
    assert document.metadata[ENCODING_GUESSED] in warning


def test_utf_8_with_a_damaged_byte_stays_utf_8_and_is_reported() -> None:
    document = parse("Ñandú, año, señor, mañana, piñón, café".encode() + b"\xff.", file_name="a.txt")
    assert document.text == "Ñandú, año, señor, mañana, piñón, café\ufffd."
    assert ENCODING_GUESSED in document.metadata


def test_a_declared_encoding_is_no_guess() -> None:
    page = "<html><head><meta charset='euc-jp'></head><body><p>会議室予約</p></body></html>"
    document = parse(page.encode("euc_jp"), file_name="a.html")
    assert "会議室予約" in document.text
    assert document.warnings == ()


def test_utf_8_and_ascii_are_no_guess() -> None:
    for text in (*WESTERN, JAPANESE, "plain words"):
        assert guessed_encoding(text.encode()) is None
        assert guessed_encoding(text.encode("utf-16")) is None
