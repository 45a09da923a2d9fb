"""Models from Hugging Face: found in any folder or in its cache, and fetched by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rag_service.errors import ConfigurationError
from rag_service.models.embedding.model_folder import CONFIGURATION, ONNX_FILES, TOKENIZER, WEIGHTS, has_bert_graph
from rag_service.models.hugging_face import download_errors

_CONFIG = "config.json"  # fetched last: where it is, the rest is


def find_model(name: str, *, setting: str = "RAG_EMBEDDING_MODEL") -> Path:
    """The folder of a model: the one named, or that of a repository in Hugging Face's cache (HF_HOME).

    Nothing is downloaded. Raises ConfigurationError if it is not here.
    """
    if (folder := Path(name).expanduser()).is_dir():
        return folder
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, _CONFIG)
    except HFValidationError as error:
        raise ConfigurationError(
            f"{setting}={name} is neither a folder nor the name of a repository of Hugging Face, such as"
            " intfloat/multilingual-e5-small.",
            field=setting,
        ) from error
    if not isinstance(found, str):
        raise ConfigurationError(
            f"{setting}={name} is no folder and has not been downloaded: run `rag-service models pull`.", field=setting
        )
    return Path(found).parent


def pull(name: str, *, setting: str, for_torch: bool = False, announce: Callable[[str], None] = lambda _: None) -> Path:
    """Download what is needed of a repository into Hugging Face's cache; progress goes to stderr. Blocks.

    One that broke off is continued. `for_torch`: with the weights that torch reads. `announce` gets one line with the
    size. Returns the folder. Raises ConfigurationError if it cannot be fetched or has no tokenizer.
    """
    from huggingface_hub import HfApi, hf_hub_download

    otherwise = f"copy the model's folder from another machine and set {setting} to it"
    with download_errors(name, setting=setting, otherwise=otherwise):
        info = HfApi().model_info(name, files_metadata=True)
        sizes = {entry.rfilename: entry.size or 0 for entry in info.siblings or ()}
        if TOKENIZER not in sizes:
            raise ConfigurationError(
                f"{setting}={name}: the repository has no {TOKENIZER}; choose a model that has one.", field=setting
            )
        files = _needed(list(sizes), info.config or {}, for_torch=for_torch)
    size = f"{name} ({sum(map(sizes.__getitem__, files)) / 1e6:,.0f} MB)"
    announce(f"Fetching {size} from Hugging Face …")
    with download_errors(size, setting=setting, otherwise=otherwise):
        return Path([hf_hub_download(name, file) for file in files][-1]).parent


def _needed(names: Sequence[str], config: dict[str, Any], *, for_torch: bool) -> list[str]:
    """Of a repository's files: configuration, tokenizer, and one copy of the weights."""
    small = [name for name in names if "/" not in name and name.endswith((".json", ".txt", ".model"))]
    # The hub's summary of the configuration has no more than the kind of model.
    bert = has_bert_graph({"hidden_act": "gelu"} | config)
    onnx = [name for name in ONNX_FILES if name in names][:1]
    if WEIGHTS in names and (bert or for_torch):
        weights = [WEIGHTS]
    elif onnx and not for_torch:
        weights = [name for name in (onnx[0], f"{onnx[0]}_data") if name in names]
    else:
        parts = [name for name in names if "/" not in name and name.endswith(".safetensors")]
        weights = parts or [name for name in names if name == "pytorch_model.bin"]
    wanted = {*small, *(name for name in CONFIGURATION if name in names), *weights} - {_CONFIG}
    return [*sorted(wanted), _CONFIG]
