"""Any server that speaks OpenAI's protocol: chat and embeddings through LlamaIndex's packages.

The packages retry by themselves, up to ten times and into the answer; here that is off, and our own
limits apply. The clients are httpx's, given in, so that a reader who leaves ends the model's work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import LLM
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from openai import AsyncOpenAI, OpenAI
from openai.resources.chat import AsyncCompletions as _AsyncCompletions
from openai.resources.embeddings import AsyncEmbeddings as _AsyncEmbeddings

from rag_service.models.embedding.calls import EmbeddingCalls, Vectors, embedding_error, fill_blanks
from rag_service.models.servers.resilience import RetryPolicy
from rag_service.models.servers.responses import note_response
from rag_service.models.servers.tls import tls_context
from rag_service.settings import Settings

# The package loads these at their first use, a second of work in the middle of the first request.
LOADED = (_AsyncCompletions, _AsyncEmbeddings)

NO_KEY = "none"  # the client package insists on one


def build_http_client(settings: Settings, *, read_timeout: float) -> httpx.AsyncClient:
    """Connections to the server at RAG_OPENAI_URL; `read_timeout` seconds between two pieces of a response."""
    return httpx.AsyncClient(
        timeout=httpx.Timeout(read_timeout, connect=settings.connect_timeout, pool=settings.connect_timeout),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=settings.model_concurrency),
        event_hooks={"response": [note_response]},
        verify=tls_context(),
    )


def api_key_of(settings: Settings) -> str:
    """RAG_OPENAI_API_KEY, or a placeholder for servers that want none."""
    return NO_KEY if settings.openai_api_key is None else settings.openai_api_key.get_secret_value()


def build_openai_like(settings: Settings, client: httpx.AsyncClient) -> OpenAILike:
    """LlamaIndex's LLM for the settings' chat model."""
    return OpenAILike(
        model=settings.model_name,
        api_base=settings.openai_url,
        api_key=api_key_of(settings),
        temperature=settings.temperature,
        context_window=settings.context_window,
        max_tokens=settings.max_tokens,
        max_retries=0,
        timeout=settings.answer_timeout,
        is_chat_model=True,
        is_function_calling_model=False,
        # Token counts come in one more chunk at the end, if asked for.
        additional_kwargs={"stream_options": {"include_usage": True}},
        async_http_client=client,
    )


def prepare_openai_like(
    llm: LLM, max_tokens: int | None, schema: Mapping[str, Any] | None
) -> tuple[LLM, dict[str, Any]]:
    """A call with its own limit and JSON schema (https://platform.openai.com/docs/guides/structured-outputs)."""
    if max_tokens is not None:
        llm = llm.model_copy(update={"max_tokens": max_tokens})
    if schema is None:
        return llm, {}
    json_schema = {"name": "answer", "schema": dict(schema), "strict": True}
    return llm, {"response_format": {"type": "json_schema", "json_schema": json_schema}}


class OpenAILikeServiceEmbedding(OpenAILikeEmbedding):
    """LlamaIndex's OpenAILikeEmbedding for a service. Failures are EmbeddingError, cause chained."""

    _calls: EmbeddingCalls = PrivateAttr()
    _http: httpx.AsyncClient = PrivateAttr()
    _server: AsyncOpenAI = PrivateAttr()

    def __init__(self, settings: Settings, *, retries: RetryPolicy | None = None):
        super().__init__(
            model_name=settings.embedding_model,
            api_base=settings.openai_url,
            api_key=api_key_of(settings),
            embed_batch_size=settings.embedding_batch_size,
            max_retries=0,
            timeout=settings.first_token_timeout,
        )
        self._http = build_http_client(settings, read_timeout=settings.answer_timeout)
        self._server = AsyncOpenAI(
            api_key=api_key_of(settings), base_url=settings.openai_url, max_retries=0, http_client=self._http
        )
        self._calls = EmbeddingCalls(settings, retries=retries)

    @property
    def dimension(self) -> int:
        """Length of the vectors, as set; every vector is checked against it."""
        return self._calls.dimension

    async def warm_up(self) -> None:
        """Check that the server answers, and with vectors of the right length."""
        await self._aget_query_embedding("warm up")

    async def aclose(self) -> None:
        """Close the connections to the server."""
        await self._http.aclose()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await self._calls.query(query, self._send)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._calls.passages([text], self._send))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await self._calls.passages(texts, self._send)

    async def _send(self, texts: Sequence[str]) -> Vectors:
        reply = await self._server.embeddings.create(input=list(texts), model=self.model_name, encoding_format="float")
        return _in_order(reply)

    # LlamaIndex code that is not async (a notebook) ends here; no retries, the same checks.

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embeddings([query])[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        try:
            with OpenAI(api_key=self.api_key, base_url=self.api_base, max_retries=0, timeout=self.timeout) as server:
                reply = server.embeddings.create(
                    input=fill_blanks(texts), model=self.model_name, encoding_format="float"
                )
        except Exception as error:
            raise embedding_error(error) from error
        return self._calls.checked(_in_order(reply), len(texts))


def _in_order(reply: Any) -> Vectors:
    """The vectors in the order of the texts; the protocol numbers them and promises no order."""
    return [list(item.embedding) for item in sorted(reply.data, key=lambda item: item.index)]
