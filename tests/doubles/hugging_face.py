"""A protocol double of Hugging Face's hub on a real socket: the API's description of a model, and its files.

https://huggingface.co/docs/hub/api
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

_COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HuggingFaceDouble:
    """Attributes may be changed by a test before it makes its request."""

    def __init__(self) -> None:
        self.files: dict[str, Mapping[str, bytes]] = {}  # repository → its files
        self.gated: set[str] = set()  # repositories whose owner asks for consent
        self.cut_after: int | None = None  # bytes of each file, after which the connection breaks
        self.fetched: list[str] = []  # files that were sent whole
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def add(self, name: str, folder: Path) -> None:
        """Serve the files of a folder as a repository."""
        self.files[name] = {
            str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()
        }

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(double: HuggingFaceDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            path = self.path.partition("?")[0]
            if path.startswith("/api/models/"):
                self._describe("/".join(path.split("/")[3:5]))
                return
            name, _, file = path.lstrip("/").partition("/resolve/main/")
            if name in double.gated:
                self._send(403, b"", {"X-Error-Code": "GatedRepo"})
                return
            data = double.files.get(name, {}).get(file)
            if data is None:
                self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
                return
            headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": _COMMIT}
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
            if start:
                headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self._send(206 if start else 200, data[start:], headers, body=body, cut=double.cut_after)
            if body and double.cut_after is None:
                double.fetched.append(file)

        def _describe(self, name: str) -> None:
            if name not in double.files:
                self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
                return
            files = double.files[name]
            kind = json.loads(files.get("config.json", b"{}")).get("model_type")
            described = {
                "id": name, "sha": _COMMIT, "config": {"model_type": kind},
                "siblings": [{"rfilename": file, "size": len(data)} for file, data in files.items()],
            }  # fmt: skip
            self._send(200, json.dumps(described).encode(), {"Content-Type": "application/json"})

        def _send(
            self, status: int, data: bytes, headers: Mapping[str, str], *, body: bool = True, cut: int | None = None
        ) -> None:
            self.send_response(status)
            for key, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            if body:
                self.wfile.write(data[:cut])
            if cut is not None and body:
                self.close_connection = True

    return Handler


@pytest.fixture
def hugging_face() -> Iterator[HuggingFaceDouble]:
    double = HuggingFaceDouble()
    double.start()
    yield double
    double.stop()
