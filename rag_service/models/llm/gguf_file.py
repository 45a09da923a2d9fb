"""GGUF files, the format of llama.cpp: where a model's file is, how to get it, and what it says of itself.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_service.errors import ConfigurationError
from rag_service.models.hugging_face import download_errors

SETTING = "RAG_MODEL_NAME"
_REPOSITORY = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+?(?<!\.gguf))(?::(?P<file>.+))?")
_PART = re.compile(r"-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")  # a large model comes in several files
_USUAL = "q4_k_m"  # of the files of a repository: the smallest that loses little

_MAGIC = b"GGUF"
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_TEMPLATE = 10_000_000  # bytes; longer strings are none that we read


def shown_name(name: str) -> str:
    """A model's name without the folders of this machine."""
    return name if _REPOSITORY.fullmatch(name) else Path(name).name


def find_gguf(name: str) -> Path:
    """The file that RAG_MODEL_NAME means: the one named, or that of a repository in Hugging Face's cache (HF_HOME).

    Nothing is downloaded. Raises ConfigurationError if it is not here.
    """
    file = Path(name).expanduser()
    if file.is_file():
        return file
    match = _REPOSITORY.fullmatch(name)
    if match is None:
        raise _error(
            f"{SETTING}={name}: there is no such file. RAG_CHAT_PROVIDER=gguf needs the path of a .gguf file or the"
            " name of a repository of Hugging Face, such as Qwen/Qwen2.5-1.5B-Instruct-GGUF."
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(match["repository"], local_files_only=True))
        names = [found.relative_to(folder).as_posix() for found in folder.rglob("*.gguf")]
        return folder / _choose(names, match["file"], name)
    except (LocalEntryNotFoundError, ConfigurationError) as error:
        raise _error(
            f"{SETTING}={name} has not been downloaded: run `rag-service models pull`, or {_by_hand(match)}."
        ) from error


def pull_gguf(name: str, announce: Callable[[str], None]) -> Path:
    """Download a repository's file into Hugging Face's cache; progress goes to stderr. Blocks.

    One that broke off is continued. `announce` gets one line with the size. Raises ConfigurationError if it cannot be
    fetched.
    """
    match = _REPOSITORY.fullmatch(name)
    if match is None:
        return find_gguf(name)
    from huggingface_hub import HfApi, hf_hub_download

    repository = match["repository"]
    with download_errors(name, setting=SETTING, otherwise=_by_hand(match)):
        info = HfApi().model_info(repository, files_metadata=True)
        sizes = {entry.rfilename: entry.size or 0 for entry in info.siblings or ()}
        files = _parts(_choose(sizes, match["file"], name))
    size = f"{name} ({sum(sizes.get(file, 0) for file in files) / 1e6:,.0f} MB)"
    announce(f"Fetching {size} from Hugging Face …")
    with download_errors(size, setting=SETTING, otherwise=_by_hand(match)):
        first, *_ = [hf_hub_download(repository, file) for file in files]
        return Path(first)


def _by_hand(match: re.Match[str]) -> str:
    file = match["file"] or "a .gguf file"
    return (
        f"download {file} from https://huggingface.co/{match['repository']} on another machine, copy it to this one and"
        f" set {SETTING} to its path"
    )


def _choose(names: Iterable[str], wanted: str | None, name: str) -> str:
    """The one file that is meant, of a large model the first part."""
    models = []
    for file in sorted(names):
        part = _PART.search(file)
        if file.endswith(".gguf") and "mmproj" not in file and (part is None or int(part["number"]) == 1):
            models.append(file)
    meant = (wanted or _USUAL).casefold()
    found = [file for file in models if file == wanted] or [file for file in models if meant in file.casefold()]
    if not found and wanted is None:
        found = models
    if len(found) == 1:
        return found[0]
    listed = ", ".join(found or models) or "none"
    raise _error(f"{SETTING}={name}: name one file, as in owner/name:file. The repository has {listed}.")


def _parts(file: str) -> list[str]:
    """All files of a model, by the name of the first."""
    part = _PART.search(file)
    if part is None:
        return [file]
    count = int(part["count"])
    return [f"{file[: part.start()]}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]


@dataclass(frozen=True, kw_only=True)
class GgufFile:
    """What a file says of its model."""

    path: Path
    size: int  # bytes of the weights, all parts together
    context_length: int | None  # tokens that it was trained for; None: it does not say
    cache_bytes: int  # for each token of the context window; 0: not known
    has_chat_template: bool


def read_gguf(path: Path) -> GgufFile:
    """Raises ConfigurationError if it is no GGUF file, cut off before its weights, or lacks a part."""
    size = 0
    for part in map(Path, _parts(str(path))):
        try:
            size += part.stat().st_size
        except OSError as error:
            raise _error(f"{SETTING}: {part} cannot be read: {error.strerror}.") from error
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            known = _read_metadata(data)
    except OSError as error:
        raise _error(f"{SETTING}: {path} cannot be read: {error.strerror}.") from error
    except (ValueError, struct.error) as error:  # ValueError: also of an empty file
        raise _error(
            f"{SETTING}: {path} is not a GGUF file, or only the beginning of one: download it again, or name another."
        ) from error
    kind = known.get("general.architecture", "")
    return GgufFile(
        path=path,
        size=size,
        context_length=_number(known, f"{kind}.context_length"),
        cache_bytes=_cache_bytes(known, kind),
        has_chat_template=any(key.startswith("tokenizer.chat_template") for key in known),
    )


def _read_metadata(data: mmap.mmap) -> dict[str, Any]:
    """Keys and values; an array of strings, such as the vocabulary, is None."""
    if data[:4] != _MAGIC:
        raise ValueError("no magic number")
    version, _, count = struct.unpack_from("<IQQ", data, 4)
    if version not in (2, 3):
        raise ValueError(f"version {version}")
    at = 24
    found: dict[str, Any] = {}
    for _ in range(count):
        key, at = _read_string(data, at)
        (kind,) = struct.unpack_from("<I", data, at)
        found[key], at = _read_value(data, at + 4, kind)
    return found


def _read_value(data: mmap.mmap, at: int, kind: int) -> tuple[Any, int]:
    """A value, and where the next one begins."""
    if kind == _STRING:
        return _read_string(data, at)
    if kind != _ARRAY:
        return struct.unpack_from("<" + _format(kind), data, at)[0], at + struct.calcsize(_format(kind))
    inner, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if inner == _STRING:
        for _ in range(count):
            at += 8 + struct.unpack_from("<Q", data, at)[0]
        return None, at
    end = at + count * struct.calcsize(_format(inner))
    if end > len(data):
        raise ValueError("an array longer than the file")
    return (list(struct.unpack_from(f"<{count}{_format(inner)}", data, at)) if count < 10_000 else None), end


def _read_string(data: mmap.mmap, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<Q", data, at)
    end = at + 8 + length
    if end > len(data) or length > _MAX_TEMPLATE:
        raise ValueError("a string longer than the file")
    return data[at + 8 : end].decode("utf-8", "replace"), end


def _format(kind: int) -> str:
    if kind not in _FORMATS:
        raise ValueError(f"type {kind}")
    return _FORMATS[kind]


def _number(known: Mapping[str, Any], key: str) -> int | None:
    value = known.get(key)
    return value if isinstance(value, int) and value > 0 else None


def _cache_bytes(known: Mapping[str, Any], kind: str) -> int:
    """Of keys and values in 16 bits, in all layers; 0 where attention is another than the usual one."""
    if any(part in key for key in known for part in ("sliding_window", "kv_lora_rank", ".ssm.")):
        return 0
    layers = _number(known, f"{kind}.block_count")
    width = _number(known, f"{kind}.embedding_length")
    heads = _number(known, f"{kind}.attention.head_count")
    if not (layers and width and heads):
        return 0
    shared = known.get(f"{kind}.attention.head_count_kv", heads)  # one number, or one for each layer
    total: int = sum(shared) if isinstance(shared, Sequence) else layers * shared
    lengths = [_number(known, f"{kind}.attention.{name}") or width // heads for name in ("key_length", "value_length")]
    return total * sum(lengths) * 2


def _error(problem: str) -> ConfigurationError:
    return ConfigurationError(problem, field=SETTING)
