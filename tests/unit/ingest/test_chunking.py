"""Chunks are slices of the stored text, of a size, cut where the text pauses."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import BaseNode, MetadataMode

from rag_service.domain import MAIL_HEADER, Location, ParsedDocument, Span
from rag_service.indices import IngestDefinition
from rag_service.ingest.chunker import Chunker
from rag_service.language.words import count_tokens
from rag_service.readers.file_reader import to_document
from rag_service.readers.parse import parse
from rag_service.store.documents.chunks import CHAR_END, CHAR_START, SPANS


def chunk(text: str, spans: list[Span] | None = None, *, title: str = "", **definition: object) -> list[BaseNode]:
    chunker = Chunker(IngestDefinition(**definition))  # type: ignore[arg-type]
    parsed = ParsedDocument(text=text, spans=tuple(spans or ()), title=title, media_type="text/plain")
    return chunker([to_document(parsed)])


def chunk_markdown(source: str, **definition: object) -> list[BaseNode]:
    parsed = parse(source.encode(), file_name="guide.md")
    return chunk(parsed.text, list(parsed.spans), title=parsed.title, **definition)


TEXT = st.text(alphabet=st.sampled_from("abc de.\n ñé¿?|"), max_size=3000)


@given(TEXT)
def test_every_chunk_is_the_slice_its_offsets_say(text: str) -> None:
    for node in chunk(text, chunk_tokens=60, chunk_overlap=15):
        assert node.get_content(MetadataMode.NONE) == text[node.metadata[CHAR_START] : node.metadata[CHAR_END]]


@given(TEXT)
def test_no_word_of_the_text_is_lost(text: str) -> None:
    covered = [False] * len(text)
    for node in chunk(text, chunk_tokens=60, chunk_overlap=15):
        start, end = node.metadata[CHAR_START], node.metadata[CHAR_END]
        covered[start:end] = [True] * (end - start)
    assert all(covered[position] or character.isspace() for position, character in enumerate(text))


def test_chunks_keep_to_their_size_and_overlap() -> None:
    sentences = [f"Sentence number {number} tells one thing about pallets." for number in range(200)]
    nodes = chunk("\n\n".join(sentences), chunk_tokens=200, chunk_overlap=40)
    sizes = [count_tokens(node.get_content(MetadataMode.NONE)) for node in nodes]
    assert max(sizes) <= 200 + 2 * len(sentences) // len(nodes)  # blank lines between paragraphs come on top
    for first, second in pairwise(nodes):
        shared = first.metadata[CHAR_END] - second.metadata[CHAR_START]
        assert 0 < shared < 40 * 8


def test_a_sentence_longer_than_a_chunk_is_cut_inside() -> None:
    nodes = chunk("word " * 1000, chunk_tokens=100, chunk_overlap=0)
    assert len(nodes) >= 10
    assert all(count_tokens(node.get_content(MetadataMode.NONE)) <= 130 for node in nodes)


GUIDE = (
    """# Travel

## Hotels

"""
    + "A room may cost 120 euros a night in most towns. " * 8
    + """

## Trains

"""
    + "Second class is booked for journeys below four hours. " * 8
)


def test_sections_begin_chunks_of_their_own_and_are_named() -> None:
    nodes = chunk_markdown(GUIDE)
    assert [node.metadata["section"] for node in nodes] == ["Hotels", "Trains"]
    assert "120 euros" in nodes[0].get_content(MetadataMode.NONE)


def test_sheets_begin_chunks_of_their_own_and_are_named() -> None:
    sheets = {"Allowances": "Item: Taxi | Limit: 45\n" * 8, "Payments": "No: R-104 | Paid: 2025-06-13\n" * 8}
    text, spans = "", []
    for sheet, rows in sheets.items():
        part = f"Sheet: {sheet}\n{rows}\n"
        spans.append(Span(start=len(text), end=len(text) + len(part), location=Location(sheet=sheet)))
        text += part
    nodes = chunk(text, spans, title="expenses")
    assert [node.metadata["section"] for node in nodes] == ["Allowances", "Payments"]
    assert ["R-104" in node.get_content(MetadataMode.NONE) for node in nodes] == [False, True]


def test_title_and_section_stand_before_the_text_that_is_embedded() -> None:
    embedded = chunk_markdown(GUIDE)[1].get_content(MetadataMode.EMBED)
    assert embedded.startswith("Travel\nTrains\n")


def test_declared_headings_give_a_chunk_its_type() -> None:
    nodes = chunk_markdown(GUIDE, chunk_types={"hotels": "fees"})
    assert [node.metadata["chunk_type"] for node in nodes if "euros" in node.get_content()] == ["fees"]


def test_a_numbered_heading_is_declared_without_its_number() -> None:
    (node,) = chunk_markdown("# 2.1 Guard rails\n\nNever promise a date.", chunk_types={"guard rails": "guardrails"})
    assert node.metadata["chunk_type"] == "guardrails"


def test_a_chunk_keeps_the_places_of_what_it_holds() -> None:
    text = "first page\n\nsecond page"
    spans = [
        Span(start=0, end=10, location=Location(page=1)),
        Span(start=12, end=23, location=Location(page=2)),
    ]
    (node,) = chunk(text, spans)
    assert [span[2]["page"] for span in node.metadata[SPANS]] == [1, 2]


def test_a_document_without_text_has_no_chunks() -> None:
    assert chunk(" \n\n ") == []


def test_the_header_of_a_forwarded_message_is_no_section_of_its_own() -> None:
    texts = [
        "Ana, 5 May: Loan\n\n",
        f"From: Ana <ana@mar.example>\nTo: {'Eva, ' * 60}\n\n",
        "The crates are ready. " * 20,
    ]
    for outer in ("", "loan.eml"):
        spans: list[Span] = []
        for text, inner in zip(texts, ("", MAIL_HEADER, ""), strict=True):
            start = spans[-1].end if spans else 0
            part = " > ".join(filter(None, (outer, inner))) or None
            location = Location(headings=("Ana, 5 May: Loan",), part=part)
            spans.append(Span(start=start, end=start + len(text), location=location))
        (found,) = chunk("".join(texts), spans, chunk_tokens=1_000)
        assert found.metadata["section"] == " > ".join(filter(None, (outer, "Ana, 5 May: Loan")))


def test_the_header_of_a_mail_is_searched_for_as_one() -> None:
    mail = b"From: Hugo <hugo@example.org>\nDate: Tue, 03 Mar 2026 08:15:00 +0100\nSubject: Boiler\n\nIt is repaired."
    parsed = parse(mail, file_name="boiler.eml")
    node = chunk(parsed.text, list(parsed.spans), title=parsed.title)[0]
    assert "Mail (e-mail), sent by the sender" in node.get_content(MetadataMode.EMBED)
    assert "Mail (e-mail)" not in node.get_content(MetadataMode.NONE)
    assert "e-mail" not in chunk("It is repaired.")[0].get_content(MetadataMode.EMBED)
