"""The MCP server as the SDK's own client sees it: a real socket, and a real subprocess."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import httpx2
import jsonschema
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import ProtectedResourceMetadata

from rag_service.api.mcp import server as mcp_module
from rag_service.api.mcp.server import mcp_routes
from rag_service.errors import ConfigurationError, ModelError, StoreError
from rag_service.settings import Settings
from tests.integration.interfaces.people import OTHER, only_for_admin
from tests.serving import served
from tests.unit.api.samples import (
    ADMIN,
    ANSWER,
    CITATION,
    DOCUMENT,
    EVENTS,
    HIT,
    QUESTION,
    Pause,
    Script,
    application_over,
)

ROOT = Path(__file__).parents[3]
PLACE = "production.xlsx, sheet Stocks, cell C12"
TOOLS = ["search_knowledge", "answer_question", "check_answer", "search", "fetch", "read", "compute"]

Connect = Callable[[str], AbstractAsyncContextManager[Client]]  # a person's name → a client
Check = Callable[[Connect], Awaitable[None]]


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Starts a service whose documents only ADMIN may see; gives its URL."""
    with ExitStack() as stack:

        def start(script: Script, **settings: Any) -> str:
            services = only_for_admin(script.services(Settings(**settings)))
            return stack.enter_context(served(application_over(services, more_routes=mcp_routes(services.settings))))

        yield start


@asynccontextmanager
async def over_http(url: str, who: str, mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {who}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(who: str) -> AsyncIterator[Client]:
    program = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tests.integration.interfaces.stdio_server"],
        env={"WHO": who, "PATH": os.environ["PATH"]},
        cwd=ROOT,
    )
    async with Client(stdio_client(program)) as client:
        yield client


@pytest.fixture(params=["auto", "legacy"])
def connect(request: pytest.FixtureRequest, serve: Callable[[Script], str]) -> Connect:
    """Over HTTP, in both generations of the protocol."""
    url = serve(Script())
    return lambda who: over_http(url, who, request.param)


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


async def test_the_tools_are_listed_with_schemas(connect: Connect) -> None:
    async with connect("admin") as client:
        tools = (await client.list_tools()).tools
        assert client.server_info is not None
        assert client.server_info.name == "rag-service"
        assert "never follow instructions" in (client.instructions or "")
    assert [tool.name for tool in tools] == TOOLS
    search, answer, *_ = tools
    assert search.input_schema["required"] == ["query"]
    assert {"top_k", "similarity_threshold", "tags", "document_ids"} <= set(search.input_schema["properties"])
    assert answer.input_schema["required"] == ["question"]
    assert search.annotations is not None
    assert search.annotations.read_only_hint
    assert "$defs" not in search.input_schema  # the arguments stand there once
    for tool in tools:
        assert tool.output_schema is not None
        assert tool.output_schema["title"] not in tool.output_schema.get("$defs", {})
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)


async def test_search_gives_passages_with_places(connect: Connect) -> None:
    async with connect("admin") as client:
        result = await client.call_tool("search_knowledge", {"query": QUESTION, "top_k": 3})
    assert not result.is_error
    passage = result.structured_content["passages"][0]
    assert (passage["text"], passage["place"], passage["score"]) == (HIT.chunk.text, PLACE, 0.91)
    assert (passage["documentId"], passage["start"], passage["end"]) == (str(DOCUMENT.id), 100, 117)
    assert passage["location"]["cell"] == "C12"
    assert HIT.chunk.text in text_of(result)
    assert PLACE in text_of(result)


async def test_an_answer_has_its_citations(connect: Connect) -> None:
    async with connect("admin") as client:
        result = await client.call_tool("answer_question", {"question": QUESTION})
    assert not result.is_error
    body = result.structured_content
    assert (body["answer"], body["decision"], body["answerId"]) == (ANSWER.text, "can_proceed", str(ANSWER.id))
    first, second = body["citations"]
    assert (first["quote"], first["status"], first["place"]) == (CITATION.quote, "verified", PLACE)
    assert second["status"] == "not_found"
    assert f"[C1] verified: {PLACE}: “{CITATION.quote}”" in text_of(result)
    assert "[C7] not_found" in text_of(result)


async def test_nobody_reaches_what_is_another_ones(connect: Connect) -> None:
    async with connect("admin") as admin, connect("other") as other:
        for client, seen in ((other, False), (admin, True), (other, False)):
            found = await client.call_tool("search_knowledge", {"query": QUESTION})
            answered = await client.call_tool("answer_question", {"question": QUESTION})
            assert bool(found.structured_content["passages"]) is seen
            assert (answered.structured_content["decision"] == "can_proceed") is seen
            assert (CITATION.quote in text_of(found) + text_of(answered)) is seen  # type: ignore[operator]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("search_knowledge", {"query": " "}, "query must not be empty"),
        ("search_knowledge", {"query": "x", "top_k": 99}, "top_k must be from 1 to 50"),
        ("search_knowledge", {"query": "x", "top_k": "three"}, "top_k must be a whole number"),
        ("search_knowledge", {"query": "x", "topk": 3}, "did you mean top_k"),
        ("search_knowledge", {"query": "x", "document_ids": ["no-id"]}, "document_ids item 1 must be a UUID"),
        ("answer_question", {"question": ""}, "question must not be empty"),
        ("answer_question", {}, "question is required. Correct the named field"),
        ("answer_question", {"question": "x", "similarity_threshold": 2}, "similarity_threshold must be from 0 to 1"),
    ],
)
async def test_wrong_arguments_are_named(
    serve: Callable[[Script], str], tool: str, arguments: dict[str, Any], message: str
) -> None:
    async with over_http(serve(Script()), "admin") as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert text_of(result).startswith("invalid_input: ")
    assert message in text_of(result)
    assert re.search(r"[.?] Correct the named field", text_of(result))


async def test_an_unknown_tool_is_a_protocol_error_that_names_those_there_are(connect: Connect) -> None:
    async with connect("admin") as client:
        with pytest.raises(MCPError, match="search_knowledge, answer_question"):
            await client.call_tool("delete_everything", {})


async def test_failures_are_told_without_internals(serve: Callable[[Script], str]) -> None:
    script = Script(events=[ModelError("secret internals")], error=StoreError("secret internals"), failing="search")
    async with over_http(serve(script), "admin") as client:
        answered = await client.call_tool("answer_question", {"question": QUESTION})
        found = await client.call_tool("search_knowledge", {"query": QUESTION})
    assert answered.is_error
    assert found.is_error
    assert text_of(answered).startswith("llm_unavailable: The language model could not answer.")
    assert text_of(found).startswith("store_unavailable: ")
    assert "correlation id" in text_of(found)
    assert "secret" not in text_of(answered) + text_of(found)


@pytest.mark.slow
async def test_over_stdio_all_this_holds_too() -> None:
    """With one process for each of the two, which takes seconds to start."""
    async with over_stdio("admin") as admin, over_stdio("other") as other:
        clients = {"admin": admin, "other": other}
        checks: tuple[Check, ...] = (
            test_the_tools_are_listed_with_schemas,
            test_search_gives_passages_with_places,
            test_an_answer_has_its_citations,
            test_nobody_reaches_what_is_another_ones,
            test_an_unknown_tool_is_a_protocol_error_that_names_those_there_are,
        )
        for check in checks:
            await check(lambda who: nullcontext(clients[who]))


@pytest.mark.slow
async def test_over_stdio_a_failure_and_a_wrong_key_are_told() -> None:
    async with over_stdio("broken") as client:
        failed = await client.call_tool("answer_question", {"question": QUESTION})
    async with over_stdio("stranger") as client:
        refused = await client.call_tool("search_knowledge", {"query": QUESTION})
    assert (failed.is_error, refused.is_error) == (True, True)
    assert text_of(failed).startswith("llm_unavailable: ")
    assert text_of(refused).startswith("not_authenticated: The API key is unknown")


async def test_over_http_each_request_is_authenticated(serve: Callable[[Script], str]) -> None:
    script = Script()
    url = serve(script)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        refused = await http.post(f"{url}/mcp", json=message, headers=headers)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith('Bearer resource_metadata="http://127.0.0.1:')
    assert refused.json()["code"] == "not_authenticated"
    async with over_http(url, "admin") as admin, over_http(url, "other") as other:
        await other.call_tool("search_knowledge", {"query": QUESTION})
        await admin.call_tool("search_knowledge", {"query": QUESTION})
    assert script.identities == [OTHER, ADMIN]


async def test_a_refused_client_finds_where_to_get_a_token(serve: Callable[..., str]) -> None:
    issuer = {"jwt_jwks_url": "https://id.example/keys", "jwt_issuer": "https://id.example", "jwt_audience": "rag"}
    url = serve(Script(), auth="required", **issuer)
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        refused = await http.post(f"{url}/mcp", json={}, headers={"Accept": "application/json"})
        address = refused.headers["www-authenticate"].partition('resource_metadata="')[2].rstrip('"')
        found = (await http.get(address)).json()
        assert (await http.get(f"{address}/mcp")).json() == found
        forged = await http.post(f"{url}/mcp", json={}, headers={"Host": 'a", scope="x'})
    metadata = ProtectedResourceMetadata.model_validate(found)
    assert (str(metadata.resource), [str(one) for one in metadata.authorization_servers]) == (
        f"{url}/mcp",
        ["https://id.example"],
    )
    assert metadata.scopes_supported == ["rag:read", "rag:write", "rag:admin"]
    assert 'scope="x' not in forged.headers.get("www-authenticate", "")
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        assert (await http.get(f"{serve(Script())}/.well-known/oauth-protected-resource")).status_code == 404


async def test_pages_of_other_sites_are_kept_out(serve: Callable[[Script], str]) -> None:
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        answer = await http.post(f"{serve(Script())}/mcp", json={}, headers={"Origin": "https://evil.example"})
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")


async def test_a_slow_answer_arrives_whole(serve: Callable[[Script], str]) -> None:
    async with over_http(serve(Script(events=[Pause(0.5), *EVENTS])), "admin") as client:
        result = await client.call_tool("answer_question", {"question": QUESTION})
    assert result.structured_content["answer"] == ANSWER.text  # type: ignore[index]  # a dict


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_module, "mcp_installed", lambda: False)
    with pytest.raises(ConfigurationError, match=r"pip install 'rag-service\[mcp\]'"):
        mcp_routes(Settings())
