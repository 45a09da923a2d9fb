"""`bench plan`: what a number of chunks needs, and which limit of one machine is met first.

Arithmetic over figures that `bench growth` measured; nothing is loaded and no database is asked. Each
line says where it comes from: measured here, computed from that, extrapolated beyond the sizes that were
measured, or assumed. The guide `scaling.md` says what to do about each limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rag_service.errors import InputError

TABLE, GRAPH = "chunks", "vector index"  # parts, as `bench growth` names them
GB = 1e9
DAY = 86_400.0

# -- from the code and from PostgreSQL

HALF_FLOAT = 2  # bytes of one number of a stored vector, which stands in the row and again in the graph
SMALLEST_IN_GRAPH = 20_000  # chunks; smaller scopes are compared one by one (store.dense.EXACT_SCAN_LIMIT)
MOST_SCANNED = 200_000  # entries of the graph that a filtered search looks at (store.session)
CANDIDATES = 100  # that it wants to find among them (definitions.QueryDefinition)
TABLE_LIMIT = 32 * 1024**4  # bytes of a table or index of PostgreSQL with pages of 8 kB
ID_LIMIT = 2**39  # postings keep a chunk's number in 40 bits with its sign (store.postings)

# -- assumed

HOT_SHARE = 0.3  # of tables and postings; the graph is read all over and must be in memory whole
USABLE_MEMORY = 0.75  # the rest is for connections, sorting and the system
DISK_RESERVE = 2.0  # room for the log, for rebuilding an index, and for dead rows
LOG_FACTOR = 2.0  # bytes of write-ahead log for a byte stored


class Basis(StrEnum):
    """How a figure was come by."""

    MEASURED = "measured"
    COMPUTED = "computed"
    EXTRAPOLATED = "extrapolated"
    ASSUMED = "assumed"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one chunk costs, on 2 cores. The bytes are of `bench growth --sizes 1000000`: chunks of 40 to 200 words."""

    chunks: int = 1_000_000  # of the run
    dimension: int = 384
    bytes_a_chunk: Mapping[str, float] = field(
        default_factory=lambda: {TABLE: 2_691.0, GRAPH: 1_170.0, "postings": 9_314.0, "statistics": 64.0}
    )
    search_p95: float = 52.0  # milliseconds, hybrid search of everything, its pages in memory
    search_law: float = 0.4  # exponent over the size; 21 ms at 100,000 chunks
    index_seconds: float = 0.0011  # a chunk, all indexes of a bulk load
    store_rate: float = 246.0  # chunks a second by one writer beside live indexes
    embed_rate: float = 8.0  # chunks a second by one core with the packaged model (`bench ingest`: 16.1 on two)
    embed_share: float = 0.76  # of that which a whole ingestion reaches (`bench ingest`)
    searches_a_core: float = 25.0  # searches a second inside a tenant (`bench answer`: 50 on two)


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What is asked for."""

    chunks: int
    dimension: int = 384
    largest_corpus: float = 0.01  # share of the chunks
    searches: float = 100.0  # a second, each within a corpus
    days: float = 30.0  # for the first load
    replicas: int = 1  # copies of each shard beside its primary


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A database machine, and what things cost in a month; the prices are round numbers to be replaced."""

    cores: int = 16
    memory_gb: float = 128.0
    disk_gb: float = 4_000.0
    core_price: float = 20.0  # a month
    memory_price: float = 3.0  # a GB and month
    disk_price: float = 0.1  # a GB and month
    core_hour_price: float = 0.05  # of the machines that embed


@dataclass(frozen=True, kw_only=True)
class Line:
    """One figure of the plan."""

    what: str
    value: float
    unit: str
    basis: Basis


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Where one machine, and one shared index, end."""

    what: str
    chunks: float
    basis: Basis
    way_out: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Figures, limits from the nearest to the farthest, and those that the demand is beyond."""

    demand: Demand
    lines: tuple[Line, ...]
    limits: tuple[Limit, ...]

    @property
    def beyond(self) -> tuple[Limit, ...]:
        """Limits that the demand passes, in the order in which they are met."""
        return tuple(limit for limit in self.limits if limit.chunks < self.demand.chunks)

    def value(self, what: str) -> float:
        """A figure by its name."""
        return next(line.value for line in self.lines if line.what == what)


def read_measured(described: Mapping[str, Any]) -> Measured:
    """The figures of `bench growth --json`, of its largest size.

    Raises:
        InputError: that is something else.
    """
    try:
        step = max(described["steps"], key=lambda step: int(step["chunks"]))
        count = int(step["chunks"])
        if missing := {TABLE, GRAPH} - step["sizes"].keys():
            raise KeyError(*missing)
        return Measured(
            chunks=count,
            bytes_a_chunk={part: size / count for part, size in step["sizes"].items()},
            search_p95=float(step["everything"]["p95"]),
            search_law=float(described["laws"].get("search of everything, ms", Measured.search_law)),
            index_seconds=float(step["index_seconds"]) / count,
            store_rate=float(step["write"]["per_second"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("That is not what `rag-service bench growth --json` prints.") from error


def make_plan(demand: Demand, machine: Machine | None = None, measured: Measured | None = None) -> Plan:
    """Sizes, shards, times and costs of a demand on machines of one kind."""
    machine, measured = machine or Machine(), measured or Measured()
    sizes = bytes_a_chunk(measured, demand.dimension)
    chunks, total = demand.chunks, sum(sizes.values())
    hot = _hot_bytes(sizes)
    shards = max(
        1,
        math.ceil(chunks * hot / (machine.memory_gb * GB * USABLE_MEMORY)),
        math.ceil(chunks * total * DISK_RESERVE / (machine.disk_gb * GB)),
    )
    copies = 1 + demand.replicas
    search_cores = demand.searches / measured.searches_a_core
    embed_hours = chunks / (measured.embed_rate * measured.embed_share) / 3600
    writers = max(1, machine.cores // 2)  # a writer keeps a core of the database and one of its own busy
    beyond = Basis.COMPUTED if chunks <= measured.chunks else Basis.EXTRAPOLATED
    inside = beyond if beyond is Basis.EXTRAPOLATED else Basis.MEASURED
    lines = [Line(what=f"{part}, bytes a chunk", value=size, unit="B", basis=inside) for part, size in sizes.items()]
    monthly = shards * copies * (
        machine.cores * machine.core_price
        + machine.memory_gb * machine.memory_price
        + machine.disk_gb * machine.disk_price
    )  # fmt: skip
    lines += [
        Line(what="all tables and indexes", value=chunks * total / GB, unit="GB", basis=beyond),
        Line(what="vector graph, in memory whole", value=chunks * sizes[GRAPH] / GB, unit="GB", basis=beyond),
        Line(what="memory wanted", value=chunks * hot / GB, unit="GB", basis=Basis.ASSUMED),
        Line(what="shards", value=shards, unit="", basis=Basis.COMPUTED),
        Line(what="database machines, replicas too", value=shards * copies, unit="", basis=Basis.COMPUTED),
        Line(what="chunks of a shard", value=chunks / shards, unit="", basis=Basis.COMPUTED),
        Line(what="search of a whole shard, p95", value=_search_ms(measured, chunks / shards), unit="ms", basis=beyond),
        Line(what="cores for searches", value=search_cores, unit="", basis=Basis.EXTRAPOLATED),
        Line(what="embedding once", value=embed_hours, unit="core hours", basis=Basis.EXTRAPOLATED),
        Line(what="cores on Ray for that", value=embed_hours / (24 * demand.days), unit="", basis=Basis.EXTRAPOLATED),
        Line(what="writing wanted", value=chunks / (demand.days * DAY), unit="chunks/s", basis=Basis.COMPUTED),
        Line(
            what="writing possible", value=shards * writers * measured.store_rate, unit="chunks/s",
            basis=Basis.ASSUMED,
        ),
        Line(
            what="largest corpus, by its one writer", value=chunks * demand.largest_corpus / measured.store_rate / DAY,
            unit="days", basis=beyond,
        ),
        Line(
            what="write-ahead log a day", value=total * LOG_FACTOR * chunks / demand.days / GB, unit="GB",
            basis=Basis.ASSUMED,
        ),
        Line(
            what="rebuilding the indexes of a shard", value=chunks / shards * measured.index_seconds / 3600,
            unit="hours", basis=beyond,
        ),
        Line(what="database machines", value=monthly, unit="money a month", basis=Basis.ASSUMED),
        Line(what="embedding", value=embed_hours * machine.core_hour_price, unit="money, once", basis=Basis.ASSUMED),
    ]  # fmt: skip
    limits = sorted(_limits(demand, machine, measured, sizes), key=lambda limit: limit.chunks)
    return Plan(demand=demand, lines=tuple(lines), limits=tuple(limits))


def bytes_a_chunk(measured: Measured, dimension: int) -> dict[str, float]:
    """Part → bytes, for vectors of another length: a vector stands in the row and in the graph."""
    more = HALF_FLOAT * (dimension - measured.dimension)
    return {part: size + (more if part in (TABLE, GRAPH) else 0) for part, size in measured.bytes_a_chunk.items()}


def _hot_bytes(sizes: Mapping[str, float]) -> float:
    graph = sizes[GRAPH]
    return graph + HOT_SHARE * (sum(sizes.values()) - graph)


def _search_ms(measured: Measured, chunks: float) -> float:
    return float(measured.search_p95 * (chunks / measured.chunks) ** max(0.0, measured.search_law))


def _limits(demand: Demand, machine: Machine, measured: Measured, sizes: Mapping[str, float]) -> list[Limit]:
    return [
        Limit(
            what=f"a corpus of {SMALLEST_IN_GRAPH:,} chunks finds less than {CANDIDATES} of them in the shared graph",
            chunks=MOST_SCANNED * SMALLEST_IN_GRAPH / CANDIDATES,
            basis=Basis.COMPUTED,
            way_out="partitions by corpus: a graph for each",
        ),
        Limit(
            what=f"tables, postings and graph outgrow {machine.memory_gb:.0f} GB of memory",
            chunks=machine.memory_gb * GB * USABLE_MEMORY / _hot_bytes(sizes),
            basis=Basis.ASSUMED,
            way_out="more memory, then shards",
        ),
        Limit(
            what=f"everything outgrows {machine.disk_gb:,.0f} GB of disk, with reserve",
            chunks=machine.disk_gb * GB / (sum(sizes.values()) * DISK_RESERVE),
            basis=Basis.COMPUTED,
            way_out="originals elsewhere (RAG_ORIGINALS_URL), more disk, shards",
        ),
        Limit(
            what="search over everything takes more than 100 ms (p95)",
            chunks=_size_at(measured, 100.0),
            basis=Basis.EXTRAPOLATED,
            way_out="read replicas do not help; shards searched side by side do",
        ),
        Limit(
            what=f"one writer of a corpus is busy for {demand.days:.0f} days",
            chunks=measured.store_rate * demand.days * DAY,
            basis=Basis.EXTRAPOLATED,
            way_out="several corpora, each with a writer of its own; indexes after the load",
        ),
        Limit(
            what="building the indexes anew takes a day",
            chunks=DAY / measured.index_seconds,
            basis=Basis.EXTRAPOLATED,
            way_out="partitions, rebuilt one by one",
        ),
        Limit(
            what="a table or index reaches PostgreSQL's 32 TB",
            chunks=TABLE_LIMIT / max(sizes.values()),
            basis=Basis.COMPUTED,
            way_out="partitions",
        ),
        Limit(
            what="the numbers of chunks no longer fit the postings",
            chunks=float(ID_LIMIT),
            basis=Basis.COMPUTED,
            way_out="a wider number (a migration of the postings)",
        ),
    ]


def _size_at(measured: Measured, milliseconds: float) -> float:
    """How many chunks a search of everything passes in that time, by the measured law; infinite if it does not grow."""
    if measured.search_law <= 0:
        return math.inf
    return float(measured.chunks * (milliseconds / measured.search_p95) ** (1 / measured.search_law))
