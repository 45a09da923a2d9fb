"""The declared normalisation, and that every match finds its way back."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.language.normalise import RAISED, normalise, strip_accents
from tests.timing import seconds_of


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("uno \u00a0\n\t dos", "uno dos"),
        ("«\u202fmot\u202f» : oui\u00a0! 21\u00a0% 10 €", '"mot": oui! 21% 10€'),
        ("“uno” ‘dos’ l’eau", "\"uno\" 'dos' l'eau"),
        ("1–2 — 3 − 4", "1-2 - 3 - 4"),
        ("infor-\nmación de franco‐español", "información de francoespañol"),
        ("artículo 20\u00ad\nPlazo", "artículo 20 Plazo"),
        ("infor\u00ad\n  mación a\u00adb c\u200bd", "información ab cd"),
        ("ﬁn ﬂor œuvre…", "fin flor oeuvre..."),
        ("cafe\u0301 man\u0303ana", "café mañana"),
        ("A-1 10-20", "A-1 10-20"),
        ("10^6, 10^{-3} and m^2", "10⁶, 10⁻³ and m²"),
        ("Año", "Año"),
    ],
)
def test_what_is_made_equal(written: str, normal: str) -> None:
    assert normalise(written).text == normal


def test_folding_is_asked_for() -> None:
    assert normalise("Año İx", fold_case=True).text == "año ix"
    assert normalise("Año e\u0301", fold_accents=True).text == "Ano e"
    assert strip_accents("año ça") == "ano ca"


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("**Plazo:** _tres_ `meses`", "Plazo: tres meses"),
        ("[la guía](https://x.es/a_b) y ![foto](f.png)", "la guía y foto"),
        ("tres meses [C1], pla[C2]zo 【c3, 4】.", "tres meses, plazo."),
        ("> uno\n> dos", "> uno dos"),
        ("snake_case 5 * 3", "snake_case 5 3"),
        ("500 ¹ euros, 20 ²,³ days.\n\n¹ For members", "500 euros, 20 days. For members"),
        ("10⁶ turns, 120 m², ¹⁴C", "10⁶ turns, 120 m², ¹⁴C"),
    ],
)
def test_markup_is_left_out_on_request(written: str, normal: str) -> None:
    assert normalise(written, markup=True).text == normal


ALPHABET = "aéñoFi1 .-–\u00ad\u200b\n\t«»“’\u0301\u0303ﬁœ…İς*_`[]()C!:%€\u00a0ß"
TEXTS = st.text(alphabet=ALPHABET, max_size=60) | st.text(max_size=40)
FLAGS = st.fixed_dictionaries({name: st.booleans() for name in ("fold_case", "fold_accents", "markup")})


@given(TEXTS, FLAGS)
def test_characters_come_from_ordered_stretches_that_lose_nothing(text: str, flags: dict[str, bool]) -> None:
    normal = normalise(text, **flags)
    previous = (0, 0)
    for i, character in enumerate(normal.text):
        start, end = normal.original(i, i + 1)
        assert 0 <= start < end <= len(text)
        assert (start, end) == previous or start >= previous[1]  # a replacement's characters share a stretch
        previous = (start, end)
        # Whether a raised character is a footnote mark depends on what lies beyond it.
        alone = normalise(text[start:end], **flags).text
        assert character in alone or not text[start:end].strip("\n >") or character in RAISED


@given(TEXTS, FLAGS, st.data())
def test_a_match_maps_to_a_stretch_with_the_same_words(text: str, flags: dict[str, bool], data: st.DataObject) -> None:
    normal = normalise(text, **flags)
    if not normal.text:
        return
    i = data.draw(st.integers(0, len(normal.text) - 1))
    j = data.draw(st.integers(i + 1, len(normal.text)))
    start, end = normal.original(i, j)

    def letters(value: str) -> str:
        return "".join(filter(str.isalnum, value))

    cuts_replacement = (i and normal.original(i - 1, i)[1] > start) or (
        j < len(normal.text) and normal.original(j, j + 1)[0] < end
    )
    # Accents compose, and links and footnote marks form, only with what lies beyond a cut.
    if not cuts_replacement and not any(unicodedata.combining(c) or c in f"[{RAISED}" for c in text):
        assert letters(normalise(text[start:end], **flags).text) == letters(normal.text[i:j])


@given(TEXTS, FLAGS)
def test_position_is_the_way_back_of_original(text: str, flags: dict[str, bool]) -> None:
    normal = normalise(text, **flags)
    for offset in range(len(text) + 1):
        at = normal.position(offset)
        assert at == len(normal.text) or normal.original(at, at + 1)[0] >= offset
        assert at == 0 or normal.original(at - 1, at)[0] < offset


@pytest.mark.parametrize(("start", "end"), [(0, 0), (2, 1), (-1, 1), (0, 4)])
def test_an_empty_or_outside_match_is_an_error(start: int, end: int) -> None:
    with pytest.raises(IndexError):
        normalise("uno").original(start, end)


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "_" * 50_000, " \u200b" * 30_000, "a\u00ad\n" * 20_000, "-" * 50_000, "[a](" * 20_000]
)
def test_hostile_text_is_normalised_in_linear_time(text: str) -> None:
    assert seconds_of(lambda: normalise(text, markup=True)) < 5, (
        "tenths of a second when linear, minutes when quadratic"
    )
