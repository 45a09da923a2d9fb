"""Character n-grams."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rag_service.language.ngrams import LENGTH, character_ngrams, find_ngrams, weigh_by_rarity


def share(wanted: str, text: str) -> float:
    held = find_ngrams(character_ngrams(wanted), [character_ngrams(text)])
    return float(held.mean())


def test_other_forms_of_a_word_share_most_of_its_spelling() -> None:
    assert share("contratación", "los contratos") > 0.3 > share("contratación", "las reuniones de equipo")


def test_case_accents_and_punctuation_do_not_count() -> None:
    assert share("¿Qué día es la reunión?", "QUE DIA... es la reunion") == 1


def test_words_that_stand_together_share_more_than_the_same_words_apart() -> None:
    assert share("annual leave", "your annual leave") > share("annual leave", "you leave the annual meeting")


def test_what_few_texts_hold_weighs_more() -> None:
    asked = character_ngrams("alpha omega")
    held = find_ngrams(asked, [character_ngrams(text) for text in ("alpha", "alpha", "alpha omega")])
    weights = weigh_by_rarity(held)
    assert weights.sum() == 1
    assert weights[held[0]].max() < weights[~held[0]].min()


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_taken(wanted: str, text: str) -> None:
    asked, ngrams = character_ngrams(wanted), character_ngrams(text)
    assert np.all(np.diff(ngrams.astype(object)) > 0)
    held = find_ngrams(asked, [ngrams, character_ngrams("")])
    assert held.shape == (2, len(asked))
    assert held[0].sum() == len(np.intersect1d(asked, ngrams))
    assert not held[1].any() or len(asked) >= LENGTH
