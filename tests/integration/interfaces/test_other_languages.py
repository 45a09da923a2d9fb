"""Languages without word lists: German has texts of ours, Polish has none; both are answered in no third language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_service import components, open_service
from rag_service.answering.prompt.templates import load_prompts
from rag_service.client import Service
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding

MIETE = """# Mietvertrag

Die Kaution beträgt zwei Monatsmieten. Sie wird spätestens sechs Monate nach dem Auszug zurückgezahlt.

## Haustiere

Hunde dürfen nur mit schriftlicher Erlaubnis der Vermieterin gehalten werden.
"""


@pytest.fixture
def service(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Service]:
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)
    (tmp_path / "miete.md").write_text(MIETE, encoding="utf-8")
    with open_service(database_url=database_server.service_conninfo, similarity_threshold=0.3) as opened:
        opened.ingest(tmp_path)
        yield opened


def test_a_german_question_is_answered_in_german(service: Service) -> None:
    answer = service.ask("Wie viele Monatsmieten beträgt die Kaution?")
    assert answer.body.language == "de"
    assert "zwei Monatsmieten" in answer.text


@pytest.mark.parametrize(
    ("question", "language", "texts"),
    [
        ("Wer hat die Decke der Kapelle gemalt?", "de", "de"),
        ("Chi ha dipinto il soffitto della cappella?", "it", "it"),
        ("Kto namalował sufit w tej kaplicy?", "pl", "en"),
        ("Wie heeft het plafond van de kapel geschilderd?", "nl", "en"),
        ("Кто расписал потолок часовни?", "ru", "en"),
    ],
)
def test_what_the_service_itself_says_is_in_the_language_of_the_question_or_in_english(
    service: Service, question: str, language: str, texts: str
) -> None:
    answer = service.ask(question)
    messages = load_prompts().messages
    said = {messages[key][texts] for key in ("refusal", "nothing_found", "doubtful")}
    assert answer.body.language == language
    assert any(sentence in answer.text for sentence in said)
    assert "Decke" not in answer.text  # German writes every noun like a name


def test_the_english_prompt_asks_for_a_reply_in_the_language_of_the_question() -> None:
    prompts = load_prompts()
    assert "Answer in Polish" in prompts.template("grounded", "pl").system
    assert "Answer in English" in prompts.template("grounded", "en").system
    assert "auf Deutsch" in prompts.template("grounded", "de").system


@pytest.mark.parametrize("language", ["en", "es", "fr", "pt", "de", "it"])
def test_a_language_with_texts_has_all_of_them(language: str) -> None:
    prompts = load_prompts()
    assert [key for key, by_language in prompts.messages.items() if language not in by_language] == []
    names = {"grounded", "classic", "chat_plain", "rewrite"}
    assert names <= {name for name, code in prompts.templates if code == language}
