"""PDFs of two columns whose words are broken at the line ends: found and quoted like those without hyphens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fpdf import FPDF

from rag_service.answering.proof.verify import verify_answer
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, CitationStatus, Filters
from rag_service.language.sentences import split_sentences
from rag_service.readers.parse import parse
from rag_service.retrieval.question import Question
from tests.integration.answers.conftest import Ingest
from tests.unit.answering.proof.answers import make_hit
from tests.unit.readers.test_hyphens import hyphenated

SHIPPED = Path(__file__).parents[3] / "indices"
FOLDERS = {
    "es": [SHIPPED / "procedures_es", SHIPPED / "general"],
    "fr": [SHIPPED / "general"],
    "en": [SHIPPED / "retirement", SHIPPED / "general"],
}
WIDTH, LINES = 46, 48  # of a column
SENTENCES = 110  # of each language


def prose(language: str) -> list[str]:
    """Sentences of the shipped documents without markup."""
    found: list[str] = []
    for folder in FOLDERS[language]:
        for file in sorted((folder / "documents").glob("*")):
            if file.suffix not in (".md", ".txt") or (folder.name == "general" and f".{language}." not in file.name):
                continue
            for paragraph in re.split(r"\n\s*\n", file.read_text("utf-8")):
                text = " ".join(paragraph.split())
                found += [text[start:end].strip() for start, end in split_sentences(text, language=language)]
    plain = [one for one in found if re.fullmatch(r"[A-ZÁÉÍÓÚÀÇÈÊ¿][^|#*\[\]_`<>{}:]{50,220}[.?]", one)]
    return [one for one in dict.fromkeys(plain) if one.encode("cp1252", "ignore").decode("cp1252") == one][:SENTENCES]


def paper(sentences: list[str], *, broken: bool) -> bytes:
    """The sentences on pages of two columns."""
    text = " ".join(sentences)
    lines = hyphenated(text, width=WIDTH) if broken else list(_wrapped(text))
    file = FPDF()
    file.set_font("Helvetica", size=8)
    for start in range(0, len(lines), 2 * LINES):
        file.add_page()
        for number, line in enumerate(lines[start : start + 2 * LINES]):
            file.text(15 + 95 * (number // LINES), 15 + 5.5 * (number % LINES), line)
    return bytes(file.output())


def _wrapped(text: str) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(line) + len(word) + 1 > WIDTH:
            yield line
            line = ""
        line = f"{line} {word}".strip()
    yield line


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_every_quote_is_found() -> None:
    count = 0
    for language in FOLDERS:
        sentences = prose(language)
        text = parse(paper(sentences, broken=True), file_name="paper.pdf").text
        assert "-\n" not in text
        pieces = [text[start : start + 2000] for start in range(0, len(text), 1000)]
        for sentence in sentences:
            piece = next(piece for piece in pieces if squeezed(sentence) in squeezed(piece))
            checked = verify_answer(f"{sentence} [C1]", [make_hit(piece)], language=language)
            assert [one.status for one in checked.citations] == [CitationStatus.VERIFIED], sentence
            count += 1
    assert count >= 300


@pytest.mark.slow
async def test_passages_are_found_as_without_hyphens(service: Components, ingest: Ingest) -> None:
    recall = {True: 0, False: 0}
    asked = 0
    for language in FOLDERS:
        sentences = prose(language)
        for broken in recall:
            name = f"{language}-{broken}.pdf"
            await ingest(paper(sentences, broken=broken), name)
            for sentence in sentences[::5]:
                query = Question(
                    sentence, identity=LOCAL_ADMIN, top_k=5, threshold=0.0, filters=Filters(file_name=name)
                )
                hits = (await service.engine.search(query)).passages
                found = " ".join(squeezed(hit.chunk.text) for hit in hits)  # a chunk may end within the sentence
                recall[broken] += squeezed(sentence)[:30] in found or squeezed(sentence)[-30:] in found
        asked += len(sentences[::5])
    assert recall[True] >= 0.95 * asked
    assert abs(recall[True] - recall[False]) <= 0.01 * asked
