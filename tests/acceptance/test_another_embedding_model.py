"""The embedding model of a filled database is changed, to one of another dimension, by what the messages say."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.acceptance import cli_process
from tests.doubles.ollama import OllamaDouble, ollama

pytestmark = pytest.mark.slow

__all__ = ["ollama"]

DOCUMENT = "# Plazos\n\nEl plazo para presentar la solicitud vence el 30 de mayo.\n"


def run(environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """(exit code, everything that was said) of a command."""
    code, printed, said = cli_process.run(arguments, environment)
    return code, " ".join((printed + said).split())


def test_reingest_changes_the_dimension_and_makes_every_document_anew(ollama: OllamaDouble, tmp_path: Path) -> None:
    document = tmp_path / "plazos.md"
    document.write_text(DOCUMENT, encoding="utf-8")
    old = {
        "RAG_DATA_DIR": str(tmp_path / "data"), "RAG_OLLAMA_URL": ollama.url, "RAG_EMBEDDING_PROVIDER": "ollama",
        "RAG_EMBEDDING_MODEL": "small", "RAG_EMBEDDING_DIMENSION": "384",
    }  # fmt: skip
    code, said = run(old, "ingest", str(document))
    assert code == 0, said
    new = old | {"RAG_EMBEDDING_MODEL": "large", "RAG_EMBEDDING_DIMENSION": "1024"}
    ollama.dimension = 1024
    question = "¿Cuándo vence el plazo para presentar la solicitud?"
    for command in (("ask", question), ("reingest", "--dry-run")):
        code, said = run(new, *command)
        assert "stores vectors of 384 dimensions, but RAG_EMBEDDING_DIMENSION is 1024" in said
        assert "`rag-service reingest`" in said
    code, said = run(new, "reingest")
    assert code == 0, said
    assert "vectors of 1024 dimensions instead of 384" in said
    assert "1 documents queued" in said
    code, said = run(new, "ask", question)  # by its words
    assert "30 de mayo" in said
    with cli_process.started(["worker"], os.environ | new, folder=tmp_path, output=tmp_path / "worker.txt") as worker:
        for _ in range(200):
            if "All documents match the current settings" in run(new, "reingest", "--dry-run")[1]:
                break
            time.sleep(0.5)
        else:
            raise AssertionError("the document was not made anew")
        worker.terminate()
        worker.join(100)
    embedded = [body for body in ollama.bodies("/api/embed") if body["model"] == "large"]
    assert any("30 de mayo" in text for body in embedded for text in body["input"])
    assert "30 de mayo" in run(new, "ask", question)[1]
    code, said = run(old, "ask", question)  # and back
    assert "stores vectors of 1024 dimensions" in said
