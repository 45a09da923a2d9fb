"""Sentence boundaries in three languages, and that streams find the same ones."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.language.sentences import SentenceStream, read_sentences, split_sentences
from tests.timing import seconds_of


def split(text: str, language: str | None = None) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text, language=language)]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("es", ["El Sr. López y la Sra. Díaz cobran 1.234,56 €.", "Véase el art. 5, núm. 3.", "¿Puede?", "¡Sí!"]),
        ("es", ["Hay ayudas, p. ej. el IMV, etc. para familias.", "EE. UU. no participa.", "Fin."]),
        ("es", ["Lo firmó J. R. García en 2024.", "El plazo vence el 3.", "30 días después…", "Nada más."]),
        ("es", ["No.", "El plazo es de 3 meses.", "Consulte p. 12."]),
        ("fr", ["M. Dupont et Mme Curie, p. ex. ici, ont 3 enfants.", "« Oui. »", "Il part à 8 h 30."]),
        ("fr", ["Voir l'art. 12 et la p. 4.", "Qu'est-ce que c'est ?", "Rien !"]),
        ("fr", ["On ouvre à 14 h.", "Mme Costa mesure 3,5 m.", "MM. Roy et Dupont partent le 5 janv. 2026."]),
        ("en", ["Acme Inc. was founded by J. R. Smith in the U.S. in 1990.", "It grew, e.g. in Asia.", "See No. 5."]),
        ("en", ["He lives in the U.S.", "The rate is 3.5 %.", "Dr. Who met Mr. X at 5 p.m. on Monday."]),
        ("en", ['She said "no."', "(Really.)", "Then [...] she left..."]),
        ("fr", ["Talleres Aranda, S. L., en Huesca, et Pinos, S. A., livrent.", "L'usine ferme en août."]),
        ("es", ["Limpiezas Ebro, S.L. (en adelante, EBRO) y Nova S.A. (Madrid) pagan.", "Los demás no."]),
        ("en", ["Meet at gate C.", "Fire wardens count people.", "Ask A. Smith and see annex B.", "Prices are net."]),
        ("fr", ["Voir l'annexe B.", "Prix nets.", "La société Béraud S.A.R.L. (Lyon) et A. Roy livrent au quai C."]),
        ("en", ["Call ext. 231 or tel. 555 0188.", "Ask for Ana."]),
        ("es", ["Llame al telf. 555, ext. 231.", "Pregunte por Ana."]),
        ("fr", ["Appelez le tel. 555, int. 231.", "Demandez Ana."]),
        ("pt", ["Ligue para o telf. 555, ext. 231.", "Pergunte pela Ana."]),
        (None, ["Sr. Pérez met Mme Curie and Dr. No. 5 stayed.", "The end."]),
    ],
)
def test_ordinary_sentences(language: str | None, sentences: list[str]) -> None:
    assert split(" ".join(sentences), language) == sentences


def test_quotes_and_brackets_after_the_stop_belong_to_the_sentence() -> None:
    assert split("Dijo «basta.» Luego (sin más.) Se fue.") == ["Dijo «basta.»", "Luego (sin más.)", "Se fue."]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Uno. [C1]", "Dos. [C1][C2]", "Tres. [C1, C2]", "Cuatro [C3]."],
        ["Uno.[c1]", "Dos. 【C2】", "Tres. ［C 3］."],
        ["Plazo de tres meses.\n[C1]", "Otra frase.\n[C2], [C3]"],
    ],
)
def test_marks_after_the_stop_belong_to_the_sentence_before(sentences: list[str]) -> None:
    assert split("\n".join(sentences)) == sentences
    assert split("\n\n".join(sentences)) == sentences


def test_a_mark_that_begins_the_next_line_belongs_to_it() -> None:
    assert split("Uno.\n[C1] dice que dos.") == ["Uno.", "[C1] dice que dos."]


def test_lines_that_are_sentences_of_their_own() -> None:
    lines = [
        "# Requisitos",
        "Para pedir la ayuda hay que presentar en el Ministerio de\nTrabajo una\nsolicitud:",
        "- DNI en vigor",
        "* Certificado",
        "1. Primer paso",
        "a) Letra",
        "| Producto | Stock. Total |",
        "| Tornillo | 12 |",
        "Product: Hex bolt. Big one | Stock: 120",
        "Product: Nut | Stock: 3",
        "> Cita",
    ]
    assert split("\n".join(lines)) == lines


def test_a_short_capitalised_line_is_a_title_and_a_wrapped_line_is_not() -> None:
    assert split("Plazos y recursos\nEl plazo es de un mes.") == ["Plazos y recursos", "El plazo es de un mes."]
    assert split("El plazo lo fija el\nMinisterio.") == ["El plazo lo fija el\nMinisterio."]


@pytest.mark.parametrize(
    "rows",
    [
        ["Lundi 14 h – 19 h", "Mardi fermé", "Mercredi 10 h – 19 h", "Samedi 9 h 30 – 17 h", "Dimanche fermé"],
        ["Altura máxima 3,5 m", "Peso máximo 12 kg", "Distancia 40 km", "Precio 12 €", "Descuento 5 %"],
        ["Opens 9 am", "Closes 5 pm", "Tank 20\u00a0l", "Élan 3 s"],
    ],
)
def test_a_row_that_ends_in_a_quantity_is_no_wrapped_line(rows: list[str]) -> None:
    assert split("\n".join(rows)) == rows


@pytest.mark.parametrize(
    "text",
    [
        "Las oficinas son 3 y\nMadrid tiene dos.",
        "It is one of the 12 in\nLondon.",
        "Le dépôt reçoit des camions qui pèsent plus de 12 t\net repart à 19 h\nle soir.",
        "Article 3 de la\nConvention.",
    ],
)
def test_a_number_before_a_short_word_is_not_a_quantity(text: str) -> None:
    assert split(text) == [text]


@pytest.mark.parametrize(
    "lines",
    [
        ["Trade prices of the Harbour Coffee Company, valid from 1 July 2025", "Article: A1 | Price: 12"],
        ["the list that follows", "article: a1 | price: 12", "article: a2 | price: 13"],
    ],
)
def test_a_row_with_labels_begins_a_sentence_under_any_line(lines: list[str]) -> None:
    assert split("\n".join(lines)) == lines


@pytest.mark.parametrize("text", ["the list that\nsays: this and that", "the list that\nsays | this and that"])
def test_a_label_or_a_bar_alone_makes_no_row(text: str) -> None:
    assert split(text) == [text]


def test_code_lines_are_kept_apart_and_marked_as_code() -> None:
    sentences = read_sentences("Antes.\n```py\nx = 1. Y\n\ny = 2\n```\nDespués.")
    assert [(s.text, s.code) for s in sentences if s.code] == [("```py", True), ("x = 1. Y", True), ("y = 2", True)]
    assert [s.text for s in sentences if not s.code] == ["Antes.", "Después."]


def test_before_holds_what_stands_between_sentences() -> None:
    first, second = read_sentences("Uno.\n\n---\n\nDos.")
    assert (first.before, second.before) == ("", "\n\n---\n\n")


PIECES = [
    "Sr. ", "a", "El", " ", ".", "?", "…", "\n", "\n\n", "[", "C", "1", "]", "[C1]", "- ", "1. ", " | ", "|", "#",
    "`", "```", "~~~", "No", "U.S.", ":", "x: ", "»", '"', ",", "é", "A", "---", "*", "[C1, 2]", "(", ")", "\u00a0",
    "\r\n", "¿", "3", "-", "9 h", "m", "\nSam ", "\nx: a | b",
]  # fmt: skip


def stream(text: str, cuts: list[int]) -> list[object]:
    splitter, found, position = SentenceStream(), [], 0
    for cut in sorted({min(cut, len(text)) for cut in cuts}):
        found += splitter.feed(text[position:cut])
        position = cut
    return found + splitter.flush(text[position:])


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.lists(st.integers(0, 120), max_size=30))
def test_a_stream_gives_the_sentences_of_the_whole_text(text: str, cuts: list[int]) -> None:
    assert stream(text, cuts) == read_sentences(text)


def test_a_stream_fed_letter_by_letter_gives_the_sentences_of_the_whole_text() -> None:
    rng = random.Random(5)  # noqa: S311  # texts, not secrets
    for _ in range(3000):
        text = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 40)))
        assert stream(text, list(range(len(text)))) == read_sentences(text), text


def test_a_long_stream_keeps_its_offsets() -> None:
    text = "El Sr. López vino. [C1] Se fue.\n" * 1000
    assert stream(text, list(range(0, len(text), 7))) == read_sentences(text)


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=80))
def test_every_letter_lies_in_exactly_one_sentence(text: str) -> None:
    covered = [0] * len(text)
    for start, end in split_sentences(text):
        assert text[start:end] == text[start:end].strip()
        for i in range(start, end):
            covered[i] += 1
    assert all(n == 1 if text[i].isalnum() else n <= 1 for i, n in enumerate(covered))


def test_a_line_that_never_ends_is_streamed_in_linear_time() -> None:
    def seconds(deltas: int) -> float:
        splitter = SentenceStream()
        splitter.feed("a b\nnote: ")
        return seconds_of(lambda: [splitter.feed("y ") for _ in range(deltas)])

    # In quadratic time four times the text would take sixteen times as long.
    assert min(seconds(80_000) for _ in range(3)) < 8 * min(seconds(20_000) for _ in range(3))


def test_a_sentence_comes_out_with_the_next_visible_character() -> None:
    splitter = SentenceStream()
    assert splitter.feed("Son tres meses. [C1") == []
    assert splitter.feed("] ") == []
    assert [s.text for s in splitter.feed("E")] == ["Son tres meses. [C1]"]


@pytest.mark.parametrize(
    "text",
    ["." * 50_000, "[" * 50_000, "[C1" * 20_000, " \n" * 30_000, "a. " * 20_000, "|" * 50_000, "\na: b" * 12_000],
)
def test_hostile_text_is_split_in_linear_time(text: str) -> None:
    assert seconds_of(lambda: split_sentences(text)) < 5, "tenths of a second when linear, minutes when quadratic"
