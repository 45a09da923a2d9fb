"""Old Office files: LibreOffice converts them in a sandbox where it is installed; a script stands in for it here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_service.errors import DocumentError, UnsupportedMediaError
from rag_service.readers import old_office
from rag_service.readers.file_reader import FileReader
from rag_service.readers.landlock import landlock_version
from tests.serving import wait_until
from tests.unit.readers.samples import word

OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64) + "WordDocument".encode("utf-16-le")
CONVERTS = 'mkdir "$HOME/out"; cp "$(dirname "$0")/made" "$HOME/out/old.docx"'

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is only complete on Linux")


@pytest.fixture
def converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Installs a script as LibreOffice; `made` is beside it."""
    program = tmp_path / "installed" / "program" / "soffice"
    program.parent.mkdir(parents=True)
    (program.parent / "made").write_bytes(word("Gate 4 is closed."))

    def install(script: str) -> None:
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setattr(old_office, "find_converter", lambda: str(program))

    return install


async def read(data: bytes = OLD) -> str:
    (document,) = await FileReader().aload_data(data, file_name="old.doc")
    return document.text.strip()


async def test_an_old_file_is_read_as_it_is_converted(converter: Callable[[str], None]) -> None:
    converter(f'test -f "$HOME/old.doc" && {CONVERTS}')
    assert await read() == "Gate 4 is closed."


async def test_a_first_start_that_only_sets_up_a_profile_is_followed_by_a_second(
    converter: Callable[[str], None],
) -> None:
    converter(f'if [ ! -e "$HOME/profile" ]; then touch "$HOME/profile"; exit 81; fi; {CONVERTS}')
    assert await read() == "Gate 4 is closed."


async def test_without_libreoffice_an_old_file_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_office, "find_converter", lambda: None)
    with pytest.raises(UnsupportedMediaError, match=r'"Save as" \.docx'):
        await read()


@pytest.mark.parametrize("script", ["exit 1", 'mkdir "$HOME/out"; ln -s /etc/passwd "$HOME/out/old.docx"'])
async def test_a_file_that_cannot_be_converted_is_refused_with_the_way_out(
    converter: Callable[[str], None], script: str
) -> None:
    converter(script)
    with pytest.raises(UnsupportedMediaError, match=r'could not be converted.*"Save as" \.docx'):
        await read()


@pytest.mark.skipif(not landlock_version(), reason="the kernel does not limit files")
async def test_the_converter_reads_no_secret_and_writes_and_runs_nothing_elsewhere(
    converter: Callable[[str], None], tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("password", encoding="utf-8")
    reads_or_writes = f'cat "{secret}" || touch "{tmp_path}/made"'
    runs_its_own = 'cp /bin/true "$HOME/own" && "$HOME/own"'
    converter(f"if {{ {reads_or_writes} || {{ {runs_its_own}; }}; }} 2>/dev/null; then exit 1; fi; {CONVERTS}")
    assert await read() == "Gate 4 is closed."
    assert not (tmp_path / "made").exists()


async def test_a_converter_that_hangs_is_ended_with_all_that_it_started(
    converter: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_office, "_WALL_SECONDS", 1.0)
    seconds = f"371.{os.getpid()}"  # no other process sleeps so long
    converter(f"sleep {seconds} & sleep {seconds}")
    with pytest.raises(DocumentError, match="took too long"):
        await read()
    wait_until(lambda: seconds not in _running())  # what was killed is gone a moment later


def _running() -> str:
    """The command lines of all processes."""
    return b" ".join(map(_bytes_of, Path("/proc").glob("[0-9]*/cmdline"))).decode(errors="replace")


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # ended meanwhile
        return b""
