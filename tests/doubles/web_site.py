"""A web site on 127.0.0.1 with pages, redirects and everything that a fetcher must not fall for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Served:
    """The reply to one path."""

    body: str | bytes = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False  # the body never ends


def html(body: str, *, etag: str = "", head: str = "") -> Served:
    headers = {"Content-Type": "text/html; charset=utf-8"} | ({"ETag": etag} if etag else {})
    page = f"<html><head><title>Page</title>{head}</head><body><p>{body}</p></body></html>"
    return Served(body=page, headers=headers)


def redirect(to: str) -> Served:
    return Served(status=302, headers={"Location": to})


@dataclass(kw_only=True)
class WebSite:
    """Pages by path; a path that is not there is a 404."""

    pages: dict[str, Served] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)  # (path, status) of every request
    sent: int = 0  # bytes of endless bodies
    url: str = ""


@contextmanager
def running_site() -> Iterator[WebSite]:
    """A site while it runs."""
    site = WebSite()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            served = site.pages.get(self.path, Served(status=404))
            known = self.headers.get("If-None-Match")
            status = 304 if known and known == served.headers.get("ETag") else served.status
            site.asked.append((self.path, status))
            body = served.body.encode() if isinstance(served.body, str) else served.body
            body = b"" if status == 304 else body
            self.send_response(status)
            for name, value in served.headers.items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            if not served.endless:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            try:
                while served.endless:
                    self.wfile.write(b"x" * 65536)
                    site.sent += 65536
            except OSError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        site.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join(5)
