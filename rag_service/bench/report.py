"""The bench's table and JSON, and what it took to load."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from rag_service.bench.answer import AnswerMeasurement
from rag_service.bench.ingest import IngestMeasurement
from rag_service.bench.load import Loaded
from rag_service.bench.retrieval import Bench, Measurement, Times
from rag_service.bench.storage import Rate, StorageMeasurement


def describe_machine() -> dict[str, Any]:
    """What figures depend on: cores that this process may use, gigabytes of memory, the interpreter."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cores": cores, "memory_gb": round(memory / 1e9), "python": platform.python_version()}


def describe_bench(bench: Bench, found: Sequence[Measurement], *, embedding_ms: float | None) -> dict[str, Any]:
    """Everything as `--json` prints it."""
    loaded = bench.loaded
    return {
        "chunks": len(bench.corpus.texts),
        "dimension": int(bench.corpus.vectors.shape[1]),
        "words_of_a_question": bench.words,
        "load": {
            "seconds": _rounded(loaded.seconds),
            "chunks_per_second": _rounded(loaded.speed),
            "finish_seconds": _rounded(loaded.finish_seconds),
        },
        "embedding_ms": embedding_ms,
        "sequential_scans": bench.seq_scans,
        "measurements": [{**asdict(row), "speed_up": _rounded(row.speed_up)} for row in found],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def print_bench(console: Console, described: Mapping[str, Any], found: Sequence[Measurement], loaded: Loaded) -> None:
    """One row per selectivity; milliseconds are p50 / p95."""
    title = (
        f"{described['chunks']:,} chunks, questions of {described['words_of_a_question']} words, milliseconds p50 / p95"
    )
    table = Table(title=title, box=box.SIMPLE_HEAD)
    columns = (
        "reachable",
        "chunks",
        "ours, hybrid",
        "bare SQL",
        "stock, hybrid",
        "faster",
        "dense R@10",
        "BM25 top 10",
    )
    for column in columns:
        table.add_column(column, justify="right")
    for row in found:
        table.add_row(
            row.selectivity,
            f"{row.chunks:,}",
            _times(row.ours),
            _times(row.floor),
            _times(row.stock),
            "" if row.speed_up is None else f"{row.speed_up:.0f}×",
            f"{row.dense_recall:.3f}",
            f"{row.lexical_overlap:.3f}",
        )
    console.print(table)
    for row in found:
        steps = ", ".join(f"{step} {spent:g}" for step, spent in row.steps.items())
        console.print(f"{row.selectivity}: median ms of the steps: {steps}", style="dim")
    if loaded.speed is not None:
        console.print(
            f"Loaded {loaded.speed:.0f} chunks/s; index and order took {loaded.finish_seconds:.0f} s.",
            style="dim",
        )
    if described["embedding_ms"] is not None:
        console.print(f"Embedding a question, not counted above: {described['embedding_ms']:.1f} ms.", style="dim")
    for scan in described["sequential_scans"]:
        console.print(f"sequential scan over {scan}", style="red")
    if not described["sequential_scans"]:
        console.print("EXPLAIN as the unprivileged role: no sequential scan over chunks or postings.", style="dim")


def _times(times: Times | None) -> str:
    return "" if times is None else f"{times.p50:.1f} / {times.p95:.1f}"


def describe_ingest(found: IngestMeasurement, storage: StorageMeasurement) -> dict[str, Any]:
    """Everything about `bench ingest` as `--json` prints it; rates are chunks per second."""
    return {
        "documents": found.documents,
        "chunks": found.chunks,
        "tokens": found.tokens,
        "end_to_end": _describe_rate(found.ours),
        "embedder_alone": _describe_rate(found.floor),
        "stock": _describe_rate(found.stock),
        "share_of_embedder": round(found.share_of_floor, 3),
        "parse_seconds": _rounded(found.parse_seconds),
        "storage": {field.name: _describe_rate(getattr(storage, field.name)) for field in fields(storage)},
    }


def _describe_rate(rate: Rate | None) -> dict[str, float] | None:
    if rate is None:
        return None
    return {"chunks": rate.count, "seconds": round(rate.seconds, 2), "per_second": round(rate.per_second, 1)}


def print_ingest(console: Console, described: Mapping[str, Any]) -> None:
    """One row per way into the store; rates are chunks per second."""
    title = f"{described['documents']} documents, {described['chunks']:,} chunks, {described['tokens']:,} tokens"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column("ingest")
    for column in ("chunks", "seconds", "chunks/s", "of ours"):
        table.add_column(column, justify="right")
    storage = described["storage"]
    rows = (
        ("ours, bytes to store", described["end_to_end"], described["end_to_end"]),
        ("embedder alone", described["embedder_alone"], described["end_to_end"]),
        ("stock, chunks to store", described["stock"], described["end_to_end"]),
        ("storage alone, ours", storage["ours"], storage["ours"]),
        ("the same, no graph of the vectors", storage["ours_without_graph"], storage["ours"]),
        ("storage alone, COPY of bare rows", storage["floor"], storage["ours"]),
        ("the same, no graph of the vectors", storage["floor_without_graph"], storage["ours"]),
        ("storage alone, stock", storage["stock"], storage["ours"]),
    )
    for name, rate, ours in rows:
        if rate is not None:
            share = f"{rate['per_second'] / ours['per_second']:.2f}×"
            table.add_row(name, f"{rate['chunks']:,}", f"{rate['seconds']:.1f}", f"{rate['per_second']:.1f}", share)
    console.print(table)
    console.print(
        f"End to end {described['share_of_embedder']:.0%} of the embedder's own rate; "
        f"parsing and chunking alone, one document after the other: {described['parse_seconds']:.1f} s.",
        style="dim",
    )


def describe_answers(found: AnswerMeasurement) -> dict[str, Any]:
    """Everything about `bench answer` as `--json` prints it; milliseconds, and requests per second."""
    return {
        "chunks": found.chunks,
        "questions": found.questions,
        "connections": found.connections,
        "processes": found.processes,
        "embedding_ms": asdict(found.embedding),
        "search_ms": asdict(found.search),
        "retrieval_ms": asdict(found.retrieval),
        "answer_ms": asdict(found.answer),
        "retrieval_overhead_ms": round(found.retrieval_overhead, 2),
        "answer_overhead_ms": round(found.answer_overhead, 2),
        "retrieval_requests_per_second": round(found.retrieval_rate.per_second, 1),
        "answer_requests_per_second": round(found.answer_rate.per_second, 1),
        "answers_verified": found.verified,
    }


def print_answers(console: Console, described: Mapping[str, Any]) -> None:
    """One row per kind of request, and what it contains."""
    title = f"{described['chunks']:,} chunks, {described['questions']} questions, milliseconds"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column("from socket to socket, embeddings cached")
    rate = f"requests/s, {described['connections']} at once"
    if described["processes"] > 1:
        rate += f" on {described['processes']} processes"
    for column in ("p50", "p95", "beside search", rate):
        table.add_column(column, justify="right")
    for name, key in (("POST /api/v1/query", "retrieval"), ("POST /api/v1/query/answer, model of 0 ms", "answer")):
        times = described[f"{key}_ms"]
        table.add_row(
            name, f"{times['p50']:.1f}", f"{times['p95']:.1f}", f"{described[f'{key}_overhead_ms']:.1f}",
            f"{described[f'{key}_requests_per_second']:.0f}",
        )  # fmt: skip
    table.add_section()
    for name, key in (
        ("hybrid search, in process", "search_ms"),
        ("embedding of a question, in process", "embedding_ms"),
    ):
        table.add_row(name, f"{described[key]['p50']:.1f}", f"{described[key]['p95']:.1f}", "", "")
    console.print(table)
    console.print(f"Answers with a verified citation: {described['answers_verified']}.", style="dim")
