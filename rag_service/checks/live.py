"""`rag-service check --live`: asks everything that the settings name, one line each, before the first user does.

Each line says what works, with its latency, or names the setting at fault and the mend.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from rag_service.checks.models import check_chat, check_embedding, check_reranker
from rag_service.checks.stores import check_database, check_documents, check_replica
from rag_service.errors import RagError
from rag_service.settings import Settings

PATIENCE = 60.0  # seconds for one probe: a server may have to load its model first

Probe = Callable[[Settings], Awaitable[str]]  # says what was found, or raises what is wrong and how to mend it


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One line of the report."""

    name: str  # database, documents, replica, embedding, chat or reranker
    ok: bool
    detail: str  # what was found, or what is wrong and how to mend it
    latency_ms: float

    @property
    def line(self) -> str:
        """As printed."""
        return f"{self.name}: {'ok' if self.ok else 'FAILED'} · {self.detail} · {self.latency_ms:.0f} ms"


async def check_live(settings: Settings) -> list[CheckResult]:
    """Ask the configured database, its documents and its replica, then embedding, chat model and reranker."""
    stores: dict[str, Probe] = {"database": check_database, "documents": check_documents}
    if settings.enabled and settings.database_replica_url is not None:
        stores["replica"] = check_replica
    models: dict[str, Probe] = {"embedding": check_embedding, "chat": check_chat, "reranker": check_reranker}
    # Models after them: while their libraries load, for seconds on a busy machine, no connection would be made.
    return [*await _run_all(stores, settings), *await _run_all(models, settings)]


async def _run_all(probes: Mapping[str, Probe], settings: Settings) -> list[CheckResult]:
    return list(await asyncio.gather(*(_run(name, probe, settings) for name, probe in probes.items())))


async def _run(name: str, probe: Probe, settings: Settings) -> CheckResult:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(PATIENCE):
            detail, ok = await probe(settings), True
    except RagError as error:
        detail, ok = f"{error.message} {error.help}", False
    except TimeoutError:
        detail, ok = f"No answer within {PATIENCE:.0f} s.", False
    return CheckResult(name=name, ok=ok, detail=detail, latency_ms=(time.perf_counter() - started) * 1000)
