"""Embedding models from folders, tiny ones made here at random; sentence-transformers on torch is the oracle."""

from __future__ import annotations

import importlib.util
import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rag_service.errors import ConfigurationError, RagError
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.encoder import Encoder
from rag_service.models.embedding.model_folder import read_model_folder
from rag_service.settings import Settings
from tests.doubles.tiny_models import TEXTS, make_model

pytestmark = pytest.mark.slow


def oracle(folder: Path, texts: list[str], prompt: str = "") -> npt.NDArray[np.float32]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return np.asarray(model.encode(texts, prompt=prompt, normalize_embeddings=True), dtype=np.float32)


async def embed(folder: Path | str, **settings: Any) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """(the vectors of the texts as questions, those as passages)."""
    embedding = build_embedding(
        Settings(embedding_provider="huggingface", embedding_model=str(folder), embedding_dimension=16, **settings)
    )
    questions = [await embedding.aget_query_embedding(text) for text in TEXTS]
    passages = await embedding.aget_text_embedding_batch(TEXTS)
    await embedding.aclose()
    return np.asarray(questions), np.asarray(passages)


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken"])
@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "distilbert"])
async def test_vectors_are_those_of_sentence_transformers(tmp_path: Path, kind: str, pooling: str) -> None:
    """BERT and XLM-RoBERTa by a graph of ours, anything else by torch."""
    folder = make_model(tmp_path, kind, pooling=pooling)
    expected = oracle(folder, TEXTS)
    for vectors in await embed(folder):
        assert vectors == pytest.approx(expected, abs=1e-4)
    assert len(np.unique(expected.round(3), axis=0)) > 3  # the model tells the texts apart


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
async def test_weights_of_two_bytes_are_computed_in_four(tmp_path: Path, dtype: str) -> None:
    folder = make_model(tmp_path, "bert", dtype=dtype)
    weights = tmp_path / "model" / "model.safetensors"
    shutil.copyfile(tmp_path / "base" / "model.safetensors", weights)
    _, vectors = await embed(folder)
    assert vectors == pytest.approx(oracle(folder, TEXTS), abs=2e-2)


async def test_eight_bits_are_made_from_any_bert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = make_model(tmp_path, "xlm-roberta")
    _, vectors = await embed(folder, embedding_precision="int8")
    assert (vectors * oracle(folder, TEXTS)).sum(axis=1).min() > 0.95
    assert len(list((tmp_path / "cache" / "rag_service").iterdir())) == 1


async def test_eight_bits_of_another_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="RAG_EMBEDDING_PRECISION=int8") as caught:
        await embed(make_model(tmp_path, "distilbert"), embedding_precision="int8")
    assert caught.value.field == "RAG_EMBEDDING_PRECISION"


@pytest.mark.parametrize("place", ["onnx/model.onnx", "model.onnx"])
async def test_the_graph_in_a_folder_is_run_without_torch(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As exporters write it: with a mask and types of tokens, and all weights inside."""
    import torch
    from transformers import AutoModel

    class Exported(torch.nn.Module):
        def __init__(self, model: torch.nn.Module) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.model(input_ids=ids, attention_mask=mask, token_type_ids=types)[0]
            return states

    folder = make_model(tmp_path, "bert")
    expected = oracle(folder, TEXTS)
    (folder / place).parent.mkdir(exist_ok=True)
    inputs = {name: torch.ones((1, 5), dtype=torch.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
    names = ["last_hidden_state"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Exported(AutoModel.from_pretrained(folder, attn_implementation="eager")).eval()
        torch.onnx.export(
            model, tuple(inputs.values()), str(folder / place), input_names=list(inputs), output_names=names,
            opset_version=17, dynamo=False, dynamic_axes={name: {1: "n"} for name in [*inputs, *names]},
        )  # fmt: skip
    (folder / "model.safetensors").unlink()
    without(monkeypatch, "torch")
    _, vectors = await embed(folder)
    assert vectors == pytest.approx(expected, abs=1e-4)


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == package else find_spec(name, *rest)
    )


async def test_a_model_that_needs_torch_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_model(tmp_path, "distilbert")
    without(monkeypatch, "torch")
    with pytest.raises(ConfigurationError, match=r"pip install 'rag-service\[torch\]'"):
        await embed(folder)


async def test_questions_and_passages_get_the_prefixes_of_e5(tmp_path: Path) -> None:
    """Its configuration has none: they are known by its name."""
    made = make_model(tmp_path, "xlm-roberta")
    folder = made.rename(tmp_path / "multilingual-e5-tiny")
    questions, passages = await embed(folder)
    assert questions == pytest.approx(oracle(folder, TEXTS, "query: "), abs=1e-4)
    assert passages == pytest.approx(oracle(folder, TEXTS, "passage: "), abs=1e-4)
    assert not np.allclose(questions, passages, atol=1e-2)


@pytest.mark.parametrize("key", ["passage", "document"])
async def test_the_prefixes_of_the_configuration_come_first(tmp_path: Path, key: str) -> None:
    folder = make_model(tmp_path, "bert").rename(tmp_path / "other-e5-small")
    file = folder / "config_sentence_transformers.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(config | {"prompts": {"query": "plazo: ", key: "prazo: "}}), encoding="utf-8")
    questions, passages = await embed(folder)
    assert questions == pytest.approx(oracle(folder, TEXTS, "plazo: "), abs=1e-4)
    assert passages == pytest.approx(oracle(folder, TEXTS, "prazo: "), abs=1e-4)


async def test_the_prefixes_of_the_settings_come_before_all(tmp_path: Path) -> None:
    folder = make_model(tmp_path, "bert").rename(tmp_path / "other-e5-small")
    questions, passages = await embed(folder, embedding_query_prefix="plazo: ", embedding_passage_prefix="")
    assert questions == pytest.approx(oracle(folder, TEXTS, "plazo: "), abs=1e-4)
    assert passages == pytest.approx(oracle(folder, TEXTS, ""), abs=1e-4)


def test_a_long_text_is_read_in_windows_that_leave_room_for_prefix_and_special_tokens(tmp_path: Path) -> None:
    folder = make_model(tmp_path, "bert")
    plain = Encoder(read_model_folder(folder, name="plain"))
    prefixed = Encoder(read_model_folder(folder, name="tiny-e5-x"))
    assert plain.window == 64 - 2
    assert prefixed.window == plain.window - len(plain.offsets("passage: "))
    assert np.allclose(plain.encode("a " * 62), plain.encode("a " * 500), atol=1e-6)


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Path]:
    yield make_model(tmp_path, "bert")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ({"tokenizer.json": None}, "has no tokenizer.json"),
        ({"config.json": None}, "has no config.json"),
        ({"1_Pooling/config.json": '{"pooling_mode_max_tokens": true}'}, "pools in another way"),
        ({"modules.json": '[{"type": "sentence_transformers.models.Dense"}]'}, "its module Dense"),
        ({"model.safetensors": "cut off"}, "cannot be loaded"),
        ({"tokenizer.json": "{}"}, "cannot be loaded"),
    ],
)
async def test_a_folder_that_is_no_embedding_model_says_what_is_wrong(
    broken: Path, spoil: dict[str, str | None], said: str
) -> None:
    for name, text in spoil.items():
        (broken / name).unlink() if text is None else (broken / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=said) as caught:
        await embed(broken)
    assert caught.value.field == "RAG_EMBEDDING_MODEL"


@pytest.mark.parametrize(
    ("name", "said"),
    [("nobody/has-this", "rag-service models pull"), ("not a name!", "neither a folder nor the name")],
)
async def test_a_model_that_is_not_here_says_what_to_do(name: str, said: str) -> None:
    with pytest.raises(RagError, match=said):
        await embed(name)


async def test_another_dimension_than_the_one_set_is_named(broken: Path) -> None:
    with pytest.raises(ConfigurationError, match="set RAG_EMBEDDING_DIMENSION to 16"):
        build_embedding(Settings(embedding_provider="huggingface", embedding_model=str(broken)))
