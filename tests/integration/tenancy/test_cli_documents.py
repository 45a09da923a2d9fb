"""`rag-service ask` and `documents`, as somebody types them who has no server running."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_service.cli import main
from rag_service.store.embedded import EmbeddedServer

LOAN = "# Loans\n\nA loan from the plan has a fee of 75 dollars. The loan is repaid within five years.\n"
TRAVEL = "# Travel\n\nThe ceiling for a hotel night in Paris is 160 euros.\n"


@pytest.fixture
def run(database_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("RAG_DATABASE_URL", database_server.service_conninfo)
    monkeypatch.setenv("RAG_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("rag_service.observability.logs.configure_logging", lambda settings: None)

    def call(*arguments: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(main, arguments, input=typed)

    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "loans.md").write_text(LOAN)
    (folder / "travel.md").write_text(TRAVEL)
    ingested = call("ingest", str(folder))
    assert ingested.exit_code == 0, ingested.output
    return call


def printed(outcome: Result) -> dict[str, Any]:
    """The JSON that a command printed, after what is logged here."""
    found: dict[str, Any] = json.loads(outcome.stdout[outcome.stdout.index("{\n") :])
    return found


def test_a_question_is_limited_kept_and_gone_on_from(run) -> None:
    certain = run("ask", "What is the ceiling for a hotel night in Paris?", "--json", "--keep")
    answer = printed(certain)
    assert (certain.exit_code, answer["decision"]) == (0, "can_proceed"), certain.output
    again = run("ask", "What fee does a loan have?", "--follow", "last", "--json")
    assert printed(again)["conversationId"] == answer["conversationId"]
    followed = run("ask", "And the fee?", "--follow", answer["conversationId"])
    assert f"conversation {answer['conversationId']}" in followed.output
    elsewhere = run("ask", "What is the ceiling for a hotel night in Paris?", "--file", "loans.md")
    assert elsewhere.exit_code in (3, 4) and "160 euros" not in elsewhere.output
    assert run("ask", "What is the ceiling?", "--tag", "none").exit_code == 4
    assert run("ask", "What is the ceiling for a hotel night in Paris?", "--corpus", "documents").exit_code == 0
    wrong = run("ask", "How long?", "--corpus", "sales")
    assert wrong.exit_code == 1 and "There is no corpus 'sales'. There are: documents." in wrong.output


def test_documents_are_listed_shown_and_deleted(run) -> None:
    listed = run("documents", "list", "--corpus", "documents").output
    assert [line.split()[2] for line in listed.splitlines()[1:]] == ["loans.md", "travel.md"], listed
    document_id = listed.splitlines()[1].split()[0]
    for name in ("loans.md", document_id):
        shown = run("documents", "show", name).output
        assert f"id: {document_id}\nname: loans.md\n" in shown and "state: indexed" in shown
    kept = run("documents", "delete", "loans.md", typed="n\n")
    assert kept.exit_code == 1 and "Delete loans.md?" in kept.output
    deleted = run("documents", "delete", document_id, "travel.md", "loans.md", "--yes")
    assert (deleted.exit_code, deleted.output) == (0, "Deleted: loans.md, travel.md\n")
    assert len(run("documents", "list").output.splitlines()) == 1


def test_a_document_or_corpus_that_is_not_there_is_named(run) -> None:
    for arguments in (("show", "gone.md"), ("delete", "gone.md", "--yes")):
        outcome = run("documents", *arguments)
        assert outcome.exit_code == 1 and "There is no document named 'gone.md'." in outcome.output
    assert "There is no corpus 'sales'. There are: documents." in run("documents", "list", "--corpus", "sales").output
