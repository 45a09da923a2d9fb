"""The fork server: children reach nothing of it or of one another, and whatever ends it costs no file its result."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers import fork_server
from rag_service.readers.fork_server import ForkServer
from rag_service.readers.landlock import landlock_version
from rag_service.readers.sandbox import ParseLimits, parse_in_sandbox
from tests.integration.hostile import children, descendants, is_server
from tests.integration.test_sandbox import inside
from tests.unit.readers import samples

SMALL = b"Some words of a note."


@pytest.fixture
def forks() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def servers() -> Iterator[set[int]]:
    """Fork servers of other tests."""
    yield {pid for pid in children() if is_server(pid)}


def started(others: set[int]) -> int:
    """The only fork server beside others."""
    (server,) = {pid for pid in children() if is_server(pid)} - others
    return server


async def read(forks: ForkServer, data: bytes = SMALL, name: str = "a.txt", **limits: float) -> ParsedDocument:
    return await parse_in_sandbox(data, file_name=name, forks=forks, limits=ParseLimits(**limits))  # type: ignore[arg-type]


async def wait_until_gone(pid: int) -> None:
    while os.path.exists(f"/proc/{pid}"):  # noqa: ASYNC110, ASYNC240, PTH110 - nothing tells
        await asyncio.sleep(0.01)


PROBE = """
import ctypes, os, signal
def attempt(action):
    try:
        return bool(action())
    except OSError:
        return False
if data == b"sibling":
    import time
    time.sleep(60)
server, own = os.getppid(), os.getpid()
libc = ctypes.CDLL(None, use_errno=True)
def killed(pid):
    os.kill(pid, 0)
    return True
others = [pid for pid in range(server - 50, own + 50) if pid not in (0, own)]
result = {
    "descriptors": [number for number in range(64) if attempt(lambda: os.fstat(number))],
    "signal": [pid for pid in others if attempt(lambda: killed(pid))],
    "trace": [pid for pid in others if libc.ptrace(16, pid, None, None) == 0],
    "memory": [pid for pid in others if attempt(lambda: open(f"/proc/{pid}/mem"))],
    "files": [pid for pid in others if attempt(lambda: os.listdir(f"/proc/{pid}/fd"))],
    "environ": [pid for pid in others if attempt(lambda: open(f"/proc/{pid}/environ").read() or True)],
    "group": attempt(lambda: os.setpgid(0, server) or True),
    "processes": attempt(lambda: os.listdir("/proc")),
    "randomness": len({__import__("random").random()}),
}
"""


@pytest.mark.skipif(landlock_version() < 6, reason="the kernel does not limit files and signals")
async def test_code_in_a_forked_child_reaches_neither_the_server_nor_another_file(
    monkeypatch: pytest.MonkeyPatch, forks: ForkServer, servers: set[int]
) -> None:
    inside(monkeypatch, PROBE)
    before = descendants()
    sibling = asyncio.create_task(read(forks, b"sibling"))
    while not ({pid for pid in descendants() if not is_server(pid)} - before):  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.01)
    found = eval((await read(forks)).text)  # noqa: S307 - of the test's own code
    sibling.cancel()
    await asyncio.gather(sibling, return_exceptions=True)
    assert len(found.pop("descriptors")) == 4  # its input, its complaints twice, its reply
    assert found.pop("randomness")
    assert not any(found.values()), found


async def test_children_draw_different_random_numbers(monkeypatch: pytest.MonkeyPatch, forks: ForkServer) -> None:
    inside(monkeypatch, "import random, uuid\nresult = random.random(), uuid.uuid4()")
    assert len({(await read(forks)).text for _ in range(5)}) == 5


async def test_the_server_holds_one_socket_no_environment_no_privilege_and_no_document(
    monkeypatch: pytest.MonkeyPatch, forks: ForkServer, servers: set[int]
) -> None:
    monkeypatch.setenv("RAG_SECRET", "hunter2")
    marker = os.urandom(16).hex().encode()
    assert marker.decode() in (await read(forks, marker)).text
    process = Path(f"/proc/{started(servers)}")
    await asyncio.sleep(0.5)  # it loads the other readers, and still has one thread
    assert len(list((process / "task").iterdir())) == 1
    opened = sorted(str(one.readlink()).partition(":")[0] for one in (process / "fd").iterdir())
    assert opened.count("socket") == 1
    assert set(opened) <= {"socket", "/dev/null", "anon_inode"}
    assert (process / "environ").read_bytes().count(b"=") == 2  # LANG, PATH
    status = dict(line.split(":\t") for line in (process / "status").read_text().splitlines() if ":\t" in line)
    assert int(status["CapPrm"], 16) in (0, 1 << 2)
    assert status["NoNewPrivs"] == "1"
    assert marker not in memory_of(process)


def memory_of(process: Path) -> bytes:
    """Everything that a process may write to in its memory."""
    found = bytearray()
    with (process / "mem").open("rb", buffering=0) as memory:
        for line in (process / "maps").read_text().splitlines():
            places, rights, *_ = line.split()
            if rights.startswith("rw"):
                start, end = (int(place, 16) for place in places.split("-"))
                memory.seek(start)
                found += memory.read(end - start) or b""
    return bytes(found)


async def test_a_killed_server_costs_no_file_its_result(forks: ForkServer, servers: set[int]) -> None:
    names = [f"{number}.txt" for number in range(60)]
    done = 0

    async def one(name: str) -> str:
        nonlocal done
        text = (await read(forks, name.encode(), name)).text
        done += 1
        return text

    async def kill() -> None:
        while done < 20:  # noqa: ASYNC110 - on the clock, others take longer
            await asyncio.sleep(0.001)
        os.kill(started(servers), signal.SIGKILL)

    killing = asyncio.create_task(kill())
    texts: list[str] = []
    with capture_logs() as logged:
        for start in range(0, len(names), 4):
            texts += await asyncio.gather(*map(one, names[start : start + 4]))
    await killing
    assert texts == names
    assert {line["event"] for line in logged} <= {"fork_server_lost"}
    await read(forks)
    assert started(servers)  # another one


async def test_a_server_that_cannot_start_is_given_up(monkeypatch: pytest.MonkeyPatch, forks: ForkServer) -> None:
    monkeypatch.setattr(fork_server, "_BOOT", "import os; os._exit(1)")
    with capture_logs() as logged:
        for _ in range(5):
            assert (await read(forks)).text == SMALL.decode()
    lost = [line["given_up"] for line in logged if line["event"] == "fork_server_lost"]
    assert lost == [False, False, True]


async def test_a_server_that_stands_still_is_killed(
    monkeypatch: pytest.MonkeyPatch, forks: ForkServer, servers: set[int]
) -> None:
    monkeypatch.setattr(fork_server, "_PATIENCE", 0.1)
    await read(forks)
    server = started(servers)
    os.kill(server, signal.SIGSTOP)
    with pytest.raises(DocumentError, match="too long"):
        await read(forks, wall_seconds=0.2)
    await wait_until_gone(server)
    assert (await read(forks)).text == SMALL.decode()


async def test_a_server_is_replaced_after_so_many_files(
    monkeypatch: pytest.MonkeyPatch, forks: ForkServer, servers: set[int]
) -> None:
    monkeypatch.setattr(fork_server, "FILES_EACH", 3)
    await read(forks)
    first = started(servers)
    await asyncio.gather(*(read(forks) for _ in range(3)))
    await wait_until_gone(first)
    assert started(servers) != first


async def test_an_idle_server_ends_and_the_next_file_starts_another(
    monkeypatch: pytest.MonkeyPatch, forks: ForkServer, servers: set[int]
) -> None:
    short = "from rag_service.readers import sandbox_server\nsandbox_server._IDLE_SECONDS = 0.1\n"
    monkeypatch.setattr(
        fork_server, "_BOOT", f"import sys; sys.path += sys.argv.pop(1).split(':')\n{short}sandbox_server.main()"
    )
    await read(forks)
    await wait_until_gone(started(servers))
    assert (await read(forks)).text == SMALL.decode()


async def test_a_server_out_of_memory_is_replaced(
    monkeypatch: pytest.MonkeyPatch, forks: ForkServer, servers: set[int]
) -> None:
    small = "from rag_service.readers import sandbox_server\nsandbox_server._MEMORY = 30_000_000\n"
    small += "sandbox_server._PAYS_AFTER = 0\n"  # it loads readers at once
    monkeypatch.setattr(
        fork_server, "_BOOT", f"import sys; sys.path += sys.argv.pop(1).split(':')\n{small}sandbox_server.main()"
    )
    with capture_logs() as logged:
        assert (await read(forks)).text == SMALL.decode()
    assert [line["event"] for line in logged] == ["fork_server_lost"]


async def test_what_a_child_leaves_behind_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, forks: ForkServer, servers: set[int]
) -> None:
    """Root is exempt from the limit of processes; everybody else cannot even fork."""
    code = (
        "import os, time\ntry:\n    pid = os.fork()\nexcept OSError:\n    pid = 0\nelse:\n    pid or time.sleep(600)\n"
    )
    inside(monkeypatch, f"{code}result = pid")
    began = time.monotonic()
    left = int((await read(forks)).text)
    assert time.monotonic() - began < 120
    while left and state_of(left) not in ("", "Z"):  # perhaps nobody has reaped it
        assert time.monotonic() - began < 180
        await asyncio.sleep(0.01)


def state_of(pid: int) -> str:
    """As ps shows it; empty if there is none."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    return ""


async def test_empty_files_and_a_large_one_among_small_ones(forks: ForkServer) -> None:
    async def empty() -> None:
        with pytest.raises(DocumentError, match="empty"):
            await read(forks, b"")

    large = samples.word(*["A paragraph of some length, with words."] * 2_000)
    for _ in range(10):
        *_, document = await asyncio.gather(*(empty() for _ in range(5)), read(forks, large, "large.docx"))
        assert "paragraph" in document.text


async def test_no_server_where_fork_is_not_safe(monkeypatch: pytest.MonkeyPatch, forks: ForkServer) -> None:
    monkeypatch.setattr(fork_server, "can_fork", lambda: False)
    monkeypatch.setattr(socket, "send_fds", None)
    assert (await read(forks)).text == SMALL.decode()


def test_a_copy_in_another_process_has_a_server_of_its_own(forks: ForkServer, servers: set[int]) -> None:
    asyncio.run(read(forks))
    assert asyncio.run(read(pickle.loads(pickle.dumps(forks)))).text == SMALL.decode()  # noqa: S301 - just written
