"""Whether a model server is one, is not this service itself, and has the model."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

import httpx

from rag_service.errors import ConfigurationError
from rag_service.models.servers.probes import bearer
from rag_service.settings import Settings


async def check_server(settings: Settings, provider: str, model: str, setting: str) -> int | None:
    """Make sure that a model server has the model; returns the model's window if the server tells.

    Raises:
        ConfigurationError: the URL is wrong or points back here, or the model is not there.
    """
    if provider == "ollama":
        _check_not_ourselves(settings, settings.ollama_url, "RAG_OLLAMA_URL")
        return await _check_ollama(settings, model, setting)
    if provider == "openai_like":
        _check_not_ourselves(settings, settings.openai_url, "RAG_OPENAI_URL")
        await _check_openai_like(settings, model, setting)
    return None


def _check_not_ourselves(settings: Settings, url: str, setting: str) -> None:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if port == settings.port and _is_this_machine(parts.hostname or "", settings.host):
        raise ConfigurationError(
            f"{setting} points back to this service ({parts.hostname}:{port}): set it to the model server's address, "
            "or move one of them with RAG_PORT.",
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


async def _check_ollama(settings: Settings, model: str, setting: str) -> int | None:
    url = settings.ollama_url
    listed = await _fetch(f"{url}/api/tags", "RAG_OLLAMA_URL", settings)
    names = [entry.get("name", "") for entry in listed.get("models", []) if isinstance(entry, dict)]
    if model not in names and f"{model}:latest" not in names:
        raise ConfigurationError(
            f"{setting}: {url} has no model {model!r}; run `ollama pull {model}`, or choose one of: {_some(names)}.",
            field=setting,
        )
    shown = await _fetch(f"{url}/api/show", "RAG_OLLAMA_URL", settings, body={"model": model})
    lengths = [value for key, value in shown.get("model_info", {}).items() if key.endswith(".context_length")]
    return int(lengths[0]) if lengths else None


async def _check_openai_like(settings: Settings, model: str, setting: str) -> None:
    listed = await _fetch(f"{settings.openai_url}/models", "RAG_OPENAI_URL", settings)
    names = [entry.get("id", "") for entry in listed.get("data", []) if isinstance(entry, dict)]
    if names and model not in names:
        raise ConfigurationError(
            f"{setting}: {settings.openai_url} has no model {model!r}; choose one of: {_some(names)}.", field=setting
        )


async def _fetch(url: str, setting: str, settings: Settings, *, body: Any = None) -> dict[str, Any]:
    """JSON from a model server.

    Raises:
        ConfigurationError: it cannot be reached, or is something else; names the setting.
    """
    headers = bearer(settings) if setting == "RAG_OPENAI_URL" else {}
    try:
        async with httpx.AsyncClient(timeout=settings.connect_timeout, headers=headers) as client:
            reply = await (client.get(url) if body is None else client.post(url, json=body))
            found = reply.raise_for_status().json()
    except httpx.HTTPStatusError as error:
        raise ConfigurationError(
            f"{setting}: {url} answers with status {error.response.status_code}; is this the right server and path"
            f"{', and RAG_OPENAI_API_KEY its key' if setting == 'RAG_OPENAI_URL' else ''}?",
            field=setting,
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ConfigurationError(
            f"{setting}: nothing answers at {url}; start the server or correct the URL.", field=setting
        ) from error
    except ValueError as error:
        raise ConfigurationError(
            f"{setting}: {url} does not answer in JSON; correct the URL.", field=setting
        ) from error
    return found if isinstance(found, dict) else {}


def _some(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:8]) or "none is installed"
    return f"{shown}, …" if len(names) > 8 else shown
