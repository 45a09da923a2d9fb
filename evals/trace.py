"""`python -m evals.trace FOLDER`: which files and functions of the service a question passes.

FOLDER is the database of `python -m evals.oracle`, of which a copy is asked, over the sample documents.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import click

import rag_service
from evals.oracle import QUOTED, SAMPLES, ingest
from evals.written.measure import WITHOUT, open_bench
from rag_service.api.http.schemas import AnswerRequest
from rag_service.cli.quickstart import SAMPLE_QUESTION

PACKAGE = Path(rag_service.__file__).parent


@contextmanager
def traced(seen: set[CodeType]) -> Iterator[None]:
    """Note all code that this thread runs inside."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def find_functions(seen: set[CodeType]) -> dict[str, list[str]]:
    """Return the named functions of the service by file."""
    found: dict[str, list[str]] = {}
    for code in seen:
        path = Path(code.co_filename)
        if path.is_relative_to(PACKAGE) and not code.co_name.startswith("<"):
            found.setdefault(path.relative_to(PACKAGE).as_posix(), []).append(code.co_qualname)
    return found


async def trace(folder: Path, question: str) -> dict[str, list[str]]:
    """Return what the answer to a question runs."""
    seen: set[CodeType] = set()
    async with open_bench(WITHOUT, folder, settings=QUOTED) as bench:
        await ingest(bench)
        request = AnswerRequest(query=question, corpus_ids=[bench.corpora[SAMPLES]])
        with traced(seen):
            await bench.backend.answer(request)
    return find_functions(seen)


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--question", default=SAMPLE_QUESTION, help="Instead of the one that the quickstart asks.")
@click.option("--files", is_flag=True, help="Also print each file with its functions.")
def main(folder: Path, question: str, files: bool) -> None:
    """Ask a question without a chat model, and count the files and functions that run."""
    with tempfile.TemporaryDirectory() as copies:
        shutil.copytree(folder, copied := Path(copies) / "copy")
        found = asyncio.run(trace(copied, question))
    packages = Counter(name.rpartition("/")[0] for name in found)
    click.echo(f"{len(found)} files, {sum(map(len, found.values()))} functions")
    click.echo(", ".join(f"{name or '.'} {count}" for name, count in sorted(packages.items())))
    for name in sorted(found) if files else ():
        click.echo(f"{name}: {', '.join(sorted(found[name]))}")


if __name__ == "__main__":
    main()
