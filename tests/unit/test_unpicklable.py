"""LlamaIndex objects that hold connections or threads refuse to be pickled, and nothing is taken from them."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Callable, Iterator

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import BaseComponent

import rag_service
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.llm.providers import build_llm
from rag_service.settings import Settings
from rag_service.unpicklable import Unpicklable

# Hold values only, or are made where they run.
PLAIN = {"Chunker", "ReadDocuments", "EmbedChunks", "PassagePostprocessor", "ChoosePassages"}


def subclasses(kind: type) -> Iterator[type]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def test_every_llamaindex_class_of_ours_holds_values_only_or_refuses_to_be_pickled() -> None:
    for module in pkgutil.walk_packages(rag_service.__path__, "rag_service."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    bases = (BaseComponent, BaseRetriever, BaseQueryEngine, BaseSynthesizer)
    ours = {kind for base in bases for kind in subclasses(base) if kind.__module__.startswith("rag_service.")}
    assert {kind.__name__ for kind in ours if not issubclass(kind, Unpicklable)} == PLAIN


@pytest.mark.parametrize(
    "build",
    [
        lambda: build_llm(Settings(chat_provider="ollama")).llm,
        lambda: build_llm(Settings(chat_provider="openai_like")).llm,
        lambda: build_embedding(Settings(embedding_provider="ollama")),
        lambda: build_embedding(Settings(embedding_provider="openai_like")),
        lambda: build_embedding(Settings()),
    ],
)
def test_a_model_refuses_to_be_pickled_and_keeps_everything(build: Callable[[], BaseComponent]) -> None:
    model = build()
    held = (dict(vars(model)), dict(model.__pydantic_private__ or {}))
    with pytest.raises(TypeError, match="belongs to the process that opened it"):
        pickle.dumps(model)
    assert (vars(model), model.__pydantic_private__) == held
    assert type(copy.copy(model)) is type(model)
