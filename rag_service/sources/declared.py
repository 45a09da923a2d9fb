"""The readers that the operator declares in the file of RAG_SOURCE_READERS, each under a short name.

A class path names code, and arguments hold secrets: both come from this file, never from a request or the database.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from rag_service.errors import ConfigurationError
from rag_service.settings import PREFIX
from rag_service.settings.group import CLASS_PATH

SETTING = "RAG_SOURCE_READERS"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


@dataclass(frozen=True)
class Secret:
    """An argument that is read when the reader starts: `!env NAME`, or `!file PATH`."""

    kind: str
    place: str  # name of the variable, or path of the file

    def read(self, name: str) -> str:
        """The value, for the reader of this name; raises ConfigurationError if there is none."""
        if self.kind == "env":
            value = os.environ.get(self.place, "")
        else:
            try:
                value = Path(self.place).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeError):
                value = ""
        if not value:
            what = "variable" if self.kind == "env" else "file"
            raise ConfigurationError(f"{SETTING}: {name}: the {what} {self.place} is missing or empty.", field=SETTING)
        return value


@dataclass(frozen=True)
class NewObject:
    """An argument that is an object: `!object {use: package.module:Class, with: {…}}`."""

    path: str
    options: Mapping[str, Any]


class ReaderLimits(_Strict):
    """How far a run may go."""

    documents: int = Field(10_000, ge=1)
    megabytes: int = Field(500, ge=1)  # of new and changed documents; they are on disk until they are ingested
    minutes: float = Field(60.0, gt=0)
    memory_mb: int = Field(2048, ge=512)  # address space of its process


class DeclaredReader(_Strict):
    """A LlamaIndex reader and the arguments that it is called with."""

    use: str  # package.module:Class
    options: dict[str, Any] = Field(default_factory=dict, alias="with")  # of the constructor
    load: dict[str, Any] = Field(default_factory=dict)  # of lazy_load_data or load_data
    files: tuple[Path, ...] = ()  # files and folders of this machine that it may read
    limits: ReaderLimits = ReaderLimits()

    @field_validator("use")
    @classmethod
    def _is_class_path(cls, value: str) -> str:
        if CLASS_PATH.fullmatch(value) is None:
            raise ValueError("must be a class path package.module:Class")
        return value


_READERS = TypeAdapter(dict[str, DeclaredReader])


class _Loader(yaml.SafeLoader):
    """YAML with the tags `!env`, `!file` and `!object`."""


def _secret(loader: _Loader, node: yaml.Node) -> Secret:
    kind = node.tag[1:]
    place = loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else ""
    if not isinstance(place, str) or not place:
        raise yaml.MarkedYAMLError(problem=f"{node.tag} needs a name", problem_mark=node.start_mark)
    if kind == "env" and place.startswith(PREFIX):
        problem = f"{place} is a setting of the service, which no reader gets"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return Secret(kind, place)


def _new_object(loader: _Loader, node: yaml.Node) -> NewObject:
    values = loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else {}
    path, options = values.pop("use", None), values.pop("with", {})
    if values or not isinstance(path, str) or CLASS_PATH.fullmatch(path) is None or not isinstance(options, dict):
        problem = "!object needs `use: package.module:Class`, and may have `with`"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return NewObject(path, options)


_Loader.add_constructor("!env", _secret)
_Loader.add_constructor("!file", _secret)
_Loader.add_constructor("!object", _new_object)


def load_readers(file: Path | None) -> dict[str, DeclaredReader]:
    """The declared readers by name; none without a file.

    Raises ConfigurationError, which names the place but never a value: it may be a secret.
    """
    if file is None:
        return {}
    try:
        raw = yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader by descent
        readers = _READERS.validate_python(raw or {}, strict=False)
    except (OSError, UnicodeDecodeError) as error:
        raise _error(f"{file} cannot be read as UTF-8 text") from error
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        # The file may hold secrets, and an error of YAML has the lines around it.
        raise _error(f"{file}{line} is not valid YAML: {problem or type(error).__name__}") from None
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        raise _error(f"{file}: {'; '.join(problems)}") from None
    for name in readers:
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise _error(f"{file}: the name {name!r} may have letters, digits, - and _ only")
    return readers


def _error(problem: str) -> ConfigurationError:
    return ConfigurationError(f"{SETTING}: {problem}.", field=SETTING)
