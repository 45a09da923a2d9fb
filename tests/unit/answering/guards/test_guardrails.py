"""Guardrails: rules read from chunks, phrases found as said, near variants too, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_service.answering.guards.guardrails import ALWAYS_MENTION, NEVER_SAY, check_rules, read_rules
from rag_service.domain import Location, Span
from tests.unit.answering.proof.answers import make_hit

TEXT = """## Guardrails

- Never say "you can take any amount you like", because the maximum depends on the balance.
- Never say "this will not affect your retirement" or “there is no risk”, since "risk" is a word of law.
- Always mention "the origination fee is taken out of the amount you receive", so the net amount is clear.
* Nunca diga «el plazo no vence», porque vence.
1. Siempre mencione "la comisión de apertura".
- Ne dites jamais « c'est gratuit ».
- Toujours mentionner "le délai de dix jours".
- Não diga "o prazo é livre" nem "não há prazo".
- Sempre mencione "a taxa de abertura".
- The phrase "as you like" is common.
"""
PLACE = Location(headings=("Loan", "Guardrails"))


def guardrails(text: str = TEXT, kind: str | None = "guardrails"):  # type: ignore[no-untyped-def]
    hit = make_hit(text, start=100)
    span = Span(start=100, end=100 + len(text), location=PLACE)
    return replace(hit, chunk=replace(hit.chunk, type=kind, spans=(span,)))


def violations(said: str, *, language: str = "en") -> list[str]:
    checks = check_rules(read_rules([guardrails()]), [("answer", said)], language=language)
    return [check.phrase for check in checks if check.kind == NEVER_SAY and not check.passed]


def test_each_bullet_gives_its_phrases_and_their_place() -> None:
    rules = read_rules([guardrails()])
    assert [(rule.kind, rule.phrase) for rule in rules] == [
        (NEVER_SAY, "you can take any amount you like"),
        (NEVER_SAY, "this will not affect your retirement"),
        (NEVER_SAY, "there is no risk"),
        (ALWAYS_MENTION, "the origination fee is taken out of the amount you receive"),
        (NEVER_SAY, "el plazo no vence"),
        (ALWAYS_MENTION, "la comisión de apertura"),
        (NEVER_SAY, "c'est gratuit"),
        (ALWAYS_MENTION, "le délai de dix jours"),
        (NEVER_SAY, "o prazo é livre"),
        (NEVER_SAY, "não há prazo"),
        (ALWAYS_MENTION, "a taxa de abertura"),
    ]
    for rule in rules:
        assert " ".join(TEXT[rule.start - 100 : rule.end - 100].split()) == rule.text


def test_only_guardrail_chunks_give_rules() -> None:
    assert read_rules([guardrails(kind="steps"), guardrails(kind=None)]) == ()


@pytest.mark.parametrize(
    "said",
    [
        "Yes, you can take any amount you like [C1].",
        "YOU  CAN TAKE\nANY AMOUNT YOU LIKE!",
        "You can take **any amount** you like.",
        "You may take any amounts that you liked.",
        "You can take just about any amount you like.",
    ],
)
def test_a_forbidden_phrase_is_found_as_it_stands_and_as_a_near_variant(said: str) -> None:
    assert violations(said) == ["you can take any amount you like"]


@pytest.mark.parametrize(
    "said",
    [
        "You cannot take any amount you like.",
        "You can take a loan. Any amount you like to name is checked.",
        "The amount you take depends on what you like.",
        "This will affect your retirement.",
        "Say as you like.",
        "",
    ],
)
def test_the_opposite_and_other_sentences_are_no_violation(said: str) -> None:
    assert violations(said) == []


@pytest.mark.parametrize(
    ("said", "language", "phrase"),
    [
        ("This won't affect your retirement.", "en", "this will not affect your retirement"),
        ("Le aseguro que EL PLAZO NO VENCE.", "es", "el plazo no vence"),
        ("Les plazos no vencen… los plazos no vencen.", "es", "el plazo no vence"),
        ("Oui, c’est gratuit !", "fr", "c'est gratuit"),
    ],
)
def test_phrases_are_found_in_their_language(said: str, language: str, phrase: str) -> None:
    assert violations(said, language=language) == [phrase]


def test_the_outcome_names_rule_and_place() -> None:
    said = "Of course. You can take any amount you like [C1]."
    checks = check_rules(read_rules([guardrails()]), [("a", "Nothing."), ("b", said)], language="en")
    check = checks[0]
    assert (check.passed, check.found_in, check.location, check.chunk_id) == (False, "b", PLACE, "chunk-1")
    assert check.found_start is not None and check.found_end is not None
    assert said[check.found_start : check.found_end] == "You can take any amount you like"
    assert check.rule.startswith("Never say") and check.rule.endswith("balance.")


def test_what_must_be_mentioned_passes_when_it_is() -> None:
    rules = [rule for rule in read_rules([guardrails()]) if rule.kind == ALWAYS_MENTION][:1]
    said = "The origination fee will be taken out of the amount you receive."
    assert [check.passed for check in check_rules(rules, [("a", said)], language="en")] == [True]
    assert [check.passed for check in check_rules(rules, [("a", "No fee.")], language="en")] == [False]
