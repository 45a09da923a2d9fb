"""Bulk ingestion on a Ray cluster, through LlamaIndex's own integration (the extra `ray`).

    with connected("10.0.0.5:6379") as cluster:
        bulk = BulkIngestor(ingestor, cluster.transform(settings, index))

The machines need this package in the same version, and the extra of the embedding model. They get documents and
the embedding settings, and give back chunks; they never get an address or a password of the database. Ray is
imported here alone and only when asked for; its telemetry and its dashboard stay off.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import BaseNode

from rag_service import __version__
from rag_service.definitions import IndexDefinition
from rag_service.errors import ClusterError, InputError
from rag_service.ingest.bulk import EmbedChunks, ReadDocuments, Transform, travelling_settings
from rag_service.models.extras import require_extra
from rag_service.settings import Settings

LOCAL = "local"  # a cluster of this machine alone, started for this run
AUTO = "auto"  # the one that was started on this machine

_CONNECT_SECONDS = 5.0  # for a plain connection; Ray itself tries for minutes, then ends the process
_PROBE_SECONDS = 120.0  # for all machines to start Python and import this package
# Each CPU gets a reader, which mostly waits for its sandbox, and an embedder; together they take it whole.
_READER_CPUS, _EMBEDDER_CPUS = 0.25, 0.75


@dataclass(frozen=True, kw_only=True)
class RayCluster:
    """A cluster that this process is connected to."""

    machines: int  # that have CPUs for us
    cpus: int  # free when we came

    def transform(self, settings: Settings, index: IndexDefinition) -> Transform:
        """`ReadDocuments`, then `EmbedChunks`, on the cluster, both all over it."""
        lean = travelling_settings(settings)

        async def run(nodes: Sequence[BaseNode]) -> AsyncGenerator[BaseNode]:
            async for node in self._stream(nodes, lean, index):
                yield node

        return run

    async def _stream(
        self, nodes: Sequence[BaseNode], settings: Settings, index: IndexDefinition
    ) -> AsyncGenerator[BaseNode]:
        """Nodes as they come. `RayIngestionPipeline` would hold them all; its parts serve a stream as well.

        Raises:
            ClusterError: the cluster failed, or was lost.
        """
        import ray
        from llama_index.ingestion.ray import RayTransformComponent
        from llama_index.ingestion.ray.utils import ray_deserialize_node, ray_serialize_node

        pool = ray.data.ActorPoolStrategy(size=min(self.cpus, len(nodes)))
        read = RayTransformComponent(
            ReadDocuments,
            transform_kwargs={"index": index},
            map_batches_kwargs={"batch_size": 1, "compute": pool, "num_cpus": _READER_CPUS},
        )
        embed = RayTransformComponent(
            EmbedChunks,
            transform_kwargs={"settings": settings},
            map_batches_kwargs={
                "batch_size": settings.embedding_batch_size, "compute": pool, "num_cpus": _EMBEDDER_CPUS,
            },
        )  # fmt: skip
        try:
            rows = [ray_serialize_node(node) for node in nodes]
            found = embed(read(ray.data.from_items(rows, override_num_blocks=len(rows))))
            batches = iter(found.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0))
            while (table := await asyncio.to_thread(next, batches, None)) is not None:
                for row in table.to_pylist():
                    yield ray_deserialize_node(row)
        except ray.exceptions.RayError as error:
            raise ClusterError("The Ray cluster failed while documents were on it.") from error


@contextmanager
def connected(address: str, *, cpus: int | None = None) -> Iterator[RayCluster]:
    """A cluster by its address: `local`, `auto`, or `host:port` of its head.

    Blocks for seconds. `cpus` bounds a `local` one; None takes the machine's.

    Raises:
        ConfigurationError: the extra `ray` is not installed.
        InputError: this is no address of a cluster.
        ClusterError: it cannot be reached, has no workers, or they cannot run this package.
    """
    _check_address(address)
    for package in ("ray", "llama_index.ingestion.ray"):
        require_extra(package, extra="ray", setting="--ray", value=address)
    ray = _import_ray()
    try:
        try:
            ray.init(
                address=address,
                include_dashboard=False if address == LOCAL else None,
                num_cpus=cpus if address == LOCAL else None,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, RuntimeError, ValueError, SystemExit) as error:  # Ray's ways to say so
            raise ClusterError(
                f"There is no Ray cluster at {address} that this machine belongs to. Start one with "
                "`ray start --head`, or join one with `ray start --address=HOST:PORT` on this machine, too."
            ) from error
        _quieten(ray)
        yield _look_around(ray, address)
    finally:
        ray.shutdown()


def _import_ray() -> Any:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # a thread that is late must not start a cluster of its own
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its notes are for people who develop Ray
    import ray
    import ray.data

    return ray


def _quieten(ray: Any) -> None:
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False


def _check_address(address: str) -> None:
    """Tell what Ray would find out in minutes."""
    if address in (LOCAL, AUTO):
        return
    match = re.fullmatch(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})", address)
    if match is None:
        raise InputError(
            f"--ray {address}: that is neither `local`, `auto` nor HOST:PORT of a cluster's head. "
            "Name documents before --ray."
        )
    try:
        socket.create_connection((match["host"].strip("[]"), int(match["port"])), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"Nothing answers at {address}, where the Ray cluster should be.") from error


def _look_around(ray: Any, address: str) -> RayCluster:
    machines = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not machines:
        raise ClusterError(
            f"The Ray cluster at {address} has no workers. Start some: `ray start --address=…` on other machines."
        )
    _check_versions(ray, machines)
    free = int(ray.available_resources().get("CPU", 0))
    if free < 1:
        raise ClusterError(f"All CPUs of the Ray cluster at {address} are taken by other work.")
    return RayCluster(machines=len(machines), cpus=free)


def _check_versions(ray: Any, machines: Sequence[dict[str, Any]]) -> None:
    """Before anything is sent: does each machine have this package, in this version?"""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    probe = ray.remote(num_cpus=0, max_retries=0)(_version)
    asked = {
        str(node["NodeManagerAddress"]): probe.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in machines
    }
    for machine, answer in asked.items():
        try:
            version = ray.get(answer, timeout=_PROBE_SECONDS)
        except (ray.exceptions.RayError, RuntimeError, ImportError) as error:
            raise ClusterError(
                f"The machine {machine} of the Ray cluster cannot run rag-service; install it there in version "
                f"{__version__}, with the extra of the embedding model."
            ) from error
        if version != __version__:
            raise ClusterError(f"The machine {machine} has rag-service {version}, this one {__version__}.")


def _version() -> str:
    """Runs on the machine that is asked."""
    import rag_service.ingest.bulk  # noqa: F401 - what the work will need

    return __version__
