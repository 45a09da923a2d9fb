"""Contracts and invoices of `evals/extraction`: values right and proved, missing ones null, near misses unverified."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.extraction.measure import Filled, fill_in, read_forms

pytestmark = pytest.mark.slow


def near_misses(filled: list[Filled]) -> list[str]:
    return [status for one in filled for status in one.statuses(list(one.form.near))]


async def test_values_are_right_quoted_and_proved(tmp_path: Path) -> None:
    filled, model = await fill_in(read_forms(), tmp_path, judge="right", careless=False)
    assert (len(filled), model.unshown) == (20, [])
    assert sum(len(one.right) for one in filled) >= 114  # .95 of 120
    assert sum(len(one.null) for one in filled) == 20


@pytest.mark.parametrize("judge", ["right", "none"])
async def test_what_is_made_up_is_null_and_a_near_miss_is_never_verified(tmp_path: Path, judge: str) -> None:
    filled, _ = await fill_in(read_forms(), tmp_path, judge=judge, careless=True)
    assert sum(len(one.null) for one in filled) == 20
    assert len(near_misses(filled)) == 35
    assert "verified" not in near_misses(filled)
