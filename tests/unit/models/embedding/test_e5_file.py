"""The packaged model's file format: the graph and the tokenizer that are made from it, against torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from rag_service.models.embedding.e5_file import write_model_folder
from rag_service.models.embedding.encoder import Encoder, UnigramTokenizer
from rag_service.models.embedding.local import cut_windows
from rag_service.models.embedding.model_folder import PACKAGED_FILES, read_model_folder
from tests.doubles.e5_file import PIECES, POSITIONS, make_e5_file

TEXTS = ["the nation", "la fé de la", "a", "xyz", "", "日本", "the " * 20]


def test_vectors_are_those_of_torch_but_for_the_rounding(tmp_path: Path) -> None:
    import torch

    data, oracle = make_e5_file()
    write_model_folder(data, tmp_path / "e5-tiny")
    encoder = Encoder(read_model_folder(tmp_path / "e5-tiny", name="e5-tiny"))
    tokenizer, _ = numbers_and_oracle()
    vectors = []
    for text in TEXTS:
        with torch.inference_mode():
            states = oracle(input_ids=torch.tensor([tokenizer.encode(text)])).last_hidden_state
        expected = states[0].mean(dim=0).numpy()
        expected /= np.linalg.norm(expected)
        vectors.append(expected)
        assert expected @ encoder.encode(text) > 0.995
    assert np.triu(np.array(vectors) @ np.array(vectors).T, 1).max() < 0.99  # the model tells the texts apart


def test_tokens_have_vectors_and_places_without_those_of_the_prefix(tmp_path: Path) -> None:
    data, _ = make_e5_file()
    write_model_folder(data, tmp_path / "e5-tiny")
    encoder = Encoder(read_model_folder(tmp_path / "e5-tiny", name="e5-tiny"))
    text = "la fé the nation"
    read = encoder.encode_tokens(text, "the ")
    assert len(read.vectors) == len(read.places) == len(encoder.offsets(text))
    assert [text[begin:end] for begin, end in read.places] == [text[begin:end] for begin, end in encoder.offsets(text)]
    assert np.allclose(np.linalg.norm(read.vectors, axis=1), 1, atol=1e-5)
    # A text that is too long has vectors for as many tokens as the model reads.
    long = encoder.encode_tokens("the " * 2 * POSITIONS, "")
    assert 0 < len(long.vectors) == len(long.places) < POSITIONS
    assert encoder.encode_tokens("", "the ").vectors.shape[0] == 0


def numbers_and_oracle() -> tuple[UnigramTokenizer, Tokenizer]:
    """Ours, and XLM-RoBERTa's of the package `tokenizers` over the same pieces."""
    scores = [0.0 if number < 4 else -1.0 - number / 10 for number in range(len(PIECES))]
    oracle = Tokenizer(models.Unigram(list(zip(PIECES, scores, strict=True)), unk_id=3))
    oracle.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    oracle.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    oracle.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return UnigramTokenizer(PIECES, scores), oracle


def test_a_long_text_without_spaces_is_cut_into_windows_of_its_parts() -> None:
    text = "the日nation" * 200
    tokenizer, _ = numbers_and_oracle()
    windows = cut_windows(tokenizer.offsets, text, 100)
    assert len(windows) > 3
    assert text.startswith(windows[0]) and text.endswith(windows[-1])
    assert max(map(len, windows)) < 2 * min(map(len, windows))
    assert all(len(tokenizer.encode(window)) < 150 for window in windows)


@given(st.text(st.sampled_from("the nationdelafé \u200b\t\u00a0\u2007ﬁ日本½①👋'.,"), max_size=60))
@example("")
@example("the\tnati\u200don")
@example("日本 the 日")
def test_texts_are_cut_into_pieces_as_xlm_roberta_does(text: str) -> None:
    tokenizer, oracle = numbers_and_oracle()
    numbers = tokenizer.encode(text)
    assert numbers == oracle.encode(text).ids
    places = tokenizer.offsets(text)
    assert len(places) == len(numbers) - 2
    assert all(text[begin:end].strip() == text[begin:end] != "" for begin, end in places)
    assert places == sorted(places)


def test_the_folder_says_what_the_model_is(tmp_path: Path) -> None:
    write_model_folder(make_e5_file()[0], tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == set(PACKAGED_FILES)
    model = read_model_folder(tmp_path, name="multilingual-e5-small")
    assert (model.dimension, model.max_tokens, model.pooling) == (64, POSITIONS, "mean")
    assert (model.query_prefix, model.passage_prefix) == ("query: ", "passage: ")


@pytest.mark.parametrize("data", [b"", b"something else", b"E5S1" + b"\0" * 40])
def test_another_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"E5|blocks"):
        write_model_folder(data, tmp_path)
