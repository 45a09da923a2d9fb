"""The table of failures in the reference names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AT_LEAST = 25  # failures


def rows() -> list[list[str]]:
    """Cells of the table's rows: failure, what users see, what recovers it, test."""
    text = (ROOT / "docs" / "reference" / "failures.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return lines[1:]  # without the header


def test_it_has_enough_rows_each_complete_and_different() -> None:
    assert len(rows()) >= AT_LEAST
    assert {len(row) for row in rows()} == {4}
    assert all(cell.strip() for row in rows() for cell in row)
    assert len({row[0] for row in rows()}) == len(rows())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_its_test_exists(row: list[str]) -> None:
    found = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)(?:\[(.+)\])?`", row[3])
    assert found, f"{row[3]} is not `path::name` or `path::name[case]`"
    path, name, case = found.groups()
    source = (ROOT / path).read_text(encoding="utf-8")
    functions = {
        node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert name in functions
    assert case is None or f'"{case}"' in source
