"""A command of the product in a process of its own that has loaded everything before: it starts in half a second."""

from __future__ import annotations

import atexit
import faulthandler
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.acceptance.cli_process_preload"])


@contextmanager
def started(
    arguments: Sequence[str], environment: Mapping[str, str], *, folder: Path, output: Path, errors: Path | None = None
) -> Iterator[ForkServerProcess]:
    """The command while it runs in `folder`, with nothing to read; killed at the end.

    Args:
        environment: all of it.
        output: what it writes to.
        errors: what its standard error goes to; None: `output`.
    """
    files = (output, errors or output)
    for file in files:
        file.write_bytes(b"")
    process = _FORKS.Process(target=_run, args=(list(arguments), dict(environment), folder, files), daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join(60)
        process.close()


def tell_stacks(process: ForkServerProcess) -> None:
    """Have a process that does not end write where its threads are to its standard error."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGUSR1)
    time.sleep(1)


def run(arguments: Sequence[str], environment: Mapping[str, str], *, seconds: float = 300) -> tuple[int, str, str]:
    """(exit code, what was printed, what was said on standard error) of a command.

    `environment` is added to this process's, without its settings of the product and of Hugging Face.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "HF_"))}
    with tempfile.TemporaryDirectory(prefix="rag-command-") as made:
        output, errors = Path(made) / "output.txt", Path(made) / "errors.txt"
        with started(arguments, clean | environment, folder=Path(made), output=output, errors=errors) as process:
            process.join(seconds)
            assert process.exitcode is not None, errors.read_text()
            return process.exitcode, output.read_text(), errors.read_text()


def _run(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, files: tuple[Path, Path]) -> None:
    with files[0].open("ab") as output, files[1].open("ab") as errors, Path(os.devnull).open("rb") as nothing:
        for number, file in enumerate((nothing, output, errors)):
            os.dup2(file.fileno(), number)
    faulthandler.register(signal.SIGUSR1, file=2)
    sys.stdin = os.fdopen(0)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    from rag_service.cli import main

    try:
        main(list(arguments), prog_name="rag-service")
    finally:
        atexit._run_exitfuncs()  # multiprocessing ends without them; they stop the embedded database
