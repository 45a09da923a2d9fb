"""The prefixes of embedding models, and the name of what the stored vectors are made with."""

from __future__ import annotations

import pytest

from rag_service.models.prefixes import Prefixes, choose_prefixes, family_prefixes, vectors_name
from rag_service.settings import Settings


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("jeffh/intfloat-multilingual-e5-large:f16", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: Gi", ""),
        ("BAAI/bge-small-en-v1.5", "Represent th", ""),
        ("bge-large:latest", "Represent th", ""),
        ("BAAI/bge-m3", "", ""),
        ("BAAI/bge-large-zh-v1.5", "", ""),
        ("mxbai-embed-large", "Represent th", ""),
        ("nomic-embed-text:v1.5", "search_query", "search_document: "),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("snowflake-arctic-embed:335m", "Represent th", ""),
        ("qwen3-embedding:0.6b", "Instruct: Gi", ""),
        ("embeddinggemma", "task: search", "title: none | text: "),
        ("sentence-transformers/LaBSE5-x", "", ""),
        ("all-minilm", "", ""),
    ],
)
def test_families_have_the_prefixes_that_they_were_trained_with(model: str, query: str, passage: str) -> None:
    found = family_prefixes(model)
    assert (found.query[:12], found.passage) == (query[:12], passage)


def test_settings_replace_one_prefix_or_both() -> None:
    settings = Settings(embedding_model="nomic-embed-text", embedding_query_prefix="frage: ")
    assert choose_prefixes(settings.embedding) == Prefixes("frage: ", "search_document: ")
    settings = settings.replace({"embedding_passage_prefix": ""})
    assert choose_prefixes(settings.embedding) == Prefixes("frage: ", "")


def test_another_passage_prefix_makes_other_vectors() -> None:
    names = [
        vectors_name(Settings(**options).embedding)  # type: ignore[arg-type]
        for options in (
            {"embedding_provider": "ollama", "embedding_model": "bge-m3"},
            {"embedding_provider": "ollama", "embedding_model": "nomic-embed-text"},
            {"embedding_provider": "ollama", "embedding_model": "nomic-embed-text", "embedding_passage_prefix": ""},
            {"embedding_provider": "ollama", "embedding_model": "nomic-embed-text", "embedding_query_prefix": "x"},
            {"embedding_provider": "local", "embedding_model": "multilingual-e5-small"},
        )
    ]
    nomic = "nomic-embed-text search_document: "
    assert names == ["bge-m3", nomic, "nomic-embed-text", nomic, "multilingual-e5-small"]
