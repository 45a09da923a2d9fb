"""Checks that a model server answers, has the model, and is not this service itself."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

import httpx

from rag_service.errors import ConfigurationError
from rag_service.models.servers.clients import bearer, direct_hosts, proxy_variable
from rag_service.settings import Settings


async def check_server(settings: Settings, provider: str, model: str, setting: str) -> int | None:
    """Check that a model server has the model; returns the model's context window if the server reports it.

    Raises ConfigurationError if the URL is wrong or points back here, or the model is missing.
    """
    if provider not in ("ollama", "openai_like"):
        return None
    servers, ollama = settings.servers, provider == "ollama"
    url, url_setting = (servers.ollama_url, "RAG_OLLAMA_URL") if ollama else (servers.openai_url, "RAG_OPENAI_URL")
    _check_not_ourselves(settings, url, url_setting)
    listed = await _fetch(f"{url}/api/tags" if ollama else f"{url}/models", url_setting, settings)
    entries, key = (listed.get("models", []), "name") if ollama else (listed.get("data", []), "id")
    names = [entry.get(key, "") for entry in entries if isinstance(entry, dict)]
    if model not in names and f"{model}:latest" not in names and (names or ollama):
        shown = ", ".join(sorted(names)[:8]) or "none is installed"
        pull = "run `rag-service models pull`, or " if ollama else ""
        raise ConfigurationError(
            f"{setting}: {url} has no model {model!r}; {pull}choose one of: {shown}{', …' if len(names) > 8 else ''}.",
            field=setting,
        )
    if not ollama:
        return None
    described = await _fetch(f"{url}/api/show", url_setting, settings, body={"model": model})
    lengths = [value for key, value in described.get("model_info", {}).items() if key.endswith(".context_length")]
    return int(lengths[0]) if lengths else None


def _check_not_ourselves(settings: Settings, url: str, setting: str) -> None:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if port == settings.http.port and _is_this_machine(parts.hostname or "", settings.http.host):
        raise ConfigurationError(
            f"{setting} points to this service itself ({parts.hostname}:{port}): set it to the model server's address, "
            "or change RAG_PORT.",
            field=setting,
        )


def _is_this_machine(host: str, own: str) -> bool:
    if host in {own, "localhost"}:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


async def _fetch(url: str, setting: str, settings: Settings, *, body: Any = None) -> dict[str, Any]:
    """JSON from a model server; ConfigurationError names the setting."""
    headers = bearer(settings) if setting == "RAG_OPENAI_URL" else {}
    variable = proxy_variable(settings, url)
    proxy = "" if variable is None else f" through the proxy that {variable} names (NO_PROXY excepts hosts from it)"
    try:
        timeout, mounts = settings.servers.connect_timeout, direct_hosts(settings)
        async with httpx.AsyncClient(timeout=timeout, headers=headers, mounts=mounts) as client:
            reply = await (client.get(url) if body is None else client.post(url, json=body))
            found = reply.raise_for_status().json()
    except httpx.HTTPStatusError as error:
        raise ConfigurationError(
            f"{setting}: {url} returned status {error.response.status_code}{proxy}; is this the right server and path"
            f"{', and RAG_OPENAI_API_KEY its key' if setting == 'RAG_OPENAI_URL' else ''}?",
            field=setting,
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ConfigurationError(
            f"{setting}: no server responds at {url}{proxy}; start the server or correct the URL.", field=setting
        ) from error
    except ValueError as error:
        raise ConfigurationError(f"{setting}: {url} did not return JSON; correct the URL.", field=setting) from error
    return found if isinstance(found, dict) else {}
