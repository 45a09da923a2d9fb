"""What the bench prints, and what it gives to programs."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from rich.console import Console

from rag_service.bench.answer import AnswerMeasurement
from rag_service.bench.ingest import IngestMeasurement
from rag_service.bench.plot import plot_rates
from rag_service.bench.report import describe_answers, describe_ingest, describe_machine, print_answers, print_ingest
from rag_service.bench.retrieval import Times, summarise
from rag_service.bench.storage import Rate, StorageMeasurement


def ingest_measurement(stock: Rate | None) -> IngestMeasurement:
    return IngestMeasurement(
        documents=2,
        chunks=90,
        tokens=9_000,
        ours=Rate(count=90, seconds=10),
        floor=Rate(count=90, seconds=9),
        stock=stock,
        parse_seconds=1.5,
    )


def times(p50: float) -> Times:
    return Times(p50=p50, p95=2 * p50, searches=10)


ANSWERS = AnswerMeasurement(
    chunks=90,
    questions=10,
    connections=8,
    processes=2,
    embedding=times(15),
    search=times(4),
    retrieval=times(7),
    answer=times(12.5),
    retrieval_rate=Rate(count=900, seconds=5),
    answer_rate=Rate(count=400, seconds=5),
    verified=9,
)


def storage_measurement(stock: Rate | None) -> StorageMeasurement:
    rate = Rate(count=100, seconds=0.5)
    return StorageMeasurement(ours=rate, ours_without_graph=rate, floor=rate, floor_without_graph=rate, stock=stock)


def printed(console: Console) -> str:
    return console.export_text()


def test_ingest_is_told_as_a_share_of_the_embedder() -> None:
    described = describe_ingest(ingest_measurement(None), storage_measurement(None))
    assert described["share_of_embedder"] == 0.9
    assert described["end_to_end"] == {"chunks": 90, "seconds": 10, "per_second": 9.0}
    assert described["stock"] is described["storage"]["stock"] is None
    console = Console(record=True, width=160)
    print_ingest(console, described)
    text = printed(console)
    assert "90% of the embedder" in text
    assert "stock" not in text


def test_answers_are_told_beside_the_search_that_they_contain() -> None:
    described = describe_answers(ANSWERS)
    assert (described["retrieval_overhead_ms"], described["answer_overhead_ms"]) == (3.0, 8.5)
    assert described["retrieval_requests_per_second"] == 180
    console = Console(record=True, width=160)
    print_answers(console, described)
    row = next(line for line in printed(console).splitlines() if "/api/v1/query/answer" in line)
    assert row.split()[-4:] == ["12.5", "25.0", "8.5", "80"]


def test_the_whole_report_is_json_and_a_picture() -> None:
    stock = Rate(count=90, seconds=30)
    described = {
        "machine": describe_machine(),
        "ingest": describe_ingest(ingest_measurement(stock), storage_measurement(stock)),
        "answer": describe_answers(ANSWERS),
        "retrieval": {
            "measurements": [
                {"chunks": 1000, "ours": {"p50": 5.0}, "floor": {"p50": 3.0}, "stock": {"p50": 50.0}},
                {"chunks": 10, "ours": {"p50": 2.0}, "floor": {"p50": 1.0}, "stock": None},
            ]
        },
    }
    assert json.loads(json.dumps(described)) == described
    svg = ElementTree.fromstring(plot_rates(described))  # noqa: S314 - our own
    bars = [element for element in svg.iter("{http://www.w3.org/2000/svg}rect") if element.get("fill") != "#ffffff"]
    assert len(bars) == 3 + 3 + 3 + 3 + 2


def test_a_picture_of_one_bench_has_no_others() -> None:
    svg = plot_rates({"answer": describe_answers(ANSWERS)})
    assert "Requests" in svg
    assert "Ingest" not in svg


def test_times_are_median_and_95th_percentile() -> None:
    assert summarise([1.0, 2.0, 3.0]) == Times(p50=2.0, p95=2.9, searches=3)
    assert Rate(count=10, seconds=4).per_second == pytest.approx(2.5)
