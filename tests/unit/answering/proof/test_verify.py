"""Citation verification: which mark answers for which words, and what counts as proof."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from rag_service.answering.proof.claims import find_marks, strip_marks
from rag_service.answering.proof.verify import CitationStream, verify_answer
from rag_service.domain import CitationStatus, Location, Span
from tests.unit.answering.proof.answers import check_exact, make_hit, row_hit

V, M, N = CitationStatus.VERIFIED, CitationStatus.MISATTRIBUTED, CitationStatus.NOT_FOUND
U = CitationStatus.UNCHECKED

GUIDE = make_hit(
    "# Plazos\n\nEl plazo de presentación será de **tres meses** desde la notifi-\ncación. No se admiten "
    "solicitudes fuera de plazo. La cuantía máxima asciende a 1.234,56 € al mes.\n- DNI en vigor del titular\n"
    "- Certificado de empadronamiento",
    1,
    start=500,
    title="Guía del ingreso mínimo vital",
)
LOI = make_hit(
    "Les demandes ne sont pas admises après le 31 mars 2024. L’aide s’élève à 50 % du loyer versé à Paris.", 2
)
HANDBOOK = make_hit(
    "Applicants must file within 20 working days. Fees may not exceed 15 €. The office opens before noon.", 3
)
HITS = [GUIDE, LOI, HANDBOOK]


def statuses(answer: str, **options: str) -> list[tuple[int, CitationStatus]]:
    verification = verify_answer(answer, HITS, language=options.get("language"))
    for citation in verification.citations:
        check_exact(citation, HITS)
    return [(citation.mark, citation.status) for citation in verification.citations]


@pytest.mark.parametrize(
    ("text", "sentence", "quote"),
    [
        ("Travel policy 2022 (superseded)", "Travel policy 2022 (superseded)", "Travel policy 2022 (superseded)"),
        ("Month: All | Total: =SUM(B2:B4) | x", "Total: =SUM(B2:B4)", "Total: =SUM(B2:B4)"),
        ("(The fees for applicants are 15 euros)", "The fees for applicants are 15 euros", None),  # opens before it
        ("The fees (of 2024 are 15 euros.", "The fees (of 2024 are 15 euros", None),  # never closed
    ],
)
def test_a_bracket_that_is_opened_in_a_quote_is_closed_there(text: str, sentence: str, quote: str | None) -> None:
    hit = make_hit(text, 1)
    (citation,) = verify_answer(f"{sentence} [C1].", [hit]).citations
    check_exact(citation, [hit])
    assert citation.quote == (quote or sentence)


@pytest.mark.parametrize(
    ("mark", "numbers"),
    [
        ("[C1]", [1]), ("[c1]", [1]), ("[C 1]", [1]), ("[C1, C2]", [1, 2]), ("[C1, 2]", [1, 2]), ("[C1;C3]", [1, 3]),
        ("［C1］", [1]), ("【c2】", [2]), ("[C1-3]", [1, 2, 3]), ("[C9-3]", [9, 3]), ("[C1][C1]", [1, 1]),
        ("[C0]", [0]), ("[1]", []), ("[CX]", []), ("[Cap1]", []), ("`[C1]`", []), ("(C1)", []),
    ],
)  # fmt: skip
def test_how_marks_are_written(mark: str, numbers: list[int]) -> None:
    assert [number for found in find_marks(f"Sí {mark}.") for number in found.numbers] == numbers


def test_marks_are_stripped_but_not_from_code() -> None:
    text = "Uno [C1]. Dos. [C2, 3] pla[C1]zo `x [C1]`\n```\na [C1]\n```\nTres【C4】."
    assert strip_marks(text) == "Uno. Dos. plazo `x [C1]`\n```\na [C1]\n```\nTres."


@pytest.mark.parametrize(
    "sentence",
    [
        "El plazo de presentación será de tres meses desde la notificación",
        "Además, **el plazo** de presentación será de tres  meses desde la notificación",
        "Según la guía, no se admiten solicitudes _fuera de plazo_",
        "No se admiten solicitudes fuera de plazo",
        "- DNI en vigor del titular",
        "### No se admiten solicitudes [fuera de plazo](https://x.es)",
    ],
)
def test_a_verbatim_sentence_is_verified(sentence: str) -> None:
    (citation,) = verify_answer(f"{sentence} [C1].", HITS).citations
    assert (citation.status, citation.support) == (V, 1.0)
    check_exact(citation, HITS)


def test_the_quote_is_the_stored_text_character_for_character() -> None:
    (citation,) = verify_answer("El plazo será de 3 meses desde la notificación [C1].", HITS).citations
    assert citation.status is U
    assert citation.quote == "El plazo de presentación será de **tres meses** desde la notifi-\ncación."
    assert citation.start == 500 + GUIDE.chunk.text.index("El plazo")


@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("La cuantía máxima asciende a 1,234.56 € [C1].", U),  # the same number, written the other way
        ("La cuantía máxima asciende a 1.234,65 € [C1].", U),
        ("La cuantía máxima asciende a 1.234,56 $ [C1].", U),
        ("La cuantía mínima asciende a 1.234,56 € [C1].", U),
        ("El plazo de presentación es de 4 meses [C1].", U),
        ("El plazo de presentación es de tres años [C1].", U),
        ("Se admiten solicitudes fuera de plazo [C1].", U),
        ("admiten solicitudes fuera de plazo [C1].", U),
        ("Les demandes sont admises après le 31 mars 2024 [C2].", U),
        ("Les demandes ne sont pas admises après le 31 mai 2024 [C2].", U),
        ("L'aide s'élève à 50% du loyer versé à Lyon [C2].", U),
        ("Applicants may file within 20 working days [C3].", U),
        ("Applicants must file within 20 days [C3].", U),
        ("The office opens after noon [C3].", U),
        ("Fees may not exceed 15 [C3].", U),
    ],
)
def test_code_leaves_a_reworded_sentence_to_a_judge(sentence: str, status: CitationStatus) -> None:
    assert statuses(sentence) == [(int(sentence[-3]), status)]


def test_a_negation_in_the_heading_above_does_not_unprove_a_sentence() -> None:
    hits = [make_hit("Casos en que no procede\n\nLa ayuda se extingue por renuncia de la persona titular.")]
    (citation,) = verify_answer("La ayuda se extingue por renuncia de la persona titular [C1].", hits).citations
    assert citation.status is V


@pytest.mark.parametrize(
    "answer",
    [
        "No se admiten solicitudes no fuera de plazo [C1].",
        "Les demandes ne sont jamais pas admises après le 31 mars 2024 [C2].",
    ],
)
def test_a_near_copy_with_another_negation_is_not_verified(answer: str) -> None:
    assert V not in [status for _, status in statuses(answer)]


def test_a_short_quotation_does_not_speak_for_a_long_sentence() -> None:
    answer = "El Gobierno de Marte regala castillos a quien escriba «solicitudes fuera de plazo» [C1]."
    assert statuses(answer) == [(1, U)]


def test_numbers_that_change_places_are_not_verified() -> None:
    hits = [make_hit("El coste es de 10 € al inicio y de 20 € al final del curso.")]
    (citation,) = verify_answer("El coste es de 20 € al inicio y de 10 € al final [C1].", hits).citations
    assert citation.status is U


def test_a_number_of_a_neighbouring_sentence_does_not_verify() -> None:
    hits = [make_hit("La ayuda en Madrid es de 300 € para jóvenes. El alquiler máximo es de 500 €.")]
    (citation,) = verify_answer("La ayuda en Madrid es de 500 € para jóvenes [C1].", hits).citations
    assert citation.status is U


def test_a_nearly_equal_sentence_about_something_else_does_not_verify() -> None:
    text = (
        "El plazo general de presentación de solicitudes para extranjeros es de 3 meses. "
        "El plazo general de presentación de solicitudes para residentes es de 5 meses."
    )
    answer = "El plazo general de presentación de solicitudes para extranjeros es de 5 meses [C1]."
    (citation,) = verify_answer(answer, [make_hit(text)]).citations
    assert citation.status is U


def test_the_wrong_mark_is_misattributed_and_shows_where_the_quote_stands() -> None:
    (citation,) = verify_answer("No se admiten solicitudes fuera de plazo [C2].", HITS).citations
    assert (citation.mark, citation.status, citation.chunk_id) == (2, M, "chunk-1")


def test_other_retrieved_chunks_are_searched_too() -> None:
    verification = verify_answer("Fees may not exceed 15 € [C1].", [GUIDE], others=[LOI, HANDBOOK])
    assert [(c.status, c.chunk_id) for c in verification.citations] == [(M, "chunk-3")]


@pytest.mark.parametrize("mark", ["[C0]", "[C4]", "[C999999999]"])
def test_a_mark_out_of_range_is_not_found(mark: str) -> None:
    verification = verify_answer(f"No se admiten solicitudes fuera de plazo {mark}.", HITS)
    assert [citation.status for citation in verification.citations] == [N]
    assert verification.counts == {**dict.fromkeys(CitationStatus, 0), N: 1}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Dice: «No se admiten solicitudes fuera de plazo» [C1].", [(1, V)]),
        ('La guía aclara que "no se admiten solicitudes fuera de plazo" [C2].', [(2, M)]),
        ("La guía aclara “se admiten solicitudes sin plazo alguno” [C1].", [(1, N)]),
        ("Según el artículo 7, «No se admiten solicitudes fuera de plazo» [C1].", [(1, U)]),
        ("Dice «El plazo [...] será de tres meses» [C1].", [(1, V)]),
        ("Dice «No se admiten solicitudes. Fuera de plazo, nunca jamás» [C1].", [(1, U), (1, N)]),
        ("Dice «El plazo de presentación será de tres meses desde la notificación. "
         "No se admiten solicitudes fuera de plazo» [C1].", [(1, V)]),  # one run of the passage
    ],
)  # fmt: skip
def test_an_explicit_quotation_must_stand(answer: str, expected: list[tuple[int, CitationStatus]]) -> None:
    assert statuses(answer) == expected


def test_a_mark_covers_the_unmarked_sentences_before_it_in_its_paragraph() -> None:
    answer = (
        "No se admiten solicitudes fuera de plazo. La luna es de queso manchego. DNI en vigor del titular [C1].\n\n"
        "Otra frase cualquiera sin marca alguna."
    )
    verification = verify_answer(answer, HITS)
    assert [c.status for c in verification.citations] == [V, N, V]
    assert [answer[a:b] for a, b in verification.flagged] == ["La luna es de queso manchego."]
    assert [answer[a:b] for a, b in verification.unmarked] == ["Otra frase cualquiera sin marca alguna."]


def test_a_covered_sentence_needs_only_one_of_the_marks() -> None:
    answer = "Fees may not exceed 15 €. No se admiten solicitudes fuera de plazo [C1][C3]."
    assert statuses(answer) == [(3, V), (1, V), (3, M)]
    assert verify_answer(answer, HITS).flagged == ()  # a second, wrong mark does not unprove a sentence


def test_all_marks_of_a_sentence_answer_for_all_of_it() -> None:
    answer = "El plazo será de tres meses [C1], mientras que fees may not exceed 15 € [C3]."
    assert statuses(answer) == [(1, U), (3, U)]
    assert statuses("Según [C1], no se admiten solicitudes fuera de plazo.") == [(1, V)]


def test_doubled_marks_and_marks_inside_words() -> None:
    assert statuses("No se admiten solici[C1]tudes fuera de plazo [C1][C1].") == [(1, V)]


def test_headings_lead_ins_and_code_are_no_claims() -> None:
    answer = (
        "## Requisitos de la ayuda\nNecesitas presentar:\n- DNI en vigor del titular\n- Certificado de "
        "empadronamiento [C1]\n\n```\nprint('una línea de código [C1]')\n```\n**Más información útil**"
    )
    verification = verify_answer(answer, HITS)
    (citation,) = verification.citations  # the items follow each other in the passage
    assert (citation.status, citation.quote) == (V, "DNI en vigor del titular\n- Certificado de empadronamiento")
    assert verification.unmarked == verification.flagged == ()


def test_a_mark_without_words_is_reported() -> None:
    assert statuses("[C1]") == [(1, N)]
    assert statuses("Fuentes: [C1], [C2]") == [(1, N), (2, N)]


def test_table_rows_of_the_answer_are_checked_and_its_header_is_not() -> None:
    answer = (
        "| Concepto | Importe máximo |\n|---|---|\n| Cuantía máxima | 1.234,56 € [C1] |\n| Fees exceed | 16 € [C3] |"
    )
    assert statuses(answer) == [(1, U), (3, U)]


def test_a_forged_mark_in_a_document_proves_nothing() -> None:
    forged = make_hit("Texto del documento. [C1] El solicitante queda exento de todo pago [C2]. Fin del texto.", 4)
    hits = [forged, LOI]
    verification = verify_answer("Nadie debe pagar tasas [C1]. El solicitante queda exento de todo pago [C2].", hits)
    assert [c.status for c in verification.citations] == [N, M]


def test_quotes_of_documents_full_of_marks_stay_exact() -> None:
    hits = [make_hit("El plazo [C7] de las so[C2]licitudes es de [C1] cinco días hábiles.")]
    (citation,) = verify_answer("El plazo de las solicitudes es de cinco días hábiles [C1]", hits).citations
    assert citation.status is V
    check_exact(citation, hits)


ROW = row_hit(["Product: Hex bolt M8", "Stock: 120", "Price: 0,35 €", "Minimum: 40"], 12, start=900)


@pytest.mark.parametrize(
    ("answer", "cell"),
    [
        ("The stock of the product Hex bolt M8 is 120 [C1].", "B12"),
        ("The minimum for the product Hex bolt M8 is 40 [C1].", "D12"),
        ("Product: Hex bolt M8 | Stock: 120 [C1]", "B12"),
        ("Hex bolt M8: stock 120, minimum 40 [C1].", "B12:D12"),
        ("The product Hex bolt M8 has a stock, a price and a minimum [C1].", "A12:D12"),
        ("Product: Hex bolt M8 [C1]", "A12"),
        ("Product: Hex bolt M8 | Stock: 120 | Price: 0,35 € | Minimum: 40 [C1]", "A12:D12"),
    ],
)
def test_the_place_is_the_cell_that_states_the_number(answer: str, cell: str) -> None:
    (citation,) = verify_answer(answer, [ROW]).citations
    assert citation.status is (V if answer.startswith("Product:") else U)
    assert citation.location == Location(sheet="Stocks", cell=cell, row=12)


def test_a_copied_line_is_placed_as_a_whole_when_only_one_of_its_cells_holds_a_number() -> None:
    row = row_hit(["Item: Taxi", "Limit (€): 45", "Approved by: Finance director"], 6)
    (citation,) = verify_answer("Item: Taxi | Limit (€): 45 | Approved by: Finance director [C1]", [row]).citations
    assert citation.location == Location(sheet="Stocks", cell="A6:C6", row=6)


def test_of_a_cell_merged_downwards_only_the_row_of_the_quote_counts() -> None:
    row = row_hit(["Department: Sales", "Employee: Joan Pla", "Pay: 27850.50 €"], 4)
    first, *others = row.chunk.spans
    merged = Span(start=first.start, end=first.end, location=msgspec.structs.replace(first.location, cell="A3:A5"))
    hit = replace(row, chunk=replace(row.chunk, spans=(merged, *others)))
    (citation,) = verify_answer("Department: Sales | Employee: Joan Pla | Pay: 27850.50 € [C1]", [hit]).citations
    assert citation.location == Location(sheet="Stocks", cell="A4:C4", row=4)


def test_numbers_under_another_heading_of_the_row_do_not_verify() -> None:
    (citation,) = verify_answer("The stock of the product Hex bolt M8 is 40 [C1].", [ROW]).citations
    assert citation.status is U


def test_the_place_of_a_quote_over_two_pages_names_both() -> None:
    text = "Applicants must file within 20 working days after the notice."
    spans = tuple(
        Span(start=100 + i * 30, end=130 + i * 31, location=Location(page=page)) for i, page in enumerate((3, 4))
    )
    (citation,) = verify_answer(f"{text} [C1]", [make_hit(text, start=100, spans=spans)]).citations
    assert citation.location == Location(page=3, last_page=4)


def test_title_and_headings_may_name_what_the_sentence_leaves_out() -> None:
    answer = "La cuantía máxima del ingreso mínimo vital asciende a 1.234,56 € [C1]."
    assert statuses(answer) == [(1, U)]


def test_a_stream_gives_a_citation_with_the_next_visible_character() -> None:
    stream = CitationStream(HITS)
    assert stream.feed("No se admiten solicitudes fuera de plazo.") == []
    assert stream.feed(" [C1]") == []
    assert [c.status for c in stream.feed(" El")] == [V]
    assert len(stream.finish(" plazo es largo.").citations) == 1


def test_an_answer_without_marks_has_no_citations() -> None:
    verification = verify_answer("No se admiten solicitudes fuera de plazo.", HITS)
    assert verification.citations == ()
    assert len(verification.unmarked) == 1
