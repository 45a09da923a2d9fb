"""Scripts, styles and pictures of the page, held in memory under a version of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
_MEDIA_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file as it is sent."""

    body: bytes
    media_type: str  # the framework adds the charset
    etag: str  # quoted, strong: of the content


@dataclass(frozen=True, kw_only=True)
class Assets:
    """All files of the page by name.

    The version stands in their addresses, as a folder: modules import each other by relative names, so
    all of them come from the same version, and a browser may keep them for ever.
    """

    version: str  # of the content of all files together
    files: Mapping[str, Asset]  # by file name

    def url(self, name: str) -> str:
        """Address of a file; KeyError for one that is not there, so that a typing error shows at start."""
        if name not in self.files:
            raise KeyError(name)
        return f"/assets/{self.version}/{name}"

    @property
    def modules(self) -> list[str]:
        """Names of the scripts; the page has them loaded at once instead of import by import."""
        return [name for name in self.files if name.endswith(".js")]


def load_assets(folder: Path = FOLDER) -> Assets:
    """Read the files; none can be reached by name but these."""
    files = {path.name: _load(path) for path in sorted(folder.iterdir()) if path.suffix in _MEDIA_TYPES}
    together = "".join(f"{name}{asset.etag}" for name, asset in files.items())
    return Assets(version=hashlib.sha256(together.encode()).hexdigest()[:12], files=files)


def make_etag(body: bytes) -> str:
    """A strong entity tag (RFC 9110, section 8.8.3)."""
    return f'"{hashlib.sha256(body).hexdigest()[:24]}"'


def _load(path: Path) -> Asset:
    body = path.read_bytes()
    return Asset(body=body, media_type=_MEDIA_TYPES[path.suffix], etag=make_etag(body))
