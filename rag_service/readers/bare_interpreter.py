"""How a process for untrusted data starts: Python with our packages and nothing else of this process."""

from __future__ import annotations

import sys
from pathlib import Path

# -I: no PYTHON* variables, no user site. -S: no .pth files, which run code and cost 10 ms. -B: writes nothing.
_FLAGS = ("-I", "-S", "-B", "-X", "utf8")
ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": ""}  # an empty PATH: parsers may not run programs


def boot(module: str) -> str:
    """The code that runs the function `main` of a module; its arguments follow in `sys.argv`."""
    return f"import sys; sys.path += sys.argv.pop(1).split(':'); from {module} import main; main()"


def command(code: str) -> list[str]:
    """The command line that runs what `boot` returns; arguments of `main` may follow."""
    return [sys.executable, *_FLAGS, "-c", code, import_path()]


def import_path() -> str:
    """The import path of this process, absolute: the child starts in / and reads no .pth files."""
    return ":".join(str(Path(folder).absolute()) for folder in sys.path)
