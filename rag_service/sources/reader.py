"""A LlamaIndex reader that the operator has declared, as a source of documents.

The reader runs in a process of its own (`reader_child`), whose documents are taken one by one: what is new or changed
waits in a file until it is ingested. A document is known by its id and the hash of its text and metadata.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog

from rag_service.errors import InputError
from rag_service.readers.bare_interpreter import boot, command
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.sandbox import can_limit_files, end_child, feed, warn_of_missing_limits
from rag_service.sources.declared import DeclaredReader, NewObject, Secret
from rag_service.sources.reader_child import MAX_METADATA, Done, Failed, Found, Message, Object, Request, Skipped
from rag_service.sources.source import Item, Listing, UnreadableFileError
from rag_service.store.documents.synced import SyncedFile, Version

log = structlog.get_logger(__name__)

SCHEME = "reader:"
MAX_ID = 500  # characters
_MAX_URL = 2000  # characters
_MAX_REASON = 300  # characters that are shown of what the process says
_BOOT = boot("rag_service.sources.reader_child")
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


@dataclass(frozen=True, kw_only=True)
class ReaderPolicy:
    """What all readers are held to."""

    networks: Sequence[str] = ()  # private ones that are allowed
    max_bytes: int = 10 * 1024**2  # of one document


class ReaderSource:
    """What a declared reader returns, each document named by the reader and its id."""

    poll_seconds = 300.0

    def __init__(self, name: str, readers: Mapping[str, DeclaredReader], policy: ReaderPolicy):
        """Raises InputError if no reader of this name is declared."""
        if name not in readers:
            known = f"Declared: {', '.join(sorted(readers))}." if readers else "None is declared."
            raise InputError(f"There is no reader {name!r} in RAG_SOURCE_READERS. {known}", field="target")
        self.target = f"{SCHEME}{name}"
        self._name = name
        self._reader = readers[name]
        self._policy = policy

    async def look(self) -> object:
        """None: only the reader can tell."""
        return None

    async def list(self, known: Mapping[str, SyncedFile], scratch: Path) -> Listing:
        """Run the reader, and keep what is new or has changed; raises ConfigurationError if a secret is missing.

        A reader that fails, hangs or reaches a limit is ended; the listing has what came before, and deletes nothing.
        """
        run = _Run(self._name, self._reader, self._policy, known, scratch)
        await run.read()
        return run.listing


@dataclass
class _Run:
    """One run of a reader."""

    name: str
    reader: DeclaredReader
    policy: ReaderPolicy
    known: Mapping[str, SyncedFile]
    folder: Path
    listing: Listing = field(default_factory=Listing, init=False)
    _secrets: set[str] = field(default_factory=set, init=False)
    _seen: set[str] = field(default_factory=set, init=False)  # names of documents
    _came: int = field(default=0, init=False)  # documents, those that are left aside included
    _kept_bytes: int = field(default=0, init=False)

    async def read(self) -> None:
        request = self._request()
        limits = self.reader.limits
        process = await self._start()
        try:
            async with asyncio.timeout(limits.minutes * 60):
                await self._converse(process, request)
        except TimeoutError:
            self._fail(f"The reader {self.name} took longer than {limits.minutes:g} minutes (limits.minutes).")
        finally:
            with suppress(ProcessLookupError):  # also what the reader started and left behind
                os.killpg(process.pid, signal.SIGKILL)
            await end_child(process)

    def _request(self) -> Request:
        home = self.folder / "home"
        home.mkdir()
        return Request(
            name=self.name,
            path=self.reader.use,
            options=self._resolve(self.reader.options),
            load=self._resolve(self.reader.load),
            folder=str(home),
            files=[str(file) for file in self.reader.files],
            networks=list(self.policy.networks),
            restricted=can_limit_files(),
            max_bytes=self.policy.max_bytes,
        )

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, Secret):
            read = value.read(self.name)
            self._secrets.add(read)
            return read
        if isinstance(value, NewObject):
            return Object(path=value.path, options=self._resolve(value.options))
        if isinstance(value, Mapping):
            return {str(key): self._resolve(inner) for key, inner in value.items()}
        return [self._resolve(inner) for inner in value] if isinstance(value, list) else value

    async def _start(self) -> asyncio.subprocess.Process:
        warn_of_missing_limits()
        limits = self.reader.limits
        home = str(self.folder / "home")
        numbers = (limits.memory_mb * 1024**2, max(1, round(limits.minutes * 60)), os.getpid())
        return await asyncio.create_subprocess_exec(
            *command(_BOOT), *map(str, numbers),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # it may hold secrets
            # An empty PATH: it may not run programs. One thread: each takes address space.
            env={"LANG": "C.UTF-8", "PATH": "", "HOME": home, "TMPDIR": home, "OPENBLAS_NUM_THREADS": "1"},
            cwd=home,
            start_new_session=True,  # a group of its own, so that everything in it can be killed
        )  # fmt: skip

    async def _converse(self, process: asyncio.subprocess.Process, request: Request) -> None:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the reader was started without pipes")
        await feed(process.stdin, msgspec.msgpack.encode(request))
        longest = self.policy.max_bytes + MAX_METADATA * 4
        while True:
            try:
                length = int.from_bytes(await process.stdout.readexactly(4), "big")
                # The process itself keeps to the limit.
                encoded = await process.stdout.readexactly(length) if length <= longest else b""
                message = _DECODER.decode(encoded)
            except asyncio.IncompleteReadError:
                self._fail(self._why_ended(await process.wait()))
                return
            except msgspec.MsgspecError:
                self._fail(f"The reader {self.name} disturbed its process, which sent what cannot be read.")
                return
            if isinstance(message, Done):
                self._note_refused(message.refused)
                return
            if isinstance(message, Failed):
                log.warning("reader_failed", reader=self.name, place=message.detail)
                self._fail(message.message)
                return
            if reason := self._limit_reached():
                self._skip(f"{SCHEME}{self.name}", reason, unseen=True)
                return
            await self._take(message)

    def _why_ended(self, code: int) -> str:
        if code == -signal.SIGXCPU:
            return f"The reader {self.name} used all of its processor time (limits.minutes)."
        if code == -signal.SIGKILL:
            return f"The process of the reader {self.name} was killed, perhaps because the machine is out of memory."
        return f"The process of the reader {self.name} ended without a result (exit code {code})."

    def _fail(self, message: str) -> None:
        for secret in self._secrets:
            message = message.replace(secret, "…")
        before = f" Documents that came before: {len(self.listing.items)}." if self.listing.items else ""
        self.listing.failure = f"{message}{before} Nothing was deleted."
        self.listing.unseen.append("")

    def _note_refused(self, addresses: Sequence[str]) -> None:
        """A reader may catch the error, and leave documents out."""
        if addresses:
            told = ", ".join(addresses)[:_MAX_REASON]
            self._skip(f"{SCHEME}{self.name}", f"RAG_SYNC_NETWORKS does not let it connect to {told}", unseen=True)

    def _limit_reached(self) -> str:
        """Why no further document is taken; empty: none of the limits is reached."""
        limits = self.reader.limits
        if self._came >= limits.documents:
            return f"there are more than {limits.documents} documents (limits.documents)"
        if self._kept_bytes >= limits.megabytes * 1024**2:
            return f"more than {limits.megabytes} MB have changed (limits.megabytes); the next run goes on"
        return ""

    async def _take(self, message: Found | Skipped) -> None:
        self._came += 1
        if problem := _check_id(message.id):
            # Whose document this is cannot be told: it may be one that is stored.
            self._skip(f"{self.name}: document {self._came}", problem, unseen=True)
            return
        name = f"{self.name}/{message.id}"
        if name in self._seen:
            self._skip(f"{name} (document {self._came})", "another document has the same id")
            return
        self._seen.add(name)
        if isinstance(message, Skipped):
            self._skip(name, message.reason[:_MAX_REASON])
            return
        await self._add(name, message)

    async def _add(self, name: str, found: Found) -> None:
        digest = hashlib.sha256(found.data).hexdigest()
        version = Version(size_bytes=len(found.data), etag=digest)
        file: Path | None = None
        known = self.known.get(name)
        if known is None or known.version != version:
            file = self.folder / hashlib.sha256(name.encode()).hexdigest()
            await asyncio.to_thread(file.write_bytes, found.data)
            self._kept_bytes += len(found.data)
        self.listing.items.append(
            Item(
                name=name,
                file_name=_file_name(found),
                version=version,
                read=partial(_read, file, version),
                origin=found.url if _is_address(found.url) else None,
            )
        )

    def _skip(self, name: str, reason: str, *, unseen: bool = False) -> None:
        """`unseen`: there may be documents behind it that are known."""
        self.listing.left.append((name, reason))
        if unseen and not self.listing.unseen:
            self.listing.unseen.append("")


def _check_id(id: str) -> str:
    """What is wrong with the id of a document; empty: nothing."""
    if not id.strip():
        return "has no id, or one that is no text"
    if len(id) > MAX_ID or not id.isprintable():
        return f"has an id of more than {MAX_ID} characters, or with invisible ones"
    return ""


async def _read(file: Path | None, version: Version) -> tuple[bytes, Version]:
    if file is None:
        raise UnreadableFileError("was not kept; sync again")
    return await asyncio.to_thread(file.read_bytes), version


def _file_name(found: Found) -> str:
    """Its title, else the last part of its id, as the name of the Markdown file that it is."""
    title = found.title.replace("/", " ").replace("\\", " ").strip()
    return clean_file_name(f"{title or found.id}.md")


def _is_address(url: str) -> bool:
    return url.startswith(("http://", "https://")) and len(url) <= _MAX_URL and url.isprintable()
