"""`python -m evals.sets.ledger`: what each rule of quoted replies is worth, written to `ledger.json`.

The rules of certain quotes (`gate.QUOTE_RULES`) and the features that choose sentences (`rating.py`) are
switched off one at a time. Each question is asked once: a rule is switched off by leaving out what it said of the
quote, a feature by taking its weight out of the scores.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import numpy as np

from evals.sets.measure import Reply, ingest_set, is_said, judge_reply
from evals.sets.questions import Question, read_set, set_names
from rag_service import open_service
from rag_service.answering.decision import gate
from rag_service.answering.quoting import quoter
from rag_service.answering.quoting.choice import COMPARED, choose_quotes, rate_by_tokens, rate_by_vectors, rate_by_words
from rag_service.answering.quoting.quotes import SHOWN_PLACES, Evidence, Quotes, cut_places
from rag_service.answering.quoting.rating import SIMILARITY, TOKEN_FEATURES, WORD_FEATURES, cut_windows, load_weights
from rag_service.answering.quoting.sentences import Sentence
from rag_service.settings.models import PACKAGED_MODEL

FILE = Path(__file__).with_name("ledger.json")
FEATURES = (*WORD_FEATURES, *TOKEN_FEATURES, SIMILARITY)
RULES = (*gate.QUOTE_RULES, *FEATURES)
ALL = "all"  # sets together
# Prose of the developed halves, and of blind ones, whose replies nobody reads: they are only counted.
SETS = (
    "letters_and_numbers", "office_files_one", "paragraph_and_table", "team_files_one", "versions_one",
    "vet_and_costumes", "who_and_when",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a rule is worth on a set."""

    rule: str
    set: str
    replies: int  # that it may change
    better: int  # a wrong certain reply less, or the right words among the three places
    worse: int  # a right certain reply less, or the right words no more among the three places
    difference: int
    error: float  # standard error of the difference


@dataclass(kw_only=True)
class _Seen:
    """What is looked at while one question is asked; the whole question comes before its parts."""

    broken: set[str] | None = None  # names of the rules that speak against the quote; None: nothing was quoted
    ranked: _Ranked | None = None


@dataclass(frozen=True, kw_only=True)
class _Ranked:
    evidence: Evidence
    every: Sequence[Sentence]
    compared: Sequence[Sentence]
    features: np.ndarray  # (compared, FEATURES)
    others: Sequence[Sentence]  # by words, best first


@dataclass(kw_only=True)
class _Tally:
    replies: Counter[str] = field(default_factory=Counter)
    better: Counter[str] = field(default_factory=Counter)
    worse: Counter[str] = field(default_factory=Counter)

    def entries(self, name: str) -> Iterator[Entry]:
        for rule in RULES:
            better, worse = self.better[rule], self.worse[rule]
            yield Entry(
                rule=rule,
                set=name,
                replies=self.replies[rule],
                better=better,
                worse=worse,
                difference=better - worse,
                error=round(sqrt(better + worse), 2),
            )


def read_ledger(file: Path = FILE) -> list[Entry]:
    """Return the entries of a ledger, those over all sets first; none without the file."""
    return [Entry(**one) for one in json.loads(file.read_text(encoding="utf-8"))] if file.exists() else []


def _add_up(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield what each rule is worth over all sets."""
    tally = _Tally()
    for entry in entries:
        tally.replies[entry.rule] += entry.replies
        tally.better[entry.rule] += entry.better
        tally.worse[entry.rule] += entry.worse
    return tally.entries(ALL)


@click.command()
@click.argument("names", nargs=-1, metavar="[SET]...", type=click.Choice(set_names()))
@click.option("--output", "-o", default=FILE, show_default=True, type=click.Path(path_type=Path, dir_okay=False))
def main(names: tuple[str, ...], output: Path) -> None:
    """Ask the questions of these sets, or of those with prose, and write what each rule is worth.

    What the file has of other sets stays.
    """
    chosen: Mapping[str, Any] = {"database_url": None, "chat_provider": "extractive", "embedding_provider": "local"}
    names = names or SETS
    entries = [entry for entry in read_ledger(output) if entry.set not in (ALL, *names) and entry.rule in RULES]
    with tempfile.TemporaryDirectory() as folder, open_service(data_dir=Path(folder), **chosen) as service:
        for name in names:
            asked, tally = read_set(name), _Tally()
            corpus_id = ingest_set(service, asked, corpus=name)
            for question in asked.questions:
                seen = _Seen()
                with _watched(seen):
                    reply = judge_reply(question, service.ask(question.text, corpus_ids=[corpus_id]))
                _count_rules(tally, reply, seen.broken)
                if seen.ranked is not None and question.answers:
                    _count_features(tally, question, seen.ranked)
            entries += tally.entries(name)
            click.echo(name, err=True)
    entries = [*_add_up(entries), *sorted(entries, key=lambda entry: entry.set)]
    output.write_text(json.dumps([asdict(entry) for entry in entries], indent=1) + "\n", encoding="utf-8")
    for entry in entries:
        if entry.set == ALL:
            counts = f"better {entry.better}, worse {entry.worse}"
            click.echo(f"{entry.rule}: {counts}, {entry.difference:+d} ± {entry.error}")


@contextmanager
def _watched(seen: _Seen) -> Iterator[None]:
    """Note the rules that speak against the quote, without obeying them, and how its sentence was chosen."""
    select = choose_quotes

    def note_rules(question: str, citations: Any, passages: Any, language: str) -> bool:
        quoted = gate.Quoted(question, citations, passages, language)
        if citations and seen.broken is None:
            seen.broken = {name for name, against in gate.QUOTE_RULES.items() if against(quoted)}
        return False

    async def note_choice(evidence: Evidence, embedding: Any, **options: Any) -> Quotes:
        if seen.ranked is None and embedding is not None and options.get("reader") is not None:
            seen.ranked = await _rank(evidence, embedding, options["reader"], options["scale"])
        return await select(evidence, embedding, **options)

    with (
        patch.object(gate, "is_about_another", note_rules),
        patch.object(quoter, "choose_quotes", note_choice),
    ):
        yield


async def _rank(evidence: Evidence, embedding: Any, reader: Any, scale: Any) -> _Ranked | None:
    """Return the candidates as the answerer compares them; None without any."""
    every, by_words = rate_by_words(evidence)
    if not every:
        return None
    weights = load_weights(evidence.language, reader.model_name)
    if weights.tokens is None:
        return None
    order = np.argsort(-(by_words @ weights.words), kind="stable").tolist()
    numbers, by_tokens, _ = await rate_by_tokens(evidence, every, cut_windows(every, order), reader)
    rated = np.hstack([by_words[numbers], by_tokens])
    kept = np.argsort(-(rated @ weights.tokens[:-1]), kind="stable")[:COMPARED]
    compared = [every[numbers[number]] for number in kept]
    similar = await rate_by_vectors(evidence, compared, embedding, scale)
    return _Ranked(
        evidence=evidence,
        every=every,
        compared=compared,
        features=np.column_stack([rated[kept], similar]),
        others=[every[number] for number in order],
    )


def _count_rules(tally: _Tally, reply: Reply, broken: set[str] | None) -> None:
    """Count a reply that is certain but for the one rule that speaks against it."""
    if broken is None:
        return
    for rule in gate.QUOTE_RULES:
        tally.replies[rule] += reply.is_green
        if reply.is_green and broken == {rule}:
            is_wrong = not reply.is_right or not reply.is_answerable
            (tally.better if is_wrong else tally.worse)[rule] += 1


def _count_features(tally: _Tally, question: Question, ranked: _Ranked) -> None:
    """Count whether the right words are among the three places with each feature and without it."""
    weights = load_weights(ranked.evidence.language, PACKAGED_MODEL).tokens
    with_all = _shows(question, ranked, weights)
    for number, feature in enumerate(FEATURES):
        changed = np.array(weights)
        changed[number] = 0.0
        without = _shows(question, ranked, changed)
        tally.replies[feature] += 1
        tally.better[feature] += with_all and not without
        tally.worse[feature] += without and not with_all


def _shows(question: Question, ranked: _Ranked, weights: Any) -> bool:
    scores = ranked.features @ weights
    best = [ranked.compared[number] for number in np.argsort(-scores, kind="stable")]
    evidence = ranked.evidence
    places = cut_places([*best, *ranked.others], ranked.every, evidence.hits, evidence.question, evidence.language)
    return is_said(question, " ".join(place.text for place in places[:SHOWN_PLACES]))


if __name__ == "__main__":
    main()
