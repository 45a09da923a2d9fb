"""LlamaIndex readers that return what they are told to, and those that misbehave."""

from __future__ import annotations

import os
import socket
import sys
import time
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document, ImageDocument


class Client:
    """What a reader may want as an argument."""

    def __init__(self, token: str):
        self.token = token


class Pages(BaseReader):
    """Returns documents as given: id, text, metadata."""

    def __init__(self, pages: Sequence[Sequence[Any]] = ()):
        self._pages = pages

    def lazy_load_data(self, space: str | None = None) -> Iterable[Document]:
        for id, text, metadata in self._pages:
            if space in (None, metadata.get("space")):
                yield Document(id_=id, text=text, metadata=metadata)


class Curious(BaseReader):
    """Tries what it may not do, and returns what came of it, a document for each."""

    def __init__(self, client: Client, *, secret_file: str, unix: str, port: int):
        self._client = client
        self._secret_file = secret_file
        self._unix = unix
        self._port = port

    def load_data(self) -> list[Document]:
        def unix() -> str:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(self._unix)
            return "connected"

        def loopback() -> str:
            return str(urllib.request.urlopen(f"http://127.0.0.1:{self._port}/", timeout=5).read())

        def named() -> str:
            with socket.socket() as client:
                client.connect(("localhost", self._port))
            return "connected"

        def listen() -> str:
            with socket.create_server(("127.0.0.1", 0)):
                return "listens"

        print("token", self._client.token)  # noqa: T201 - it must show nowhere
        print("token", self._client.token, file=sys.stderr)  # noqa: T201
        tried = {
            "token": lambda: str(len(self._client.token)),
            "environment": lambda: " ".join(sorted(os.environ)),
            "file": lambda: Path(self._secret_file).read_text(),
            "parent": lambda: Path(f"/proc/{os.getppid()}/environ").read_text(),
            "unix": unix,
            "unix socket": lambda: str(socket.socket(socket.AF_UNIX).family),
            "loopback": loopback,
            "named": named,
            "listen": listen,
            "temporary": lambda: str(Path(os.environ["TMPDIR"], "x").write_text("x")),
        }
        documents = []
        for name, attempt in tried.items():
            try:
                text = attempt()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
                text = f"refused: {type(error).__name__}"
            documents.append(Document(id_=name, text=text))
        return documents


class Faulty(BaseReader):
    def __init__(self, fault: str, token: str = ""):
        self._fault = fault
        self._token = token

    def load_data(self) -> Any:
        match self._fault:
            case "returns texts":
                return ["no document"]
            case "returns nothing":
                return None
            case "is too large for its memory":
                return [Document(id_="a", text="x" * 1_000_000_000) for _ in range(10)]
            case "kills itself":
                os.kill(os.getpid(), 9)
        return self._some()

    def _some(self) -> Iterable[Any]:
        yield Document(id_="first", text="Apples are red.")
        match self._fault:
            case "raises":
                raise ValueError(f"401 for https://x:{self._token}@example.org")
            case "exits":
                raise SystemExit(3)
            case "hangs":
                time.sleep(600)
            case "writes to every file":
                for number in range(1, 20):
                    try:
                        os.write(number, b"garbage" * 100)
                    except OSError:
                        continue
            case "returns pictures":
                yield ImageDocument(id_="picture", image=b"x")


class Endless(BaseReader):
    """Never stops."""

    def lazy_load_data(self) -> Iterable[Document]:
        number = 0
        while True:
            number += 1
            yield Document(id_=str(number), text=f"Text number {number}. " * 1000)
