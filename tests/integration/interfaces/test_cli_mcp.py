"""`rag-service mcp` as a real program, on a real database, with two users' own keys."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from rag_service.components import Components, open_components
from rag_service.domain import LOCAL_ADMIN, CorpusKind, Identity, Role
from rag_service.settings import load_settings
from rag_service.store.accounts.keys import ALL_SCOPES, create_key
from rag_service.store.accounts.users import create_user
from rag_service.store.corpora import create_corpus
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.acceptance import cli_process
from tests.doubles.ollama import OllamaDouble, ollama

pytestmark = pytest.mark.slow

__all__ = ["ollama"]

COMMAND = [sys.executable, "-m", "rag_service.cli.mcp"]


async def settle(components: Components, name: str, secret: str) -> str:
    """A user with a document of their own; gives their key."""
    async with components.database.transaction(LOCAL_ADMIN) as connection:
        user = await create_user(connection, name=name, role=Role.USER)
    identity = Identity(user_id=user.id)
    async with components.database.transaction(identity) as connection:
        _, key = await create_key(connection, user_id=user.id, name="mcp", scopes=ALL_SCOPES)
        corpus = await create_corpus(connection, identity, name="own", kind=CorpusKind.PERSONAL, index_name="general")
    text = f"# Safe\n\nThe combination of the safe of {name} is {secret}."
    source = DocumentInput(data=text.encode(), file_name=f"{name}.md")
    await components.ingestor.ingest(source, corpus=corpus, index=components.indices["general"], identity=identity)
    return key


def environment(database: EmbeddedServer, tmp_path: Path, **more: str) -> dict[str, str]:
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "MCP_"))}
    settings = {"RAG_DATABASE_URL": database.service_conninfo, "RAG_DATA_DIR": str(tmp_path)}
    return {**keep, **settings, **more}


async def search(variables: dict[str, str]) -> Any:
    program = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=variables)
    async with Client(stdio_client(program)) as client:
        arguments = {"query": "What is the combination of the safe?", "similarity_threshold": 0}
        result = await client.call_tool("search_knowledge", arguments, read_timeout_seconds=60)
    assert not result.is_error, result.content
    return [passage["text"] for passage in result.structured_content["passages"]]  # type: ignore[index]  # a dict


async def test_each_key_finds_its_owners_documents_only(
    database_server: EmbeddedServer, ollama: OllamaDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding = {
        "RAG_EMBEDDING_PROVIDER": "ollama",
        "RAG_EMBEDDING_MODEL": "nomic-embed-text",
        "RAG_OLLAMA_URL": ollama.url,
    }
    for name, value in {**embedding, "RAG_DATABASE_URL": database_server.service_conninfo}.items():
        monkeypatch.setenv(name, value)
    async with open_components(load_settings()) as components:
        keys = {name: await settle(components, name, secret) for name, secret in (("ana", "4711"), ("ben", "0815"))}
    found = {
        name: await search(environment(database_server, tmp_path, RAG_AUTH="required", MCP_API_KEY=key, **embedding))
        for name, key in keys.items()
    }
    assert ["4711" in text for text in found["ana"]] == [True]
    assert ["0815" in text for text in found["ben"]] == [True]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RAG_AUTH": "required"}, "Set MCP_API_KEY to your API key"),
        ({"RAG_AUTH": "required", "MCP_API_KEY": "rag_" + "x" * 43}, "The API key is unknown, revoked or expired"),
        ({"RAG_TOPK": "3"}, "Unknown setting RAG_TOPK"),
    ],
)
def test_what_keeps_it_from_starting_is_said_on_standard_error(
    database_server: EmbeddedServer, tmp_path: Path, variables: dict[str, str], message: str
) -> None:
    code, printed, said = cli_process.run(["mcp"], environment(database_server, tmp_path, **variables))
    assert code == 1
    assert message in said
    assert printed == ""
