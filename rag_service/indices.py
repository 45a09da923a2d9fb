"""Loads and validates what a domain owner edits: indices/ and prompts/.

An index definition has two parts. `ingest` decides how documents become chunks; its fingerprint is stored with every
document, so that a change marks the index stale. `query` decides how questions are answered and applies on reload.

Files are found in this order: the path in the settings, the copy inside the installed package, the checkout.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from rag_service.errors import ConfigurationError, DefinitionError
from rag_service.language.languages import check_language

_Model = TypeVar("_Model", bound=BaseModel)
Tier = Literal["critical", "high", "medium", "low"]
Language = Annotated[str, AfterValidator(check_language)]  # ISO 639-1 code of a supported language
# Raised whenever this code makes other text, chunks or index terms of the same documents than before.
CHUNKS_MADE_AS = 21

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml, where it was built in, is ten times as fast


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PluginUse(_Strict):
    """A LlamaIndex class and the keyword arguments it is created with; a bare class path has none."""

    use: str = Field(min_length=1)  # package.module:Class
    options: dict[str, Any] = Field(default_factory=dict, alias="with")

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: object) -> object:
        return {"use": value} if isinstance(value, str) else value


FILE_EXTENSION = re.compile(r"\.[a-z0-9]+")  # with its dot
# Chunk types written for whoever answers, not for whoever asks.
INTERNAL_TYPES = frozenset({"guardrails", "guardrail", "response_frame", "decision_guide"})


class IngestDefinition(_Strict):
    """How documents become chunks."""

    language: Literal["auto"] | Language = "auto"  # of the documents; auto: found per document
    chunk_tokens: int = Field(800, ge=50, le=4000)
    chunk_overlap: int = Field(100, ge=0)
    filter_fields: tuple[str, ...] = ()  # front-matter keys that requests may filter on
    territory_field: str | None = None  # front-matter key that names the territory a document is valid in
    chunk_types: dict[str, str] = Field(default_factory=dict)  # heading of a section → its chunk type
    readers: dict[str, PluginUse] = Field(default_factory=dict)  # file suffix such as `.pptx` → its BaseReader
    transformations: tuple[PluginUse, ...] = ()  # TransformComponents that run after the chunker, in order

    @field_validator("readers")
    @classmethod
    def _are_suffixes(cls, readers: dict[str, PluginUse]) -> dict[str, PluginUse]:
        for suffix in readers:
            if not FILE_EXTENSION.fullmatch(suffix):
                raise ValueError(f"{suffix!r} is not a lower-case file extension such as '.pptx'")
        return readers

    @cached_property
    def hidden_types(self) -> frozenset[str]:
        """Chunk types that an answer under this definition may not use: internal ones that it does not declare."""
        return INTERNAL_TYPES.difference(self.chunk_types.values())

    @model_validator(mode="after")
    def _overlap_fits(self) -> IngestDefinition:
        if self.chunk_overlap >= self.chunk_tokens:
            raise ValueError("chunk_overlap must be smaller than chunk_tokens")
        return self


class RelevanceFit(_Strict):
    """relevance = 1 / (1 + exp(-(intercept + cosine·c + coverage·v))), fitted by `eval calibrate`."""

    intercept: float
    cosine: float
    coverage: float
    run: str  # the eval run that set the numbers
    alpha: float | None = Field(None, ge=0, le=1)  # replaces the definition's


class Calibration(RelevanceFit):
    """A fit for questions in any language, and better ones by language.

    An embedding model that knows one language well says little in another: its cosine weighs
    accordingly less there. The numbers hold for one embedding model.
    """

    model: str | None = None  # embedding model of the fit; `rag-service check` compares it with the setting
    languages: dict[Language, RelevanceFit] = Field(default_factory=dict)  # of the question
    between_languages: RelevanceFit | None = None  # for passages in another language than the question


class QueryDefinition(_Strict):
    """How questions are answered."""

    alpha: float = Field(0.5, ge=0, le=1)  # share of dense search in the fusion
    alpha_run: str | None = None  # the saved eval run that set alpha
    bm25_k1: float = Field(1.2, ge=0, le=10)
    bm25_b: float = Field(0.75, ge=0, le=1)
    candidates: int = Field(100, ge=10, le=1000)  # fetched by each search before fusion
    threshold: float | None = Field(None, ge=0, le=1)  # overrides RAG_SIMILARITY_THRESHOLD
    calibration: Calibration | None = None
    synonyms: str | tuple[str, ...] | None = None  # file beside index.yaml, or one for each language
    territories: str | None = None  # file beside index.yaml
    prompt: str = "grounded"
    tiers: dict[Tier, tuple[str, ...]] = Field(default_factory=dict)  # tier → chunk types
    minimum_context_tokens: int = Field(0, ge=0)  # less context than this makes a decision uncertain
    postprocessors: tuple[PluginUse, ...] = ()  # BaseNodePostprocessors that run after the built-in ones, in order


class IndexFile(_Strict):
    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")
    description: str = ""
    ingest: IngestDefinition = IngestDefinition()
    query: QueryDefinition = QueryDefinition()


class Territory(_Strict):
    """A region that documents and questions may name."""

    name: str = Field(min_length=1)
    aliases: tuple[str, ...] = ()
    cities: tuple[str, ...] = ()


class IndexDefinition(IndexFile):
    """A loaded index: its file, its synonyms and its territories."""

    folder: Path
    synonyms: tuple[tuple[str, ...], ...] = ()  # groups of equivalent expressions
    territories: tuple[Territory, ...] = ()

    def fingerprint(self, *, embedding_model: str, dimension: int, transformations: Collection[str] = ()) -> str:
        """Hash of everything that decides what the chunks are; a change means: ingest again.

        `transformations`: descriptions of those that run besides the definition's.
        """
        unused = {key for key in ("readers", "transformations") if not getattr(self.ingest, key)}
        parts = {
            "code": CHUNKS_MADE_AS,
            "ingest": self.ingest.model_dump(mode="json", exclude=unused),
            "embedding_model": embedding_model,
            "dimension": dimension,
            **({"transformations": list(transformations)} if transformations else {}),
        }
        return _hash(parts)

    @cached_property
    def query_hash(self) -> str:
        """Hash of the query part with its files, for provenance records."""
        return _hash(
            {
                "query": self.query.model_dump(mode="json"),
                "synonyms": self.synonyms,
                "territories": [territory.model_dump(mode="json") for territory in self.territories],
            }
        )

    @property
    def documents_path(self) -> Path:
        """Folder of the documents that are shipped with the index."""
        return self.folder / "documents"


def shipped_names(indices: Iterable[IndexDefinition]) -> frozenset[str]:
    """Names of the documents that are shipped with these indices."""
    folders = [index.documents_path for index in indices]
    return frozenset(file.name for folder in folders if folder.is_dir() for file in folder.iterdir())


class _SynonymFile(_Strict):
    groups: tuple[tuple[str, ...], ...]


class _TerritoryFile(_Strict):
    communities: tuple[Territory, ...]


def shipped_folder(name: str) -> Path:
    """Folder `indices`, `prompts` or `evals` inside the installed package, else in the checkout."""
    package = Path(__file__).parent
    packaged = package / "_shipped" / name
    return packaged if packaged.is_dir() else package.parent / name


def load_index(name: str, *, indices_path: Path | None = None) -> IndexDefinition:
    """Load one index definition.

    Raises DefinitionError if there is none of this name or a file is wrong; it names file and key, and says how to fix
    it.
    """
    root = indices_path or shipped_folder("indices")
    file = root / name / "index.yaml"
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name) or not file.is_file():
        there = ", ".join(list_indices(indices_path=indices_path)) or "none"
        raise DefinitionError(f"There is no index {name!r} in {root}. Available: {there}.", field="RAG_INDEX")
    loaded = _validate(IndexFile, file)
    if loaded.name != name:
        raise DefinitionError(f"{file}: name: is {loaded.name!r}, but the folder is {name!r}; they must be equal.")
    synonyms: tuple[tuple[str, ...], ...] = ()
    territories: tuple[Territory, ...] = ()
    if loaded.query.synonyms:
        named = loaded.query.synonyms
        for one in (named,) if isinstance(named, str) else named:
            synonyms += _load_synonyms(file.parent / one)
    if loaded.query.territories:
        territories = _validate(_TerritoryFile, file.parent / loaded.query.territories).communities
    return IndexDefinition(**dict(loaded), folder=file.parent, synonyms=synonyms, territories=territories)


def list_indices(*, indices_path: Path | None = None) -> list[str]:
    """Names of the index definitions that can be loaded."""
    root = indices_path or shipped_folder("indices")
    return sorted(file.parent.name for file in root.glob("*/index.yaml"))


def load_indices(*, indices_path: Path | None = None) -> dict[str, IndexDefinition]:
    """All index definitions by name. Raises like `load_index`."""
    return {name: load_index(name, indices_path=indices_path) for name in list_indices(indices_path=indices_path)}


def find_index(indices: Mapping[str, IndexDefinition], name: str) -> IndexDefinition:
    """The definition that rules a corpus. Raises ConfigurationError if it is no longer there."""
    if name not in indices:
        raise ConfigurationError(f"The corpus uses the index {name!r}, which is not defined.")
    return indices[name]


def _load_synonyms(file: Path) -> tuple[tuple[str, ...], ...]:
    groups = _validate(_SynonymFile, file).groups
    seen: dict[str, int] = {}
    for number, group in enumerate(groups, start=1):
        if len(group) < 2:
            raise DefinitionError(f"{file}: groups[{number}]: needs at least two expressions.")
        for expression in group:
            key = " ".join(expression.casefold().split())
            if not key:
                raise DefinitionError(f"{file}: groups[{number}]: contains an empty expression; remove it.")
            if key in seen and seen[key] != number:
                line = _line_of(file, expression)
                raise DefinitionError(
                    f"{file}:{line}: {expression!r} is in groups {seen[key]} and {number};"
                    " merge the groups or remove it from one."
                )
            seen[key] = number
    return groups


def load_yaml(text: str) -> Any:
    """Plain values of a YAML text. Raises yaml.YAMLError if it is none."""
    return yaml.load(text, Loader=_LOADER)  # noqa: S506 - both are safe loaders


def _validate(model: type[_Model], file: Path) -> _Model:
    try:
        raw = load_yaml(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DefinitionError(f"{file}: is named in the definition but does not exist.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{file}: cannot be read as UTF-8 text.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}" if mark is not None else ""
        raise DefinitionError(f"{file}{place}: is not valid YAML: {getattr(error, 'problem', error)}.") from error
    if not isinstance(raw, dict):
        raise DefinitionError(f"{file}: must contain keys and values at the top level.")
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_url=False):
            key = ".".join(str(part) for part in problem["loc"])
            message = problem["msg"].removeprefix("Value error, ")
            if problem["type"] == "extra_forbidden":
                message = "unknown key; remove it or correct its name"
            problems.append(f"{file}: {key}: {message}")
        raise DefinitionError("; ".join(problems)) from error


def _line_of(file: Path, text: str) -> int:
    lines = file.read_text(encoding="utf-8").splitlines()
    return max((number for number, line in enumerate(lines, start=1) if text in line), default=0)


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
