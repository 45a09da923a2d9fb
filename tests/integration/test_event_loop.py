"""The event loop computes nothing whose size somebody else decides: each callback stays below a tenth of a second."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.tools import FunctionTool

from rag_service.answering.checking import TextChecker
from rag_service.answering.prompt.templates import load_prompts
from rag_service.api.http.check import check_by_turns
from rag_service.api.http.schemas import CheckedPassage, CheckRequest
from rag_service.errors import EmbeddingError, ModelError
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.guarded import close_embedding
from rag_service.models.llm.model import build_chat
from rag_service.settings import Settings
from rag_service.sources.web import WebLimits, WebSource
from rag_service.store.database import Database
from rag_service.store.documents.chunks import (
    CHAR_END,
    CHAR_START,
    CHUNK_INDEX,
    CORPUS_ID,
    DOCUMENT_ID,
    LANGUAGE,
    SPANS,
)
from rag_service.store.documents.documents import NewDocument, store_document
from rag_service.store.search.passages import read_passages
from tests.doubles.openai import CHAT, EMBED, OpenAIDouble, Reply, openai_server
from tests.doubles.web_site import Served, WebSite, running_site
from tests.integration.models.conftest import MESSAGES, QUICK
from tests.integration.store.texts import ADMIN, make_corpus
from tests.integration.sync.test_web import LOOPBACK
from tests.loop_watch import LIMIT, LoopWatch, apart, watching
from tests.unit.api.samples import Script

__all__ = ["openai_server"]

WORDS = [f"word{number}" for number in range(5_000)]


@pytest.fixture
def loop() -> Iterator[LoopWatch]:
    """Fails the test if a callback took longer than the limit."""
    with watching() as watch:
        yield watch
    assert not watch.slow, f"slower than {LIMIT} s: {watch.worst()}"


def text_of(characters: int, seed: int = 0) -> str:
    found, length = [], 0
    while length < characters:
        found.append(WORDS[(len(found) * 7919 + seed) % len(WORDS)])
        length += len(found[-1]) + 1
    return " ".join(found)


async def store(database: Database, texts: list[str], spans: list[Any] | None = None) -> list[str]:
    """One document whose chunks are the texts; the ids of these."""
    corpus_id, document_id = await make_corpus(database), uuid4()
    with apart():
        document, nodes = make_document(corpus_id, document_id, texts, spans)
    async with database.transaction(ADMIN) as connection:
        await store_document(connection, document, nodes)
    return [node.node_id for node in nodes]


def make_document(
    corpus_id: UUID, document_id: UUID, texts: list[str], spans: list[Any] | None
) -> tuple[NewDocument, list[TextNode]]:
    nodes, start = [], 0
    for index, text in enumerate(texts):
        metadata = {
            CORPUS_ID: str(corpus_id), DOCUMENT_ID: str(document_id), LANGUAGE: "en", CHUNK_INDEX: index,
            CHAR_START: start, CHAR_END: start + len(text), SPANS: spans or [],
        }  # fmt: skip
        hidden = list(metadata)
        nodes.append(
            TextNode(
                id_=f"{document_id}:{index}", text=text, metadata=metadata, embedding=[0.1] * 384,
                excluded_embed_metadata_keys=hidden, excluded_llm_metadata_keys=hidden,
            )
        )  # fmt: skip
        start += len(text) + 1
    document = NewDocument(
        id=document_id, corpus_id=corpus_id, name="long", title="long", content_hash="0" * 64, fingerprint="f",
        text="\n".join(texts),
    )  # fmt: skip
    return document, nodes


async def test_a_long_text_in_many_chunks_is_stored_piece_by_piece(database: Database, loop: LoopWatch) -> None:
    with apart():
        texts = [text_of(1_500, seed) for seed in range(1_200)]
    assert len(await store(database, texts)) == 1_200


async def test_a_long_text_in_one_chunk_is_counted_in_a_thread(database: Database, loop: LoopWatch) -> None:
    with apart():
        text = text_of(2_000_000)
    assert len(await store(database, [text])) == 1


async def test_a_chunk_of_many_spans_is_read_in_a_thread(database: Database, loop: LoopWatch) -> None:
    ids = await store(database, [text_of(1_000)], spans=[[0, 1, {}]] * 100_000)
    async with database.transaction(ADMIN) as connection:
        (chunk,) = (await read_passages(connection, ids)).values()
    assert len(chunk.spans) == 100_000


async def test_a_sitemap_of_many_pages_is_cut(tmp_path: Path, loop: LoopWatch) -> None:
    with running_site() as site:
        with apart():
            _serve_sitemaps(site, maps=3, pages=60_000)
        limits = WebLimits(networks=LOOPBACK, pages=5)
        listing = await WebSource(f"{site.url}/index.xml", limits).list({}, tmp_path)
    assert any("more than 50,000 pages" in reason for _, reason in listing.left)


async def test_a_page_of_many_links_and_a_long_robots_file_are_read_in_threads(tmp_path: Path, loop: LoopWatch) -> None:
    with running_site() as site:
        with apart():
            links = "".join(f"<a href=/{number}>" for number in range(200_000))
            rules = "User-agent: *\n" + "".join(f"Disallow: /x{number}\n" for number in range(30_000))
            site.pages = {
                "/": Served(body=links, headers={"Content-Type": "text/html"}),
                "/robots.txt": Served(body=rules),
            }
        listing = await WebSource(site.url, WebLimits(networks=LOOPBACK, pages=5, depth=1)).list({}, tmp_path)
    assert any("more than 50,000 links" in reason for _, reason in listing.left)


async def test_a_model_that_sends_a_book_at_once_is_cut(openai_server: OpenAIDouble) -> None:
    openai_server.script(CHAT, Reply(deltas=("A word. ",)), Reply(deltas=("A word. " * 500_000,)))
    chat = build_chat(_settings(openai_server), retries=QUICK)
    lengths = []
    for _ in range(2):  # what classes are built at the first call is built then
        with watching() as watch, suppress(ModelError):
            async with aclosing(chat.stream(MESSAGES)) as deltas:
                lengths.append(sum([len(delta.text) async for delta in deltas]))
    await chat.aclose()
    assert max(lengths) < 100_000
    assert not watch.slow, watch.worst()


def _serve_sitemaps(site: WebSite, *, maps: int, pages: int) -> None:
    xml, headers = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"', {"Content-Type": "application/xml"}
    inner = "".join(f"<sitemap><loc>{site.url}/{number}.xml</loc></sitemap>" for number in range(maps))
    site.pages = {"/index.xml": Served(body=f"<sitemapindex {xml}>{inner}</sitemapindex>", headers=headers)}
    for number in range(maps):
        entries = "".join(f"<url><loc>{site.url}/{number}-{page}</loc></url>" for page in range(pages))
        site.pages[f"/{number}.xml"] = Served(body=f"<urlset {xml}>{entries}</urlset>", headers=headers)


def _settings(server: OpenAIDouble, **more: Any) -> Settings:
    return Settings(
        chat_provider="openai_like", embedding_provider="openai_like", embedding_model="bge-m3",
        openai_url=server.url, **more,
    )  # type: ignore[call-arg]  # fmt: skip


async def test_an_embedding_of_a_million_figures_is_not_read(openai_server: OpenAIDouble, loop: LoopWatch) -> None:
    openai_server.script(EMBED, Reply(dimension=1_000_000))
    embedding = build_embedding(_settings(openai_server), retries=QUICK)
    with pytest.raises(EmbeddingError):
        await embedding.aget_query_embedding("short")
    await close_embedding(embedding)


async def test_a_model_that_calls_tools_without_end_is_left(openai_server: OpenAIDouble) -> None:
    openai_server.script(CHAT, Reply(calls=(("find", "{}"),) * 2), Reply(calls=(("find", ""),) * 5_000))
    chat = build_chat(_settings(openai_server, chat_tools="on"), retries=QUICK)
    tool = FunctionTool.from_defaults(fn=lambda: "", name="find", description="Find.")
    calls: tuple[Any, ...] = ()
    async with aclosing(chat.stream(MESSAGES, tools=[tool])) as deltas:
        async for delta in deltas:
            calls = delta.tool_calls or calls
    assert len(calls) == 2  # what classes are built at the first call is built now
    calls = ()
    with watching() as watch, suppress(ModelError):
        async with aclosing(chat.stream(MESSAGES, tools=[tool])) as deltas:
            async for delta in deltas:
                calls = delta.tool_calls or calls
    await chat.aclose()
    assert 0 < len(calls) < 200
    assert not watch.slow, watch.worst()


async def test_a_check_of_a_long_text_leaves_the_loop_alone(loop: LoopWatch) -> None:
    import dataclasses

    checker = TextChecker(load_prompts(None), None, None)
    services = dataclasses.replace(Script().services(Settings()), check=checker.check)
    text = ". ".join(text_of(100, seed).capitalize() for seed in range(150))
    passages = [CheckedPassage(text=text_of(1_500, seed)) for seed in range(3)]
    body = await check_by_turns(services, CheckRequest(text=text, passages=passages), ADMIN)
    assert len(json.dumps(len(body.sentences))) > 1
