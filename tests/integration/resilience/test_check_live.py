"""`check --live`: what would fail for the first user is said before, with the setting and the mend."""

from __future__ import annotations

from typing import Any

import pytest

from rag_service.cli.checks import CheckResult, check_live
from rag_service.settings import Settings
from rag_service.store.embedded import EmbeddedServer
from tests.doubles.ollama import CHAT, EMBED, OllamaDouble, embed, failure


class Ollama(OllamaDouble):
    """Lists the models that a test gives it."""

    models = ("llama3.2:latest", "nomic-embed-text:latest")
    window = 131_072

    def _plain(self, request: Any, reply: Any) -> tuple[int, dict[str, Any]]:
        if request.path == "/api/tags":
            return 200, {"models": [{"name": name, "model": name} for name in self.models]}
        if request.path == "/api/show":
            return 200, {"model_info": {"llama.context_length": self.window}}
        return super()._plain(request, reply)


@pytest.fixture
def server() -> Any:
    double = Ollama()
    double.start()
    yield double
    double.stop()


async def check(server: Ollama, database: EmbeddedServer, **overrides: Any) -> dict[str, CheckResult]:
    defaults = {
        "database_url": database.service_conninfo,
        "chat_provider": "ollama",
        "embedding_provider": "ollama",
        "embedding_model": "nomic-embed-text",
        "ollama_url": server.url,
        "connect_timeout": 2.0,
        "database_timeout": 5.0,
    }
    results = await check_live(Settings(**(defaults | overrides)))  # type: ignore[arg-type]
    return {result.name: result for result in results}


async def test_what_works_is_said_with_its_figures(server: Ollama, database_server: EmbeddedServer) -> None:
    server.verdicts = lambda body: '{"verdicts": [{"id": 1, "quote": "must name its author", "supported": true}]}'
    results = await check(server, database_server)
    assert all(result.ok for result in results.values()), [result.line for result in results.values()]
    assert results["database"].detail.startswith("PostgreSQL 18")
    assert results["embedding"].detail == "ollama nomic-embed-text, 384 dimensions"
    assert results["chat"].detail == "ollama llama3.2, window 8192 of 131072 tokens"
    assert results["reranker"].detail == "heuristic"
    assert results["judge"].detail.startswith("llama3.2. In use: of 118 sentences it let 0 of 57 wrong ones through")
    assert all(result.line.endswith(" ms") and result.latency_ms > 0 for result in results.values())


@pytest.mark.parametrize(
    ("overrides", "name", "said"),
    [
        ({"model_name": "lama3"}, "chat", ("RAG_MODEL_NAME", "rag-service models pull", "llama3.2:latest")),
        ({"embedding_model": "nomic"}, "embedding", ("RAG_EMBEDDING_MODEL", "rag-service models pull")),
        ({"embedding_dimension": 768}, "embedding", ("RAG_EMBEDDING_DIMENSION is 768", "set it to 384")),
        ({"embedding_dimension": 768}, "database", ("RAG_EMBEDDING_DIMENSION is 768", "vectors of 384")),
        ({"ollama_url": "http://127.0.0.1:1"}, "chat", ("RAG_OLLAMA_URL", "no server responds", "correct the URL")),
        ({"ollama_url": "http://localhost:8000"}, "chat", ("RAG_OLLAMA_URL points to this service itself", "RAG_PORT")),
        ({"ollama_url": "http://127.0.0.1:8000"}, "embedding", ("RAG_OLLAMA_URL points to this service itself",)),
        ({"context_window": 1100, "max_tokens": 700}, "chat", ("RAG_CONTEXT_WINDOW is 1100", "RAG_MAX_TOKENS")),
        ({"context_window": 200_000}, "chat", ("RAG_CONTEXT_WINDOW is 200000", "Set it to 131072 or less")),
        (
            {"database_url": "postgresql://rag@127.0.0.1:1/rag", "database_timeout": 1.0},
            "database",
            ("database cannot be reached",),
        ),
    ],
)
async def test_what_is_wrong_names_the_setting_and_the_mend(
    server: Ollama, database_server: EmbeddedServer, overrides: dict[str, Any], name: str, said: tuple[str, ...]
) -> None:
    result = (await check(server, database_server, **overrides))[name]
    assert not result.ok
    assert "FAILED" in result.line
    for words in said:
        assert words in result.detail, result.line


async def test_the_owner_role_is_refused(server: Ollama, database_server: EmbeddedServer) -> None:
    result = (await check(server, database_server, database_url=database_server.owner_conninfo))["database"]
    assert not result.ok
    assert "superuser" in result.detail


async def test_a_model_that_cannot_speak_is_found(server: Ollama, database_server: EmbeddedServer) -> None:
    server.script(CHAT, failure(500))
    server.script(EMBED, embed(dimension=3))
    results = await check(server, database_server)
    assert not results["chat"].ok
    assert "RAG_EMBEDDING_DIMENSION is 384: set it to 3" in results["embedding"].detail


async def test_a_server_of_another_kind_is_told(server: Ollama, database_server: EmbeddedServer) -> None:
    results = await check(server, database_server, ollama_url=f"{server.url}/wrong")
    assert "RAG_OLLAMA_URL" in results["chat"].detail
    assert "status 404" in results["chat"].detail


async def test_the_default_needs_no_server(tmp_path: Any) -> None:
    settings = Settings(data_dir=tmp_path)
    results = {result.name: result for result in await check_live(settings)}
    assert results["chat"].detail == "extractive, no model server needed"
    assert results["database"].detail.startswith("embedded in")


async def test_a_judge_that_gives_no_verdict_is_told(server: Ollama, database_server: EmbeddedServer) -> None:
    result = (await check(server, database_server))["judge"]
    assert not result.ok
    assert "llama3.2 failed or gave no verdict" in result.detail


async def test_no_judge_is_no_failure(server: Ollama, database_server: EmbeddedServer) -> None:
    result = (await check(server, database_server, judge="none"))["judge"]
    assert result.ok
    assert result.detail == "none: reworded sentences stay unchecked"
