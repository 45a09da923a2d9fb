"""What embedding models were trained to read before a question and before a passage.

A model that is asked without them finds less. Servers such as Ollama do not add them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_service.settings.models import EmbeddingSettings

_SERVED = ("ollama", "openai_like")  # providers that get the text as it is sent


class Prefixes(NamedTuple):
    """What stands before every question, and before every passage."""

    query: str = ""
    passage: str = ""


_SEARCH = "Represent this sentence for searching relevant passages: "
_WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
# From the model cards on huggingface.co: intfloat/multilingual-e5-large-instruct, intfloat/multilingual-e5-small,
# BAAI/bge-small-en-v1.5, mixedbread-ai/mxbai-embed-large-v1, Snowflake/snowflake-arctic-embed-l-v2.0 and -l,
# nomic-ai/nomic-embed-text-v1.5, Qwen/Qwen3-Embedding-0.6B, google/embeddinggemma-300m. Ollama's names are shorter.
_FAMILIES = (
    (r"\be5\b.*instruct", Prefixes(_WEB_SEARCH)),
    (r"\be5\b", Prefixes("query: ", "passage: ")),
    (r"\bbge-(small|base|large)(-en|$|:)", Prefixes(_SEARCH)),
    (r"\bmxbai-embed", Prefixes(_SEARCH)),
    (r"\barctic-embed(2|.*-v2)", Prefixes("query: ")),
    (r"\barctic-embed", Prefixes(_SEARCH)),
    (r"\bnomic-embed-text", Prefixes("search_query: ", "search_document: ")),
    (r"\bqwen3-embedding", Prefixes(_WEB_SEARCH)),
    (r"\bembeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
)


def family_prefixes(model: str) -> Prefixes:
    """The prefixes of the family that a model's name tells; none for others."""
    name = model.casefold()
    return next((prefixes for pattern, prefixes in _FAMILIES if re.search(pattern, name)), Prefixes())


def choose_prefixes(settings: EmbeddingSettings, otherwise: Prefixes | None = None) -> Prefixes:
    """The prefixes that the settings give; for what they leave open, `otherwise`, or those of the model's family."""
    known = family_prefixes(settings.model) if otherwise is None else otherwise
    query, passage = settings.query_prefix, settings.passage_prefix
    return Prefixes(known.query if query is None else query, known.passage if passage is None else passage)


def vectors_name(settings: EmbeddingSettings) -> str:
    """What the stored vectors are made with: the model's name, and the prefix of passages if it is added here."""
    prefix = choose_prefixes(settings).passage if settings.provider in _SERVED else settings.passage_prefix
    return f"{settings.model} {prefix}" if prefix else settings.model
