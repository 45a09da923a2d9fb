"""The ledger of rules: every rule of quoted replies has been measured, and none that went is still in it."""

from __future__ import annotations

from evals.sets.ledger import ALL, RULES, read_ledger
from evals.sets.questions import set_names


def test_every_rule_and_feature_has_an_entry_for_every_set_and_nothing_else_has() -> None:
    entries = read_ledger()
    sets = {entry.set for entry in entries}
    assert sets - {ALL} <= {*set_names()}
    assert {(entry.rule, entry.set) for entry in entries} == {(rule, name) for rule in RULES for name in sets}
    assert tuple(entry.rule for entry in entries if entry.set == ALL) == RULES


def test_what_a_rule_is_worth_over_all_sets_is_the_sum_of_the_sets() -> None:
    entries = read_ledger()
    for rule in RULES:
        every = [entry for entry in entries if entry.rule == rule]
        for count in ("replies", "better", "worse", "difference"):
            of_all = [getattr(entry, count) for entry in every if entry.set == ALL]
            assert of_all == [sum(getattr(entry, count) for entry in every if entry.set != ALL)]
