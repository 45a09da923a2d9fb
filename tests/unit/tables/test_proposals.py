"""An operation that somebody asks for becomes one of the closed set, or is refused."""

from __future__ import annotations

import pytest

from rag_service.answering.tools.definitions import ComputeTable
from rag_service.errors import InputError
from rag_service.tables.asking.proposals import (
    COMPARISONS,
    OPERATIONS,
    AskedCondition,
    AskedOperation,
    describe_tables,
    read_operation,
)
from tests.unit.tables.test_planning import stored, write

SQL = "'; DROP TABLE rag.tables; --"


def ask(operation: str, **given: object) -> AskedOperation:
    filters = [AskedCondition(column=a, comparison=b, values=c) for a, b, c in given.pop("filters", ())]  # type: ignore[attr-defined]
    return AskedOperation(operation=operation, filters=filters, **given)  # type: ignore[arg-type]


def test_an_operation_is_read_with_columns_by_name_or_letter() -> None:
    tents = [stored("tents.csv")]
    by_name = ask("sum", column="stock", filters=[("Warehouse", "=", ["Lyon"])])
    by_letter = ask("sum", column="E", filters=[("F", "=", ["Lyon"])])
    assert write(read_operation(by_name, tents)) == "sum Stock where Warehouse = Lyon"
    assert read_operation(by_letter, tents) == read_operation(by_name, tents)


@pytest.mark.parametrize(
    "asked",
    [
        ask("sum", column="Z"),
        ask("sum", column=SQL),
        ask("sum", column="Stock", sheet="Sheet 2"),
        ask("drop"),
        ask("mixed", column="Stock"),
        ask("mean", column="Model"),
        ask("difference", column="Stock"),
        ask("lookup", column="Stock"),
        ask("count", filters=[("C", ">", ["NaN"])]),
        ask("count", filters=[("C", ">", ["1e999999"])]),
        ask("count", filters=[("C", ">", ["1e-999999"])]),
        ask("count", filters=[("C", ">", ["1 OR 1=1"])]),
        ask("count", filters=[("A", ">", ["x"])]),
        ask("count", filters=[("A", "LIKE", ["x"])]),
        ask("count", group="Warehouse", best="DESC"),
    ],
)
def test_what_cannot_be_done_is_refused_and_not_repeated(asked: AskedOperation) -> None:
    with pytest.raises(InputError) as caught:
        read_operation(asked, [stored("tents.csv")])
    assert SQL not in caught.value.message


def test_a_description_names_every_column_with_examples() -> None:
    table = stored("tents.csv")
    told = describe_tables([table], {table.id: {0: {"alpina 2": "Alpina 2"}}})
    assert "- A: Model (text), such as Alpina 2" in told
    assert all(column.name in told for column in table.columns)


def test_the_tool_offers_the_operations_and_comparisons_that_there_are() -> None:
    schema = ComputeTable.model_json_schema()
    assert schema["properties"]["operation"]["enum"] == [*OPERATIONS, "calculate"]
    assert schema["$defs"]["Condition"]["properties"]["comparison"]["enum"] == list(COMPARISONS)


@pytest.mark.parametrize("column", ["Weight (kg)", "weight", "Weight [kg]", "C"])
def test_a_column_is_found_with_or_without_its_unit(column: str) -> None:
    plan = read_operation(ask("mean", column=column), [stored("tents.csv")])
    assert write(plan) == "mean Weight"


def test_two_columns_of_one_kind_are_compared() -> None:
    plan = read_operation(ask("count", filters=[("In stock", "<", ["Minimum"])]), [stored("tools.csv")])
    (condition,) = plan.filters
    assert (condition.other, condition.values) == (2, ())
    with pytest.raises(InputError, match="their kinds differ"):
        read_operation(ask("count", filters=[("Stock", "<", ["Price"])]), [stored("tents.csv")])


def test_empty_and_unequal_cells_are_conditions() -> None:
    conditions = [("Stock", "empty", []), ("Stock", "not empty", []), ("Type", "!=", ["family"])]
    plan = read_operation(ask("count", filters=conditions), [stored("tents.csv")])
    assert write(plan) == "count where Stock empty  and other Stock empty  and other Type = family"


def test_a_refusal_says_which_value_and_column_it_refuses_and_what_is_near() -> None:
    tents = [stored("tents.csv")]
    with pytest.raises(InputError, match="Value 2 for “Stock” is not a number"):
        read_operation(ask("count", filters=[("Stock", "between", ["1", "many"])]), tents)
    with pytest.raises(InputError, match="The nearest is “Warehouse”"):
        read_operation(ask("count", group="Warehouses of"), tents)
