"""Bulk ingestion on a Ray cluster, through LlamaIndex's own integration (the extra `ray`).

    with connected("10.0.0.5:6379") as cluster:
        bulk = BulkIngestor(ingestor, cluster.transform(settings, index))

The machines need the same version of this package and the extra of the embedding model. They receive documents and
embedding settings and return chunks, but never learn the address or password of the database. Ray is imported on
demand; its telemetry and dashboard stay off.
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
from functools import partial
from typing import Any

from llama_index.core.schema import BaseNode

from rag_service import __version__
from rag_service.errors import ClusterError, InputError
from rag_service.indices import IndexDefinition
from rag_service.ingest.bulk.bulk import EmbedChunks, ReadDocuments, Transform, travelling_settings
from rag_service.models.plugins import require_extra
from rag_service.settings import Settings

LOCAL = "local"  # a cluster on this machine alone, started for this run
AUTO = "auto"  # the cluster that runs on this machine

_CONNECT_SECONDS = 5.0  # Ray itself tries for minutes, then ends the process
_PROBE_SECONDS = 120.0  # for all machines to start Python and import this package
# Each CPU runs one reader, which mostly waits for its sandbox, and one embedder.
_READER_CPUS, _EMBEDDER_CPUS = 0.25, 0.75


@dataclass(frozen=True, kw_only=True)
class RayCluster:
    """A cluster that this process is connected to."""

    machines: int  # with CPUs
    cpus: int  # free when we connected

    def transform(self, settings: Settings, index: IndexDefinition) -> Transform:
        """Run `ReadDocuments`, then `EmbedChunks`, all over the cluster."""
        return partial(self._stream, travelling_settings(settings), index)

    async def _stream(
        self, settings: Settings, index: IndexDefinition, nodes: Sequence[BaseNode]
    ) -> AsyncGenerator[BaseNode]:
        """Nodes as they arrive; LlamaIndex's `RayIngestionPipeline` would hold them all. Raises ClusterError."""
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
                "batch_size": settings.embedding.batch_size, "compute": pool, "num_cpus": _EMBEDDER_CPUS,
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
            raise ClusterError("The Ray cluster failed while it processed documents.") from error


@contextmanager
def connected(address: str) -> Iterator[RayCluster]:
    """Connect to a cluster: `local`, `auto`, or `host:port` of its head. Blocks for seconds.

    Raises:
        ConfigurationError: the extra `ray` is not installed.
        InputError: the address is malformed.
        ClusterError: unreachable, without workers, or unable to run this package.
    """
    _check_address(address)
    for package in ("ray", "llama_index.ingestion.ray"):
        require_extra(package, extra="ray", setting="--ray", value=address)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # a late thread must not start another cluster
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its messages are for Ray developers
    import ray
    import ray.data

    try:
        try:
            ray.init(
                address=address,
                include_dashboard=False if address == LOCAL else None,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, RuntimeError, ValueError, SystemExit) as error:  # any of them, depending on the cause
            raise ClusterError(
                f"This machine does not belong to a Ray cluster at {address}. Start one with "
                "`ray start --head`, or join one with `ray start --address=HOST:PORT` on this machine."
            ) from error
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        for name in ("ray", "ray.data"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        yield _inspect(ray, address)
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Fail early where Ray would take minutes."""
    if address in (LOCAL, AUTO):
        return
    match = re.fullmatch(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})", address)
    if match is None:
        raise InputError(
            f"--ray {address}: expected `local`, `auto` or HOST:PORT of a cluster's head. Name documents before --ray."
        )
    try:
        socket.create_connection((match["host"].strip("[]"), int(match["port"])), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"There is no Ray cluster at {address}: the connection failed.") from error


def _inspect(ray: Any, address: str) -> RayCluster:
    machines = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not machines:
        raise ClusterError(
            f"The Ray cluster at {address} has no workers. Start some with `ray start --address=…` on other machines."
        )
    _check_versions(ray, machines)
    free = int(ray.available_resources().get("CPU", 0))
    if free < 1:
        raise ClusterError(f"All CPUs of the Ray cluster at {address} are in use.")
    return RayCluster(machines=len(machines), cpus=free)


def _check_versions(ray: Any, machines: Sequence[dict[str, Any]]) -> None:
    """Check that each machine has this version of the package before anything is sent."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    probe = ray.remote(num_cpus=0, max_retries=0)(_version)
    answers = {
        str(node["NodeManagerAddress"]): probe.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in machines
    }
    for machine, answer in answers.items():
        try:
            version = ray.get(answer, timeout=_PROBE_SECONDS)
        except (ray.exceptions.RayError, RuntimeError, ImportError) as error:
            raise ClusterError(
                f"The machine {machine} of the Ray cluster cannot run rag-service; install version "
                f"{__version__} there, with the extra for the embedding model."
            ) from error
        if version != __version__:
            raise ClusterError(f"The machine {machine} has rag-service {version}, this one {__version__}.")


def _version() -> str:
    import rag_service.ingest.bulk.bulk  # noqa: F401 - checks that the work can be imported

    return __version__
