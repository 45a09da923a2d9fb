"""Each input of `tests/golden` is read as the text beside it says; `python -m tests.golden --write` rewrites them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import FOLDER, expectation, inputs, read

_INPUTS = inputs()


@pytest.mark.parametrize("path", _INPUTS, ids=[path.relative_to(FOLDER).as_posix() for path in _INPUTS])
def test_a_file_is_read_as_the_text_beside_it_says(path: Path) -> None:
    assert read(path) == expectation(path).read_text(encoding="utf-8")


def test_every_expectation_has_its_input_and_all_are_small() -> None:
    files = {path for path in FOLDER.glob("*/*") if path.is_file() and "__pycache__" not in path.parts}
    assert files == {*_INPUTS, *map(expectation, _INPUTS)}
    assert len(_INPUTS) >= 120
    assert sum(path.stat().st_size for path in files) < 1_500_000
