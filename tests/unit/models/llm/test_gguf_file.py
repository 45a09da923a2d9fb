"""The provider `gguf` before its server starts: what cannot work is said with the setting to change."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path
from typing import Any

import pytest

from rag_service.agents.models import AgentModels
from rag_service.errors import ConfigurationError
from rag_service.models.llm import gguf, gguf_file
from rag_service.models.llm.gguf import LlamaServer, split_options
from rag_service.models.llm.gguf_file import find_gguf, read_gguf, shown_name
from rag_service.settings import Settings
from rag_service.store.accounts.agents import Agent, AgentSpec

CHAT = {
    "general.architecture": "llama",
    "tokenizer.ggml.tokens": ["<s>", "a", "b"],
    "llama.context_length": 8192,
    "llama.block_count": 30,
    "llama.embedding_length": 576,
    "llama.attention.head_count": 9,
    "llama.attention.head_count_kv": 3,
    "tokenizer.chat_template": "{{ messages }}",
}


def write_gguf(path: Path, values: dict[str, Any] = CHAT, *, version: int = 3) -> Path:
    """A file with metadata and no weights."""
    data = struct.pack("<4sIQQ", b"GGUF", version, 0, len(values))
    for key, value in values.items():
        data += _string(key)
        if isinstance(value, str):
            data += struct.pack("<I", 8) + _string(value)
        elif isinstance(value, list):
            data += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_string, value))
        else:
            data += struct.pack("<II", 4, value)
    path.write_bytes(data)
    return path


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def settings(path: Path | str, **more: Any) -> Settings:
    return Settings(**{"chat_provider": "gguf", "model_name": str(path), "context_window": 4096, **more})


@pytest.fixture(autouse=True)
def _package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package need not be there: nothing of it runs here."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)


def test_a_model_is_known_by_what_its_file_says(tmp_path: Path) -> None:
    found = read_gguf(write_gguf(tmp_path / "chat.gguf"))
    assert (found.context_length, found.has_chat_template) == (8192, True)
    assert found.cache_bytes == 30 * 3 * (64 + 64) * 2  # layers, heads, keys and values, bytes
    assert LlamaServer.of(settings(found.path)).name == "chat.gguf"


@pytest.mark.parametrize("kind", ["empty", "text", "cut", "old", "long"])
def test_what_is_no_gguf_file_is_said(tmp_path: Path, kind: str) -> None:
    path = write_gguf(tmp_path / "chat.gguf", version=1 if kind == "old" else 3)
    whole = path.read_bytes()
    path.write_bytes({
        "empty": b"", "text": b"<html>Not found</html>" * 9, "cut": whole[:100], "old": whole,
        "long": whole[:24] + struct.pack("<Q", 2**62) + whole[32:],
    }[kind])  # fmt: skip
    with pytest.raises(ConfigurationError, match=r"RAG_MODEL_NAME: .*chat\.gguf is not a GGUF file"):
        LlamaServer.of(settings(path))


def test_a_model_without_a_chat_template_needs_one(tmp_path: Path) -> None:
    bare = {key: value for key, value in CHAT.items() if key != "tokenizer.chat_template"}
    path = write_gguf(tmp_path / "base.gguf", bare)
    with pytest.raises(ConfigurationError, match="no chat template"):
        LlamaServer.of(settings(path))
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages }}", encoding="utf-8")
    given = settings(path, chat_options=f'{{"chat_template": "{template}", "timeout": 7}}')
    LlamaServer.of(given)
    options, rest = split_options(given)
    assert (options.chat_template, rest) == ("{{ messages }}", {"timeout": 7})


@pytest.mark.parametrize("options", ['{"threads": 0}', '{"threads": "many"}', '{"chat_template": "/nowhere.jinja"}'])
def test_an_option_of_the_server_that_is_wrong_is_named(tmp_path: Path, options: str) -> None:
    with pytest.raises(ConfigurationError, match=r"RAG_CHAT_OPTIONS: .*(threads|chat_template)"):
        LlamaServer.of(settings(write_gguf(tmp_path / "chat.gguf"), chat_options=options))


def test_a_model_larger_than_the_memory_is_refused_with_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_gguf(tmp_path / "chat.gguf")
    monkeypatch.setattr(gguf, "memory_bytes", lambda: 500_000_000)
    LlamaServer.of(settings(path))  # 0.4 GB for four windows
    with pytest.raises(ConfigurationError, match=r"needs 0\.8 GB .* there are 0\.5.*RAG_MODEL_CONCURRENCY"):
        LlamaServer.of(settings(path, model_concurrency=8))


def test_a_window_larger_than_the_model_s_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Set it to 8192 or less"):
        LlamaServer.of(settings(write_gguf(tmp_path / "chat.gguf"), context_window=10_000))


@pytest.mark.parametrize("name", ["llama3.2", "models/chat.gguf", "/nowhere/chat.gguf", "."])
def test_a_file_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match="there is no such file"):
        find_gguf(name)


def test_a_model_that_was_not_downloaded_says_how_to_get_it_with_and_without_network() -> None:
    name = "nobody/chat-GGUF:chat-q4_k_m.gguf"
    with pytest.raises(ConfigurationError) as caught:
        find_gguf(name)
    for part in ("rag-service models pull", "chat-q4_k_m.gguf from https://huggingface.co/nobody/chat-GGUF", "to its"):
        assert part in caught.value.message
    assert shown_name(name) == name
    assert shown_name("/srv/models/chat.gguf") == "chat.gguf"


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (None, "chat-q4_k_m.gguf"),
        ("q8_0", "chat-Q8_0-00001-of-00002.gguf"),
        ("chat-q4_k_m.gguf", "chat-q4_k_m.gguf"),
        ("q4", None),  # two
        ("q5", None),
    ],
)
def test_one_file_of_a_repository_is_meant(wanted: str | None, chosen: str | None) -> None:
    names = ["README.md", "chat-q4_k_m.gguf", "chat-q4_0.gguf", "mmproj-q4_k_m.gguf"]
    names += [f"chat-Q8_0-0000{number}-of-00002.gguf" for number in (1, 2)]
    if chosen is None:
        with pytest.raises(ConfigurationError, match=r"name one file.*chat-q4_0"):
            gguf_file._choose(names, wanted, "nobody/chat")
    else:
        assert gguf_file._choose(names, wanted, "nobody/chat") == chosen


def test_a_missing_part_of_a_large_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"00002-of-00002\.gguf cannot be read"):
        read_gguf(write_gguf(tmp_path / "chat-00001-of-00002.gguf"))


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"RAG_CHAT_PROVIDER=gguf.*rag-service\[gguf\]"):
        LlamaServer.of(settings(tmp_path / "chat.gguf"))


@pytest.mark.parametrize("provider", ["gguf", "ollama"])
def test_an_agent_cannot_name_another_file(provider: str) -> None:
    spec = AgentSpec(name="Helper", provider="gguf", model_name="/etc/other.gguf")
    models = AgentModels(settings("/srv/chat.gguf", chat_provider=provider), base=None, build=None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="only that of RAG_MODEL_NAME"):
        models.model_for(Agent(id=None, spec=spec, created_at=None, updated_at=None))  # type: ignore[arg-type]
