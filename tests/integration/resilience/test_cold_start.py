"""From nothing to ready, with an external database and Ollama: 3 seconds on a quiet machine.

The limits are generous, because tests share their machine, and of processor time as on a quiet one; what loads torch
or a second copy of anything large breaks that all the same. `python -m tests.soak.cold_start` holds the bar and prints
the figures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_service.store.embedded import EmbeddedServer
from tests.doubles.ollama import OllamaDouble
from tests.loop_watch import slowness
from tests.soak.cold_start import start_once

pytestmark = pytest.mark.slow

MOST_SECONDS = 60.0
MOST_PROCESSOR_SECONDS = 8.0


async def test_it_is_ready_soon(tmp_path: Path, database_server: EmbeddedServer, ollama: OllamaDouble) -> None:
    seconds, used = await start_once(tmp_path, database_server, ollama)
    assert seconds < MOST_SECONDS
    assert used / slowness() < MOST_PROCESSOR_SECONDS
