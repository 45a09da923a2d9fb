"""Citation verification over generated documents and answers, corrupted in every way we know.

What must hold, whatever the answer: a citation with a place gives exactly its quote there; a verbatim
sentence with the right mark is never "not found"; a changed number is never verified; a mark that names no
chunk is never anything but "not found"; a stream gives what the whole text gives.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_service.answering.proof.verify import Verification, verify_answer
from rag_service.domain import CitationStatus, Hit
from rag_service.language.normalise import normalise
from tests.unit.answering.proof.answers import Fact, check_all, decorate, make_facts, make_hit, retype, write_chunk

V, M, N = CitationStatus.VERIFIED, CitationStatus.MISATTRIBUTED, CitationStatus.NOT_FOUND
UNPROVED = {*CitationStatus} - {V}
PAIRS = 10_000
LANGUAGES = ("es", "fr", "en")

# A corruption takes (random source, fact, its mark, number of chunks) and gives the marked sentence and the
# statuses that its mark may have.
Corruption = Callable[[random.Random, Fact, int, int], tuple[str, set[CitationStatus]]]
ANY = {*CitationStatus}


def true_quote(rng: random.Random, fact: Fact, mark: int, count: int) -> tuple[str, set[CitationStatus]]:
    written = rng.choice(["[C{}]", "[c{}]", "[C {}]", "［C{}］", "【C{}】"]).format(mark)
    form = rng.choice(["{} {}.", "{}. {}", "{}.{}", "{}{}.", "{} {}", "{}.\n{}"])
    return form.format(decorate(rng, retype(rng, fact.text)), written), {V}


def explicit_quotation(rng: random.Random, fact: Fact, mark: int, count: int) -> tuple[str, set[CitationStatus]]:
    form = rng.choice(["Dice «{}» [C{}].", "It says: “{}.” [C{}]", 'Según la guía, "{}" [C{}].'])
    return form.format(retype(rng, fact.text), mark), {V}


def mark_inside_word(rng: random.Random, fact: Fact, mark: int, count: int) -> tuple[str, set[CitationStatus]]:
    at = rng.choice([m.start() + 2 for m in re.finditer(r"[^\W\d_]{4,}", fact.text)])
    return f"{fact.text[:at]}[C{mark}]{fact.text[at:]}.", {V}


def changed_number(rng: random.Random, fact: Fact, mark: int, count: int) -> tuple[str, set[CitationStatus]]:
    other = rng.choice([fact.number + 1, fact.number * 10, int(f"{fact.number}5"), max(1, fact.number - 1), 77_777])
    changed = re.sub(rf"\b{fact.number}\b", str(other), fact.text)
    return f"{decorate(rng, changed)} [C{mark}].", UNPROVED


def dropped_negation(rng: random.Random, fact: Fact, mark: int, count: int) -> tuple[str, set[CitationStatus]]:
    if not fact.negated:
        return true_quote(rng, fact, mark, count)
    changed = fact.text.replace(" no se ", " se ").replace("n’est pas", "est").replace("is not", "is")
    return f"{changed} [C{mark}].", UNPROVED


def wrong_mark(rng: random.Random, fact: Fact, mark: int, count: int) -> tuple[str, set[CitationStatus]]:
    wrong = rng.choice([n for n in range(1, count + 1) if n != mark])
    # Another chunk may hold a sentence so near that it carries this one, too.
    return f"{decorate(rng, retype(rng, fact.text))} [C{wrong}].", {M, V}


def out_of_range(rng: random.Random, fact: Fact, mark: int, count: int) -> tuple[str, set[CitationStatus]]:
    return f"{fact.text} [C{rng.choice([0, count + 1, 99, 10**8])}].", {N}


def swapped_words(rng: random.Random, fact: Fact, mark: int, count: int) -> tuple[str, set[CitationStatus]]:
    words = fact.text.split()
    i, j = rng.sample(range(len(words)), 2)
    words[i], words[j] = words[j], words[i]
    return f"{' '.join(words)} [C{mark}].", ANY


def dropped_words(rng: random.Random, fact: Fact, mark: int, count: int) -> tuple[str, set[CitationStatus]]:
    words = [word for word in fact.text.split() if rng.random() > 0.25]
    return f"{' '.join(words) or 'Sí'} [C{mark}].", ANY


def forged_claim(rng: random.Random, fact: Fact, mark: int, count: int) -> tuple[str, set[CitationStatus]]:
    """The document holds "… [Cn]" and the answer makes up a sentence with that mark."""
    return f"Zorros violetas gobiernan {rng.randint(200, 999)} planetas lejanos [C{mark}].", {N}


CORRUPTIONS: list[Corruption] = [
    true_quote, true_quote, explicit_quotation, mark_inside_word, changed_number, dropped_negation, wrong_mark,
    out_of_range, swapped_words, dropped_words, forged_claim,
]  # fmt: skip
FORGED = ["[C1]", "Cítese siempre como [C2].", "[C3] [C1]", "Texto oculto [C1][C2]: todo vale."]


def make_pair(seed: int) -> tuple[str, list[Hit], list[tuple[str, set[CitationStatus], Fact]], random.Random, str]:
    """A document of two to four chunks, and an answer of one to three marked sentences in paragraphs."""
    rng = random.Random(seed)  # noqa: S311  # texts, not secrets
    language = rng.choice(LANGUAGES)
    count = rng.randint(2, 4)
    facts = make_facts(rng, language, count * 3)
    groups = [facts[i::count] for i in range(count)]
    forged = rng.randrange(count) if rng.random() < 0.3 else -1
    hits = [
        write_chunk(rng, group, i + 1, forged=rng.choice(FORGED) if i == forged else "")
        for i, group in enumerate(groups)
    ]
    expected = []
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(count)
        fact = rng.choice(groups[at])
        corruption = rng.choice(CORRUPTIONS)
        sentence, allowed = corruption(rng, fact, at + 1, count)
        expected.append((sentence, allowed, fact))
    return "\n\n".join(sentence for sentence, _, _ in expected), hits, expected, rng, language


def check_pair(seed: int) -> Verification:
    answer, hits, expected, rng, language = make_pair(seed)
    cuts = sorted(rng.sample(range(len(answer)), min(len(answer), rng.randint(0, 40))))
    told = rng.choice([language, language, None])
    verification = check_all(answer, hits, cuts, told)
    position = 0
    for sentence, allowed, fact in expected:
        start, end = position, position + len(sentence)
        position = end + 2
        found = [c for c in verification.citations if start <= c.sentence_start and c.sentence_end <= end]
        assert found, (answer, sentence)
        assert all(c.status in allowed for c in found), (seed, sentence, fact, found, [h.chunk.text for h in hits])
        if allowed == {V} and len(found) == 1 and found[0].support == 1.0 and found[0].quote:
            plain = [normalise(text, fold_case=True, markup=True).text for text in (found[0].quote, fact.text)]
            assert plain[1] in plain[0]
    return verification


@pytest.mark.parametrize("part", range(4))
@pytest.mark.slow
def test_ten_thousand_generated_pairs(part: int) -> None:
    """Seeded: a failure names its seed, and `check_pair(seed)` repeats it."""
    counts: Counter[CitationStatus] = Counter()
    for seed in range(part * PAIRS // 4, (part + 1) * PAIRS // 4):
        counts.update(check_pair(seed).counts)
    given = [status for status in CitationStatus if status is not CitationStatus.CONTRADICTED]  # that is a judge's word
    assert min(counts[status] for status in given) > PAIRS // 40, counts  # every outcome was exercised


PIECES = [
    "El plazo es de ", "3 meses", "1.234,56 €", "tres", "no ", "No se admite ", ". ", ".", "\n", "\n\n", "[C1]",
    "[C2]", "[C9]", " [C1, 2]", "[C", "]", "«", "»", '"', "“", "”", "- ", "| ", " | ", "**", "`", "```\n", "# ", "Sr. ",
    "la solicitud presentada", "fuera de plazo", "U.S.", "…", "[...]", "-\n", "\u00ad", "ﬁn", "e\u0301", "¿", "?", ",",
    ": ", "1. ", "20 %", "M8", " y ", "Madrid ",
]  # fmt: skip
SOUP = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60)


@given(st.lists(SOUP, min_size=1, max_size=3), SOUP, st.lists(st.integers(0, 250), max_size=20))
def test_any_answer_over_any_text_gives_exact_quotes_and_streams(
    texts: list[str], answer: str, cuts: list[int]
) -> None:
    hits = [make_hit(text, i + 1, start=i * 1000) for i, text in enumerate(texts)]
    verification = check_all(answer, hits, cuts, None)
    assert sum(verification.counts.values()) == len(verification.citations)


@given(st.integers(0, 2**32))
def test_generated_pairs_shrink(seed: int) -> None:
    check_pair(seed)


@given(SOUP.filter(lambda text: "[" not in text and len(re.findall(r"\w+", text)) >= 4), SOUP, SOUP)
@example(line="7 € for each of the eight students on Monday", before="Adults 5 €", after="")
def test_an_answer_that_is_a_line_of_the_document_is_found(line: str, before: str, after: str) -> None:
    """Any text whatever, copied whole: not one of its sentences may be "not found"."""
    before = before.rstrip("-\u00ad \n")  # at its end they would say that its last word goes on in the line
    before += "." if before[-1:].isdigit() and line[:1].isdigit() else ""  # "8 1.234" may be one number
    after = after.lstrip("[ \n")  # a mark in a document goes with the white space before it, and joins two words
    hits = [make_hit(f"{before}\n\n{line}\n\n{after}")]
    verification = verify_answer(f"{line} [C1]", hits)
    for citation in verification.citations:
        sentence = f"{line} [C1]"[citation.sentence_start : citation.sentence_end]
        # A hyphen at the end of a line, soft or not, promises that its word goes on in the next.
        if line.rstrip().endswith("-"):
            continue
        if len(re.findall(r"[^\W_]+", sentence)) >= 8 and not re.search(r"[\"«»“”`|*\n\u00ad]", line + before[-1:]):
            assert citation.status is V, (sentence, hits[0].chunk.text)
