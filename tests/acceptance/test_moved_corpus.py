"""The sample documents, moved into an empty database, answer the sample questions as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_service import open_service
from rag_service.client import Service
from rag_service.store.embedded import EmbeddedServer
from tests.acceptance.test_examples import GOLD
from tests.conftest import cloned_database
from tests.integration.answers.conftest import SAMPLES
from tests.transfer_files import members_of

pytestmark = pytest.mark.slow


def answers(service: Service) -> list[Any]:
    """What is said to each question, and how it is proved; without ids and times."""
    said = []
    for question in GOLD:
        body = service.ask(question).body
        citations = [(one.quote, one.status, one.place, one.title) for one in body.citations]
        reasons = [one.text for one in body.reasons]
        said.append((question, body.answer, body.decision, body.confidence, citations, reasons))
    return said


def test_a_moved_corpus_answers_as_before(postgres: EmbeddedServer, tmp_path: Path) -> None:
    file = tmp_path / "samples.tar"
    with cloned_database(postgres) as old, open_service(database_url=old.service_conninfo) as service:
        service.ingest(SAMPLES)
        before = answers(service)
        service.export_corpus("documents", file)
    members = members_of(file.read_bytes())
    originals = {content for name, content in members.items() if name.endswith("/original")}
    assert originals == {sample.read_bytes() for sample in SAMPLES.iterdir()}
    with cloned_database(postgres) as new, open_service(database_url=new.service_conninfo) as service:
        report = service.import_corpus(file)
        assert (report.body.documents, report.body.stale, report.body.embedded_again) == (len(originals), 0, False)
        assert answers(service) == before
