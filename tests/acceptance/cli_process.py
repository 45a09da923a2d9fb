"""A command of the product in a process of its own that has loaded everything before: it starts in half a second."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.acceptance.cli_process_preload"])


@contextmanager
def started(
    arguments: Sequence[str], environment: Mapping[str, str], *, folder: Path, output: Path
) -> Iterator[ForkServerProcess]:
    """The command while it runs in `folder`, with nothing to read and `output` to write to; killed at the end."""
    output.write_bytes(b"")
    process = _FORKS.Process(target=_run, args=(list(arguments), dict(environment), folder, output), daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join(10)
        process.close()


def _run(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, output: Path) -> None:
    with output.open("wb") as file, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    sys.stdin = os.fdopen(0)
    os.environ.update(environment)
    os.chdir(folder)
    from rag_service.cli import main

    main(list(arguments), prog_name="rag-service")
