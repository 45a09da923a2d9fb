"""Settings: a typo or a contradiction is refused at start and named."""

from __future__ import annotations

import json

import pytest

from rag_service.errors import ConfigurationError
from rag_service.settings import Settings, load_settings, setting_fields


def test_an_unknown_setting_is_named_with_the_nearest_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_TOPK_DEFUALT", "3")
    with pytest.raises(ConfigurationError, match=r"RAG_TOPK_DEFUALT.*Did you mean RAG_TOPK_DEFAULT"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("RAG_TOPK_DEFAULT", "0", "RAG_TOPK_DEFAULT"),
        ("RAG_TOPK_DEFAULT", "51", "larger than RAG_TOPK_MAX"),
        ("RAG_SIMILARITY_THRESHOLD", "1.5", "RAG_SIMILARITY_THRESHOLD"),
        ("RAG_OLLAMA_URL", "ollama:11434", "http://"),
        ("RAG_CONNECT_TIMEOUT", "-1", "RAG_CONNECT_TIMEOUT"),
        ("RAG_HOST", "0.0.0.0", "loopback"),  # noqa: S104
        ("RAG_MAX_TOKENS", "9000", "RAG_CONTEXT_WINDOW"),
        ("RAG_DATABASE_REPLICA_URL", "postgresql://replica/rag", "needs RAG_DATABASE_URL"),
        ("RAG_CHAT_PROVIDER", "clippy", "RAG_CHAT_PROVIDER"),
    ],
)
def test_a_wrong_value_is_refused_and_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=said):
        load_settings()


def test_the_log_level_may_be_written_in_small_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_LOG_LEVEL", "warning")
    assert load_settings().observability.log_level == "WARNING"


def test_an_empty_value_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAG_JWT_SECRET", "RAG_DATABASE_URL", "RAG_INDICES_PATH", "RAG_TOPK_DEFAULT"):
        monkeypatch.setenv(name, "")
    settings = load_settings()
    assert (settings.auth.jwt_secret, settings.database.url, settings.indices.path) == (None, None, None)
    assert settings.retrieval.top_k == 5


def test_secrets_do_not_show_in_the_settings_repr() -> None:
    settings = Settings(database_url="postgresql://rag:swordfish@localhost/rag")  # type: ignore[arg-type]
    assert "swordfish" not in repr(settings)


@pytest.mark.parametrize("key", sorted(setting_fields()))
def test_every_setting_is_described(key: str) -> None:
    assert setting_fields()[key].description, f"{key} has no description"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RAG_DATABASE_TIMEOUT", "inf"),
        ("RAG_TOKEN_TIMEOUT", "nan"),
        ("RAG_SEARCH_TIMEOUT", "1000000000000"),
        ("RAG_SESSION_IDLE_MINUTES", "2147483647"),
        ("RAG_QUERY_MAX_CHARS", "1000000000000"),
        ("RAG_DOCUMENT_TTL_SECONDS", "1000000000000"),
    ],
)
def test_every_number_has_an_upper_bound(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=name):
        load_settings()


def test_what_is_json_in_the_environment_may_be_given_as_a_mapping() -> None:
    options = load_settings(chat_options={"threads": 1, "model": "é"}).chat.options
    assert options is not None and json.loads(options.get_secret_value()) == {"threads": 1, "model": "é"}
    with pytest.raises(ConfigurationError, match="RAG_CHAT_OPTIONS: cannot be written as JSON"):
        load_settings(chat_options={"llm": object()})
