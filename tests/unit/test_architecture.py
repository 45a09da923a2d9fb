"""Imports point down only, between packages and between modules, and packages stay small."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import rag_service

PACKAGE = Path(rag_service.__file__).parent
MAX_MODULES = 20  # in a package, besides __init__

# A module may import from its own package and from the packages in lines above its own.
LAYERS = """
errors domain unpicklable machine tasks recent
turns
word_boxes
language
settings indices
store
store.search
store.documents store.accounts store.replication
tables
tables.reading tables.figures
tables.asking.planning
tables.asking
observability models
models.servers
models.embedding models.llm
models.reranking models.judge
readers.common readers.ocr
readers.office readers.pdf readers.text readers.web
readers.mail
readers
ingest
ingest.bulk ingest.transfer
sources
retrieval
answering.proof answering.quoting
fitting
answering.guards
answering.drafts
answering.prompt
answering.decision answering.tools
answering.answerers
answering
agents advisor
components auth
api.http
api.corpora api.openai api.advisor api.mcp
api.agents
api web
app
evaluation client
cli
__main__
"""
LEVELS = {name: level for level, line in enumerate(LAYERS.strip().splitlines()) for name in line.split()}

Sources = Mapping[str, str]  # module name without "rag_service." → its source; a package ends with ".__init__"


@functools.cache
def read_sources() -> dict[str, str]:
    paths = [path for path in PACKAGE.rglob("*.py") if "_shipped" not in path.parts and "migrations" not in path.parts]
    return {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path.read_text("utf-8") for path in paths}


def package_of(module: str) -> str:
    """`store.search` for `store.search.dense`; a top-level module is a package of its own."""
    return module.rpartition(".")[0] or module


@functools.cache
def imported_names(source: str) -> list[tuple[str, str]]:
    """(module, name) of all imports, including lazy ones and those for type checking."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, alias.name) for alias in node.names]
    return [(module.removeprefix("rag_service."), name) for module, name in found if module.startswith("rag_service.")]


def imports(sources: Sources) -> Iterator[tuple[str, str, str]]:
    """(module, imported module, imported name) of all imports inside the package."""
    for module, source in sources.items():
        for base, name in imported_names(source):
            candidates = (f"{base}.{name}", f"{base}.{name}.__init__", base)
            yield module, next((known for known in candidates if known in sources), f"{base}.__init__"), name


def edges(sources: Sources) -> set[tuple[str, str]]:
    """(package, package that it imports from); the root package only re-exports, lazily."""
    found = {(package_of(module), package_of(target)) for module, target, _ in imports(sources) if module != "__init__"}
    return {(package, target) for package, target in found if package != target}


def find_violations(sources: Sources) -> list[str]:
    """What is wrong, one line each."""
    unplaced = sorted({package_of(module) for module in sources} - {"__init__", *LEVELS})
    found = [f"unplaced: {package} is in no layer" for package in unplaced]
    for package, target in sorted(edges(sources)):
        if LEVELS.get(package, -1) <= LEVELS.get(target, -1):
            found.append(f"upward: {package} imports {target}")
    for module, target, name in sorted(imports(sources)):
        if name.startswith("_") and not name.startswith("__") and module != target:
            found.append(f"private: {module} imports {name} of {target}")
    counts: dict[str, int] = {}
    for module in sources:
        if "." in module and not module.endswith("__init__"):
            counts[package_of(module)] = counts.get(package_of(module), 0) + 1
    found += [f"crowded: {package} has {count} modules" for package, count in counts.items() if count > MAX_MODULES]
    return found + [f"circle: {' -> '.join(circle)}" for circle in find_circles(sources)]


def find_circles(sources: Sources) -> Iterator[list[str]]:
    """One circle of each folder that has any: of its modules and sub-folders, these with all that is below them.

    A circle of single modules is one of these as well, in the folder that holds them all.
    """
    folders: dict[str, dict[str, set[str]]] = {}
    for module, target, _ in imports(sources):
        path, wanted = module.split("."), target.split(".")
        shared = next((place for place, pair in enumerate(zip(path, wanted, strict=False)) if len(set(pair)) > 1), None)
        if module != "__init__" and shared is not None:
            folder = folders.setdefault(".".join(path[:shared]), {})
            folder.setdefault(".".join(path[: shared + 1]), set()).add(".".join(wanted[: shared + 1]))
    for graph in folders.values():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            yield error.args[1]


def test_imports_point_down_without_circles_and_packages_stay_small() -> None:
    assert find_violations(read_sources()) == []


# Rooms beside the core, and the only modules of the core that open one: where the parts are put together.
ROOMS = (
    "advisor", "agents", "sources", "ingest.transfer", "evaluation", "fitting", "store.replication",
    "retrieval.keyword", "retrieval.knowledge_base", "retrieval.replica",
)  # fmt: skip
CORE = ("answering", "retrieval", "tables", "models", "ingest", "readers", "store", "language", "settings", "indices")
OPENERS = {"retrieval.opening"}


def is_in(module: str, places: Iterable[str]) -> bool:
    return any(module == place or module.startswith(f"{place}.") for place in places)


def find_opened_rooms(sources: Sources) -> set[tuple[str, str]]:
    core = {module for module in sources if is_in(module, CORE) and not is_in(module, ROOMS)} - OPENERS
    return {(module, target) for module, target, _ in imports(sources) if module in core and is_in(target, ROOMS)}


def test_the_core_imports_no_room_beside_it() -> None:
    assert find_opened_rooms(read_sources()) == set()
    seeded = {"answering.seeded": "def f():\n    from rag_service.advisor.advisor import Advisor"}
    assert find_opened_rooms(read_sources() | seeded) == {("answering.seeded", "advisor.advisor")}


def test_the_page_on_the_architecture_lists_every_package_in_the_order_of_its_imports() -> None:
    page = Path("docs/architecture.md").read_text(encoding="utf-8")
    _, rule, _ = page.split("```")
    groups = rule.removeprefix("text").split("→")  # from the top down
    place = {name.strip(): number for number, group in enumerate(groups) for name in group.split(",")}
    sources = read_sources()
    assert place.keys() == {name.partition(".")[0] for name in sources} - {"__init__", "__main__"}
    pairs = {(package.partition(".")[0], target.partition(".")[0]) for package, target in edges(sources)}
    assert [pair for pair in sorted(pairs - {("__main__", "cli")}) if place[pair[0]] > place[pair[1]]] == []


@pytest.mark.parametrize(
    ("kind", "module", "source"),
    [
        ("upward", "store.search.seeded", "from rag_service.api.application import create_litestar"),
        ("upward", "answering.seeded", "def f():\n    from rag_service.agents.chat import AgentChat"),
        ("upward", "domain", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rag_service.settings"),
        ("circle", "store.seeded", "def f():\n    from rag_service.tables.storage import find_tables"),
        ("circle", "api.http.seeded", "if TYPE_CHECKING:\n    from rag_service.api.corpora import schemas"),
        ("private", "api.seeded", "from rag_service.store.database import _anything"),
        ("unplaced", "utilities.seeded", ""),
    ],
)
def test_a_seeded_violation_is_found(kind: str, module: str, source: str) -> None:
    violations = find_violations(read_sources() | {module: source})
    assert any(line.startswith(f"{kind}: ") for line in violations), violations


def test_a_circle_of_two_modules_is_found_in_lazy_and_type_checking_imports_too() -> None:
    seeded = {
        "auth.first": "def f():\n    from rag_service.auth.second import g",
        "auth.second": "if TYPE_CHECKING:\n    from rag_service.auth import first",
    }
    assert find_violations(read_sources() | seeded) == ["circle: auth.first -> auth.second -> auth.first"]


def test_a_package_with_too_many_modules_is_found() -> None:
    seeded = {f"auth.seeded_{number}": "" for number in range(MAX_MODULES + 1)}
    assert any(line.startswith("crowded: auth ") for line in find_violations(read_sources() | seeded))


# What a cache without a size may be asked for: there are few languages, kinds, classes and packaged models.
_FEW = {"language", "code", "kind", "package", "model"}


def test_no_cache_without_a_size_keeps_what_users_write() -> None:
    kept = [
        f"{module}.{function.name}"
        for module, source in read_sources().items()
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
        and any(ast.unparse(decorator) in ("cache", "functools.cache") for decorator in function.decorator_list)
        and not {argument.arg for argument in function.args.args} <= _FEW
    ]
    assert kept == []


# Caches of the process with a size that texts may come into. What one user asks or stores must make nothing faster for
# another (`rag_service/recent.py`), so each says what its arguments are.
_SHARED_CACHES = {
    "answering.decision.confidence.read_fit": "a file of the package",
    "answering.proof.analysis.classify": "single words, read in microseconds",
    "answering.proof.lexicon.fold_word": "single words, read in microseconds",
    "client.html._renderer": "nothing",
    "domain.column_letters": "numbers of columns",
    "language.dates.month_of": "single words, read in microseconds",
    "language.versions._expression": "names of the language data",
    "language.versions._name_words": "names of the language data",
    "language.words._encode": "nothing",
    "language.words._forms": "single words, stemmed in microseconds",
    "language.words.index_term": "single words, stemmed in microseconds",
    "answering.quoting.answer_types._words_for": "names of the language data",
    "observability.logs._names_secret": "names of fields of log lines",
    "readers.pdf.hidden_words._are_alike": "colours, in a process for one document",
    "readers.text.delimited._value": "cells, in a process for one document",
    "retrieval.planner._cut": "expressions of index definitions",
    "retrieval.planner._foreign_terms_of": "single words, stemmed in microseconds",
    "retrieval.planner._groups_by_beginning": "synonyms of index definitions",
    "tables.asking.planning.question._every_phrase": "languages, and names of the language data",
    "tables.figures.question._by_first_word": "synonyms of index definitions",
    "tables.figures.question._group_of_income": "synonyms of index definitions",
    "tables.figures.question._groups": "synonyms of index definitions",
    "tables.figures.question._keys": "expressions of index definitions",
    "tables.figures.question._phrase": "phrases of the language data",
    "language.words.fold_word": "single words, read in microseconds",
}


def sized_caches(module: str, source: str) -> Iterator[str]:
    """Functions of the module's or a class's level with `lru_cache`: those inside a function end with it."""
    holders = [ast.parse(source)]
    holders += [node for node in ast.walk(holders[0]) if isinstance(node, ast.ClassDef)]  # type: ignore[misc]
    for node in (node for holder in holders for node in holder.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any("lru_cache" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield f"{module}.{node.name}"
        elif isinstance(node, ast.Assign) and "lru_cache(" in ast.unparse(node.value):
            yield f"{module}.{ast.unparse(node.targets[0])}"


def test_no_cache_of_the_process_is_keyed_by_the_texts_of_users() -> None:
    """A new one is `kept_apart`, or listed with what its arguments are."""
    found = {name for module, source in read_sources().items() for name in sized_caches(module, source)}
    assert found == _SHARED_CACHES.keys()


def run_python(code: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAG_")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout


def test_importing_the_package_is_quick_and_loads_no_model_library() -> None:
    output = run_python(
        "import sys, time; start = time.process_time(); import rag_service;"
        "print(time.process_time() - start, 'torch' in sys.modules, 'llama_index' in sys.modules)"
    )
    seconds, torch, llama_index = output.split()
    assert float(seconds) < 1.5
    assert (torch, llama_index) == ("False", "False")
