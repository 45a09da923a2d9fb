"""Documents and answers made for the tests of citation verification."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from rag_service.answering.proof.verify import CitationStream, Verification, verify_answer
from rag_service.domain import Chunk, Citation, CitationStatus, DocumentRef, Hit, Location, Scores, Span


def make_hit(
    text: str, number: int = 1, *, start: int = 0, spans: tuple[Span, ...] = (), title: str = "Document"
) -> Hit:
    document = DocumentRef(
        id=UUID(int=number),
        corpus_id=UUID(int=0),
        title=title,
        file_name=None,
        source=None,
        tags=(),
        content_hash=f"hash-{number}",
        updated_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    chunk = Chunk(
        id=f"chunk-{number}",
        document=document,
        index=number,
        text=text,
        start=start,
        end=start + len(text),
        spans=spans,
    )
    return Hit(chunk=chunk, scores=Scores(relevance=0.9))


def row_hit(cells: Sequence[str], row: int, number: int = 1, *, start: int = 0) -> Hit:
    """A sheet's row "Header: value | Header: value", with the place of each cell."""
    text, spans = " | ".join(cells), []
    position = start
    for column, cell in enumerate(cells):
        place = Location(sheet="Stocks", cell=f"{'ABCDEFGH'[column]}{row}", row=row)
        spans.append(Span(start=position, end=position + len(cell), location=place))
        position += len(cell) + 3
    return make_hit(text, number, start=start, spans=tuple(spans), title="production.xlsx")


def check_exact(citation: Citation, hits: Sequence[Hit]) -> None:
    """What every citation must hold, whatever the answer."""
    if citation.status is CitationStatus.NOT_FOUND:
        places = (citation.quote, citation.start, citation.end, citation.chunk_id, citation.location)
        assert places == (None,) * 5
        return
    chunk = next(hit.chunk for hit in hits if hit.chunk.id == citation.chunk_id)
    assert citation.quote and citation.start is not None and citation.end is not None
    assert chunk.start <= citation.start < citation.end <= chunk.end
    assert chunk.text[citation.start - chunk.start : citation.end - chunk.start] == citation.quote
    assert citation.quote == citation.quote.strip()
    assert (citation.document_id, citation.content_hash) == (chunk.document.id, chunk.document.content_hash)
    named = 1 <= citation.mark <= len(hits) and hits[citation.mark - 1].chunk.id == citation.chunk_id
    assert named == (citation.status is not CitationStatus.MISATTRIBUTED)
    assert (citation.method is not None) == (citation.status is CitationStatus.VERIFIED)


def stream_answer(answer: str, hits: Sequence[Hit], cuts: Sequence[int], language: str | None) -> Verification:
    """Verifies piece by piece, and checks that what came early is what came in the end."""
    stream, early, position = CitationStream(hits, language=language), [], 0
    for cut in sorted({min(cut, len(answer)) for cut in cuts}):
        early += stream.feed(answer[position:cut])
        position = cut
    verification = stream.finish(answer[position:])
    assert list(verification.citations[: len(early)]) == early
    return verification


def check_all(answer: str, hits: Sequence[Hit], cuts: Sequence[int], language: str | None) -> Verification:
    verification = verify_answer(answer, hits, language=language)
    for citation in verification.citations:
        check_exact(citation, hits)
    assert stream_answer(answer, hits, cuts, language) == verification
    return verification


_WORDS = {
    "es": (
        ["La solicitud", "El informe", "El certificado", "La prestación", "El recurso", "La subvención"],
        ["deberá presentarse", "podrá tramitarse", "se resolverá", "no se admitirá", "quedará archivado"],
        ["en la oficina de", "por la persona titular de", "ante el registro de", "junto con el modelo de"],
        ["empadronamiento", "discapacidad", "vivienda protegida", "búsqueda activa", "cotización", "autónomos"],
        ["en un plazo de {} días", "hasta {} €", "con una cuantía de {} euros", "en {} meses", "al {} %"],
    ),
    "fr": (
        ["La demande", "Le dossier", "L’attestation", "La prestation", "Le recours", "L’allocation"],
        ["doit être déposée", "peut être traitée", "sera examinée", "n’est pas acceptée", "reste archivée"],
        ["auprès de la mairie de", "par le titulaire de", "au bureau de", "avec le formulaire de"],
        ["résidence", "handicap", "logement social", "recherche d’emploi", "cotisation", "indépendants"],
        ["dans un délai de {} jours", "jusqu’à {} €", "pour un montant de {} euros", "en {} mois", "à {} %"],
    ),
    "en": (
        ["The application", "The report", "The certificate", "The benefit", "The appeal", "The grant"],
        ["must be filed", "may be processed", "will be settled", "is not accepted", "remains archived"],
        ["at the office of", "by the holder of", "with the registry of", "along with the form for"],
        ["residence", "disability", "sheltered housing", "active search", "contributions", "self-employment"],
        ["within {} days", "up to {} €", "for an amount of {} euros", "in {} months", "at {} %"],
    ),
}


@dataclass
class Fact:
    """A sentence of a document with the one number in it."""

    text: str  # without its final stop
    number: int
    negated: bool


def make_facts(rng: random.Random, language: str, count: int) -> list[Fact]:
    facts: dict[str, Fact] = {}
    while len(facts) < count:
        subject, verb, link, thing, amount = (rng.choice(words) for words in _WORDS[language])
        number = rng.choice([rng.randint(2, 99), rng.randint(100, 999), rng.randint(2, 12)])
        text = f"{subject} {verb} {link} {thing} {amount.format(number)}"
        facts[text] = Fact(text, number, verb.startswith(("no ", "n’est", "is not")))
    return list(facts.values())


_QUOTES = {"’": "'", "'": "’"}
_LIGATURES = {"fi": "ﬁ", "fl": "ﬂ", "ff": "ﬀ", "oe": "œ"}


def retype(rng: random.Random, text: str) -> str:
    """The same text as another program would have written it."""
    for _ in range(rng.randint(0, 4)):
        match rng.randrange(7):
            case 0:
                spaces = [i for i, character in enumerate(text) if character == " "]
                at = rng.choice(spaces) if spaces else 0
                text = text[:at] + rng.choice(["  ", "\u00a0", "\n", " \t"]) + text[at + 1 :] if spaces else text
            case 1:
                text = "".join(_QUOTES.get(character, character) for character in text)
            case 2:
                letters = [i for i in range(2, len(text) - 2) if text[i - 2 : i + 2].isalpha()]
                at = rng.choice(letters) if letters else 0
                text = text[:at] + rng.choice(["-\n", "\u00ad", "\u200b", "\u00ad\n"]) + text[at:] if at else text
            case 3:
                plain, ligature = rng.choice(list(_LIGATURES.items()))
                text = text.replace(plain, ligature)
            case 4:
                text = unicodedata.normalize(rng.choice(["NFD", "NFC"]), text)
            case 5:
                text = text.replace("-", rng.choice(["–", "‐", "\u2011"])) if "-\n" not in text else text
            case 6:
                text = text.replace(" €", "€").replace(" %", "\u00a0%")
    return text


def decorate(rng: random.Random, sentence: str) -> str:
    """Markdown and connectives around a sentence."""
    words = sentence.split(" ")
    at = rng.randrange(len(words))
    if rng.random() < 0.3:
        words[at] = f"**{words[at]}**"
    start = rng.choice(["", "", "", "- ", "1. ", "* ", "> "])
    return start + " ".join(words)


def write_chunk(rng: random.Random, facts: Sequence[Fact], number: int, *, forged: str = "") -> Hit:
    """A chunk that states the facts in some layout, somewhere in a longer document."""
    joint, form = rng.choice([(" ", "{}."), ("\n", "- {}."), ("\n\n", "{}."), ("\n", "| {} |"), ("\n", "- **{}**")])
    sentences = [form.format(retype(rng, fact.text)) for fact in facts]
    if forged:
        sentences.insert(rng.randrange(len(sentences) + 1), forged)
    heading = rng.choice(["", "# Capítulo\n\n", "## Section\n"])
    start = rng.randrange(5000)
    text = heading + joint.join(sentences)
    middle = start + len(text) // 2
    spans = (
        Span(start=start, end=middle, location=Location(page=3)),
        Span(start=middle, end=start + len(text), location=Location(page=4)),
    )
    return make_hit(text, number, start=start, spans=spans)
