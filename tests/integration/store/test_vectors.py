"""Vectors as statements carry them are those that PostgreSQL would read from text."""

from __future__ import annotations

import numpy as np

from rag_service.store.dense import vector_literal
from rag_service.store.session import Database
from rag_service.store.vectors import HalfVector


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
