"""`rag-service models pull`, against the doubles of Ollama and Hugging Face on real sockets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance import cli_process
from tests.doubles.hugging_face import HuggingFaceDouble, hugging_face
from tests.doubles.ollama import PULL, ErrorLine, OllamaDouble, Reply, Reset, Wait, failure
from tests.doubles.tiny_models import TEXTS, make_model

pytestmark = pytest.mark.slow

__all__ = ["hugging_face"]

NAME = "nobody/multilingual-e5-tiny"
EMBED_ONCE = """
import asyncio
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.settings import load_settings
print(asyncio.run(build_embedding(load_settings()).aget_query_embedding({text!r})))
"""


def pull(**environment: str) -> tuple[int, str]:
    """(exit code, what was said on standard error) of a process that has not looked at the environment before."""
    code, _, said = cli_process.run(["models", "pull"], environment)
    return code, " ".join(said.split())


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_model(tmp_path_factory.mktemp("repository"), "xlm-roberta")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(b"not needed beside the weights")
    (folder / "pytorch_model.bin").write_bytes(b"nor this")
    return folder


@pytest.fixture
def settings(hugging_face: HuggingFaceDouble, tmp_path: Path) -> dict[str, str]:
    return {
        "HF_ENDPOINT": hugging_face.url, "HF_HOME": str(tmp_path / "hf"), "RAG_EMBEDDING_PROVIDER": "huggingface",
        "RAG_EMBEDDING_MODEL": NAME, "RAG_EMBEDDING_DIMENSION": "16",
    }  # fmt: skip


def test_a_model_of_hugging_face_is_fetched_once_and_then_used_without_the_network(
    hugging_face: HuggingFaceDouble, repository: Path, settings: dict[str, str]
) -> None:
    hugging_face.add(NAME, repository)
    code, said = pull(**settings)
    assert code == 0, said
    assert f"Fetching {NAME}" in said
    assert "MB) from Hugging Face" in said
    assert {"model.safetensors", "tokenizer.json", "1_Pooling/config.json"} < set(hugging_face.fetched)
    assert not {"onnx/model.onnx", "pytorch_model.bin"} & set(hugging_face.fetched)
    assert hugging_face.fetched[-1] == "config.json"
    before = len(hugging_face.fetched)
    assert pull(**settings) == (0, "All models are available.")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RAG_", "HF_"))}
    done = subprocess.run(
        [sys.executable, "-c", EMBED_ONCE.format(text=TEXTS[0])], capture_output=True, text=True, check=False,
        timeout=120, env={**environment, **settings, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(",") == 15
    assert len(hugging_face.fetched) == before


def test_a_download_that_breaks_off_names_model_and_size_and_is_continued(
    hugging_face: HuggingFaceDouble, repository: Path, settings: dict[str, str]
) -> None:
    hugging_face.add(NAME, repository)
    hugging_face.cut_after = 100
    code, said = pull(**settings)
    assert code == 1
    for part in (f"RAG_EMBEDDING_MODEL={NAME} (", "MB) cannot be downloaded", "models pull` again", "copy the model's"):
        assert part in said
    assert "Traceback" not in said
    hugging_face.cut_after = None
    assert pull(**settings)[0] == 0


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("unknown", "Hugging Face has no such model"),
        ("gated", "accept the terms on its page and set HF_TOKEN"),
        ("no tokenizer", "has no tokenizer.json"),
        ("no network", "check the network (HF_ENDPOINT names a mirror)"),
    ],
)
def test_a_model_that_cannot_be_fetched_says_why(
    case: str, told: str, hugging_face: HuggingFaceDouble, repository: Path, settings: dict[str, str]
) -> None:
    if case != "unknown":
        hugging_face.add(NAME, repository)
    if case == "gated":
        hugging_face.gated.add(NAME)
    if case == "no tokenizer":
        hugging_face.files[NAME] = {"config.json": b"{}"}
    if case == "no network":
        settings["HF_ENDPOINT"] = "http://127.0.0.1:1"
    code, said = pull(**settings)
    assert code == 1
    assert told in said
    assert f"RAG_EMBEDDING_MODEL={NAME}" in said
    assert "Traceback" not in said


def test_a_reranker_is_fetched_with_the_weights_that_torch_reads(
    hugging_face: HuggingFaceDouble, repository: Path, settings: dict[str, str]
) -> None:
    hugging_face.add("nobody/reranker", repository)
    hugging_face.add(NAME, repository)
    code, said = pull(**settings, RAG_RERANK_STRATEGY="sbert", RAG_RERANK_MODEL="nobody/reranker")
    assert code == 0, said
    assert hugging_face.fetched.count("model.safetensors") == 2


def test_models_of_ollama_are_fetched_by_its_server(ollama: OllamaDouble) -> None:
    wanted = {
        "RAG_OLLAMA_URL": ollama.url, "RAG_CHAT_PROVIDER": "ollama", "RAG_MODEL_NAME": "llama3.2",
        "RAG_EMBEDDING_PROVIDER": "ollama", "RAG_EMBEDDING_MODEL": "bge-m3", "RAG_EMBEDDING_DIMENSION": "1024",
    }  # fmt: skip
    code, said = pull(**wanted)
    assert code == 0, said
    assert f"Fetching bge-m3 with the Ollama server at {ollama.url}" in said
    assert [body["model"] for body in ollama.bodies(PULL)] == ["bge-m3"]  # the chat model is there
    assert pull(**wanted) == (0, "All models are available.")
    assert len(ollama.bodies(PULL)) == 1


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(steps=(ErrorLine("pull model manifest: file does not exist"),)), "file does not exist"),
        (failure(500, "no space left on device"), "no space left on device"),
        (Reply(steps=(Wait(0), Reset())), "the connection failed"),
    ],
)
def test_a_pull_that_ollama_refuses_or_breaks_off_says_what_to_do(
    ollama: OllamaDouble, reply: Reply, told: str
) -> None:
    ollama.script(PULL, reply)
    code, said = pull(RAG_OLLAMA_URL=ollama.url, RAG_EMBEDDING_PROVIDER="ollama", RAG_EMBEDDING_MODEL="bge-m3")
    assert code == 1
    assert told in said
    assert "RAG_EMBEDDING_MODEL=bge-m3" in said
    assert "models pull` again" in said


def test_an_ollama_that_does_not_run_is_named() -> None:
    code, said = pull(
        RAG_OLLAMA_URL="http://127.0.0.1:1", RAG_EMBEDDING_PROVIDER="ollama", RAG_EMBEDDING_MODEL="bge-m3"
    )
    assert code == 1
    assert "cannot be fetched by http://127.0.0.1:1: the connection failed" in said


def test_quickstart_fetches_and_uses_a_multilingual_model_in_one_command(
    hugging_face: HuggingFaceDouble, tmp_path: Path
) -> None:
    """A tiny model under the name of the real one, with its dimension."""
    folder = make_model(tmp_path / "e5", "xlm-roberta", hidden_size=768)
    hugging_face.add("intfloat/multilingual-e5-base", folder)
    document = tmp_path / "plazos.md"
    document.write_text("# Plazos\n\nEl plazo para presentar la solicitud vence el 30 de mayo.\n", encoding="utf-8")
    arguments = ["quickstart", "--models", "huggingface", "--once", "--documents", str(document)]
    arguments += ["--question", "¿Cuándo vence el plazo?"]
    environment = {
        "HF_ENDPOINT": hugging_face.url, "HF_HOME": str(tmp_path / "hf"), "RAG_DATA_DIR": str(tmp_path / "data"),
    }  # fmt: skip
    code, printed, said = cli_process.run(arguments, environment)
    assert code == 0, said
    assert "RAG_EMBEDDING_MODEL=intfloat/multilingual-e5-base" in said
    assert "Fetching intfloat/multilingual-e5-base" in said
    assert "30 de mayo" in printed
