"""The certificates that clients of model servers trust."""

from __future__ import annotations

import ssl
from functools import cache

import httpx


@cache
def tls_context() -> ssl.SSLContext:
    """One for all clients of the process: each of its own would read a hundred certificates, 20 ms at a time."""
    return httpx.create_ssl_context()
