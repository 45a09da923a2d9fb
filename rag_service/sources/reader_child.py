"""Runs a declared reader in a process of its own: sets the limits, reads one request, writes what the reader returns.

Started by `reader`. The class is the operator's choice; what it reads is anybody's. So the process has no environment
and no files of the service, cannot open Unix sockets or leave its group, and Python's own sockets connect to allowed
addresses only. Each document goes out as soon as it is there, as a Markdown file whose front matter is the metadata.
"""

from __future__ import annotations

import difflib
import inspect
import ipaddress
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import msgspec
import yaml

from rag_service.errors import ConfigurationError, RagError, SourceError
from rag_service.readers.landlock import restrict_to
from rag_service.readers.sandbox_child import SYSTEM_FILES, importable, set_limits
from rag_service.readers.seccomp import confine
from rag_service.sources.fetch import Network, is_allowed

MAX_METADATA = 50_000  # characters of a front matter; its reader takes 65,536
_MAX_FILE = 200 * 1024 * 1024  # bytes that a reader may write to one temporary file
_OPEN_FILES = 1_024
_MAX_DEPTH = 5  # of nested metadata
_MAX_REFUSED = 5  # addresses that are told
# What name resolution and TLS read besides the files of every sandbox.
_NETWORK_FILES = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
    "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/ca-certificates",
)  # fmt: skip


class Object(msgspec.Struct, frozen=True, tag=True):
    """An argument that is an object."""

    path: str
    options: dict[str, Any]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # of the reader, for errors
    path: str  # package.module:Class
    options: dict[str, Any]  # values, or an encoded `Object`
    load: dict[str, Any]
    folder: str  # where it may write
    files: list[str]  # that it may read besides
    networks: list[str]  # that it may reach besides the public internet
    restricted: bool  # to these files
    max_bytes: int  # of a document


class Found(msgspec.Struct, frozen=True, tag=True):
    """A document. Nothing of it is trusted."""

    id: str
    title: str
    url: str
    data: bytes  # the Markdown file


class Skipped(msgspec.Struct, frozen=True, tag=True):
    """A document that is not taken."""

    id: str
    reason: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """The reader has returned everything."""

    refused: tuple[str, ...]  # addresses that it could not reach


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The reader has failed."""

    message: str  # for the administrator, without any text of the reader's
    detail: str  # for the log: where it happened; empty if that is of no use


Message = Found | Skipped | Done | Failed


def main() -> None:
    """Entry point. Arguments: memory in bytes, CPU seconds, process id of the parent."""
    memory, cpu_seconds, parent = (int(argument) for argument in sys.argv[1:4])
    set_limits(memory, cpu_seconds, _OPEN_FILES, parent, file_bytes=_MAX_FILE, processes=None, network=True)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a reader prints must not garble the replies, and may hold its secrets
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Request)
    if request.restricted:
        readable = [*SYSTEM_FILES, *_NETWORK_FILES, *importable(request.path), *request.files]
        restrict_to(readable, writable=[request.folder, "/dev/null"], network=True)
    confine(network=True, changes_attributes=True)  # copies of files in its folder keep their attributes
    guard = AddressGuard([ipaddress.ip_network(network) for network in request.networks])
    sys.addaudithook(guard)
    last: Message
    try:
        for document in _documents(request):
            _send(replies, describe(document, request.max_bytes))
        last = Done(refused=tuple(guard.refused))
    except BaseException as error:  # noqa: BLE001 - readers raise anything, SystemExit included
        last = describe_failure(error, request.name, refused=guard.refused)
    _send(replies, last)
    os._exit(0)  # its threads may go on for ever


def _send(replies: BinaryIO, message: Message) -> None:
    encoded = msgspec.msgpack.encode(message)
    replies.write(len(encoded).to_bytes(4, "big") + encoded)
    replies.flush()


def _documents(request: Request) -> Iterator[object]:
    """What the reader returns, as it comes where the class can do that."""
    from llama_index.core.readers.base import BaseReader

    from rag_service.models.plugins import instantiate, load_class

    setting = f"RAG_SOURCE_READERS: {request.name}"
    cls = load_class(request.path, BaseReader, setting=setting)
    reader = instantiate(cls, _arguments(request.options, setting), setting=setting)
    arguments = _arguments(request.load, setting)
    if cls.lazy_load_data is not BaseReader.lazy_load_data:
        return _each(_called(reader.lazy_load_data, arguments, setting))
    return _each(_called(reader.load_data, arguments, setting))


def _arguments(values: Mapping[str, Any], setting: str) -> dict[str, Any]:
    from rag_service.models.plugins import build

    def make(value: Any) -> Any:
        if isinstance(value, dict) and value.get("type") == "Object":
            wanted = msgspec.convert(value, Object)
            return build(
                wanted.path, {key: make(inner) for key, inner in wanted.options.items()}, object, setting=setting
            )
        if isinstance(value, dict):
            return {key: make(inner) for key, inner in value.items()}
        return [make(inner) for inner in value] if isinstance(value, list) else value

    return {key: make(value) for key, value in values.items()}


def _called(method: Callable[..., Any], arguments: Mapping[str, Any], setting: str) -> Any:
    """Call a method, with an error of ours if it has no such arguments."""
    parameters = inspect.signature(method).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        for name in arguments:
            if name not in parameters:
                near = difflib.get_close_matches(name, parameters, n=1)
                hint = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(parameters) or 'none'}."
                raise ConfigurationError(f"{setting}: load: {method.__name__} has no argument {name!r}.{hint}")
    return method(**arguments)


def _each(returned: Any) -> Iterator[object]:
    """Its documents one by one; a list is emptied meanwhile."""
    if isinstance(returned, list):
        returned.reverse()
        while returned:
            yield returned.pop()
    elif isinstance(returned, Iterable):
        yield from returned
    else:
        raise SourceError(f"The reader returned {type(returned).__name__} where documents were expected.")


def describe(document: Any, max_bytes: int) -> Found | Skipped:
    from llama_index.core.schema import BaseNode, MetadataMode

    if not isinstance(document, BaseNode):
        raise SourceError(f"The reader returned {type(document).__name__} where a document was expected.")
    id = _storable(document.id_) if isinstance(document.id_, str) else ""
    text = document.get_content(MetadataMode.NONE)
    if not text.strip():
        return Skipped(id=id, reason=f"has no text ({type(document).__name__})")
    metadata = _plain(document.metadata, 0)
    too_long = Skipped(id=id, reason=f"has more than {MAX_METADATA // 1000} KB of metadata")
    if len(json.dumps(metadata, ensure_ascii=False)) > MAX_METADATA:  # quicker to find out than by YAML
        return too_long
    front = yaml.dump(
        metadata, Dumper=_Dumper, allow_unicode=True, width=float("inf"), sort_keys=True, default_flow_style=False
    )
    if len(front) > MAX_METADATA:
        return too_long
    data = f"---\n{front}---\n{text}".encode(errors="replace")
    if len(data) > max_bytes:
        return Skipped(id=id, reason=f"is larger than {max_bytes // 1024**2} MB (RAG_UPLOAD_MAX_MB)")
    title, url = metadata.get("title"), metadata.get("url")
    return Found(
        id=id, title=title if isinstance(title, str) else "", url=url if isinstance(url, str) else "", data=data
    )


class _Dumper(yaml.SafeDumper):
    """YAML without aliases, which readers of front matter refuse."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _plain(value: Any, depth: int) -> Any:
    """Metadata as values of JSON. Whatever else there is becomes text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _storable(value[: MAX_METADATA + 1])
    if depth < _MAX_DEPTH and isinstance(value, Mapping):
        return {_storable(str(key)): _plain(inner, depth + 1) for key, inner in value.items()}
    if depth < _MAX_DEPTH and isinstance(value, list | tuple | set | frozenset):
        values = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_plain(inner, depth + 1) for inner in values]
    return _storable(str(value)[: MAX_METADATA + 1])


def _storable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair, which can be neither stored nor sent."""
    return text.encode(errors="replace").decode()


@dataclass
class AddressGuard:
    """Refuses connections of Python's sockets to addresses that are not allowed; they are checked after resolution."""

    networks: list[Network]
    refused: list[str] = field(default_factory=list)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("socket.connect", "socket.sendto", "socket.sendmsg") or arguments[1] is None:
            return
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) and address else None
        try:
            # A name would be resolved once more behind our back.
            allowed = isinstance(host, str) and is_allowed(ipaddress.ip_address(host.partition("%")[0]), self.networks)
        except ValueError:
            allowed = False
        if not allowed:
            told = f"{host}:{address[1]}" if isinstance(host, str) else "a socket that is none of the internet"
            if told not in self.refused and len(self.refused) < _MAX_REFUSED:
                self.refused.append(told)
            raise PermissionError(13, "RAG_SYNC_NETWORKS does not allow this address")


def describe_failure(error: BaseException, name: str, *, refused: Sequence[str] = ()) -> Failed:
    """What the administrator is told. The message of an error may hold a secret, or text of a document."""
    if isinstance(error, RagError):
        message = error.message
    elif isinstance(error, MemoryError):
        message = f"The reader {name} needs more memory than it may use (limits.memory_mb)."
    else:
        message = f"The reader {name} failed: {type(error).__name__}."
    chain = _causes(error)
    telling = next((one for one in chain if _status(one) is not None), chain[-1])
    status = _status(telling)
    message += f" HTTP status: {status}." if status is not None else ""
    message += f" RAG_SYNC_NETWORKS does not let it connect to {refused[0]}." if refused else ""
    return Failed(message=message, detail=_origin(telling))


def _causes(error: BaseException) -> list[BaseException]:
    """The error and what led to it, the origin last; `raise error from error` makes an error its own cause."""
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None and inner not in chain:
        chain.append(inner)
    return chain


def _status(error: BaseException) -> int | None:
    """The HTTP status that an error carries, where libraries usually put it."""
    response = getattr(error, "response", None)
    found = (getattr(holder, "status_code", None) for holder in (response, error))
    return next((status for status in found if isinstance(status, int)), None)


def _origin(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
