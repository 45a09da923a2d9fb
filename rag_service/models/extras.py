"""Optional packages: asked for by name when a setting needs one, never imported before."""

from __future__ import annotations

import importlib.util

from rag_service.errors import ConfigurationError


def require_extra(package: str, *, extra: str, setting: str, value: str) -> None:
    """Make sure that a package of an extra is installed, without importing it.

    Raises:
        ConfigurationError: it is not; names the extra and the setting that asked for it.
    """
    try:
        found = importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # a parent package is missing
        found = False
    if not found:
        raise ConfigurationError(
            f"{setting}={value} needs the extra `{extra}`: install it with `pip install 'rag-service[{extra}]'`.",
            field=setting,
        )
