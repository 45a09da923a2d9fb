"""Filter trees: SQL agrees with an evaluation in Python under hostile values, and never fails on a cast."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_service.domain import LOCAL_ADMIN, Condition, ConditionGroup, Filters, FilterTree, Operator
from rag_service.errors import InputError
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.search.conditions import check_tree, matches, tree_sql
from rag_service.store.search.scope import check_fields, resolve_scope
from tests.conftest import cloned_database

FIELDS = ("year", "topic", "tags", "no'; DROP TABLE rag.documents; --", "%(filter0)s", "title")
TEXTS = (
    "a", "A", "", "2023", "2023.0", "1e3", "-5", "1e999999", "9" * 200, "0x10", "NaN", "Infinity", "true", "null",
    "2024-05-31", "2024-13-45", "2024-05-31T10:00:00", "2024-05-31T10:00:00+02:00", "0000-00-00", "2024-05-31 extra",
    "nobody' OR '1'='1", "%(x)s %s {0} $1", "\\", "100%", "_", "naïve 日本語 🦙", "{a,b}", '["x"]',
)  # fmt: skip
SCALARS = st.one_of(
    st.sampled_from(TEXTS),
    st.integers(-(10**20), 10**20),
    st.integers(2020, 2026),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)
STORED = st.one_of(SCALARS, st.none(), st.lists(SCALARS, max_size=3))
RANGES = (Operator.GREATER, Operator.GREATER_OR_EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL)
LISTS = (Operator.IN, Operator.NOT_IN, Operator.ANY, Operator.ALL)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    operator = draw(st.sampled_from(list(Operator)))
    value: Any = None
    if operator in LISTS:
        value = tuple(draw(st.lists(SCALARS, max_size=3)))
    elif operator in RANGES:
        value = draw(st.one_of(st.integers(2020, 2026), st.floats(-1e6, 1e6), st.just("2024-05-31T09:00:00Z")))
    elif operator.startswith("text_match"):
        value = draw(st.sampled_from(TEXTS))
    elif operator is not Operator.IS_EMPTY:
        value = draw(SCALARS)
    return Condition(field=draw(st.sampled_from(FIELDS)), operator=operator, value=value)


TREES: st.SearchStrategy[FilterTree] = st.recursive(
    conditions(),
    lambda parts: st.builds(
        lambda combine, items: ConditionGroup(combine=combine, parts=tuple(items)),
        st.sampled_from(["and", "or", "not"]),
        st.lists(parts, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


def values_of(document: Mapping[str, Any], field: str) -> list[Any]:
    value = document.get(field)
    return value if isinstance(value, list) else [value]


@pytest.fixture(scope="module")
def connection(postgres: EmbeddedServer) -> Any:
    """One connection of the owner with an empty corpus; each example rolls back what it stored."""
    with cloned_database(postgres) as server, psycopg.connect(server.owner_conninfo) as opened:
        opened.execute("SET search_path = rag, public")
        opened.execute(
            "INSERT INTO corpora (id, name, kind, owner_id, index_name) VALUES (%s, 'c', 'personal', %s, 'general')",
            [UUID(int=1), LOCAL_ADMIN.user_id],
        )
        opened.commit()
        yield opened


@given(documents=st.lists(st.dictionaries(st.sampled_from(FIELDS[:-1]), STORED), min_size=1, max_size=4), tree=TREES)
# PostgreSQL writes all digits of such a number, Python writes its exponent.
@example(
    documents=[{"year": 1.1935782999494389e-67}], tree=Condition(field="year", operator=Operator.GREATER, value=0.0)
)
@example(documents=[{"year": 1e-50}], tree=Condition(field="year", operator=Operator.TEXT_MATCH, value="-5"))
def test_sql_finds_what_python_finds(
    connection: psycopg.Connection[Any], documents: list[dict[str, Any]], tree: FilterTree
) -> None:
    check_tree(tree)
    expected = set()
    try:
        for document in documents:
            document_id = uuid4()
            connection.execute(
                "INSERT INTO documents (id, corpus_id, name, title, content_hash, fingerprint, fields)"
                " VALUES (%s, %s, %s, 'title of all', '', '', %s)",
                [document_id, UUID(int=1), str(document_id), json.dumps(document)],
            )
            held = {"title": "title of all", **document}
            if matches(tree, lambda field, held=held: values_of(held, field)):  # type: ignore[misc]
                expected.add(document_id)
        parameters: dict[str, Any] = {}
        found = connection.execute(f"SELECT d.id FROM documents d WHERE {tree_sql(tree, parameters)}", parameters)
        assert {row[0] for row in found} == expected
    finally:
        connection.rollback()


@pytest.mark.parametrize("operator", ["==", "all", "text_match", "text_match_insensitive"])
def test_an_attack_string_as_a_value_is_a_value(connection: psycopg.Connection[Any], operator: str) -> None:
    """Generated trees seldom ask for a text that both tells SQL something and stands in a document."""
    try:
        for text in TEXTS:
            connection.execute(
                "INSERT INTO documents (id, corpus_id, name, title, content_hash, fingerprint, fields)"
                " VALUES (%s, %s, %s, '', '', '', %s)",
                [uuid4(), UUID(int=1), f"n{text}", json.dumps({"topic": text})],
            )
        for text in TEXTS:
            wanted = Condition(field="topic", operator=Operator(operator), value=(text,) if operator == "all" else text)
            parameters: dict[str, Any] = {}
            query = f"SELECT d.name FROM documents d WHERE {tree_sql(wanted, parameters)}"
            expected = {f"n{other}" for other in TEXTS if held(wanted.operator, wanted.value, other)}
            assert {name for (name,) in connection.execute(query, parameters)} == expected, text
    finally:
        connection.rollback()


def held(operator: Operator, value: Any, *stored: Any) -> bool:
    return matches(Condition(field="f", operator=operator, value=value), lambda _: stored)


@pytest.mark.parametrize(
    ("operator", "value", "stored", "expected"),
    [
        (Operator.EQUAL, 2023, ["2023.0"], True),
        (Operator.EQUAL, "2023", ["2023.0"], False),
        (Operator.EQUAL, True, ["True"], True),
        (Operator.NOT_EQUAL, "a", [], True),
        (Operator.NOT_EQUAL, "a", ["b", "a"], False),
        (Operator.GREATER, 9, ["10"], True),  # as text, "10" comes first
        (Operator.GREATER, 9, ["ten"], False),
        (Operator.LESS, "2024-05-31", ["2024-05-31T00:30:00+02:00"], True),  # 22:30 UTC of the day before
        (Operator.GREATER_OR_EQUAL, "2024-05-31", ["31/05/2024"], False),
        (Operator.IN, ("a", 5), ["5"], True),
        (Operator.NOT_IN, ("a", 5), ["5"], False),
        (Operator.ANY, ("a", "b"), ["b", "c"], True),
        (Operator.ALL, ("a", "b"), ["b", "c"], False),
        (Operator.ALL, ("b", "c"), ["b", "c", "d"], True),
        (Operator.CONTAINS, "b", ["b", "c"], True),
        (Operator.TEXT_MATCH, "ell", ["Hello"], True),
        (Operator.TEXT_MATCH, "ELL", ["Hello"], False),
        (Operator.TEXT_MATCH_INSENSITIVE, "ELL", ["Hello"], True),
        (Operator.IS_EMPTY, None, [], True),
        (Operator.IS_EMPTY, None, [""], True),
        (Operator.IS_EMPTY, None, ["x"], False),
    ],
)
def test_each_operator_means_what_its_name_says(
    operator: Operator, value: Any, stored: list[Any], expected: bool
) -> None:
    assert held(operator, value, *stored) is expected


def group(combine: Any, *parts: FilterTree) -> ConditionGroup:
    return ConditionGroup(combine=combine, parts=parts)


EASY = Condition(field="year", operator=Operator.EQUAL, value=1)


@pytest.mark.parametrize(
    ("tree", "place"),
    [
        (Condition(field="", operator=Operator.EQUAL, value=1), "filter.field"),
        (Condition(field="year", operator=Operator.GREATER, value="soon"), "filter.value"),
        (Condition(field="year", operator=Operator.GREATER, value=True), "filter.value"),
        (Condition(field="year", operator=Operator.EQUAL, value=float("nan")), "filter.value"),
        (Condition(field="year", operator=Operator.EQUAL, value="a\0b"), "filter.value"),
        (Condition(field="year", operator=Operator.EQUAL, value="\ud800"), "filter.value"),
        (Condition(field="year", operator=Operator.EQUAL, value="x" * 1001), "filter.value"),
        (Condition(field="year", operator=Operator.EQUAL), "filter.value"),
        (Condition(field="year", operator=Operator.IN, value="a"), "filter.value"),
        (Condition(field="year", operator=Operator.EQUAL, value=("a",)), "filter.value"),
        (Condition(field="year", operator=Operator.TEXT_MATCH, value=1), "filter.value"),
        (
            group("and", EASY, group("or", Condition(field="y", operator=Operator.LESS, value="x"))),
            "filter.and[1].or[0].value",
        ),
        (group("or"), "filter.or"),
        (group("and", *[EASY] * 51), "filter"),
        (group("or", *[Condition(field="year", operator=Operator.ALL, value=tuple(range(500)))] * 2, EASY), "filter"),
        (
            group("and", group("and", group("and", group("and", group("and", group("and", EASY)))))),
            "filter.and[0].and[0].and[0].and[0].and[0]",
        ),
    ],
)
def test_a_wrong_filter_is_refused_with_its_place(tree: FilterTree, place: str) -> None:
    with pytest.raises(InputError) as caught:
        check_tree(tree)
    assert caught.value.field == place


@pytest.mark.parametrize("operator", [*LISTS, Operator.EQUAL, Operator.NOT_EQUAL])
@pytest.mark.parametrize("nodes", [None, "c"])
def test_a_statement_does_not_grow_with_the_values_of_a_filter(operator: Operator, nodes: str | None) -> None:
    def statement(count: int) -> tuple[str, int]:
        parameters: dict[str, Any] = {}
        values = (True, *range(count), *map(str, range(count)))
        tree = Condition(field="year", operator=operator, value=values if operator in LISTS else values[-1])
        return tree_sql(tree, parameters, nodes=nodes), len(parameters)

    assert statement(300) == statement(1)


def test_undeclared_fields_are_refused_and_built_in_ones_are_not() -> None:
    check_fields(Filters(where=group("and", EASY, Condition(field="updatedAt", operator=Operator.IS_EMPTY))), {"year"})
    with pytest.raises(InputError, match="no filter field 'colour'") as caught:
        check_fields(Filters(where=group("not", Condition(field="colour", operator=Operator.IS_EMPTY))), {"year"})
    assert caught.value.field == "filter"
    assert "The filter fields are: createdAt, " in str(caught.value) and str(caught.value).endswith(" updatedAt, year.")


def test_moments_of_documents_are_compared_as_moments(connection: psycopg.Connection[Any]) -> None:
    try:
        connection.execute(
            "INSERT INTO documents (corpus_id, name, title, content_hash, fingerprint, updated_at)"
            " VALUES (%s, 'n', 't', '', '', %s)",
            [UUID(int=1), datetime(2024, 5, 31, 12, tzinfo=UTC)],
        )
        for operator, value, expected in (
            (Operator.GREATER, "2024-05-31T13:30:00+02:00", 1),
            (Operator.GREATER, "2024-05-31T14:30:00+02:00", 0),
            (Operator.LESS, "2024-06-01", 1),
        ):
            parameters: dict[str, Any] = {}
            tree = Condition(field="updatedAt", operator=operator, value=value)
            found = connection.execute(f"SELECT FROM documents d WHERE {tree_sql(tree, parameters)}", parameters)
            assert found.rowcount == expected
    finally:
        connection.rollback()


async def test_the_largest_filter_is_quick_and_the_connection_keeps_none_of_it(
    database_server: EmbeddedServer,
) -> None:
    numbers = [tuple(part + 0.5 for part in range(start, start + 20)) for start in range(0, 1000, 20)]
    tree = group("or", *[Condition(field="tags", operator=Operator.ALL, value=values) for values in numbers])
    check_tree(tree)
    with psycopg.connect(database_server.owner_conninfo, options="-c search_path=rag,public") as connection:
        connection.execute(
            "INSERT INTO corpora (id, name, kind, owner_id, index_name) VALUES (%s, 'c', 'personal', %s, 'general')",
            [UUID(int=1), LOCAL_ADMIN.user_id],
        )
        connection.execute(
            "INSERT INTO documents (corpus_id, name, title, content_hash, fingerprint, chunk_count, fields)"
            " SELECT %s, number, 't', '', '', 1, jsonb_build_object('tags', jsonb_build_array(number, 'a'))"
            " FROM generate_series(1, 100) AS number",
            [UUID(int=1)],
        )
    database = Database(database_server.service_conninfo, pool_size=1, timeout=5, search_timeout=10.0)
    await database.open()
    try:
        for _ in range(7):  # psycopg prepares the sixth
            async with database.transaction(LOCAL_ADMIN, limited=True) as searching:
                scope = await resolve_scope(searching, Filters(where=tree))
                assert (scope.chunk_count, scope.reachable) == (0, 0)
        async with database.transaction(LOCAL_ADMIN) as after:
            kept = await after.execute("SELECT statement FROM pg_prepared_statements")
            assert [statement for (statement,) in await kept.fetchall() if "jsonb_" in statement] == []
    finally:
        await database.close()
