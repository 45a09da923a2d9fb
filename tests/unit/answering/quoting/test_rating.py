"""Sentences are compared with the question token by token, in windows of their passage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rag_service.answering.quoting.rating import TOKEN_FEATURES, cut_windows, rate_tokens, read_window
from rag_service.answering.quoting.sentences import Sentence, read_sentences
from rag_service.models.embedding.local import TokenVectors
from tests.unit.answering.proof.answers import make_hit

FIRST = "## Leave\n\nEvery member has thirty days. They lapse in March.\n\nPart-time members have fewer days."


def candidates(*texts: str) -> list[Sentence]:
    found = []
    for mark, text in enumerate(texts, start=1):
        for sentence in read_sentences(text, "en"):
            assert sentence.text in " ".join(text[sentence.start : sentence.end].split())
            found.append(Sentence(**{**vars(sentence), "mark": mark}))
    return found


def one_token_per_word(text: str, word_vectors: dict[str, list[float]]) -> TokenVectors:
    offsets, end = [], 0
    for word in text.split():
        begin = text.index(word, end)
        end = begin + len(word)
        offsets.append((begin, end))
    vectors = [word_vectors.get(word.strip(".?").casefold(), [0.0, 0.0, 1.0]) for word in text.split()]
    return TokenVectors(np.array(vectors, dtype=np.float32), np.array(offsets))


def test_a_short_passage_is_one_window_with_its_heading_and_title() -> None:
    hit = make_hit(FIRST)
    (window,) = cut_windows(candidates(FIRST), [0])
    text, begins = read_window(window, [hit])
    assert text == f"{hit.chunk.document.title}\n{FIRST}"
    assert text[begins:] == FIRST
    assert window.sentences == (0, 1, 2)


def test_a_long_passage_is_cut_between_sentences_and_the_windows_of_the_best_are_read() -> None:
    long = " ".join(f"Rule {number} of the house says that doors are closed at night." for number in range(60))
    sentences = candidates(long, FIRST)
    windows = cut_windows(sentences, [len(sentences) - 1, 40, 41, 0])
    assert [window.mark for window in windows] == [1, 1, 2]
    assert {40, 0} <= {number for window in windows for number in window.sentences}
    assert all(window.end - window.start <= 760 for window in windows)
    # However many candidates are good, the time is bounded.
    assert len(cut_windows(sentences, range(len(sentences)))) == 6


def test_each_sentence_is_rated_by_its_own_tokens() -> None:
    sentences = candidates(FIRST)
    (window,) = cut_windows(sentences, [0])
    text, begins = read_window(window, [make_hit(FIRST)])
    meaning = {"holiday": [1.0, 0.0, 0.0], "days": [0.8, 0.6, 0.0], "lapse": [0.0, 1.0, 0.0]}
    query = one_token_per_word("holiday?", meaning)
    rated = rate_tokens(query, one_token_per_word(text, meaning), sentences, window, begins)
    assert np.allclose(rated[:, 0], [0.8, 0.0, 0.8])
    # Fewer of the words of the longer sentence have to do with the question.
    assert np.allclose(rated[:, 1], [0.8 / 5, 0.0, 0.8 / 5])


def test_a_sentence_is_as_good_as_its_tokens_look_like_the_answer() -> None:
    sentences = candidates(FIRST)
    (window,) = cut_windows(sentences, [0])
    text, begins = read_window(window, [make_hit(FIRST)])
    read = one_token_per_word(text, {})
    odds = np.where(read.places[:, 0] - begins >= sentences[1].start, 2.0, -1.0).astype(np.float32)
    query = one_token_per_word("holiday?", {})
    rated = rate_tokens(query, replace(read, answers=odds), sentences, window, begins)
    assert np.allclose(rated[:, TOKEN_FEATURES.index("answers")], [-1.0, 2.0, 2.0])


def test_what_the_title_says_tells_no_sentence_apart() -> None:
    text = "The gym opens at nine.\n\nWelcome to our house."
    sentences = candidates(text)
    (window,) = cut_windows(sentences, [0])
    meaning = {"gym": [1.0, 0.0, 0.0], "nine": [0.0, 1.0, 0.0], "open": [0.0, 0.9, 0.4]}
    query = one_token_per_word("gym open", meaning)
    without = rate_tokens(query, one_token_per_word(text, meaning), sentences, window, 0)
    assert np.allclose(without[:, 0], [0.9, 0.0], atol=0.03)
    titled = f"Gym\n{text}"
    with_title = rate_tokens(query, one_token_per_word(titled, meaning), sentences, window, len("Gym\n"))
    assert np.allclose(with_title[:, 0], [0.9, 0.4], atol=0.03)
