"""Runs inside the converter's sandbox: sets the limits, then becomes LibreOffice. See `old_office`."""

from __future__ import annotations

import os
import sys

from rag_service.readers.landlock import restrict_to
from rag_service.readers.sandbox_child import SYSTEM_FILES, set_limits

SOCKETS = "/tmp"  # noqa: S108 - where LibreOffice makes the one by which a second start finds the first
_MAX_FILE = 200 * 1024 * 1024  # bytes that it may write to one file
_OPEN_FILES = 1_024
# What LibreOffice reads besides libraries: fonts, and its own settings where packages keep those apart.
_READABLE = ("/etc/fonts", "/var/cache/fontconfig", "/etc/libreoffice", "/bin")
_FILTERS = {"docx": "MS Word 2007 XML", "xlsx": "Calc MS Excel 2007 XML", "pptx": "Impress MS PowerPoint 2007 XML"}


def home_of(program: str) -> str:
    """The folder in which LibreOffice is installed: its program is in the sub-folder `program`."""
    folder, _, _ = program.rpartition("/")
    return folder.removesuffix("/program") or folder


def main() -> None:
    """Entry point. Arguments: memory, CPU seconds, parent, whether to limit files, program, folder, file, ending."""
    memory, cpu_seconds, parent, restricted = (int(argument) for argument in sys.argv[1:5])
    program, folder, file, ending = sys.argv[5:9]
    set_limits(memory, cpu_seconds, _OPEN_FILES, parent, file_bytes=_MAX_FILE, processes=None)
    if restricted:
        restrict_to(
            [*SYSTEM_FILES, *_READABLE, home_of(program)],
            writable=[folder, "/dev/null"],
            sockets=[SOCKETS],
            runs_programs=True,
        )
    os.execv(program, [  # noqa: S606 - a shell would be one more thing to attack
        program, "--headless", "--norestore", "--nolockcheck", "--nodefault", "--nofirststartwizard",
        f"-env:UserInstallation=file://{folder}/profile", "--convert-to", f"{ending}:{_FILTERS[ending]}",
        "--outdir", f"{folder}/out", f"{folder}/{file}",
    ])  # fmt: skip
