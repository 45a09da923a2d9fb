"""The question-answering head is trained on published questions, and its graph rates like the network."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from evals.lab.qa_head.examples import Cutter, Example, is_measured, shingles
from evals.lab.qa_head.graph import write_graph
from evals.lab.qa_head.network import Head, put_together
from evals.lab.qa_head.published import Passage, Question, read_published
from evals.lab.qa_head.training import train
from rag_service.errors import ConfigurationError, InputError
from rag_service.models.embedding.bert_graph import HEAD_LAYERS
from rag_service.models.embedding.e5_file import layer_parameters, write_model_folder
from rag_service.models.embedding.encoder import UnigramTokenizer
from rag_service.models.embedding.qa_head import QuestionAnsweringHead
from tests.doubles.e5_file import HEADS, HIDDEN, make_e5_file

TEXT = "The mill opened in 1911. It ground rye. In 1960 it closed for good."
SQUAD = {
    "data": [
        {
            "title": "Mill",
            "paragraphs": [
                {
                    "context": TEXT,
                    "qas": [
                        {"id": "1", "question": "When did it open?", "answers": [{"text": "1911", "answer_start": 19}]},
                        {
                            "id": "2", "question": "When did it burn?", "is_impossible": True, "answers": [],
                            "plausible_answers": [{"text": "1960", "answer_start": 43}],
                        },
                        {"id": "3", "question": "Without an answer?", "answers": []},
                    ],
                }
            ],
        }
    ]
}  # fmt: skip
SELQA = [{"question": "What did it grind?", "sentences": TEXT.split(". "), "answers": [1], "article": "Mill"}]
WIKIQA = "what did it grind\tThe mill opened.\t0\nwhat did it grind\tIt ground rye.\t1\n"


def questions_of(file: Path, content: bytes) -> list[Question]:
    file.write_bytes(content)
    return list(read_published(file))


def said(question: Question, number: int) -> str:
    begin, end = question.passage.sentences[number]
    return question.passage.text[begin:end]


def test_published_formats_are_read(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(SQUAD).encode())
    opened, burnt = questions_of(tmp_path / "squad.json.gz", packed)
    assert [said(opened, number) for number in opened.right] == ["The mill opened in 1911."]
    assert opened.answer == (19, 23)
    assert burnt.right == frozenset()
    assert said(burnt, burnt.near) == "In 1960 it closed for good."
    (selqa,) = questions_of(tmp_path / "selqa.json", json.dumps(SELQA).encode())
    (wikiqa,) = questions_of(tmp_path / "wiki.txt", WIKIQA.encode())
    assert [said(selqa, number) for number in selqa.right] == ["It ground rye"]
    assert [said(wikiqa, number) for number in wikiqa.right] == ["It ground rye."]
    for content in (b"{}", b"[1]", b"no json"):
        with pytest.raises(InputError, match="none of the formats"):
            questions_of(tmp_path / "other.json", content)


def test_passages_that_are_measured_elsewhere_are_told() -> None:
    measured = shingles(f"Something before it. {TEXT} Something after it.")
    passage = Passage(source="a file", text=TEXT, sentences=())
    assert is_measured(passage, measured)
    assert not is_measured(passage, shingles("Another mill was opened in 1911, and it ground wheat until 1970."))


class Letters:
    """A piece for each letter: a window has room for some sentences only."""

    def encode(self, text: str) -> list[int]:
        return [0, *(ord(letter) for letter in text if letter != " "), 2]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [(place, place + 1) for place, letter in enumerate(text) if letter != " "]


class Numbers:
    """A piece for each number."""

    def encode(self, text: str) -> list[int]:
        return [0, *([4, 4, 4] if ":" in text else map(int, text.split())), 2]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [found.span() for found in re.finditer(r"\d+", text)]


def test_windows_hold_whole_sentences_and_know_the_answer(tmp_path: Path) -> None:
    opened, burnt = questions_of(tmp_path / "squad.json", json.dumps(SQUAD).encode())
    cutter = Cutter(Letters())
    long = Passage(source="", text=f"{TEXT} " * 4, sentences=tuple((68 * k, 68 * k + 67) for k in range(4)))
    windows = cutter.windows(long)
    assert [window.first for window in windows] == [0, 2]
    assert {number for window in windows for number in window.sentence_of} == {-1, 0, 1}
    made = cutter.examples([opened, burnt], seed=1)
    found = {len(examples[0].right): examples[0] for examples in made}
    answered, unanswered = found[1], found[0]
    assert "".join(chr(answered.window.pieces[place]) for place in sorted(answered.answer)) == "1911"
    assert not unanswered.answer


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, UnigramTokenizer]:
    data, _ = make_e5_file()
    folder = tmp_path_factory.mktemp("e5")
    write_model_folder(data, folder)
    return data, UnigramTokenizer.load(folder)


def fresh_head(data: bytes) -> Head:
    """Its layers' random weights are made smaller: seven bits are for weights like those of a trained model."""
    torch.manual_seed(1)
    layers = [layer_parameters(data, number) for number in range(-HEAD_LAYERS, 0)]
    return Head([{name: 0.3 * value for name, value in layer.items()} for layer in layers], heads=HEADS)


def toy_questions(count: int) -> list[list[Example]]:
    """The answer to a question of piece n is piece n + 10."""
    chance = np.random.default_rng(3)
    cutter = Cutter(Numbers())
    made = []
    for number in range(count):
        asked = int(chance.integers(5, 10))
        texts = [f"{other + 10} {chance.integers(20, 30)}" for other in chance.permutation(range(5, 10))]
        bounds = [(6 * place, 6 * place + 5) for place in range(5)]
        right = next(place for place, text in enumerate(texts) if text.startswith(f"{asked + 10} "))
        passage = Passage(source=str(number), text=" ".join(text.ljust(5) for text in texts), sentences=tuple(bounds))
        begin = bounds[right][0]
        question = Question(text=str(asked), passage=passage, right=frozenset({right}), answer=(begin, begin + 2))
        made += cutter.examples([question], seed=number)
    return made


@pytest.mark.slow
def test_training_finds_what_answers_and_the_graph_rates_like_the_network(
    tmp_path: Path, encoder: tuple[bytes, UnigramTokenizer]
) -> None:
    data, _ = encoder
    chance = np.random.default_rng(5)
    vectors = chance.normal(0, 1, (60_000, HIDDEN)).astype(np.float32)

    def encode(pieces: tuple[int, ...]) -> np.ndarray:
        return vectors[list(pieces)]

    losses: list[float] = []
    head = train(fresh_head(data), toy_questions(1_600), encode, lambda _, loss: losses.append(loss)).eval()
    assert losses[-1] < 0.75 * losses[0]
    config = {"hidden_size": HIDDEN, "num_attention_heads": HEADS, "layer_norm_eps": 1e-12}
    write_graph(head, tmp_path / "head.onnx", config=config, run="a run")
    loaded = QuestionAnsweringHead(tmp_path / "head.onnx")
    for example, *_ in toy_questions(20):
        states = {pieces: encode(pieces) for pieces in (example.question, example.window.pieces)}
        with torch.inference_mode():
            expected, _ = head(put_together([example], states))
        rated = loaded.rate(*(states[each].astype(np.float16) for each in (example.question, example.window.pieces)))
        assert np.corrcoef(rated, expected[0].numpy())[0, 1] > 0.99


def test_a_damaged_head_is_told(tmp_path: Path) -> None:
    (tmp_path / "head.onnx").write_bytes(b"damaged")
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        QuestionAnsweringHead(tmp_path / "head.onnx")
