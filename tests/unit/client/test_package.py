"""`from rag_service import open_service`: there, lazy, and what it exports exists."""

from __future__ import annotations

import asyncio
import os
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rag_service
import rag_service.client
from rag_service import open_service
from rag_service.client.background_loop import BackgroundLoop
from rag_service.client.remote import error_from
from rag_service.errors import ConfigurationError, InputError, ModelBusyError, NotFoundError, RagError, StoreError
from rag_service.sources.files import find_files


def test_what_is_exported_exists() -> None:
    assert rag_service.open_service is rag_service.client.open_service
    for name in rag_service.__all__:
        assert getattr(rag_service, name) is not None
    for name in rag_service.client.__all__:
        assert getattr(rag_service.client, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'close_service'"):
        rag_service.close_service  # noqa: B018 - the access is the test


def test_help_shows_the_interface() -> None:
    shown = pydoc.plain(pydoc.render_doc(rag_service))
    assert "open_service(" in shown
    assert "class Service(" in shown
    assert "with open_service() as service:" in shown


SCRIPT = """
from rag_service import RagError, Service, open_service

def ask(service: Service) -> str:
    try:
        answer = service.ask("Fees?", tags=["loans"], top_k=3)
        events = service.ask("Fees?", stream=True)
    except RagError as error:
        return error.message
    reveal_type(answer)
    reveal_type(events)
    reveal_type(service.search("Fees?"))
    return answer.body.answer

with open_service(data_dir="knowledge") as service:
    reveal_type(service)
    service.ask("Fees?", topk=3)
    service.retriever(top_k="three")
"""


def test_a_script_of_a_user_is_type_checked(tmp_path: Path) -> None:
    """With the cache that `make types` left: seconds. The first time, the whole package is checked."""
    (script := tmp_path / "script.py").write_text(SCRIPT)
    checked = subprocess.run([sys.executable, "-m", "mypy", str(script)], check=False, capture_output=True, text=True)
    messages = re.findall(r"script\.py:\d+: (?:note: Revealed type is|error:) (.*?)(?:;.*|  \[.*)?\n", checked.stdout)
    assert messages == [
        '"rag_service.client.results.CitedAnswer"',
        '"rag_service.client.event_stream.EventStream[rag_service.client.results.CitedAnswer]"',
        '"rag_service.client.results.Passages"',
        '"rag_service.client.service.Service"',
        'Unexpected keyword argument "topk" for overloaded function "ask" of "Service"',
        'No overload variant of "ask" of "Service" matches argument types "str", "int"',
        'Argument "top_k" to "__call__" of "ServiceRetriever" has incompatible type "str"',
    ], checked.stdout


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import rag_service", "rag_service.client"),
        ("from rag_service import open_service", "llama_index"),
        ("import rag_service.client.remote", "llama_index"),
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(statement: str, heavy: str) -> None:
    code = f"import sys; {statement}; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"api_key": "k"}, "api_key can only be used with url"),
        ({"url": "http://x", "topk_default": 3}, "remove topk_default"),
        ({"url": "ftp://x"}, "must begin with http"),
        ({"topk_defualt": 3}, "RAG_TOPK_DEFUALT"),
        ({"topk_default": 0}, "RAG_TOPK_DEFAULT"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        open_service(**arguments)  # type: ignore[arg-type]  # that is the point


def test_files_of_folders_keep_their_path(tmp_path: Path) -> None:
    for name in ("a.md", "deep/b.PDF", "deep/c.exe"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [name for name, _ in find_files(tmp_path).files] == ["a.md", "deep/b.PDF"]
    two = find_files([str(tmp_path / "a.md"), tmp_path / "deep" / "c.exe"])
    assert [name for name, _ in two.files] == ["a.md", "c.exe"]
    assert [name for name, _ in find_files(tmp_path, {".exe"}).files] == ["a.md", "deep/b.PDF", "deep/c.exe"]
    for paths in (tmp_path / "none", []):
        with pytest.raises(InputError):
            find_files(paths)


def test_files_of_folders_that_are_not_taken_have_a_reason(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a.md", "film.mp4", "README", "old.doc", ".DS_Store", "~$a.docx", "Thumbs.db"):
        (folder / name).write_text("x")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "inside.txt").symlink_to(folder / "a.md")
    os.mkfifo(folder / "pipe.txt")
    Path(os.fsdecode(os.fsencode(folder) + b"/a\xf1o.txt")).write_text("x")
    found = find_files(folder)
    assert sorted(name for name, _ in found.files) == ["README", "a.md", "año.txt", "inside.txt", "old.doc"]
    assert dict(found.left) == {
        "film.mp4": ".mp4 files are not supported",
        "link.txt": "it is a link that leads out of the folder",
        "pipe.txt": "it is not a regular file",
    }
    assert sorted(found.litter) == [".DS_Store", "Thumbs.db", "~$a.docx"]


async def test_the_loop_serves_plain_and_async_callers_at_once() -> None:
    loop = BackgroundLoop()

    async def work(value: int) -> int:
        await asyncio.sleep(0)
        return value

    assert loop.run(work(1)) == 1  # inside a running loop
    assert await asyncio.gather(loop.arun(work(2)), loop.arun(work(3))) == [2, 3]

    async def fail() -> None:
        raise StoreError("gone")

    with pytest.raises(StoreError):
        loop.run(fail())
    loop.close()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.run(work(4))


@pytest.mark.parametrize(
    ("problem", "status", "kind"),
    [
        ({"code": "not_found", "detail": "No."}, 404, NotFoundError),
        ({"code": "llm_busy", "detail": "No.", "retryAfter": 3}, 503, ModelBusyError),
        ({"code": "invalid_input", "detail": "No.", "errors": [{"field": "query", "message": "x"}]}, 400, InputError),
        ({"code": "something_new", "detail": "No."}, 400, RagError),
        ({}, 502, RagError),
    ],
)
def test_errors_of_a_remote_service_are_those_that_it_raised(
    problem: dict[str, object], status: int, kind: type[RagError]
) -> None:
    error = error_from(problem, status)
    assert type(error) is kind
    assert error.message == ("No." if problem else "The service replied with status 502.")
    assert error.retry_after == problem.get("retryAfter")
    assert error.field == ("query" if "errors" in problem else None)
