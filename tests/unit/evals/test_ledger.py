"""The ledger of rules: every rule of quoted replies has been measured, and none that went is still in it."""

from __future__ import annotations

import json

from evals.sets.ledger import FEATURES, FILE, Entry
from evals.sets.questions import set_names
from rag_service.answering.answer_gate import QUOTE_RULES


def test_every_rule_and_feature_has_an_entry_for_every_set_and_nothing_else_has() -> None:
    entries = [Entry(**one) for one in json.loads(FILE.read_text(encoding="utf-8"))]
    sets = {entry.set for entry in entries}
    assert sets <= {"all", *set_names()}
    assert "all" in sets
    assert [(entry.rule, entry.set) for entry in entries if entry.set == "all"] == [
        (rule, "all") for rule in (*QUOTE_RULES, *FEATURES)
    ]
    assert {(entry.rule, entry.set) for entry in entries} == {
        (rule, name) for rule in (*QUOTE_RULES, *FEATURES) for name in sets
    }
    assert all(entry.difference == entry.better - entry.worse for entry in entries)
