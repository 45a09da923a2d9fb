"""The sandbox holds: each hostile file of issue 4 ends in time, within memory, with a reason a user understands."""

from __future__ import annotations

import asyncio
import errno
import socket
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError, ProtectedError, ReaderKilledError, TooLargeError, UnsupportedMediaError
from rag_service.readers import fork_server, sandbox, seccomp
from rag_service.readers.fork_server import ForkServer
from rag_service.readers.landlock import landlock_version
from rag_service.readers.parse import parse
from rag_service.readers.sandbox import OCR_LIMITS, ParseLimits, limits_for
from tests.golden.make import made
from tests.integration.hostile import (
    children,
    descendants,
    gigabyte_of_zeros,
    is_server,
    kill_started,
    macro_workbook,
    many_members,
    million_rows,
    password_workbook,
    pdf_bomb,
    pdf_of_many_operations,
    watched_memory,
    zip_bomb,
)
from tests.timing import watched_turns
from tests.unit.readers import samples

LIMITS = ParseLimits()


REFUSES_MEMORY = """
import resource
allowed = resource.setrlimit
def setrlimit(kind, pair):
    if kind == resource.RLIMIT_AS:
        raise ValueError("current limit exceeds maximum limit")
    allowed(kind, pair)
resource.setrlimit = setrlimit
"""
MACOS = f"{REFUSES_MEMORY}\nimport sys\nsys.platform = 'darwin'"

NewChildren = Callable[[], set[int]]
Parse = Callable[..., Coroutine[Any, Any, ParsedDocument]]


@pytest.fixture
def new_children() -> NewChildren:
    """Processes that this one started since the test began, and those that they forked; other tests may have left
    helpers running. Fork servers stay."""
    before = descendants()
    return lambda: {pid for pid in descendants() - before if not is_server(pid)}


@pytest.fixture(params=["started", "forked"])
def forks(request: pytest.FixtureRequest) -> Iterator[ForkServer | None]:
    """Both ways to a child."""
    server = ForkServer() if request.param == "forked" else None
    yield server
    if server is not None:
        server.close()


@pytest.fixture
def parse_in_sandbox(forks: ForkServer | None) -> Iterator[Parse]:
    """Parses in children of both kinds; a server is not lost meanwhile."""
    with capture_logs() as logged:
        yield partial(sandbox.parse_in_sandbox, forks=forks)
    assert "fork_server_lost" not in {line["event"] for line in logged}


def inside(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the child run this in place of the parser, under the same restrictions and limits."""
    for module, name in ((sandbox, "sandbox_child"), (fork_server, "sandbox_server")):
        monkeypatch.setattr(
            module,
            "_BOOT",
            "import sys; sys.path += sys.argv.pop(1).split(':')\n"
            "from rag_service.readers import sandbox_child as child\n"
            "from rag_service.domain import ParsedDocument\n"
            "def parse(data, *, file_name, reader=None):\n"
            + "".join(f"    {line}\n" for line in code.splitlines())
            + "    return ParsedDocument(text=str(result), spans=(), title='t', media_type='text/plain')\n"
            f"child.parse = parse\nfrom rag_service.readers.{name} import main\nmain()\n",
        )


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (samples.pdf("Hello", "World"), "a.pdf"),
        (samples.word("Hello"), "a.docx"),
        (samples.xlsx([["Product", "Stock"], ["Bolt", 3]]), "a.xlsx"),
        (b"Product;Stock\nBolt;3\n", "a.csv"),
        (b"---\ntitle: T\nn: [1, 2.5, null]\n---\n# Head\n\ntext", "a.md"),
        ("Año".encode("cp1252"), "../a\0.txt"),
        (b"gate: &g {fee: 1.10}  # old\nlast: *g\n", "a.yaml"),
        (b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Board\nDTSTART:20260302T100000Z\n", "a.ics"),
        (made("docx/macros.docm"), "a.docm"),
        (made("xlsx/strict.xlsx"), "a.xlsx"),
    ],
)
async def test_result_is_the_same_as_without_sandbox(data: bytes, name: str, parse_in_sandbox: Parse) -> None:
    assert await parse_in_sandbox(data, file_name=name) == parse(data, file_name=name)


@pytest.mark.parametrize(
    ("make", "name", "kind", "says"),
    [
        (zip_bomb, "a.docx", TooLargeError, "far more data"),
        (many_members, "a.docx", TooLargeError, "far more data"),
        (
            lambda: samples.with_members(samples.word("x"), {"word/document.xml": samples.BILLION_LAUGHS}),
            "a.docx",
            DocumentError,
            "XML declarations",
        ),
        (pdf_bomb, "a.pdf", TooLargeError, "too much memory"),
        (pdf_of_many_operations, "a.pdf", TooLargeError, "too much memory"),
        (gigabyte_of_zeros, "a.xlsx", TooLargeError, "far more data"),
        (lambda: samples.word("x")[:-200], "a.docx", DocumentError, "damaged"),
        (lambda: b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200), "a.pdf", UnsupportedMediaError, "image"),
        (macro_workbook, "a.xlsx", UnsupportedMediaError, "macros"),
        (password_workbook, "a.xlsx", ProtectedError, "password"),
        (lambda: b"", "a.txt", DocumentError, "empty"),
        (lambda: samples.deep_word(100_000), "a.docx", DocumentError, "nested too deeply"),
        (million_rows, "a.csv", TooLargeError, "too much text"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.slow
async def test_hostile_file_is_refused_in_time_and_within_memory(
    make: Callable[[], bytes], name: str, kind: type[DocumentError], says: str, parse_in_sandbox: Parse
) -> None:
    data = make()
    started = time.monotonic()
    async with watched_memory() as peaks:
        with pytest.raises(kind, match=says):
            await parse_in_sandbox(data, file_name=name)
    assert time.monotonic() - started < 180  # a minute on a quiet machine
    assert peaks, "no sandbox was seen"
    assert max(peaks) < LIMITS.memory_bytes
    assert (await parse_in_sandbox(b"the document beside it", file_name="b.txt")).text == "the document beside it"


async def test_sheet_with_cells_in_opposite_corners_is_read(parse_in_sandbox: Parse) -> None:
    started = time.monotonic()
    document = await parse_in_sandbox(samples.far_corner_xlsx(), file_name="a.xlsx")
    assert document.text == "Sheet: S\nfirst\nlast\n"
    assert time.monotonic() - started < 60


async def test_macos_refuses_the_memory_limit_and_keeps_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # What macOS does, before the child sets its limits; there is no fork server.
    monkeypatch.setattr(sandbox, "_BOOT", f"{MACOS}\n{sandbox._BOOT}")
    document = await sandbox.parse_in_sandbox(b"text", file_name="a.txt")
    assert document.text == "text"
    inside(monkeypatch, "result = resource.getrlimit(resource.RLIMIT_CPU)[0]")
    monkeypatch.setattr(sandbox, "_BOOT", f"{MACOS}\nimport resource\n{sandbox._BOOT}")
    assert (await sandbox.parse_in_sandbox(b"x", file_name="a.txt")).text == str(LIMITS.cpu_seconds)


async def test_other_systems_do_not_parse_without_the_memory_limit(
    monkeypatch: pytest.MonkeyPatch, forks: ForkServer | None
) -> None:
    for module in (sandbox, fork_server):
        monkeypatch.setattr(module, "_BOOT", f"{REFUSES_MEMORY}\n{module._BOOT}")
    with pytest.raises(DocumentError):
        await sandbox.parse_in_sandbox(b"text", file_name="a.txt", forks=forks)


def test_missing_limits_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.warn_of_missing_limits.cache_clear()
    monkeypatch.setattr(sandbox.sys, "platform", "darwin")
    monkeypatch.setattr(sandbox, "can_limit_files", lambda: False)
    monkeypatch.setattr(sandbox, "can_filter_calls", lambda: False)
    with capture_logs() as logged:
        sandbox.warn_of_missing_limits()
        sandbox.warn_of_missing_limits()
    sandbox.warn_of_missing_limits.cache_clear()
    assert [line["event"] for line in logged] == [
        "sandbox_without_memory_limit",
        "sandbox_without_file_limits",
        "sandbox_without_call_filter",
    ]


def test_a_call_filter_that_the_kernel_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "can_filter_calls", lambda: True)
    monkeypatch.setattr(seccomp.os, "uname", lambda: SimpleNamespace(machine="x86_64"))
    monkeypatch.setattr(seccomp, "_set_filter", lambda program: errno.EINVAL)
    with pytest.raises(OSError, match="Invalid argument"):
        seccomp.confine()


async def test_memory_limit_holds(monkeypatch: pytest.MonkeyPatch, parse_in_sandbox: Parse) -> None:
    inside(monkeypatch, "result = len(bytearray(2 * 1024**3))")
    with pytest.raises(TooLargeError, match="too much memory"):
        await parse_in_sandbox(b"x", file_name="a.txt")


@pytest.mark.slow
async def test_processor_time_limit_holds(
    monkeypatch: pytest.MonkeyPatch, new_children: NewChildren, parse_in_sandbox: Parse
) -> None:
    inside(monkeypatch, "while True: pass\nresult = 0")
    with pytest.raises(DocumentError, match="too long"):
        await parse_in_sandbox(b"x", file_name="a.txt", limits=ParseLimits(cpu_seconds=1))
    assert not new_children()


@pytest.mark.parametrize("limits", [limits_for(0), limits_for(50_000_000), OCR_LIMITS], ids=["small", "large", "ocr"])
def test_a_child_that_gets_a_quarter_of_a_processor_is_not_killed(limits: ParseLimits) -> None:
    """The limit of processor time ends what runs on and on; the clock's limit is for what stands still."""
    assert limits.wall_seconds >= 4 * limits.cpu_seconds


async def test_wall_clock_limit_kills_a_sleeping_child(
    monkeypatch: pytest.MonkeyPatch, new_children: NewChildren, parse_in_sandbox: Parse
) -> None:
    inside(monkeypatch, "import time\ntime.sleep(60)\nresult = 0")
    with pytest.raises(DocumentError, match="too long"):
        await parse_in_sandbox(b"x" * 10**6, file_name="a.txt", limits=ParseLimits(wall_seconds=0.5))
    assert not new_children()


async def test_output_limit_holds(
    monkeypatch: pytest.MonkeyPatch, new_children: NewChildren, parse_in_sandbox: Parse
) -> None:
    inside(monkeypatch, "result = 'x' * 20_000_000")
    with pytest.raises(TooLargeError, match="too much text"):
        await parse_in_sandbox(b"x", file_name="a.txt", limits=ParseLimits(output_bytes=1_000_000))
    assert not new_children()


@pytest.mark.parametrize(
    "code",
    [
        "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\nresult = 0",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTRAP)\nresult = 0",
        "import os\nos.write(2, b'free(): invalid pointer')\nos.abort()\nresult = 0",
        "import os\nos._exit(7)\nresult = 0",
        "raise SystemExit\nresult = 0",
    ],
)
async def test_crash_becomes_an_error_with_its_cause(
    monkeypatch: pytest.MonkeyPatch, code: str, parse_in_sandbox: Parse
) -> None:
    inside(monkeypatch, code)
    with pytest.raises(DocumentError, match="made the reader fail") as caught:
        await parse_in_sandbox(b"x", file_name="a.txt")
    assert "exit code" in str(caught.value.__cause__)


async def test_underlying_error_reaches_the_log_without_the_text_of_the_document(parse_in_sandbox: Parse) -> None:
    sheet = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        b'<sheetData><row r="1"><c r="A1"><v>classified</v></c></row></sheetData></worksheet>'
    )
    data = samples.with_members(samples.xlsx([["x"]]), {"xl/worksheets/sheet1.xml": sheet})
    with pytest.raises(DocumentError, match="damaged") as caught:
        await parse_in_sandbox(data, file_name="a.xlsx")
    cause = str(caught.value.__cause__)
    assert "openpyxl" in cause
    assert "classified" not in cause


async def test_a_child_that_others_kill_is_not_called_too_large(
    monkeypatch: pytest.MonkeyPatch, parse_in_sandbox: Parse
) -> None:
    before = children()
    inside(monkeypatch, "import time\ntime.sleep(60)\nresult = 0")
    reading = asyncio.create_task(parse_in_sandbox(b"x", file_name="a.txt"))
    await kill_started(before)
    with pytest.raises(ReaderKilledError, match="was killed") as caught:
        await reading
    assert caught.value.retryable


def test_a_child_that_died_before_it_was_sent_its_input_is_no_error_of_ours() -> None:
    """uvloop, unlike asyncio, refuses to write to it."""
    uvloop = pytest.importorskip("uvloop")

    async def run() -> None:
        child = await asyncio.create_subprocess_exec("true", stdin=asyncio.subprocess.PIPE)
        assert child.stdin is not None
        await child.wait()
        while not child.stdin.is_closing():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
        await sandbox.feed(child.stdin, b"length", b"file")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(run(), 60))


async def test_cancellation_kills_the_child(
    monkeypatch: pytest.MonkeyPatch, new_children: NewChildren, parse_in_sandbox: Parse
) -> None:
    inside(monkeypatch, "import time\ntime.sleep(60)\nresult = 0")
    task = asyncio.create_task(parse_in_sandbox(b"x", file_name="a.txt"))
    while not new_children():
        assert not task.done()
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not new_children()


async def test_child_inherits_no_environment_and_cannot_write(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, parse_in_sandbox: Parse
) -> None:
    monkeypatch.setenv("RAG_SECRET", "hunter2")
    target = tmp_path / "written"
    inside(
        monkeypatch,
        f"import os\ntry:\n    file = open({str(target)!r}, 'wb', buffering=0); file.write(b'x'); wrote = True\n"
        "except OSError:\n    wrote = False\nresult = (sorted(os.environ), os.getcwd(), wrote)",
    )
    document = await parse_in_sandbox(b"x", file_name="a.txt")
    assert document.text == "(['LANG', 'PATH'], '/', False)"
    assert not target.exists() or target.stat().st_size == 0


ESCAPES = """
import ctypes, errno, os, resource, signal, socket, subprocess, sys
def attempt(action):
    try:
        action()
    except (OSError, ModuleNotFoundError):
        return False
    return True
victim, parent = {victim!r}, os.getppid()
def call(address, family):
    with socket.socket(family) as caller:
        caller.connect(address)
def privileged():  # beyond reading files of others, which Landlock limits
    held = next(line for line in open("/proc/self/status") if line.startswith("CapPrm"))
    if int(held.split()[1], 16) in (0, 1 << 2):
        raise OSError
def ring():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(425, 1, None) < 0 and ctypes.get_errno() in (errno.EACCES, errno.ENOSYS, errno.EPERM):
        raise OSError
def datagram():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", {datagrams!r})
done = {{
    "io_uring": attempt(ring),
    "datagram": attempt(datagram),
    "unix": attempt(lambda: socket.socket(socket.AF_UNIX)),
    "environ": attempt(lambda: open(f"/proc/{{parent}}/environ").read()),
    "secrets": attempt(lambda: open(victim).read()),
    "settings": attempt(lambda: open("/etc/shells").read()),
    "unlink": attempt(lambda: os.unlink(victim)),
    "rename": attempt(lambda: os.rename(victim, victim + "2")),
    "truncate": attempt(lambda: os.truncate(victim, 0)),
    "create": attempt(lambda: os.mkdir(victim + "3")),
    "mode": attempt(lambda: os.chmod(victim, 0o777)),
    "limits": attempt(lambda: resource.prlimit(parent, resource.RLIMIT_NOFILE)),
    "priority": attempt(lambda: os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent))),
    "processors": attempt(lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent))),
    "capabilities": attempt(privileged),
    "execute": attempt(lambda: subprocess.run([sys.executable, "-V"])),
    "signal": attempt(lambda: os.kill(parent, 0)),
    "network": attempt(lambda: call({address!r}, socket.AF_INET)),
}}
result = sorted(name for name, succeeded in done.items() if succeeded)
"""


@pytest.mark.skipif(landlock_version() < 6, reason="the kernel does not limit files and signals")
async def test_code_in_a_document_reaches_no_file_secret_process_or_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, parse_in_sandbox: Parse
) -> None:
    victim = tmp_path / "secret"
    victim.write_text("a secret")
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver,
    ):
        datagrams = Path(folder) / "log"  # as /dev/log, which anybody may write to
        datagrams.parent.chmod(0o755)
        receiver.bind(str(datagrams))
        datagrams.chmod(0o777)
        asked = ESCAPES.format(victim=str(victim), address=server.getsockname(), datagrams=str(datagrams))
        inside(monkeypatch, asked)
        assert (await parse_in_sandbox(b"x", file_name="a.txt")).text == "[]"
    assert victim.read_text() == "a secret"


async def test_data_beside_modules_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, parse_in_sandbox: Parse
) -> None:
    monkeypatch.syspath_prepend(tmp_path)  # as when the service is started in a project's folder
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "passfile").write_text("a secret")
    (tmp_path / "words.py").write_text("WORD = 'imported'")
    read = f"""
from words import WORD
try:
    result = WORD, open({str(tmp_path / "data" / "passfile")!r}).read()
except OSError:
    result = WORD
"""
    inside(monkeypatch, read)
    document = await parse_in_sandbox(b"x", file_name="a.txt")
    assert document.text == "imported" or not landlock_version()


async def test_without_landlock_documents_are_read_all_the_same(
    monkeypatch: pytest.MonkeyPatch, parse_in_sandbox: Parse
) -> None:
    monkeypatch.setattr(sandbox, "can_limit_files", lambda: False)
    assert (await parse_in_sandbox(samples.pdf("text"), file_name="a.pdf")).text.startswith("text")


def test_libraries_that_are_links_to_somewhere_else_are_not_locked_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandbox, "landlock_version", lambda: 6)
    assert sandbox.can_limit_files.__wrapped__()
    elsewhere, linked = tmp_path / "cache", tmp_path / "packages"
    for folder in (elsewhere, linked):
        (folder / "some_library").mkdir(parents=True)
    (elsewhere / "some_library" / "__init__.py").touch()
    (linked / "some_library" / "__init__.py").symlink_to(elsewhere / "some_library" / "__init__.py")
    monkeypatch.syspath_prepend(linked)
    monkeypatch.setattr(sandbox, "_LIBRARIES", ("some_library",))
    assert not sandbox.can_limit_files.__wrapped__()


async def test_child_loads_no_model_library(monkeypatch: pytest.MonkeyPatch, parse_in_sandbox: Parse) -> None:
    inside(
        monkeypatch,
        "child.parse = None\nfrom rag_service.readers.parse import parse as real\nreal(data, file_name=file_name)\n"
        "import sys\nresult = sorted(n for n, m in sys.modules.items() if m and '.' not in n)",
    )
    loaded = (await parse_in_sandbox(samples.pdf("x"), file_name="a.pdf")).text
    for heavy in ("llama_index", "torch", "numpy", "litestar", "sqlalchemy", "psycopg", "pydantic", "asyncio"):
        assert f"'{heavy}'" not in loaded


async def test_event_loop_stays_free_while_parsing(monkeypatch: pytest.MonkeyPatch, parse_in_sandbox: Parse) -> None:
    inside(monkeypatch, "import time\ntime.sleep(60 if data == b'slow' else 0)\nresult = 0")
    slow = asyncio.create_task(parse_in_sandbox(b"slow", file_name="a.txt"))
    async with watched_turns() as turns:
        await asyncio.gather(*(parse_in_sandbox(b"x" * 1_000_000, file_name="a.txt") for _ in range(4)))
    assert not slow.done()  # nobody waited for it
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)
    assert max(turns) < 0.25
