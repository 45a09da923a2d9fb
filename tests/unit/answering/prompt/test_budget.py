"""The budget: whole chunks, by tier, and never more tokens than there is room for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from rag_service.answering.prompt.packing import (
    Tiers,
    count_prompt,
    fit_prompt,
    pack_context,
    split_budget,
    tier_of,
)
from rag_service.answering.prompt.templates import load_prompts, new_boundary, render_context
from rag_service.domain import Hit, Location, Span
from rag_service.errors import ContextOverflowError
from rag_service.language.words import count_tokens
from rag_service.models.llm.token_rates import RESERVE, TokenRates
from tests.conftest import mostly_slow
from tests.unit.answering.proof.answers import make_hit

TIERS: Tiers = {"critical": ("guide", "rules"), "high": ("steps",), "medium": ("note",)}
TYPES = ("guide", "rules", "steps", "note", "other", None)
WORDS = (  # noqa: SIM905 - a list literal would take a page
    "plan participant saldo préstamo remboursement échéance 12.500,00 € $50,000 <|im_start|> [C3] ¿cuánto? naïve "
    "Überweisung 退休 🧾 aaaaaaaaaaaaaaaaaaaa a\u200bb ~abcdef123456~ System: | x | y | # ## ** ```"
).split(" ")
BOUNDARY = new_boundary()


def typed(hit: Hit, kind: str | None, number: int) -> Hit:
    return replace(hit, chunk=replace(hit.chunk, type=kind, id=f"chunk-{number}"))


def some_text(rng: random.Random, words: int) -> str:
    joints = (" ", " ", " ", "\n", "\n\n", ", ", ". ", "")
    return "".join(rng.choice(WORDS) + rng.choice(joints) for _ in range(words)) or "x"


def some_hits(rng: random.Random) -> list[Hit]:
    hits = []
    for number in range(rng.randint(1, 9)):
        hit = make_hit(
            some_text(rng, rng.choice([3, 20, 60, 150])), number + 1, title=some_text(rng, rng.randint(0, 8))
        )
        hits.append(typed(hit, rng.choice(TYPES), number))
    return hits


def pack(hits: Sequence[Hit], *, tiers: Tiers = TIERS, **limits: int) -> tuple[str, ...]:
    chosen = {"limit": 3100, "other_tokens": 200, "max_tokens": 3000, "max_chunks": 10}
    packed = pack_context(hits, boundary=BOUNDARY, tiers=tiers, **(chosen | limits))  # type: ignore[arg-type]
    assert packed.tokens == count_tokens(render_context(packed.hits, BOUNDARY))
    assert {hit.chunk.id for hit in packed.hits} | set(packed.left_out) == {hit.chunk.id for hit in hits}
    return tuple(hit.chunk.id for hit in packed.hits)


@pytest.mark.parametrize("combinations", mostly_slow([500, 5000], fast=[500]))
def test_the_rendered_prompt_never_exceeds_the_window_less_reserve(combinations: int) -> None:
    """Random windows, histories, chunks and questions; tokens of the messages as they are sent."""
    rng = random.Random(20_26)  # noqa: S311 - test data
    prompts = load_prompts()
    sent = refused = critical_dropped = most = 0
    for _ in range(combinations):
        hits, question = some_hits(rng), some_text(rng, rng.randint(1, 60))
        history = some_text(rng, rng.choice([0, 0, 30, 200]))
        window, answer = rng.randint(512, 4096), rng.randint(16, 400)
        template = prompts.template("grounded", rng.choice(["en", "es", "fr"]))
        tiers = TIERS if rng.random() < 0.8 else {}

        def render(
            shown: tuple[Hit, ...],
            *,
            template=template,
            question=question,
            history=history,  # type: ignore[no-untyped-def]
        ) -> tuple[str, ...]:
            values = {"boundary": BOUNDARY, "question": question, "refusal": "No.", "history": "", "instructions": ""}
            system, user = template.render({**values, "context": render_context(shown, BOUNDARY)})
            return (system, history, user) if history else (system, user)

        limit = TokenRates().limit("en", window=window, answer_tokens=answer)
        try:
            packed = pack_context(
                hits,
                limit=limit,
                other_tokens=count_prompt(render(())),
                max_tokens=rng.randint(100, 3000),
                max_chunks=rng.randint(1, 8),
                boundary=BOUNDARY,
                tiers=tiers,
            )
            fitted = fit_prompt(packed, render, limit=limit, boundary=BOUNDARY, tiers=tiers)
        except ContextOverflowError:
            refused += 1
            continue
        tokens = sum(count_tokens(text) for text in fitted.texts)
        sent += 1
        most = max(most, round(100 * tokens / (int(window * (1 - RESERVE)) - answer)))
        assert fitted.texts == render(fitted.context.hits)
        assert tokens <= fitted.tokens <= int(window * (1 - RESERVE)) - answer
        left_out = [hit for hit in hits if hit.chunk.id in fitted.context.left_out]
        critical_dropped += sum(tier_of(hit, tiers) == "critical" for hit in left_out)
    print(  # noqa: T201 - the figures of the bar
        f"\n{combinations} combinations: {sent} sent, {refused} refused, 0 over; fullest {most} % of the limit;"
        f" CRITICAL dropped: {critical_dropped}"
    )
    assert sent > combinations / 2
    assert most >= 98  # the window is used, not merely kept
    assert critical_dropped == 0


def test_critical_goes_first_then_high_then_the_rest_each_in_the_rerankers_order() -> None:
    kinds = ["other", "steps", "guide", "note", "steps", "rules"]
    hits = [typed(make_hit(f"Text number {n}.", n), kind, n) for n, kind in enumerate(kinds)]
    assert pack(hits) == ("chunk-2", "chunk-5", "chunk-1", "chunk-4", "chunk-3", "chunk-0")


def test_without_tiers_the_order_is_kept() -> None:
    hits = [typed(make_hit(f"Text number {n}.", n), "guide", n) for n in range(3)]
    assert pack(hits, tiers={}) == ("chunk-0", "chunk-1", "chunk-2")


def test_a_critical_chunk_is_never_left_out_for_a_better_rated_one() -> None:
    long = "word " * 200
    hits = [typed(make_hit(long, n), kind, n) for n, kind in enumerate(["other", "steps", "guide", "rules"])]
    assert pack(hits, max_tokens=600) == ("chunk-2", "chunk-3")


def test_all_critical_chunks_go_in_beyond_the_number_of_chunks() -> None:
    hits = [typed(make_hit(f"Text number {n}.", n), "guide", n) for n in range(4)]
    assert len(pack(hits, max_chunks=2)) == 4


def test_critical_chunks_that_do_not_fit_are_said_to_be_the_cause() -> None:
    hits = [typed(make_hit("word " * 300, n), "guide", n) for n in range(3)]
    with pytest.raises(ContextOverflowError, match=r"CRITICAL chunks alone do not fit: 3 of them take \d+ tokens"):
        pack(hits, max_tokens=500)


def test_a_chunk_that_does_not_fit_is_left_out_whole_and_a_smaller_one_may_follow() -> None:
    hits = [typed(make_hit(text, n), None, n) for n, text in enumerate(["short text", "word " * 900, "also short"])]
    assert pack(hits, max_tokens=400) == ("chunk-0", "chunk-2")


def test_the_context_is_cut_at_its_own_limit_by_whole_chunks() -> None:
    hits = [typed(make_hit("word " * 700, n), None, n) for n in range(8)]
    assert pack(hits, limit=26_000, max_tokens=3000) == ("chunk-0", "chunk-1", "chunk-2", "chunk-3")


LONG = {
    "sentences": "The office keeps the register of all boats. ",
    "lines": "| boat | owner |\n",
    "words": "register ",
    "no spaces": "register",
    "Chinese": "登记处保存所有船只。",
}


@pytest.mark.parametrize("filler", LONG.values(), ids=LONG)
@pytest.mark.parametrize("before", [0, 400])
def test_of_passages_that_are_all_too_long_a_part_with_what_was_asked_goes_in(filler: str, before: int) -> None:
    told = "A permit for the harbour lasts nine months. "
    text = filler * before + told + filler * 400
    long = make_hit(text, 1)
    long = replace(long, chunk=replace(long.chunk, start=70, end=70 + len(text)))
    hits = [typed(long, "note", 0), typed(make_hit(text, 2), "note", 1)]
    packed = pack_context(
        hits, limit=900, other_tokens=100, max_tokens=700, max_chunks=3, boundary=BOUNDARY,
        weights={"permit": 2.0, "harbour": 1.0},
    )  # fmt: skip
    (shown,) = packed.hits
    assert told.strip() in shown.chunk.text
    assert text[shown.chunk.start - 70 : shown.chunk.end - 70] == shown.chunk.text
    assert 250 < packed.tokens <= 700
    assert (shown.chunk.id, packed.left_out) == ("chunk-0", ("chunk-1",))


def test_a_part_has_the_places_that_it_holds() -> None:
    lines = [f"line {number} of the register of boats\n" for number in range(1_000)]
    hit = make_hit("".join(lines), 1)
    starts = [sum(map(len, lines[:number])) for number in range(1_000)]
    spans = tuple(
        Span(start=start, end=start + len(line), location=Location(page=number + 1))
        for number, (start, line) in enumerate(zip(starts, lines, strict=True))
    )
    hit = replace(hit, chunk=replace(hit.chunk, spans=spans))
    packed = pack_context(
        [hit], limit=900, other_tokens=0, max_tokens=300, max_chunks=3, boundary=BOUNDARY, weights={"777": 1.0}
    )
    pages = [span.location.page for span in packed.hits[0].chunk.spans]
    assert 778 in pages
    assert len(pages) == packed.hits[0].chunk.text.count("\n") < 60


def test_where_not_even_a_sentence_fits_the_question_is_refused() -> None:
    with pytest.raises(ContextOverflowError, match="No passage fits into the 20 tokens"):
        pack([make_hit("The office keeps the register of all boats. " * 40, 1)], tiers={}, max_tokens=20)


def test_a_question_that_fills_the_window_is_refused() -> None:
    with pytest.raises(ContextOverflowError, match="no room for documents"):
        pack([make_hit("Some text.")], other_tokens=4000)


def test_a_prompt_that_turns_out_too_long_loses_its_last_chunk() -> None:
    hits = [typed(make_hit(f"Text number {n}.", n), None, n) for n in range(3)]
    packed = pack_context(hits, limit=3300, other_tokens=0, max_tokens=3000, max_chunks=9, boundary=BOUNDARY)

    def render(shown: tuple[Hit, ...]) -> tuple[str]:
        return (render_context(shown, BOUNDARY) + " unforeseen" * 50,)

    limit = count_prompt(render(tuple(hits[:2])))
    fitted = fit_prompt(packed, render, limit=limit, boundary=BOUNDARY)
    assert [hit.chunk.id for hit in fitted.context.hits] == ["chunk-0", "chunk-1"]
    assert fitted.context.left_out == ("chunk-2",)
    assert fitted.tokens == limit


def test_a_prompt_without_its_critical_chunk_is_not_sent() -> None:
    hit = typed(make_hit("Text."), "guide", 1)
    packed = pack_context(
        [hit], limit=3300, other_tokens=0, max_tokens=3000, max_chunks=9, boundary=BOUNDARY,
        tiers=TIERS,
    )  # fmt: skip
    with pytest.raises(ContextOverflowError, match="CRITICAL"):
        fit_prompt(packed, lambda shown: ("word " * 500,), limit=100, boundary=BOUNDARY, tiers=TIERS)


@pytest.mark.parametrize(("tokens", "shares"), [(1000, (700, 300)), (999, (699, 299)), (200, (140, 60))])
def test_seventy_per_cent_go_to_the_context_and_thirty_to_the_answer(tokens: int, shares: tuple[int, int]) -> None:
    assert split_budget(tokens) == shares
    assert sum(split_budget(tokens)) <= tokens
