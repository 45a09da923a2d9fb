"""A reply of a chat model becomes an operation of the closed set, or is refused."""

from __future__ import annotations

import json

import pytest

from rag_service.tables.asking.proposals import ProposalError, read_proposal
from tests.unit.tables.test_planning import stored, write

SQL = "'; DROP TABLE rag.tables; --"


def test_an_operation_is_read_with_its_columns_and_filters() -> None:
    warehouse = {"column": "1F", "comparison": "=", "values": ["Lyon"]}
    reply = json.dumps({"operation": "sum", "table": 1, "column": "1E", "filters": [warehouse]})
    plan = read_proposal(reply, [stored("tents.csv")])
    assert plan is not None
    assert write(plan) == "sum Stock where Warehouse = Lyon"


@pytest.mark.parametrize(
    "reply",
    [
        SQL,
        "[]",
        '{"operation": "sum", "table": 2, "column": "1E"}',
        '{"operation": "sum", "table": 1, "column": "1Z"}',
        '{"operation": "sum", "table": 1, "column": "E); DROP TABLE tables"}',
        '{"operation": "drop", "table": 1}',
        '{"operation": "mean", "table": 1, "column": "1A"}',
        '{"operation": "difference", "table": 1, "column": "1E"}',
        '{"operation": "lookup", "table": 1, "column": "1E"}',
        '{"operation": "count", "table": 1, "filters": [{"column": "1C", "comparison": ">", "values": ["NaN"]}]}',
        '{"operation": "count", "table": 1, "filters": [{"column": "1C", "comparison": ">", "values": ["1 OR 1=1"]}]}',
        '{"operation": "count", "table": 1, "filters": [{"column": "1A", "comparison": ">", "values": ["x"]}]}',
        '{"operation": "count", "table": 1, "where": "1=1"}',
    ],
)
def test_what_cannot_be_done_is_refused(reply: str) -> None:
    with pytest.raises(ProposalError):
        read_proposal(reply, [stored("tents.csv")])
