"""The data files of the languages: complete, folded where they are compared folded, with clear errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_service.errors import DefinitionError
from rag_service.language.languages import language_codes, languages_of, load_language, read_language
from rag_service.language.words import fold


@pytest.mark.parametrize("code", language_codes())
def test_words_that_are_compared_folded_are_folded(code: str) -> None:
    language = load_language(code)
    proof = language.proof
    lists = [
        language.stop_words,
        language.detection.frequent_words,
        language.detection.typical_words,
        proof.function_words,
        proof.negations,
        *proof.months,
        *proof.weekdays,
        proof.conditions,
        proof.reporting,
        *(side for sides in proof.opposites.values() for side in sides),
        *proof.numbers.values(),
        *proof.units.values(),
    ]
    assert [word for words in lists for word in words if fold(word) != word] == []
    assert len(language.detection.typical_words) > 1000


@pytest.mark.parametrize("code", language_codes())
def test_a_calendar_is_complete(code: str) -> None:
    proof = load_language(code).proof
    assert len(proof.months) == 12
    assert len(proof.weekdays) == 7


def test_every_language_names_known_opposites_and_units() -> None:
    every = [load_language(code).proof for code in language_codes()]
    assert all(proof.opposites.keys() <= every[0].opposites.keys() for proof in every)
    assert all(proof.units.keys() <= every[0].units.keys() for proof in every)


def test_unknown_languages_stand_for_all() -> None:
    assert [language.name for language in languages_of("es")] == ["Spanish"]
    assert languages_of(None) == languages_of("xx") == tuple(map(load_language, language_codes()))


def test_a_missing_entry_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "xx.toml"
    file.write_text('name = "Test"\nstemmer = "english"\nstop_words = "a b"\n', encoding="utf-8")
    with pytest.raises(DefinitionError, match=f"{re.escape(str(file))}.*detection"):
        read_language(file)
    file.write_text("stop_words = [1]", encoding="utf-8")
    with pytest.raises(DefinitionError, match=re.escape(str(file))):
        read_language(file)
    with pytest.raises(DefinitionError, match=re.escape(str(tmp_path / "yy.toml"))):
        read_language(tmp_path / "yy.toml")
