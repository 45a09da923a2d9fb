"""What the files of an embedding model say about it: pooling, length, prefixes, where its weights are.

A folder in the layout of sentence-transformers, or of transformers alone, as Hugging Face serves it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rag_service.errors import ConfigurationError
from rag_service.models.prefixes import Prefixes, family_prefixes

Pooling = Literal["mean", "cls", "lasttoken"]  # what of the last layer becomes the vector

WEIGHTS = "model.safetensors"
PACKAGED_GRAPH = "graph.onnx"  # of the packaged model; "model.onnx" was one without the states that its head reads
ONNX_FILES = (PACKAGED_GRAPH, "onnx/model.onnx", "model.onnx")
TOKENIZER = "tokenizer.json"
PIECES, SCORES = "pieces.txt", "scores.npy"  # a tokenizer in a form of our own
PACKAGED_FILES = ("config.json", PIECES, SCORES, PACKAGED_GRAPH)  # of the packaged model
# Read here; a model without some of them gets the defaults of sentence-transformers.
CONFIGURATION = (
    "config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json",
    "tokenizer_config.json", "1_Pooling/config.json",
)  # fmt: skip

_NO_LIMIT = 1_000_000  # a tokenizer without a limit of its own says a number with thirty digits


@dataclass(frozen=True, kw_only=True)
class ModelFolder:
    """An embedding model on disk."""

    name: str  # as the settings name it
    path: Path
    is_bert: bool  # `bert_graph` makes its graph from its weights, without torch
    dimension: int  # length of the vectors
    max_tokens: int  # that it reads, special ones included
    pooling: Pooling
    query_prefix: str  # before every question
    passage_prefix: str  # before every window of a passage

    @property
    def onnx_file(self) -> Path | None:
        """The graph that comes with it."""
        return next((self.path / name for name in ONNX_FILES if (self.path / name).is_file()), None)


def read_model_folder(path: Path, *, name: str) -> ModelFolder:
    """What a folder's files say. Raises ConfigurationError if it is no embedding model that can be used."""
    config = _read(path, "config.json") or {}
    dimension = next((config[key] for key in ("hidden_size", "dim", "d_model") if key in config), None)
    if dimension is None:
        raise _unusable(name, f"{path} has no config.json of a text model: name a folder or repository that has one")
    if not (path / TOKENIZER).is_file() and not (path / PIECES).is_file():
        raise _unusable(
            name,
            f"{path} has no {TOKENIZER}: choose a model that has one, or write it with"
            " `AutoTokenizer.from_pretrained(folder).save_pretrained(folder)` of transformers",
        )
    modules = _read(path, "modules.json") or []
    for module in modules:
        if (kind := module["type"].rpartition(".")[2]) not in ("Transformer", "Pooling", "Normalize"):
            raise _unusable(name, f"its module {kind} is not supported: choose another model, or serve it with Ollama")
    query, passage = _prefixes(path, name)
    return ModelFolder(
        name=name,
        path=path,
        is_bert=has_bert_graph(config) and (path / WEIGHTS).is_file(),
        dimension=dimension,
        max_tokens=_max_tokens(path, config),
        pooling=_pooling(path, name),
        query_prefix=query,
        passage_prefix=passage,
    )


def has_bert_graph(config: dict[str, Any]) -> bool:
    """Whether `bert_graph` knows the kind of model that a config.json describes."""
    return (
        config.get("model_type") in ("bert", "xlm-roberta")
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
    )


def _pooling(path: Path, name: str) -> Pooling:
    config = _read(path, "1_Pooling/config.json") or {}
    # Until 2025 a flag for each mode, since then its name.
    known: dict[str, Pooling] = {"mean": "mean", "cls": "cls", "lasttoken": "lasttoken"}
    flags = {"mean": "mean_tokens", "cls": "cls_token", "lasttoken": "lasttoken"}
    asked = config.get("pooling_mode") or [mode for mode, flag in flags.items() if config.get(f"pooling_mode_{flag}")]
    modes = [asked] if isinstance(asked, str) else asked
    if not config:
        modes = ["mean"]
    if len(modes) != 1 or modes[0] not in known:
        raise _unusable(name, "it pools in another way than by mean, first or last token: choose another model")
    return known[modes[0]]


def _max_tokens(path: Path, config: dict[str, Any]) -> int:
    # RoBERTa counts positions from the padding token's number on.
    places = config.get("max_position_embeddings", 512) - (2 if "roberta" in config.get("model_type", "") else 0)
    asked = (_read(path, "sentence_bert_config.json") or {}).get("max_seq_length")
    asked = asked or (_read(path, "tokenizer_config.json") or {}).get("model_max_length")
    return min(places, int(asked)) if asked and asked < _NO_LIMIT else int(places)


def _prefixes(path: Path, name: str) -> Prefixes:
    prompts = (_read(path, "config_sentence_transformers.json") or {}).get("prompts") or {}
    if any(prompts.values()):
        return Prefixes(prompts.get("query") or "", prompts.get("passage") or prompts.get("document") or "")
    return family_prefixes(name)


def _read(path: Path, file: str) -> Any:
    """What a JSON file holds; None where it is missing or is no JSON."""
    try:
        return json.loads((path / file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _unusable(name: str, reason: str) -> ConfigurationError:
    return ConfigurationError(f"RAG_EMBEDDING_MODEL={name}: {reason}.", field="RAG_EMBEDDING_MODEL")
