"""Proxies that serve a service below /rag with the examples of the guide: nginx and Caddy where they are installed,
else a small one of our own that does the same."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.documents import DOCS, code_blocks
from tests.serving import wait_until

ROOT = "/rag"
_HOP = {"connection", "keep-alive", "transfer-encoding", "host"}  # headers of one connection
_GUIDE_SERVICE = "127.0.0.1:8000"
_NGINX = """\
daemon off; master_process off; pid nginx.pid; error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
    server {{ listen 127.0.0.1:{port};
{block}
    }}
}}
"""


def example(language: str) -> str:
    """The guide's example of a proxy below a path."""
    guide = (DOCS / "how-to" / "deploy.md").read_text(encoding="utf-8")
    (found,) = (block for block in code_blocks(guide, language) if f"{ROOT}/" in block)
    return found


@contextmanager
def running_proxy(kind: str, service: str, port: int, folder: Path) -> Iterator[str]:
    """What serves here: the program's name, or "ours". nginx passes the path on, Caddy strips it, as in the guide."""
    at = urlsplit(service).netloc
    if shutil.which(kind) is None:
        with _own_proxy(at, port, strips=kind == "caddy"):
            yield "ours"
        return
    if kind == "nginx":
        text = _NGINX.format(port=port, block=example("nginx").replace(_GUIDE_SERVICE, at))
        command = ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "proxy.conf")]
    else:
        site = example("caddyfile").replace("example.org", f"http://127.0.0.1:{port}").replace(_GUIDE_SERVICE, at)
        text = f"{{\n\tadmin off\n}}\n{site}"
        command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "proxy.conf")]
    (folder / "proxy.conf").write_text(text, encoding="utf-8")
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait_until(lambda: process.poll() is not None or _listens(port))
            assert process.poll() is None, (folder / "proxy.log").read_text(encoding="utf-8")
            yield kind
        finally:
            process.terminate()
            process.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _own_proxy(service: str, port: int, *, strips: bool) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            if self.path.split("?")[0] == ROOT:
                self.send_response_only(301)
                self.send_header("Location", f"{ROOT}/")
                self.end_headers()
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            headers |= {"X-Forwarded-For": self.client_address[0], "X-Forwarded-Proto": "http"}
            headers["X-Forwarded-Host"] = self.headers["Host"]
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            behind = http.client.HTTPConnection(service, timeout=60)
            behind.request(self.command, self.path.removeprefix(ROOT) if strips else self.path, body, headers)
            # A browser that leaves a stream ends both connections.
            with suppress(ConnectionError), closing(behind), behind.getresponse() as reply:
                self._give_back(reply)

        def _give_back(self, reply: http.client.HTTPResponse) -> None:
            self.send_response_only(reply.status)
            for name, value in reply.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.end_headers()
            while self.command != "HEAD" and (piece := reply.read1(65536)):
                self.wfile.write(piece)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _pass_on  # noqa: N815 - their names

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()
