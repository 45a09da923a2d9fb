"""What a file holds, told in the language of the question."""

from __future__ import annotations

from uuid import UUID

from rag_service.answering.answerers.overview import describe_files
from rag_service.language.languages import quote_text
from rag_service.retrieval.named_files import NamedFile, NamedFiles, Outline
from tests.unit.answering.proof.answers import make_hit

RULES = "Règlement du jardin partagé\n\nLe jardin ferme à huit heures du soir."


def _tell(language: str) -> list[str]:
    file = NamedFile(id=UUID(int=1), name="jardin.docx")
    outline = Outline(file=file, title="Règlement du jardin partagé", pages=2)
    answer = describe_files(NamedFiles(found=(file,), outlines=(outline,)), [make_hit(RULES)], language)
    assert answer is not None
    return [str(sentence[0]) for sentence in answer.wording.sentences]


def test_an_overview_has_the_quotation_marks_and_colons_of_its_language() -> None:
    assert _tell("fr")[0] == "jardin.docx – pages\u00a0: 2; titre\u00a0: «\u00a0Règlement du jardin partagé\u00a0»"
    assert _tell("en")[0] == "jardin.docx – pages: 2; title: “Règlement du jardin partagé”"
    assert quote_text("PRET", "de") == "“PRET”"


def test_the_title_is_not_said_twice() -> None:
    assert _tell("en")[1:] == ["It begins: “Le jardin ferme à huit heures du soir”"]
