"""Arithmetic on figures that a model gives: the four operations, percentages and brackets, and nothing else."""

from __future__ import annotations

from decimal import Decimal

import pytest

from rag_service.answering.tools.arithmetic import calculate
from rag_service.errors import InputError


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("52 * 1.15", "59.8"),
        ("52 + 15 % * 52", "59.8"),
        ("(120 − 80) ÷ 80", "0.5"),
        ("-3 + 0.1 + 0.2", "-2.7"),
        ("2 × 3", "6"),
        ("100 / 50%", "200"),
        ("80 / 2.5 %", "3200"),
    ],
)
def test_an_expression_has_the_value_that_a_person_reckons(expression: str, value: str) -> None:
    assert calculate(expression) == Decimal(value)


@pytest.mark.parametrize(
    "expression",
    ["", "1 / 0", "2 ** 99999", "__import__('os')", "1e999", "'a' * 9", "1,5 * 2", "True + 1", "(" * 150, "9" * 500],
)
def test_everything_else_is_refused_and_not_repeated(expression: str) -> None:
    with pytest.raises(InputError) as caught:
        calculate(expression)
    assert caught.value.message.startswith("The expression takes numbers")
