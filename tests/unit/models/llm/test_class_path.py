"""An LLM by its class path."""

from __future__ import annotations

import json

from pydantic import SecretStr

from rag_service.models.llm.providers import build_llm
from rag_service.settings import Settings


def _window(**options: object) -> int:
    settings = Settings(
        chat_provider="llama_index.llms.ollama:Ollama",
        chat_options=SecretStr(json.dumps({"model": "any", "base_url": "http://127.0.0.1:9"} | options)),
        context_window=4096,
    )
    return build_llm(settings).llm.metadata.context_window


def test_the_class_is_told_the_context_window_and_asks_no_server() -> None:
    assert _window() == 4096


def test_an_option_of_the_class_goes_before_the_setting() -> None:
    assert _window(context_window=2048) == 2048
