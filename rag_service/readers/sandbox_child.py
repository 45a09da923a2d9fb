"""Runs inside the sandbox: sets the limits, reads one document from stdin and writes one reply to stdout.

Started by `sandbox` in a bare interpreter, or forked by `fork_server`. It imports little, because code that is not
loaded cannot be attacked and takes no time.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import struct
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

import msgspec

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers.landlock import enforce, libc, restrict_to
from rag_service.readers.ocr.recognition import NeedsOcrError, OcrMode, ocr_mode
from rag_service.readers.parse import ReaderClass, parse
from rag_service.readers.seccomp import confine

OUT_OF_MEMORY = "out_of_memory"  # a Failure's code besides the codes of DocumentError
NEEDS_OCR = "needs_ocr"  # likewise: the file should be read again with text recognition
_OCR_NICENESS = 10  # recognition takes minutes, during which others want to go on
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CAPABILITIES_VERSION = 0x20080522
_DAC_READ_SEARCH = 1 << 2  # kept: libraries may be readable by another user only
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_BATCH = 10_000  # spans that the parent decodes at once: about 10 ms of its event loop
OWN_PROCESS = "/proc/self"  # of whoever opens it: a child that is forked does without
# Libraries, their data, and what they ask of the machine; of its configuration no more, which may hold secrets.
SYSTEM_FILES = (
    "/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store", "/etc/ld.so.cache", "/etc/localtime",
    "/etc/mime.types", "/etc/apache2/mime.types", "/etc/httpd/mime.types", "/etc/httpd/conf/mime.types",
    "/etc/passwd", "/etc/nsswitch.conf", "/etc/os-release", "/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf",
    "/dev/null", "/dev/urandom", OWN_PROCESS, "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu",
)  # fmt: skip
# Optional dependencies of our parsers' libraries that cost time or address space and are not needed for text.
_NEEDLESS_MODULES = ("numpy", "PIL", "pandas")


class Request(msgspec.Struct, frozen=True):
    name: str  # of the file, cleaned
    reader: ReaderClass | None = None  # it gets the path of a copy instead of the bytes
    folder: str = ""  # of the copy
    restricted: bool = False  # to the files that Python and the system need
    ocr: bool = False  # recognise text in scanned pages; without it they are answered by NEEDS_OCR


class Success(msgspec.Struct, tag=True, frozen=True):
    document: ParsedDocument  # without its spans
    spans: tuple[msgspec.Raw, ...]  # tuple[Span, ...] in batches, to be decoded one at a time


class Failure(msgspec.Struct, tag=True, frozen=True):
    code: str  # of the DocumentError, or OUT_OF_MEMORY
    message: str  # for the uploader
    detail: str = ""  # for the log: where it happened, without any text of the document


Reply = Success | Failure


def main() -> None:
    """Entry point. Arguments: memory in bytes, CPU seconds, open files, process id of the parent."""
    answer_request(*(int(argument) for argument in sys.argv[1:5]))


def answer_request(
    memory: int, cpu_seconds: int, open_files: int, parent: int, *, ruleset: int | None = None, network: bool = False
) -> NoReturn:
    """Answer the request on stdin under these limits, and end the process.

    `ruleset`: Landlock's for this process, where it has been prepared; None: it is made here. `network`: nothing takes
    the network away but the filter of system calls; the process was forked by one that has none.
    """
    set_limits(memory, cpu_seconds, open_files, parent, network=network)
    gc.set_threshold(500_000)  # collecting would double the time: nearly all objects stay
    replies = os.dup(1)
    os.dup2(2, 1)  # libraries that print must not garble the reply
    header = sys.stdin.buffer.read(4)
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(int.from_bytes(header, "big")), type=Request)
    if request.restricted and ruleset is not None:
        enforce(ruleset)
    elif request.restricted:
        named = request.reader.path if request.reader else None
        restrict_to([*SYSTEM_FILES, *importable(named), *filter(None, [request.folder])])
    if request.ocr:
        os.nice(_OCR_NICENESS)
    confine()
    if request.reader is None and not request.ocr:
        forbid_needless_modules()
    else:
        os.environ["OPENBLAS_NUM_THREADS"] = (
            "1"  # LlamaIndex and recognition load numpy, which may start no threads here
        )
    with os.fdopen(replies, "wb") as stream:
        stream.write(_answer(request))
    os._exit(0)  # the answer is out: tearing down a large heap would only take time


def forbid_needless_modules() -> None:
    """Make the import of large modules that no reader of ours needs fail at once."""
    for module in _NEEDLESS_MODULES:
        sys.modules[module] = None  # type: ignore[assignment]


def frame(request: Request, data: bytes) -> tuple[bytes, bytes]:
    """The two parts that the child expects on stdin: the request with its length, and the file."""
    encoded = msgspec.msgpack.encode(request)
    return len(encoded).to_bytes(4, "big") + encoded, data


def importable(class_path: str | None) -> Iterator[str]:
    """What Python may load, the module of a class included.

    A folder on the import path that is not one of Python's own or of installed packages, such as the one where the
    service was started, may hold data as well: of it only modules and packages.
    """
    yield f"{sys.base_prefix}/lib"  # shared libraries of a Python of its own, as conda has them
    named = (class_path or "").partition(":")[0].partition(".")[0]
    for folder in sys.path:
        try:
            entries = list(os.scandir(folder))
        except OSError:  # an archive
            yield folder
            continue
        if folder.startswith(f"{sys.base_prefix}/") or any(entry.name.endswith(".dist-info") for entry in entries):
            yield folder
        else:
            yield from (entry.path for entry in entries if entry.name == named or _is_code(entry))


def _is_code(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir():
        return os.path.exists(f"{entry.path}/__init__.py")  # noqa: PTH110 - pathlib would take 5 ms to load
    return entry.name.endswith((".py", ".pyc", ".so"))


def _answer(request: Request) -> bytes:
    try:
        with ocr_mode(OcrMode.ON if request.ocr else OcrMode.ASK):
            return _encode(parse(sys.stdin.buffer.read(), file_name=request.name, reader=request.reader))
    except NeedsOcrError:
        reply: Reply = Failure(NEEDS_OCR, "")
    except DocumentError as error:
        reply = Failure(error.code, error.message, _origin(error.__cause__))
    except MemoryError:
        reply = Failure(OUT_OF_MEMORY, "")
    return msgspec.msgpack.encode(reply)


def _encode(document: ParsedDocument) -> bytes:
    spans = document.spans
    batches = (spans[start : start + _BATCH] for start in range(0, len(spans), _BATCH))
    raw = tuple(msgspec.Raw(msgspec.msgpack.encode(batch)) for batch in batches)
    return msgspec.msgpack.encode(Success(replace(document, spans=()), raw))


def _origin(cause: BaseException | None) -> str:
    """Type and location of the underlying error, without its message, which may quote the document."""
    if cause is None:
        return ""
    trace = cause.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
    return f"{type(cause).__name__}{place}"


def set_limits(
    memory: int,
    cpu_seconds: int,
    open_files: int,
    parent: int,
    *,
    file_bytes: int = 0,
    processes: int | None = 0,
    network: bool = False,
) -> None:
    """Set hard limits before a byte of the document is read.

    `file_bytes`: that may be written to a file; `processes`: that may be started, None for any number; `network`:
    whether it may be used.
    """
    import resource  # POSIX only; the service imports this module, too

    wanted = {
        resource.RLIMIT_AS: (memory, memory),
        # At the soft limit SIGXCPU ends the process; a second later nothing can stop SIGKILL.
        resource.RLIMIT_CPU: (cpu_seconds, cpu_seconds + 1),
        resource.RLIMIT_FSIZE: (file_bytes, file_bytes),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_NOFILE: (open_files, open_files),
    }
    if processes is not None and hasattr(resource, "RLIMIT_NPROC"):
        wanted[resource.RLIMIT_NPROC] = (processes, processes)  # no further processes or threads (root is exempt)
    for kind, pair in wanted.items():
        _limit(kind, pair)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    if sys.platform == "linux":
        _restrict_on_linux(parent, network=network)


def _limit(kind: int, pair: tuple[int, int]) -> None:
    """A limit may already be tighter from outside; it is never widened."""
    import resource

    hard = resource.getrlimit(kind)[1]
    tightest = pair if hard == resource.RLIM_INFINITY else (min(pair[0], hard), min(pair[1], hard))
    try:
        resource.setrlimit(kind, tightest)
    except (ValueError, OSError):
        # macOS refuses any limit of the address space; `sandbox` has warned. The other limits hold there.
        if not (sys.platform == "darwin" and kind == resource.RLIMIT_AS):
            raise


def _restrict_on_linux(parent: int, *, network: bool) -> None:
    """No new privileges, death with the parent; no network where the kernel permits that (best effort)."""
    libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # the parent died before the line above
    drop_privileges(network=network)


def drop_privileges(*, network: bool) -> None:
    """Give up what a process may gain or has as root, and its network unless it keeps the `network` that it has."""
    libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if not network and libc().unshare(_CLONE_NEWNET) != 0:
        libc().unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    _drop_capabilities()


def _drop_capabilities() -> None:
    """Root could set the clock, watch all files or restart the machine: no limit above is about that."""
    header = struct.pack("=Ii", _CAPABILITIES_VERSION, 0)
    sets = ctypes.create_string_buffer(24)  # effective, permitted and inheritable, of 32 capabilities each; twice
    if libc().capget(header, sets):
        raise OSError(ctypes.get_errno(), "capget")
    kept = struct.unpack("=6I", sets.raw)[1] & _DAC_READ_SEARCH
    if libc().capset(header, struct.pack("=6I", kept, kept, 0, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "capset")
