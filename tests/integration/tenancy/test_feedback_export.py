"""Feedback leaves the service as what it is, and as questions for an eval set."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from rag_service.errors import EvalSetError
from rag_service.evaluation.datasets import load_set
from rag_service.store.accounts.answers import Thumbs, give_feedback, store_answer
from rag_service.store.accounts.keys import Scope
from tests.integration.tenancy.conftest import ADMIN, House
from tests.integration.tenancy.web import build_application, client_of, new_key, web_settings


async def test_negative_feedback_becomes_an_eval_set_that_asks_to_be_completed(house: House, tmp_path: Path) -> None:
    ana = await house.user("ana")
    async with house.database.transaction(ana) as connection:
        for thumbs, question in ((Thumbs.DOWN, "Where do llamas live?"), (Thumbs.UP, "What do llamas eat?")):
            answer_id = uuid4()
            record = {"question": question, "answer": "In Geneva."}
            await store_answer(connection, ana, answer_id=answer_id, record=record)
            await give_feedback(connection, ana, answer_id, thumbs=thumbs, comment="No.")
    key = await new_key(house, ADMIN, scopes=list(Scope))
    async with client_of(build_application(house, web_settings()), key) as client:
        export = await client.get("/api/v1/feedback/export?thumbs=down&format=eval")
        plain = await client.get("/api/v1/feedback/export")
        wrong = await client.get("/api/v1/feedback/export?format=xlsx")
    assert wrong.status_code == 400
    assert "feedback or eval" in wrong.text
    assert len(plain.text.splitlines()) == 2
    (line,) = export.text.splitlines()
    question = json.loads(line)
    assert question["question"] == "Where do llamas live?"
    assert (question["comment"], question["answered"]) == ("No.", "In Geneva.")

    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "llamas.md").write_text("Llamas live in the Andes.", encoding="utf-8")
    file = tmp_path / "feedback.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(EvalSetError, match="documents: is empty"):
        load_set(file, documents=documents)
    file.write_text(json.dumps(question | {"documents": ["llamas.md"], "answers": ["the Andes"]}), encoding="utf-8")
    (loaded,) = load_set(file, documents=documents).questions
    assert loaded.targets == {"llamas.md": 1}
    assert loaded.answers == ("the Andes",)
