"""The plan: arithmetic that can be done by hand, and limits in the order in which they are met."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_service.bench import plan as planning
from rag_service.bench.growth import Step
from rag_service.bench.growth_report import describe_growth
from rag_service.bench.plan import Basis, Demand, Machine, Measured, bytes_a_chunk, make_plan, read_measured
from rag_service.bench.retrieval import Times
from rag_service.bench.storage import Rate
from rag_service.cli import main
from rag_service.definitions import QueryDefinition
from rag_service.store.search import dense
from rag_service.store.session import SETTINGS
from tests.documents import GUIDES

ROUND = Measured(
    chunks=1_000,
    bytes_a_chunk={"chunks": 2_000, "vector index": 1_000, "postings": 900, "statistics": 100},
    search_p95=10.0,
    search_law=0.5,
    index_seconds=0.001,
    store_rate=100.0,
    embed_rate=10.0,
    embed_share=0.5,
    searches_a_core=25.0,
)
SMALL = Machine(cores=4, memory_gb=1, disk_gb=100, core_price=10, memory_price=5, disk_price=1, core_hour_price=0.1)


def step(chunks: int) -> Step:
    return Step(
        chunks=chunks,
        tenant_chunks=chunks // 100,
        row_seconds=1.0,
        index_seconds=chunks / 500,
        tenant=Times(p50=5, p95=9, searches=10),
        everything=Times(p50=math.sqrt(chunks), p95=2 * math.sqrt(chunks), searches=10),
        tenant_recall=1.0,
        everything_recall=1.0,
        write=Rate(count=300, seconds=2.0),
        sizes={"chunks": 2_000 * chunks, "vector index": 800 * chunks, "postings": 500 * chunks, "statistics": chunks},
        api_memory=None,
        database_memory=None,
    )


def test_sizes_shards_times_and_costs_are_what_one_computes_by_hand() -> None:
    demand = Demand(chunks=1_000_000, largest_corpus=0.5, searches=50, days=10, replicas=2)
    plan = make_plan(demand, SMALL, ROUND)
    assert plan.value("all tables and indexes") == pytest.approx(4.0)  # GB
    assert plan.value("vector graph, in memory whole") == pytest.approx(1.0)
    assert plan.value("memory wanted") == pytest.approx(1.0 + 0.3 * 3.0)
    assert plan.value("shards") == 3  # 1.9 GB over 0.75 GB each
    assert plan.value("database machines, replicas too") == 9
    assert plan.value("search of a whole shard, p95") == pytest.approx(10 * math.sqrt(1_000_000 / 3 / 1_000))
    assert plan.value("cores for searches") == 2
    assert plan.value("embedding once") == pytest.approx(1_000_000 / 5 / 3600)
    assert plan.value("cores on Ray for that") == pytest.approx(1_000_000 / 5 / 3600 / 240)
    assert plan.value("writing possible") == 3 * 2 * 100
    assert plan.value("largest corpus, by its one writer") == pytest.approx(500_000 / 100 / 86_400)
    assert plan.value("database machines") == 9 * (4 * 10 + 1 * 5 + 100 * 1)
    assert plan.value("embedding") == pytest.approx(1_000_000 / 5 / 3600 * 0.1)


def test_the_disk_can_ask_for_more_shards_than_the_memory() -> None:
    plan = make_plan(Demand(chunks=1_000_000), Machine(memory_gb=1_000, disk_gb=2), ROUND)
    assert plan.value("shards") == 4  # 4 GB and as much again in reserve


def test_a_longer_vector_costs_two_bytes_a_number_in_the_row_and_in_the_graph() -> None:
    longer = bytes_a_chunk(ROUND, 1_024)
    assert longer["chunks"] - 2_000 == longer["vector index"] - 1_000 == 2 * (1_024 - 384)
    assert longer["postings"] == 900


def test_limits_stand_in_the_order_in_which_they_are_met() -> None:
    plan = make_plan(Demand(chunks=10**9), SMALL, ROUND)
    sizes = [limit.chunks for limit in plan.limits]
    assert sizes == sorted(sizes)
    assert [limit.chunks < 10**9 for limit in plan.limits] == [limit in plan.beyond for limit in plan.limits]
    named = {limit.what.split(" ")[0]: limit for limit in plan.limits}
    assert named["search"].chunks == pytest.approx(1_000 * (100 / 10) ** 2)
    assert named["building"].chunks == pytest.approx(86_400 / 0.001)
    assert not make_plan(Demand(chunks=1_000), SMALL, ROUND).beyond


def test_beyond_what_was_measured_a_figure_is_called_extrapolated() -> None:
    def basis(chunks: int) -> Basis:
        return make_plan(Demand(chunks=chunks), SMALL, ROUND).lines[0].basis

    assert (basis(1_000), basis(1_001)) == (Basis.MEASURED, Basis.EXTRAPOLATED)


def test_the_limits_of_the_search_are_those_of_its_code() -> None:
    assert planning.SMALLEST_IN_GRAPH == dense.EXACT_SCAN_LIMIT
    assert int(SETTINGS["hnsw.max_scan_tuples"]) == planning.MOST_SCANNED
    assert QueryDefinition.model_fields["candidates"].default == planning.CANDIDATES


def test_it_reads_what_bench_growth_prints() -> None:
    described = json.loads(json.dumps(describe_growth([step(1_000), step(4_000), step(2_000)])))
    measured = read_measured(described)
    assert measured.chunks == 4_000
    assert measured.bytes_a_chunk == {"chunks": 2_000, "vector index": 800, "postings": 500, "statistics": 1}
    assert measured.search_p95 == pytest.approx(2 * math.sqrt(4_000))
    assert measured.search_law == pytest.approx(0.5)
    assert (measured.index_seconds, measured.store_rate) == (pytest.approx(0.002), 150.0)


@pytest.mark.parametrize("content", ["{}", "[]", "3", '{"steps": []}', '{"steps": [{"chunks": 5}]}', "no JSON"])
def test_a_file_that_is_no_measurement_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "growth.json"
    file.write_text(content, encoding="utf-8")
    outcome = CliRunner().invoke(main, ["bench", "plan", "--measured", str(file)])
    assert outcome.exit_code == 1
    assert "JSON" in outcome.output or "bench growth --json" in outcome.output
    assert "Traceback" not in outcome.output


def test_the_command_prints_tables_or_json_and_takes_measured_figures(tmp_path: Path) -> None:
    file = tmp_path / "growth.json"
    file.write_text(json.dumps(describe_growth([step(1_000), step(2_000)])), encoding="utf-8")
    said = CliRunner().invoke(main, ["bench", "plan", "--chunks", "2000000", "--measured", str(file)]).output
    for shown in ("2,000,000 chunks", "What breaks first", "extrapolated", "assumed", "way out"):
        assert shown in said, said
    arguments = ["bench", "plan", "--chunks", "2000000", "--memory", "1", "--measured", str(file), "--json"]
    described = json.loads(CliRunner().invoke(main, arguments).output)
    found = {line["what"]: line["value"] for line in described["lines"]}
    assert found["all tables and indexes"] == pytest.approx(2_000_000 * 3_301 / 1e9)
    assert described["demand"]["chunks"] == 2_000_000
    assert len(described["beyond"]) < len(described["limits"])


def test_a_search_that_does_not_grow_is_never_too_slow() -> None:
    flat = Measured(search_law=0.0)
    slow = next(limit for limit in make_plan(Demand(chunks=10**9), SMALL, flat).limits if "100 ms" in limit.what)
    assert math.isinf(slow.chunks)


def test_the_guide_tells_the_figures_that_the_plan_computes_with() -> None:
    guide = (GUIDES / "scaling.md").read_text(encoding="utf-8")
    for part, size in Measured().bytes_a_chunk.items():
        assert f"| {size:,.0f} |" in guide, part
    plan = make_plan(Demand(chunks=10**9))
    assert f"{plan.value('shards'):.0f} shards of {plan.value('chunks of a shard') / 1e6:.0f} million" in guide
    assert f"{plan.value('all tables and indexes') / 1000:.0f} TB" in guide
    told = [float(number) for number in re.findall(r"^\| ([\d.]+) (?:million|billion) \|", guide, re.MULTILINE)]
    scale = [1e9 if "billion" in row else 1e6 for row in re.findall(r"^\| [\d.]+ \w+illion", guide, re.MULTILINE)]
    met = [limit.chunks for limit in plan.limits if limit.chunks < 1e11]
    assert [number * unit for number, unit in zip(told, scale, strict=True)] == pytest.approx(met, rel=0.3)
