"""Classes by their path: what is found, and what the error says where something is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.readers.base import BaseReader

from rag_service.components import Plugins
from rag_service.errors import ConfigurationError, DefinitionError, DocumentError
from rag_service.indices import load_index
from rag_service.models.plugins import build, build_postprocessors, load_class
from rag_service.readers.parse import ReaderClass, parse

CORE = "llama_index.core.postprocessor"
KEY = "sk-do-not-log"


class Picky(BaseReader):
    """A reader that takes one option and refuses some of its values."""

    def __init__(self, *, key: str):
        if key == KEY:
            raise ValueError(f"bad key {key}")


class LinesReader(BaseReader):
    """A reader without options."""


@pytest.mark.parametrize("path", [f"{CORE}:LongContextReorder", f"{CORE}.LongContextReorder"])
def test_a_class_is_found_by_its_path_with_colon_or_dot(path: str) -> None:
    assert load_class(path, BaseNodePostprocessor, setting="X") is LongContextReorder


def test_an_object_is_made_with_its_options() -> None:
    made = build(f"{CORE}:SimilarityPostprocessor", {"similarity_cutoff": 0.3}, BaseNodePostprocessor, setting="X")
    assert isinstance(made, SimilarityPostprocessor)
    assert made.similarity_cutoff == 0.3


def test_a_class_of_ones_own_module_is_found() -> None:
    assert isinstance(build(f"{__name__}:LinesReader", {}, BaseReader, setting="X"), LinesReader)


@pytest.mark.parametrize(
    ("path", "base", "message"),
    [
        ("ollama", LLM, r"'ollama' is not a class path; write it as package\.module:Class"),
        ("a b:C", LLM, "is not a class path"),
        ("llama_index.llms.nobody:Nobody", LLM, "Install it with `pip install llama-index-llms-nobody`"),
        ("llama_index.embeddings.hugging_place:X", BaseEmbedding, "pip install llama-index-embeddings-hugging-place"),
        ("no_such_package.llms:Own", LLM, r"the module no_such_package\.llms is not installed"),
        ("llama_index.core.postprocesor:LongContextReorder", LLM, "Did you mean postprocessor?"),
        (
            f"{CORE}:LongContextReoder",
            BaseNodePostprocessor,
            "Did you mean LongContextReorder?",
        ),
        (f"{CORE}:LongContextReorder", LLM, r"is not a subclass of llama_index\.core\.llms\.llm\.LLM"),
        (f"{CORE}:__name__", LLM, "is not a subclass of"),
        ("llama_index.core.llms:CustomLLM", LLM, "is abstract; it does not implement complete, metadata"),
    ],
)
def test_a_wrong_path_names_the_setting_and_what_was_expected(path: str, base: type[Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        build(path, {}, base, setting="RAG_CHAT_PROVIDER")
    assert caught.value.field == "RAG_CHAT_PROVIDER"
    assert caught.value.message.startswith("RAG_CHAT_PROVIDER: ")


@pytest.mark.parametrize(
    ("path", "base", "options", "message"),
    [
        (f"{CORE}:SimilarityPostprocessor", BaseNodePostprocessor, {"similarity_cutof": 1}, "mean similarity_cutoff"),
        (
            f"{CORE}:SimilarityPostprocessor",
            BaseNodePostprocessor,
            {"similarity_cutoff": "high"},
            "similarity_cutoff:",
        ),
        (f"{__name__}:Picky", BaseReader, {}, "missing 1 required keyword-only argument: 'key'"),
        (f"{__name__}:Picky", BaseReader, {"kee": 1}, "has no option 'kee'. Did you mean key?"),
        (f"{__name__}:Picky", BaseReader, {"key": KEY}, r"cannot be created with these options \(ValueError\)"),
    ],
)
def test_wrong_options_are_named_without_their_values(
    path: str, base: type[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        build(path, options, base, setting="RAG_CHAT_OPTIONS")
    assert path.split(":")[1] in caught.value.message
    assert KEY not in caught.value.message
    assert "high" not in caught.value.message


def test_a_module_that_fails_on_import_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_plugin.py").write_text("1 / 0\n")
    (tmp_path / "needy_plugin.py").write_text("import package_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match=r"broken_plugin cannot be imported \(ZeroDivisionError"):
        load_class("broken_plugin:Own", LLM, setting="X")
    with pytest.raises(ConfigurationError, match="needy_plugin needs the package package_nobody_has"):
        load_class("needy_plugin:Own", LLM, setting="X")


def write_index(folder: Path, text: str) -> Path:
    (folder / "own").mkdir()
    (folder / "own" / "index.yaml").write_text(f"name: own\n{text}", encoding="utf-8")
    return folder


def test_postprocessors_of_an_index_are_built_in_order(tmp_path: Path) -> None:
    text = f"""
query:
  postprocessors:
    - {{use: "{CORE}:SimilarityPostprocessor", with: {{similarity_cutoff: 0.2}}}}
    - {CORE}:LongContextReorder
"""
    first, second = build_postprocessors(load_index("own", indices_path=write_index(tmp_path, text)))
    assert isinstance(first, SimilarityPostprocessor)
    assert first.similarity_cutoff == 0.2
    assert isinstance(second, LongContextReorder)


def test_a_wrong_postprocessor_names_file_and_key(tmp_path: Path) -> None:
    text = f"query: {{postprocessors: [{{use: '{CORE}:LongContextReoder'}}]}}"
    index = load_index("own", indices_path=write_index(tmp_path, text))
    with pytest.raises(ConfigurationError, match=r"own/index\.yaml: query\.postprocessors\[0\]: .*Did you mean"):
        build_postprocessors(index)


def test_readers_and_transformations_of_an_index_are_declared(tmp_path: Path) -> None:
    text = """
ingest:
  readers: {.log: "own.readers:LogReader"}
  transformations: [{use: "llama_index.core.node_parser:SentenceSplitter", with: {chunk_size: 200}}]
"""
    index = load_index("own", indices_path=write_index(tmp_path, text))
    assert index.ingest.readers[".log"].use == "own.readers:LogReader"
    assert index.ingest.transformations[0].options == {"chunk_size": 200}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ingest: {readers: {log: a.b:C}}", "'log' is not a lower-case file extension"),
        ("query: {postprocessors: [{use: a.b:C, options: {}, wiht: {}}]}", "wiht: unknown key"),
        ("query: {postprocessors: [{with: {}}]}", "postprocessors.0.use: Field required"),
    ],
)
def test_a_malformed_plugin_in_an_index_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        load_index("own", indices_path=write_index(tmp_path, text))


class FailingReader(BaseReader):
    """A reader with a mistake."""

    def load_data(self, file: Path) -> list[Any]:
        raise KeyError("flavour")


_IN_NOTEBOOK = type("NotebookReader", (LinesReader,), {"__module__": "__main__"})


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ({"llm": "gpt-4"}, r"llm: expected an object of .*LLM, not 'gpt-4'"),
        ({"judge": "none"}, r"judge: expected an object of .*Judge, not 'none'"),
        ({"postprocessors": [LongContextReorder]}, "not the class LongContextReorder; create an object of it"),
        ({"transformations": [LinesReader()]}, "transformations: expected an object of .*TransformComponent"),
        ({"readers": {".log": LinesReader()}}, "a class, not an object: pass LinesReader itself"),
        ({"readers": {"log": LinesReader}}, "not a lower-case file extension such as '.log'"),
        ({"readers": {".log": LongContextReorder}}, "is not a subclass of .*BaseReader"),
        ({"readers": {".log": _IN_NOTEBOOK}}, "cannot import __main__:NotebookReader; define the class .* module"),
    ],
)
def test_an_object_of_the_wrong_kind_is_refused_with_what_was_expected(objects: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Plugins(**objects)


def test_the_error_of_a_reader_of_ones_own_names_the_reader(tmp_path: Path) -> None:
    file = tmp_path / "plant.log"
    file.write_text("pump 7 lost pressure")
    with pytest.raises(DocumentError, match=r"The reader .*FailingReader could not read \"plant.log\" \(KeyError\)"):
        parse(str(file).encode(), file_name="plant.log", reader=ReaderClass(path=f"{__name__}:FailingReader"))
