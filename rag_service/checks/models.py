"""The models that the settings name, each asked once."""

from __future__ import annotations

from contextlib import aclosing

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.checks.model_servers import check_server
from rag_service.errors import ConfigurationError
from rag_service.models.chat.chat import build_chat
from rag_service.models.embedding.embeddings import build_embedding, close_embedding, warm_up
from rag_service.models.extractive.extractive import ExtractiveLLM
from rag_service.models.reranking.rerankers import build_reranker
from rag_service.models.servers.resilience import RetryPolicy
from rag_service.query.prompting.prompt import load_prompts
from rag_service.settings import Settings
from rag_service.text.tokens import count_tokens
from rag_service.text.words import terms

_ONE_TRY = RetryPolicy(attempts=1)
_LEAST_CONTEXT = 500  # tokens of passages, below which an answer has nothing to stand on


async def check_embedding(settings: Settings) -> str:
    """The model is there, and its vectors have the length that is set."""
    await check_server(settings, settings.embedding_provider, settings.embedding_model, "RAG_EMBEDDING_MODEL")
    embedding = build_embedding(settings, retries=_ONE_TRY)
    try:
        await warm_up(embedding)
    finally:
        await close_embedding(embedding)
    return f"{settings.embedding_provider} {settings.embedding_model}, {settings.embedding_dimension} dimensions"


async def check_chat(settings: Settings) -> str:
    """The model is there and speaks, and its window holds the prompt."""
    if settings.chat_provider == "extractive":
        return "extractive, needs no model server"
    known = await check_server(settings, settings.chat_provider, settings.model_name, "RAG_MODEL_NAME")
    if known is not None and known < settings.context_window:
        raise ConfigurationError(
            f"RAG_CONTEXT_WINDOW is {settings.context_window}, but {settings.model_name} reads {known} tokens at most: "
            f"set it to {known} or less.",
            field="RAG_CONTEXT_WINDOW",
        )
    _check_window(settings)
    chat = build_chat(settings, extractive=ExtractiveLLM(), retries=_ONE_TRY)
    message = ChatMessage(role=MessageRole.USER, content="Answer with the word: ready")
    try:
        async with aclosing(chat.stream([message], max_tokens=8)) as deltas:
            async for _ in deltas:
                pass
    finally:
        await chat.aclose()
    limit = "" if known is None else f" of {known}"
    return f"{settings.chat_provider} {settings.model_name}, window {settings.context_window}{limit} tokens"


async def check_reranker(settings: Settings) -> str:
    """The strategy can be used, and its model is loaded once."""
    chat = build_chat(settings, extractive=ExtractiveLLM(), retries=_ONE_TRY)
    try:
        reranker = build_reranker(settings, analyse=lambda text: terms(text, "en"), chat=chat)
        await reranker.warm_up()
    finally:
        await chat.aclose()
    return settings.rerank_strategy


def _check_window(settings: Settings) -> None:
    """The longest prompt template, the answer and some passages must fit together.

    Raises:
        ConfigurationError: they do not.
    """
    prompts = load_prompts(settings.prompts_path, replacement=settings.prompt_template_path)
    longest = max(count_tokens(template.system + template.user) for template in prompts.templates.values())
    needed = longest + settings.max_tokens + _LEAST_CONTEXT
    if needed > settings.context_window:
        raise ConfigurationError(
            f"RAG_CONTEXT_WINDOW is {settings.context_window}, but the prompt ({longest} tokens), the answer "
            f"(RAG_MAX_TOKENS {settings.max_tokens}) and {_LEAST_CONTEXT} tokens of passages need {needed}: "
            "raise RAG_CONTEXT_WINDOW or lower RAG_MAX_TOKENS.",
            field="RAG_CONTEXT_WINDOW",
        )
