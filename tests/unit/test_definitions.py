"""Index definitions: what is wrong is named with file, key and mend."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_service.errors import DefinitionError
from rag_service.indices import IndexDefinition, list_indices, load_index

VALID = "name: small\ningest:\n  language: es\nquery:\n  alpha: 0.4\n"


def write(folder: Path, index: str, **files: str) -> Path:
    home = folder / "small"
    home.mkdir()
    (home / "index.yaml").write_text(index, encoding="utf-8")
    for name, text in files.items():
        (home / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def fingerprint(index: IndexDefinition) -> str:
    return index.fingerprint(embedding_model="m", dimension=3)


def test_a_definition_loads_with_defaults(tmp_path: Path) -> None:
    index = load_index("small", indices_path=write(tmp_path, VALID))
    assert (index.ingest.language, index.ingest.chunk_tokens, index.query.alpha) == ("es", 800, 0.4)
    assert list_indices(indices_path=tmp_path) == ["small"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: small\nquery:\n  alhpa: 0.4\n", r"query\.alhpa: unknown key"),
        ("name: small\nquery:\n  alpha: 1.4\n", r"query\.alpha: .*less than or equal to 1"),
        ("name: small\ningest:\n  language: de\n", r"ingest\.language"),
        ("name: small\ningest:\n  chunk_overlap: 800\n", "chunk_overlap must be smaller"),
        ("name: [small\n", r"index\.yaml:\d+: is not valid YAML"),
        ("- a list", "must contain keys and values"),
        ("name: other\n", "they must be equal"),
        ("name: small\nquery:\n  synonyms: words.yaml\n", r"words\.yaml: is named in the definition but does not"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        load_index("small", indices_path=write(tmp_path, text))


@pytest.mark.parametrize("name", ["missing", "../small", "Small", ""])
def test_an_index_that_is_not_there_is_named_with_those_that_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(DefinitionError, match="Available: small"):
        load_index(name, indices_path=write(tmp_path, VALID))


SYNONYMS = "name: small\nquery:\n  synonyms: synonyms.yaml\n"


@pytest.mark.parametrize(
    ("synonyms", "said"),
    [
        ("groups:\n  - [IMV, renta]\n  - [paro, imv]\n", r"synonyms\.yaml:3: 'imv' is in groups 1 and 2"),
        ("groups:\n  - [IMV]\n", r"groups\[1\]: needs at least two"),
        ("groups:\n  - [IMV, '']\n", "empty expression"),
    ],
)
def test_wrong_synonyms_are_named_with_their_line(tmp_path: Path, synonyms: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        load_index("small", indices_path=write(tmp_path, SYNONYMS, synonyms=synonyms))


def test_the_fingerprint_follows_the_ingest_part_and_the_model_alone(tmp_path: Path) -> None:
    index = load_index("small", indices_path=write(tmp_path, VALID))
    other_query = index.model_copy(update={"query": index.query.model_copy(update={"alpha": 0.9})})
    other_ingest = index.model_copy(update={"ingest": index.ingest.model_copy(update={"chunk_tokens": 400})})
    assert fingerprint(index) == fingerprint(other_query)
    assert index.query_hash != other_query.query_hash
    assert fingerprint(index) != fingerprint(other_ingest)
    assert fingerprint(index) != index.fingerprint(embedding_model="n", dimension=3)
