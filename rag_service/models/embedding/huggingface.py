"""Embedding models from Hugging Face: by the name of a repository whose files are here already, or in any folder."""

from __future__ import annotations

from pathlib import Path

from rag_service.errors import ConfigurationError


def find_model(name: str) -> Path:
    """The folder of a model: the one named, or that of a repository in Hugging Face's cache (HF_HOME).

    Nothing is downloaded. Raises ConfigurationError if it is not here.
    """
    if (folder := Path(name).expanduser()).is_dir():
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except HFValidationError as error:
        raise ConfigurationError(
            f"RAG_EMBEDDING_MODEL={name} is neither a folder nor the name of a repository of Hugging Face, such as"
            " intfloat/multilingual-e5-small.",
            field="RAG_EMBEDDING_MODEL",
        ) from error
    except (LocalEntryNotFoundError, OSError) as error:
        raise ConfigurationError(
            f"RAG_EMBEDDING_MODEL={name} is no folder and has not been downloaded: run `rag-service models pull`.",
            field="RAG_EMBEDDING_MODEL",
        ) from error
