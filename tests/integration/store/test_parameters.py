"""Values as statements carry them are those that PostgreSQL would read from text."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest
from psycopg.types.json import Json

from rag_service.errors import InputError
from rag_service.store.database import BigIntegers, Database, HalfVector
from tests.conftest import vector_literal


async def test_a_bound_vector_is_the_one_that_its_text_gives(database: Database) -> None:
    values = np.random.default_rng(4).standard_normal(384).astype(np.float32)
    values[:4] = (0.0, -0.0, 60_000, 6e-8)
    async with database.transaction(None) as connection:
        cursor = await connection.execute(
            "SELECT %s::halfvec::text, %s::halfvec::text",
            [HalfVector(values.tolist()), vector_literal(values.tolist())],
        )
        row = await cursor.fetchone()
    assert row is not None
    bound, written = (np.array(text[1:-1].split(","), dtype=np.float64) for text in row)
    assert np.allclose(bound, values, rtol=2**-11, atol=2**-25)
    assert np.allclose(bound, written, rtol=2**-10, atol=2**-24)


@pytest.mark.parametrize("values", [[], [0], [1, -1, 40_000, 2**40, 2**63 - 1, -(2**63)]], ids=["none", "one", "many"])
async def test_bound_ids_are_a_bigint_array(database: Database, values: list[int]) -> None:
    async with database.transaction(None) as connection:
        cursor = await connection.execute(
            "SELECT ids, pg_typeof(ids)::text, 7 = ANY(ids) FROM (SELECT %s AS ids) AS given", [BigIntegers(values)]
        )
        assert await cursor.fetchone() == (values, "bigint[]", False)


async def test_json_is_read_as_it_was_written(database: Database) -> None:
    written = {"text": "naïve \u0000", "numbers": [1, -2.5, 1e300], "nothing": None, "nested": {"yes": True}}
    async with database.transaction(None) as connection:
        cursor = await connection.execute("SELECT %s::json", [Json(written)])
        assert await cursor.fetchone() == (written,)


@pytest.mark.parametrize("text", ["a\0b", "a\udcff"])  # the latter: an argument of a command that is not UTF-8
async def test_a_text_that_the_database_cannot_hold_is_an_error_of_the_caller(database: Database, text: str) -> None:
    with pytest.raises(InputError, match="NUL"):
        async with database.transaction(None) as connection:
            await connection.execute("SELECT %s::text", [text])
    with pytest.raises(psycopg.DataError):
        async with database.transaction(None) as connection:
            await connection.execute("SELECT 'a'::int")
