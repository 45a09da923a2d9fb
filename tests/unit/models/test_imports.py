"""What importing the models costs."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


@pytest.mark.slow
def test_importing_and_building_models_loads_neither_torch_nor_transformers() -> None:
    code = """
        import importlib, pkgutil, sys
        import rag_service.models
        for module in pkgutil.walk_packages(rag_service.models.__path__, "rag_service.models."):
            if not module.name.endswith(".openai_like"):  # loads the client package
                importlib.import_module(module.name)
        from llama_index.core.llms import MockLLM
        from rag_service.models.llm.model import build_chat
        from rag_service.models.embedding.embeddings import build_embedding
        from rag_service.models.reranking.rerankers import build_reranker
        from rag_service.settings import Settings
        for strategy in ("none", "heuristic", "sbert"):
            settings = Settings(rerank_strategy=strategy)
            chat = build_chat(settings)
            build_reranker(settings, chat=chat)
        build_embedding(settings)
        print({"torch", "transformers", "sentence_transformers", "openai", "onnxruntime"} & set(sys.modules))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert outcome.stdout.splitlines()[-1:] == ["set()"], outcome.stderr
