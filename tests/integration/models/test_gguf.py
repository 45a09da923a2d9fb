"""The provider `gguf` with a real model: its server is started, watched, restarted and stopped with the service."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from rag_service.app import create_app
from rag_service.cli.checks import check_live
from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import PromptTooLongError
from rag_service.models.llm import gguf
from rag_service.models.llm.call import numbered_schema
from rag_service.models.llm.model import ChatModel, build_chat, collect
from rag_service.settings import Settings
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.acceptance import cli_process
from tests.doubles.hugging_face import HuggingFaceDouble, hugging_face
from tests.integration.answers.conftest import OpenService, open_service
from tests.integration.models.conftest import MESSAGES, until
from tests.serving import serving_here, wait_until
from tests.small_model import FILE, MODEL, SETTINGS, SmallModel, require_small_model, small_model

__all__ = ["hugging_face", "open_service", "small_model"]  # fixtures

QUESTION: dict[str, Any] = {"query": "How many days of vacation do employees receive?", "similarityThreshold": 0.1}
STARTED_BY = """
import sys, time
from rag_service.models.llm.gguf import LlamaServer
from rag_service.settings import Settings
from tests.small_model import SETTINGS
server = LlamaServer.of(Settings(**SETTINGS))
print(server.wait_for_address(), server._process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
async def chat() -> AsyncIterator[ChatModel]:
    require_small_model()
    built = build_chat(Settings(**SETTINGS))
    yield built
    await built.aclose()


def process_of(chat: ChatModel) -> psutil.Process:
    server = chat.server
    assert server is not None
    assert server._process is not None
    return psutil.Process(server._process.pid)


async def ask(chat: ChatModel) -> str:
    return (await collect(chat.stream(MESSAGES, max_tokens=16)))[0]


async def test_a_server_that_is_killed_is_started_again_and_ends_with_the_service(chat: ChatModel) -> None:
    assert await ask(chat)
    first = process_of(chat)
    first.kill()
    assert await ask(chat)
    second = process_of(chat)
    assert second.pid != first.pid
    await chat.aclose()
    assert not second.is_running()


async def test_a_real_server_holds_json_to_its_schema(small_model: SmallModel) -> None:
    chat = build_chat(Settings(**small_model.settings))
    schema = numbered_schema("verdicts", 2, {"supported": {"type": "boolean"}})
    reply = json.loads(await chat.complete_json(MESSAGES, schema, max_tokens=120))
    await chat.aclose()
    assert [set(entry) for entry in reply["verdicts"]] == [{"id", "supported"}] * 2


@pytest.mark.slow
async def test_a_prompt_longer_than_the_window_is_refused(small_model: SmallModel) -> None:
    chat = build_chat(Settings(**small_model.settings))
    messages = [MESSAGES[0], MESSAGES[1].model_copy(update={"blocks": []})]
    messages[1].content = "padrón municipal " * 2_000
    with pytest.raises(PromptTooLongError) as refused:
        await collect(chat.stream(messages))
    assert (refused.value.tokens or 0) > refused.value.window == SETTINGS["context_window"]  # type: ignore[operator]
    await chat.aclose()


@pytest.mark.slow
def test_the_server_ends_with_a_service_that_is_killed() -> None:
    require_small_model()
    with subprocess.Popen([sys.executable, "-c", STARTED_BY], stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        url, number = next(line for line in service.stdout if line.startswith("http")).split()  # after lines of the log
        server = psutil.Process(int(number))
        assert httpx.get(f"{url}/v1/models", timeout=60).status_code == 401  # nobody else on this machine may use it
        service.kill()
    wait_until(lambda: _has_ended(server))


def _has_ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@pytest.mark.slow
async def test_a_server_that_hangs_is_replaced(chat: ChatModel, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_ASK_SECONDS", "_END_SECONDS"):
        monkeypatch.setattr(gguf, name, 1.0)
    assert await ask(chat)
    hanging = process_of(chat)
    hanging.send_signal(signal.SIGSTOP)
    await until(lambda: not hanging.is_running())
    assert await ask(chat)


@pytest.mark.slow
async def test_a_file_that_llama_cpp_cannot_load_is_said_by_check_and_its_server_is_not_started_at_once_again(
    tmp_path: Path, database_server: EmbeddedServer
) -> None:
    require_small_model()
    cut = tmp_path / "cut.gguf"
    with FILE.open("rb") as whole:
        cut.write_bytes(whole.read(10_000_000))
    broken = Settings(**{**SETTINGS, "model_name": str(cut), "database_url": database_server.service_conninfo})
    results = {result.name: result for result in await check_live(broken)}
    assert not results["chat"].ok
    assert "llama.cpp cannot run cut.gguf" in results["chat"].detail
    assert "corrupted or incomplete" in results["chat"].detail
    server = gguf.LlamaServer.of(broken)
    with pytest.raises(gguf.LlamaServerError):
        await server.address()
    with pytest.raises(gguf.LlamaServerError):  # at once, while it waits for the next try
        async with asyncio.timeout(20):
            await server.address()
    await server.aclose()


@pytest.mark.slow
async def test_readiness_tells_the_state_and_quotes_follow_while_the_server_is_down(
    open_service: OpenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_small_model()
    async with (
        open_service(**SETTINGS, judge="none", first_token_timeout=60) as service,
        serving_here(create_app(service.settings, components=service)) as client,
    ):
        client.timeout = httpx.Timeout(200)  # longer than any limit of the model
        text = "Employees receive 25 days of vacation per calendar year."
        await service.ingest(DocumentInput(data=text.encode(), file_name="leave.md"), LOCAL_ADMIN)

        async def state() -> tuple[str, str | None]:
            found = (await client.get("/health/ready")).json()["dependencies"]["chat"]
            return found["state"], found["code"]

        seen = []
        async with asyncio.timeout(180):
            while (now := await state()) != ("up", None):  # it was started with the service, without a question
                seen.append(now)
                await asyncio.sleep(0.2)
        assert set(seen) <= {("down", "model_loading")}
        written = (await client.post("/api/v1/query/answer", json=QUESTION)).json()
        assert written["modelError"] in (None, "llm_output_invalid")  # so small a model may write without an end
        monkeypatch.setattr(gguf, "_FIRST_WAIT", 60.0)
        process_of(service.chat).kill()
        reply = (await client.post("/api/v1/query/answer", json=QUESTION)).json()
        assert (reply["modelError"], text in reply["answer"]) == ("llm_unavailable", True)
        assert (await state())[0] == "down"


@pytest.mark.slow
def test_quickstart_fetches_and_runs_a_model_in_one_command(hugging_face: HuggingFaceDouble, tmp_path: Path) -> None:
    """Under the name that the environment gives; without it, the command would fetch one of a gigabyte."""
    require_small_model()
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copyfile(FILE, folder / Path(MODEL.member).name)
    hugging_face.add("nobody/small-GGUF", folder)
    document = tmp_path / "leave.md"
    document.write_text("Employees receive 25 days of vacation per calendar year.", encoding="utf-8")
    environment = {
        "HF_ENDPOINT": hugging_face.url, "HF_HOME": str(tmp_path / "hf"), "RAG_DATA_DIR": str(tmp_path / "data"),
        "RAG_MODEL_NAME": "nobody/small-GGUF", "RAG_CHAT_OPTIONS": '{"threads": 1}', "RAG_MAX_TOKENS": "32",
        "RAG_MODEL_CONCURRENCY": "1", "RAG_CONTEXT_WINDOW": "2048",
    }  # fmt: skip
    arguments = ["quickstart", "--models", "gguf", "--once", "--documents", str(document)]
    code, printed, said = cli_process.run([*arguments, "--question", QUESTION["query"]], environment, seconds=300)
    assert code == 0, said
    assert "RAG_CHAT_PROVIDER=gguf" in said
    assert "Fetching nobody/small-GGUF (98 MB) from Hugging Face" in " ".join(said.split())
    assert "A:" in printed
    assert not [process for process in psutil.process_iter() if _runs(process, str(tmp_path))]


def _runs(process: psutil.Process, folder: str) -> bool:
    try:
        home = process.environ().get("HF_HOME", "")
        return "llama_process" in " ".join(process.cmdline()) and home.startswith(folder)
    except (psutil.Error, OSError):
        return False


@pytest.mark.slow
def test_without_network_the_file_to_bring_is_named() -> None:
    pytest.importorskip("xllamacpp", reason="the extra `gguf` is not installed")
    environment = {"HF_ENDPOINT": "http://127.0.0.1:1", "HF_HOME": os.devnull}
    code, _, said = cli_process.run(["quickstart", "--models", "gguf", "--once"], environment)
    said = " ".join(said.split())
    assert code == 1
    assert "download qwen2.5-1.5b-instruct-q4_k_m.gguf from https://huggingface.co/Qwen/" in said
    assert "set RAG_MODEL_NAME to its path" in said
    assert "Traceback" not in said
