"""Model servers nearby are reached without the proxy of the environment, and a failure through one names it."""

from __future__ import annotations

import pytest

from rag_service.cli.model_servers import check_server
from rag_service.errors import ConfigurationError, EmbeddingError, ModelError
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.servers.clients import is_private_host, proxy_variable, read_digest
from rag_service.models.servers.resilience import RetryPolicy
from rag_service.settings import Settings
from tests.doubles.ollama import OllamaDouble

NOTHING_LISTENS = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTP_PROXY", NOTHING_LISTENS)


def settings_for(url: str, *, by_proxy: bool = False) -> Settings:
    return Settings(
        embedding_provider="ollama",
        embedding_model="bge-m3",
        embedding_dimension=384,
        ollama_url=url,
        proxy_private_servers=by_proxy,
    )


async def embed(settings: Settings) -> int:
    embedding = build_embedding(settings, retries=RetryPolicy(attempts=1))
    try:
        return len(await embedding.aget_text_embedding("a passage"))
    finally:
        await embedding.aclose()


async def test_a_server_on_this_machine_is_reached_directly(ollama: OllamaDouble) -> None:
    ollama.installed.add("bge-m3:latest")
    settings = settings_for(ollama.url)
    assert await embed(settings) == 384
    await check_server(settings, "ollama", "bge-m3", "RAG_EMBEDDING_MODEL")
    assert await read_digest(settings, "bge-m3") == ollama.digest


async def test_a_setting_sends_it_through_the_proxy_which_the_messages_name(ollama: OllamaDouble) -> None:
    settings = settings_for(ollama.url, by_proxy=True)
    with pytest.raises(EmbeddingError, match="proxy that HTTP_PROXY names"):
        await embed(settings)
    with pytest.raises(ConfigurationError, match="proxy that HTTP_PROXY names"):
        await check_server(settings, "ollama", "bge-m3", "RAG_EMBEDDING_MODEL")
    with pytest.raises(ModelError):
        await read_digest(settings, "bge-m3")


async def test_a_public_server_is_reached_through_the_proxy_which_the_message_names() -> None:
    with pytest.raises(EmbeddingError, match="proxy that HTTP_PROXY names"):
        await embed(settings_for("http://models.example.com"))


async def test_without_a_proxy_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTTP_PROXY")
    with pytest.raises(EmbeddingError) as caught:
        await embed(settings_for(NOTHING_LISTENS))
    assert "proxy" not in caught.value.message


def test_the_variable_is_that_of_the_scheme_and_no_proxy_excepts_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()
    assert proxy_variable(settings, "http://models.example.com/v1") == "HTTP_PROXY"
    assert proxy_variable(settings, "https://models.example.com/v1") is None
    monkeypatch.setenv("ALL_PROXY", NOTHING_LISTENS)
    assert proxy_variable(settings, "https://models.example.com/v1") == "ALL_PROXY"
    monkeypatch.setenv("NO_PROXY", "example.com")
    assert proxy_variable(settings, "http://models.example.com/v1") is None
    assert proxy_variable(settings, "http://10.0.0.7:8000/v1") is None


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("127.0.0.1", True), ("localhost", True), ("::1", True), ("10.1.2.3", True), ("192.168.0.9", True),
        ("172.20.0.2", True), ("fd00::5", True), ("169.254.1.1", True), ("ollama", True), ("gpu.local", True),
        ("host.docker.internal", True), ("8.8.8.8", False), ("2606:4700::1111", False), ("api.mistral.ai", False),
    ],
)  # fmt: skip
def test_private_hosts_are_told_by_address_or_name(host: str, private: bool) -> None:
    assert is_private_host(host) is private
