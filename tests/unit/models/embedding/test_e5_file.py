"""The packaged model's file format: the graph and the tokenizer that are made from it, against torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rag_service.models.embedding.e5_file import FILES, write_model_folder
from rag_service.models.embedding.encoder import Encoder
from rag_service.models.embedding.model_folder import read_model_folder
from tests.doubles.e5_file import PIECES, POSITIONS, make_e5_file

TEXTS = ["the nation", "la fé de la", "a", "xyz", "", "日本", "the " * 20]


def test_vectors_are_those_of_torch_but_for_the_rounding(tmp_path: Path) -> None:
    import torch

    data, oracle = make_e5_file()
    write_model_folder(data, tmp_path / "e5-tiny")
    encoder = Encoder(read_model_folder(tmp_path / "e5-tiny", name="e5-tiny"))
    tokenizer = encoder._tokenizer
    vectors = []
    for text in TEXTS:
        with torch.inference_mode():
            states = oracle(input_ids=torch.tensor([tokenizer.encode(text).ids])).last_hidden_state
        expected = states[0].mean(dim=0).numpy()
        expected /= np.linalg.norm(expected)
        vectors.append(expected)
        assert expected @ encoder.encode(text) > 0.995
    assert np.triu(np.array(vectors) @ np.array(vectors).T, 1).max() < 0.99  # the model tells the texts apart


def test_texts_are_cut_into_pieces_as_xlm_roberta_does(tmp_path: Path) -> None:
    write_model_folder(make_e5_file()[0], tmp_path)
    tokenizer = Encoder(read_model_folder(tmp_path, name="e5-tiny"))._tokenizer
    # NFKC, control characters to spaces, repeated spaces to one, a space before the first word.
    for text in ("the nation", "the\tnation", "the   nation", "the\u2007nation", "the nati\u200don"):
        pieces = tokenizer.encode(text).tokens
        assert pieces[0] == "<s>" and pieces[-1] == "</s>" and pieces[1] == "▁the"
    assert tokenizer.encode("the nation").tokens == ["<s>", "▁the", "▁", "n", "a", "tion", "</s>"]
    assert tokenizer.encode("ﬁ").tokens[1:-1] == ["▁", "f", "i"]
    assert tokenizer.encode("日").ids[2] == PIECES.index("<unk>")


def test_the_folder_says_what_the_model_is(tmp_path: Path) -> None:
    write_model_folder(make_e5_file()[0], tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == set(FILES)
    model = read_model_folder(tmp_path, name="multilingual-e5-small")
    assert (model.dimension, model.max_tokens, model.pooling) == (64, POSITIONS, "mean")
    assert (model.query_prefix, model.passage_prefix) == ("query: ", "passage: ")


@pytest.mark.parametrize("data", [b"", b"something else", b"E5S1" + b"\0" * 40])
def test_another_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"E5|blocks"):
        write_model_folder(data, tmp_path)
