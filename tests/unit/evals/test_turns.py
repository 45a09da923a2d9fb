"""Ways to search are measured by turns, each question once."""

from __future__ import annotations

import numpy as np

from evals.benchmarks.corpus import BenchQuery
from evals.benchmarks.retrieval import WARM_UP, Search, take_turns
from evals.benchmarks.timing import Times, summarise


def questions(count: int) -> list[BenchQuery]:
    return [BenchQuery(text=str(number), vector=np.zeros(2, np.float32)) for number in range(count)]


def way(name: str, order: list[tuple[str, str]], cost: dict[str, float]) -> Search:
    async def search(query: BenchQuery) -> float:
        order.append((name, query.text))
        return cost[name]

    return search


async def test_each_question_counts_once_and_ways_take_turns() -> None:
    order: list[tuple[str, str]] = []
    cost = {"ours": 2.0, "stock": 40.0}
    asked = questions(20)
    times = await take_turns({name: (way(name, order, cost), asked[: 20 if name == "ours" else 7]) for name in cost})
    assert (times["ours"].count, times["ours"].p50) == (20, 2.0)
    assert (times["stock"].count, times["stock"].p95) == (7, 40.0)
    changes = [name for place, (name, _) in enumerate(order) if not place or order[place - 1][0] != name]
    assert changes == ["ours", "stock"] * 5
    assert {text for name, text in order if name == "ours"} == {query.text for query in asked}
    assert len(order) == 20 + 7 + 5 * (WARM_UP + 7)  # with those that do not count


async def test_fewer_questions_than_turns_are_enough() -> None:
    order: list[tuple[str, str]] = []
    times = await take_turns({"ours": (way("ours", order, {"ours": 1.0}), questions(2)), "none": (way("", [], {}), [])})
    assert times["ours"].count == 2
    assert "none" not in times


def test_times_are_median_and_95th_percentile() -> None:
    assert summarise([1.0, 2.0, 3.0]) == Times(p50=2.0, p95=2.9, count=3)
