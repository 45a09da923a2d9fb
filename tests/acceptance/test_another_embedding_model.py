"""The embedding model of a filled database is changed, to one of another dimension, by what the messages say."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.doubles.ollama import OllamaDouble, ollama

__all__ = ["ollama"]

CALL = "from rag_service.cli import main; main({!r})"
DOCUMENT = "# Plazos\n\nEl plazo para presentar la solicitud vence el 30 de mayo.\n"


def run(environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """(exit code, everything that was said) of a command."""
    done = subprocess.run(
        [sys.executable, "-c", CALL.format(list(arguments))], capture_output=True, text=True, check=False, timeout=120,
        env={key: value for key, value in os.environ.items() if not key.startswith("RAG_")} | environment,
    )  # fmt: skip
    return done.returncode, " ".join((done.stdout + done.stderr).split())


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
    worker = subprocess.Popen([sys.executable, "-c", CALL.format(["worker"])], env=os.environ | new)
    try:
        for _ in range(60):
            if "All documents match the current settings" in run(new, "reingest", "--dry-run")[1]:
                break
            time.sleep(0.5)
        else:
            raise AssertionError("the document was not made anew")
    finally:
        worker.terminate()
        worker.wait(30)
    embedded = [body for body in ollama.bodies("/api/embed") if body["model"] == "large"]
    assert any("30 de mayo" in text for body in embedded for text in body["input"])
    assert "30 de mayo" in run(new, "ask", question)[1]
    code, said = run(old, "ask", question)  # and back
    assert "stores vectors of 1024 dimensions" in said
