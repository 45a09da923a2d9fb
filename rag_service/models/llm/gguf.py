"""The provider `gguf`: a model file in a llama.cpp server that the service starts, watches, restarts and stops.

    server = LlamaServer.of(settings)
    server.start()                # returns at once
    url = await server.address()  # once the model is loaded

The server is a process of its own, `llama_process.py`: a model that crashes, or fills the memory, ends that process.
It listens on loopback and wants a key that only this process knows. LlamaIndex's class for servers with the OpenAI
API speaks to it, through transports that know where it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import ssl
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

import httpx
import structlog
from pydantic import BaseModel, ConfigDict, Field

from rag_service.errors import ConfigurationError, ModelError
from rag_service.machine import memory_bytes
from rag_service.models.llm import llama_process
from rag_service.models.llm.gguf_file import SETTING, GgufFile, find_gguf, read_gguf, shown_name
from rag_service.models.plugins import instantiate, parse_options, require_extra
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

_OPTIONS = "RAG_CHAT_OPTIONS"
_LOAD_SECONDS = 600.0  # until a model is loaded: tens of gigabytes from a slow disk
_STEADY_SECONDS = 60.0  # a process that has lived this long is started again at once
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0  # seconds before the next start; doubled from one failure to the next
_ASK_SECONDS, _MAX_SILENT = 5.0, 3  # a server that has not said for three times this long that it is well hangs
_END_SECONDS = 5.0  # for a process to end by itself
_KEPT_LINES = 8  # of what a process says before it ends
# No certificates are read for loopback, and the callers limit concurrency.
_CONNECTIONS: dict[str, Any] = {"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "limits": httpx.Limits()}


class LlamaOptions(BaseModel):
    """What RAG_CHAT_OPTIONS may hold for the server; the rest is for LlamaIndex's class."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    threads: int | None = Field(None, ge=1)  # unset: as many as llama.cpp thinks fit
    gpu_layers: int | None = Field(None, ge=0)  # of a wheel for GPUs; unset: what fits into its memory
    chat_template: str | None = None  # Jinja, or the path of a file with it; unset: that of the model


class LlamaServerError(httpx.ConnectError):
    """The server does not run. For clients a connection that failed, which may be tried again."""


class ModelLoadingError(ModelError):
    """For /health/ready: the server of the model is being started."""

    code = "model_loading"


class LlamaServer:
    """One llama.cpp server for all calls of the process. Its methods may be called from any thread and loop."""

    def __init__(self, file: GgufFile, *, name: str, window: int, slots: int, options: LlamaOptions):
        """
        Args:
            name: of the model, as answers tell it.
            window: tokens that a prompt and its answer share.
            slots: answers that are written at a time; others wait.
        """
        self.name = name
        self.key = secrets.token_urlsafe(24)
        self._parameters = {
            "path": str(file.path.absolute()),
            "name": name,
            "key": self.key,
            "window": window,
            "slots": slots,
            **options.model_dump(),
        }
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._keeper: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._address: Future[str | None] = _pending()  # None: it does not run
        self._reason = "It has not been started."  # why it does not run

    @classmethod
    def of(cls, settings: Settings) -> LlamaServer:
        """The server of the settings, not started.

        Raises ConfigurationError if the package is missing, or the file cannot be used as the settings say.
        """
        require_extra("xllamacpp", extra="gguf", setting="RAG_CHAT_PROVIDER", value="gguf")
        options, _ = split_options(settings)
        file = read_gguf(find_gguf(settings.chat.model))
        _check_fits(file, settings, options)
        return cls(
            file,
            name=shown_name(settings.chat.model),
            window=settings.chat.context_window,
            slots=settings.chat.concurrency,
            options=options,
        )

    def start(self) -> None:
        """Start the server unless that has been done, and keep it running. Does not wait for it."""
        with self._lock:
            if self._keeper is None and not self._closing.is_set():
                self._keeper = threading.Thread(target=self._keep, name="llama-server", daemon=True)
                self._keeper.start()

    async def address(self) -> str:
        """Base URL of the running server, which is started if need be. LlamaServerError says why it does not run."""
        self.start()
        return self._require(await asyncio.wrap_future(self._address))

    def wait_for_address(self) -> str:
        """The same for plain code."""
        self.start()
        return self._require(self._address.result())

    def _require(self, address: str | None) -> str:
        if address is None:
            raise LlamaServerError(self._reason)
        return address

    async def check(self) -> None:
        """Return if the server runs and answers. Raises ModelLoadingError, or ModelError if it is down."""
        self.start()
        if not self._address.done():
            raise ModelLoadingError("The language model is being loaded.")
        try:
            async with httpx.AsyncClient(timeout=_ASK_SECONDS / 2, trust_env=False) as client:
                (await client.get(f"{await self.address()}/health")).raise_for_status()
        except httpx.HTTPError as error:
            raise ModelError("The server of the language model does not run.") from error

    def close(self) -> None:
        """Stop the server for good. Blocks for some seconds at most."""
        with self._lock:
            self._closing.set()
            process, keeper = self._process, self._keeper
        if process is not None:
            _end(process)
        if keeper is not None:
            keeper.join(_END_SECONDS)
        self._say_down("It has been stopped.")

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def _keep(self) -> None:
        """Start a process, watch it until it ends, and again, with growing pauses."""
        wait = 0.0
        while not self._closing.wait(wait):
            if self._address.done():
                self._address = _pending()
            began = time.monotonic()
            reason = self._run()
            self._say_down(reason)
            if not self._closing.is_set():
                steady = time.monotonic() - began > _STEADY_SECONDS
                wait = _FIRST_WAIT if steady else min(max(_FIRST_WAIT, wait * 2), _LONGEST_WAIT)
                log.error("llama_server_ended", model=self.name, reason=reason, again_in_seconds=wait)

    def _say_down(self, reason: str) -> None:
        """Tell whoever waits for the address, and whoever asks for it from now on."""
        self._reason = reason
        if self._address.done():
            self._address = _pending()
        self._address.set_result(None)

    def _run(self) -> str:
        """Start one process and wait until it has ended; returns why."""
        said: deque[str] = deque(maxlen=_KEPT_LINES)
        began = time.monotonic()
        try:
            with self._started() as process, _read_lines(process.stderr, said):
                url = _read_address(process)
                if url is not None:
                    seconds = round(time.monotonic() - began, 1)
                    log.info("llama_server_started", model=self.name, url=url, process_id=process.pid, seconds=seconds)
                    self._address.set_result(url)
                    if not _watch(process, url):
                        return "It did not answer any more."
                _end(process)
        except OSError as error:
            return f"It cannot be started: {error}."
        return " ".join([f"It ended with {process.returncode}.", *said])

    @contextlib.contextmanager
    def _started(self) -> Iterator[subprocess.Popen[bytes]]:
        """A process that has its parameters; it is ended with the block."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAG_")}
        # A script by its path, and none of our folders on the path of modules: it imports nothing of the service.
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", llama_process.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the service, which lets answers finish before it ends
        )
        try:
            with self._lock:
                self._process = process
                stopped = self._closing.is_set()
            if stopped:
                _end(process)
            elif process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(json.dumps(self._parameters).encode() + b"\n")
                    process.stdin.flush()
            yield process
        finally:
            _end(process)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def split_options(settings: Settings) -> tuple[LlamaOptions, dict[str, Any]]:
    """RAG_CHAT_OPTIONS for the server, and for LlamaIndex's class. Raises ConfigurationError if a value is wrong."""
    given = parse_options(settings.chat.options, setting=_OPTIONS)
    of_server = {name: given.pop(name) for name in LlamaOptions.model_fields if name in given}
    template = of_server.get("chat_template")
    if isinstance(template, str) and "{" not in template:
        try:
            of_server["chat_template"] = Path(template).expanduser().read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{_OPTIONS}: chat_template: {template} cannot be read.", field=_OPTIONS
            ) from error
    return instantiate(LlamaOptions, of_server, setting=_OPTIONS), given


class AsyncLlamaTransport(httpx.AsyncBaseTransport):
    """Sends requests to wherever the server is."""

    def __init__(self, server: LlamaServer):
        self._server = server
        self._inner = httpx.AsyncHTTPTransport(**_CONNECTIONS)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        _direct(request, await self._server.address(), self._server.key)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class LlamaTransport(httpx.BaseTransport):
    """The same for plain code."""

    def __init__(self, server: LlamaServer):
        self._server = server
        self._inner = httpx.HTTPTransport(**_CONNECTIONS)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        _direct(request, self._server.wait_for_address(), self._server.key)
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def _direct(request: httpx.Request, address: str, key: str) -> None:
    there = httpx.URL(address)
    request.url = request.url.copy_with(scheme=there.scheme, host=there.host, port=there.port)
    request.headers["Host"] = there.netloc.decode("ascii")
    request.headers["Authorization"] = f"Bearer {key}"


def _check_fits(file: GgufFile, settings: Settings, options: LlamaOptions) -> None:
    """Raises ConfigurationError unless the model can chat, has this window, and fits into the memory."""
    window, slots = settings.chat.context_window, settings.chat.concurrency
    if not (file.has_chat_template or options.chat_template):
        raise ConfigurationError(
            f"{SETTING}: {file.path.name} has no chat template, so it is not made for instructions: choose an instruct"
            f" model, or give a template as `chat_template` in {_OPTIONS}.",
            field=SETTING,
        )
    if file.context_length is not None and window > file.context_length:
        raise ConfigurationError(
            f"RAG_CONTEXT_WINDOW is {window}, but {file.path.name} has a context window of {file.context_length}"
            f" tokens. Set it to {file.context_length} or less.",
            field="RAG_CONTEXT_WINDOW",
        )
    cache, memory = file.cache_bytes * window * slots, memory_bytes()
    if options.gpu_layers is None and 0 < memory < file.size + cache:
        raise ConfigurationError(
            f"{SETTING}: {file.path.name} needs {(file.size + cache) / 1e9:.1f} GB of memory"
            f" ({file.size / 1e9:.1f} for its weights, {cache / 1e9:.1f} for {slots} context windows of {window}"
            f" tokens), and there are {memory / 1e9:.1f}: choose a smaller file, or lower RAG_CONTEXT_WINDOW or"
            " RAG_MODEL_CONCURRENCY.",
            field=SETTING,
        )


def _pending() -> Future[str | None]:
    """A future that those who wait for it cannot cancel."""
    future: Future[str | None] = Future()
    future.set_running_or_notify_cancel()
    return future


@contextlib.contextmanager
def _read_lines(pipe: IO[bytes] | None, kept: deque[str]) -> Iterator[None]:
    """Reads what a process says, in a thread, so that it never waits for a reader; the last lines are kept."""

    def read() -> None:
        for line in pipe or ():
            kept.append(line.decode("utf-8", "replace").strip()[:500])

    reader = threading.Thread(target=read, name="llama-server-log", daemon=True)
    reader.start()
    try:
        yield
    finally:
        reader.join(1)


def _read_address(process: subprocess.Popen[bytes]) -> str | None:
    """The address that the process prints when the model is loaded; None if it ended, or was too slow."""
    too_slow = threading.Timer(_LOAD_SECONDS, process.kill)
    too_slow.daemon = True
    too_slow.start()
    try:
        line = process.stdout.readline() if process.stdout else b""
        return str(json.loads(line)["url"]) if line else None
    finally:
        too_slow.cancel()


def _watch(process: subprocess.Popen[bytes], url: str) -> bool:
    """Wait until the process ends; False if it lives but does not answer any more."""
    silent = 0
    with httpx.Client(timeout=_ASK_SECONDS, trust_env=False) as client:
        while silent < _MAX_SILENT:
            try:
                process.wait(_ASK_SECONDS)
                return True
            except subprocess.TimeoutExpired:
                pass
            try:
                client.get(f"{url}/health")
                silent = 0
            except httpx.HTTPError:
                silent += 1
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process: it ends by itself when its input closes, unless it hangs."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
