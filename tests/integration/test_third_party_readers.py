"""Readers that are not ours: they run in the sandbox, their places are kept, and their faults stay theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from rag_service.errors import ConfigurationError, DocumentError
from rag_service.indices import PluginUse, load_index
from rag_service.ingest.transformations import reader_classes
from rag_service.readers.file_reader import LANGUAGE, PROPERTIES, SPANS, TITLE, FileReader
from rag_service.readers.parse import ReaderClass
from rag_service.readers.sandbox import ParseLimits, parse_in_sandbox

LOG = b"INFO started\nERROR disk full\nINFO stopped\nERROR no paper\n"


class LogReader(BaseReader):
    """A page for each line of a level."""

    def __init__(self, level: str = "INFO"):
        self._level = level

    def load_data(self, file: Path, extra_info: Any = None) -> list[Document]:
        lines = [line for line in file.read_text().splitlines() if line.startswith(self._level)]
        return [
            Document(text=line, metadata={"page_label": str(number), "file_path": str(file), "kind": "log"})
            for number, line in enumerate(lines, start=1)
        ]


class Faulty(BaseReader):
    def __init__(self, fault: str = ""):
        self._fault = fault

    def load_data(self, file: Path, extra_info: Any = None) -> list[Document]:
        match self._fault:
            case "raises":
                raise ValueError("a secret of the document")
            case "exits":
                raise SystemExit(3)
            case "hangs":
                while True:
                    pass
            case "writes":
                file.write_text("changed")
            case "returns texts":
                return ["no document"]  # type: ignore[list-item]
        return []


async def test_a_foreign_reader_reads_in_the_sandbox_and_its_pages_become_places() -> None:
    reader = FileReader(readers={".log": ReaderClass(path=f"{__name__}:LogReader", options={"level": "ERROR"})})
    [document] = await reader.aload_data(LOG, file_name="Server.LOG")
    assert document.text == "ERROR disk full\n\nERROR no paper"
    assert document.metadata[SPANS] == [[0, 15, {"page": 1}], [17, 31, {"page": 2}]]
    assert (document.metadata[TITLE], document.metadata[LANGUAGE]) == ("Server", None)
    assert document.metadata[PROPERTIES] == {"kind": "log"}
    assert (await reader.aload_data(LOG, file_name="server.txt"))[0].text == LOG.decode().rstrip("\n")


@pytest.mark.parametrize("fault", ["raises", "exits", "hangs", "writes", "returns texts", "returns nothing"])
@pytest.mark.slow
async def test_a_faulty_reader_fails_its_document_alone(fault: str, tmp_path: Path) -> None:
    reader = ReaderClass(path=f"{__name__}:Faulty", options={"fault": fault})
    with pytest.raises(DocumentError) as caught:
        await parse_in_sandbox(LOG, file_name="server.log", reader=reader, limits=ParseLimits(wall_seconds=8))
    assert "server.log" in caught.value.message
    assert "secret" not in f"{caught.value.message} {caught.value.__cause__!r}"


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (f"{__name__}:Missing", "has no class Missing"),
        ("pathlib:Path", "is not a subclass of llama_index.core.readers.base.BaseReader"),
        ("no_such_package.readers:Reader", "is not installed"),
    ],
)
def test_a_wrong_reader_in_an_index_definition_is_named_at_start(use: str, said: str) -> None:
    index = load_index("general")
    ingest = index.ingest.model_copy(update={"readers": {".log": PluginUse(use=use)}})
    with pytest.raises(ConfigurationError, match=r"index.yaml: ingest.readers..log") as caught:
        reader_classes(index.model_copy(update={"ingest": ingest}))
    assert said in caught.value.message
