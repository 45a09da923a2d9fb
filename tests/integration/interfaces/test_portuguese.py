"""A language that is only data: a Portuguese document, question, answer, refusal and page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_service import components, open_service
from rag_service.client import Service
from rag_service.store.embedded import EmbeddedServer
from rag_service.web.languages import choose_language
from tests.conftest import FakeEmbedding

FERIAS = """# Regulamento de férias

Os trabalhadores têm direito a 22 dias úteis de férias por ano. Não é possível acumular férias de anos anteriores.

## Subsídios

O subsídio de refeição é de 9,60 euros por dia, no cartão. As alterações comunicam-se à direção até 31 de março.
"""


@pytest.fixture
def service(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Service]:
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)
    (tmp_path / "ferias.md").write_text(FERIAS, encoding="utf-8")
    with open_service(database_url=database_server.service_conninfo, similarity_threshold=0.3) as opened:
        opened.ingest(tmp_path)
        yield opened


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Quantos dias de férias têm os trabalhadores por ano?", "22 dias úteis"),
        ("Quanto é o subsídio de refeição?", "9,60 euros"),
    ],
)
def test_a_question_is_answered_with_a_verified_citation(service: Service, question: str, expected: str) -> None:
    answer = service.ask(question)
    assert expected in answer.text
    assert answer.citations
    assert {citation.status for citation in answer.citations} == {"verified"}


def test_a_place_is_shown_where_a_quote_is_not_certain(service: Service) -> None:
    answer = service.ask("Até quando se comunicam as alterações à direção?")
    assert "31 de março" in answer.text
    assert answer.decision == "uncertain"


def test_plurals_and_missing_accents_find_the_same_passage(service: Service) -> None:
    assert "refeição" in service.ask("subsidios de refeicoes").text


def test_what_the_documents_lack_is_refused_in_portuguese(service: Service) -> None:
    answer = service.ask("Quem pintou o teto da capela?")
    assert answer.decision == "out_of_scope"
    assert answer.text.startswith(("Os documentos", "Não há nada nos documentos"))


def test_the_page_speaks_portuguese_to_those_who_ask_for_it() -> None:
    assert choose_language(None, "pt-PT,pt;q=0.9,en;q=0.5") == "pt"
