"""Scripts, styles and pictures of the page, held in memory under a version of their own."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
_MEDIA_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
_ENTRY = "main.js"
_IMPORT = re.compile(r'^(?:import|\} from|export)\b[^"\n]*"\./([\w.]+)";', re.MULTILINE)  # static ones: import() waits


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file as it is sent."""

    body: bytes
    packed: bytes  # the same, gzipped
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
        """Names of the scripts that every visit needs; the page has them loaded at once, not import by import.

        Those of a view that is opened later, by `import()`, are not among them.
        """
        found: dict[str, None] = {}
        waiting = [_ENTRY]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = None
                waiting += self._imports(name)
        return sorted(found)

    def _imports(self, name: str) -> Iterator[str]:
        for match in _IMPORT.finditer(self.files[name].body.decode()):
            yield match[1]


def load_assets(folder: Path = FOLDER) -> Assets:
    """Read the files; none can be reached by name but these."""
    files = {path.name: _load(path) for path in sorted(folder.iterdir()) if path.suffix in _MEDIA_TYPES}
    together = "".join(f"{name}{asset.etag}" for name, asset in files.items())
    return Assets(version=hashlib.sha256(together.encode()).hexdigest()[:12], files=files)


def make_asset(body: bytes, media_type: str) -> Asset:
    """A file with everything that sending it needs; the same bytes give the same result."""
    return Asset(body=body, packed=gzip.compress(body, mtime=0), media_type=media_type, etag=make_etag(body))


def make_etag(body: bytes) -> str:
    """A strong entity tag (RFC 9110, section 8.8.3)."""
    return f'"{hashlib.sha256(body).hexdigest()[:24]}"'


def _load(path: Path) -> Asset:
    return make_asset(path.read_bytes(), _MEDIA_TYPES[path.suffix])
