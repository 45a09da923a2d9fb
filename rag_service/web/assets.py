"""Scripts, styles and images of the page, kept in memory under one version."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
VENDOR = Path(__file__).parent / "vendor"  # pdf.js as its authors built it; fetched with the first PDF that is opened
PDF_WORKER = "pdf.worker.min.mjs"
_MEDIA_TYPES = {
    ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
    ".wasm": "application/wasm", ".png": "image/png", ".webmanifest": "application/manifest+json",
}  # fmt: skip
_ENTRY = "main.js"
_IMPORT = re.compile(r'^(?:import|\} from|export)\b[^"\n]*"\./([\w.]+)";', re.MULTILINE)  # static ones: import() waits

# Comments and indentation, an eighth of what would be sent; line breaks stay, so that numbers hold. At the end of a
# line, what no quotation mark follows is in no string; no string of ours goes on in a second line.
_UNSENT = {
    ".js": re.compile(
        rb"^[ \t]*(?://|/\*\*|\*(?=[ /]|$)).*$|(?<=[;,{(\[}]) // [^\"'`\n]*$|^[ \t]+", re.MULTILINE
    ),
    ".css": re.compile(rb"/\*[^*\n]*\*/|^[ \t]+", re.MULTILINE),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file as it is sent."""

    body: bytes
    packed: bytes  # the same, gzipped
    media_type: str  # the framework adds the charset
    etag: str  # quoted, strong (RFC 9110, section 8.8.3): of the content


@dataclass(frozen=True, kw_only=True)
class Assets:
    """All files of the page by name.

    The version stands in their addresses, as a folder: modules import each other by relative names, so
    all of them come from the same version, and a browser may keep them for ever.
    """

    version: str  # of the content of all files together
    files: Mapping[str, Asset]  # by file name

    def url(self, name: str) -> str:
        """Address of a file, relative to the page's; KeyError for one that is not there, so that a typing error shows
        at start."""
        if name not in self.files:
            raise KeyError(name)
        return f"assets/{self.version}/{name}"

    @property
    def modules(self) -> list[str]:
        """Names of the scripts that every visit needs; the page has them loaded at once, not import by import.

        Those of a view that is opened later, by `import()`, are not among them.
        """
        found: set[str] = set()
        waiting = [_ENTRY]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += _IMPORT.findall(self.files[name].body.decode())
        return sorted(found)


def load_assets() -> Assets:
    """Read the files; none can be reached by name but these."""
    paths = [path for folder in (FOLDER, VENDOR) for path in sorted(folder.iterdir()) if path.suffix in _MEDIA_TYPES]
    files = {path.name: make_asset(_read(path), _MEDIA_TYPES[path.suffix]) for path in paths}
    together = "".join(f"{name}{asset.etag}" for name, asset in files.items())
    return Assets(version=hashlib.sha256(together.encode()).hexdigest()[:12], files=files)


def _read(path: Path) -> bytes:
    body = path.read_bytes()
    return _UNSENT[path.suffix].sub(b"", body) if path.suffix in _UNSENT else body


def make_asset(body: bytes, media_type: str) -> Asset:
    """A file with everything that sending it needs; the same bytes give the same result."""
    etag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    return Asset(body=body, packed=gzip.compress(body, mtime=0), media_type=media_type, etag=etag)
