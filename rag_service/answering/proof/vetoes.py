"""What speaks against a claim although its evidence has its words: one function for each kind of difference.

A claim and its nearest sentences are aligned by their common words. Where the claim has another number, date, name
or opposite at the same place, the passage contradicts it. A veto fires only on what stands on both sides; what the
claim adds or leaves out is for a judge. Each veto's precision is in docs/decisions/028-proof-of-answers.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from rag_service.answering.proof.analysis import SENTENCE, Analysis, Token, classify
from rag_service.answering.proof.computed import PERIODS, convert, is_reckoned
from rag_service.answering.proof.lexicon import Pole, load_lexicon
from rag_service.answering.proof.pair import Difference, Pair, comparable, differ, write
from rag_service.answering.proof.passage import Passage

_ANCHORED = 0.6  # share of the claim's words that its evidence must hold for another subject
_NEGATION_SHARE = 0.8  # the same for another negation to be a doubt: 32 untrue and 11 true claims of 765
_SUBJECT_SHARE = 0.8  # of the claim's words after its subject that the evidence must hold in their order
_SWAP_SHARE = 0.8  # of the claim's words that the evidence must hold, for a swap


def number(pair: Pair) -> Difference | None:
    """Another number at the same place, of the same unit."""
    if not pair.agrees(1):
        return None
    for one in pair.claim.numbers:
        if one.stem in pair.evidence.stems | pair.context or is_reckoned(one, pair.claim, pair.passage):
            continue
        rivals = [two for two in pair.evidence.numbers if two.unit == one.unit and two.stem not in pair.claim.stems]
        in_its_place = any(one is said and two is rivals[0] for said, two in pair.substituted) if rivals else False
        alone = one.unit and one.stem not in pair.passage.stems
        is_limit = rivals and pair.evidence.bound(rivals[0]) and not pair.claim.bound(one)
        if len(rivals) == 1 and (in_its_place or alone) and not is_limit:
            return differ("number", one, rivals[0])
        if one.unit and one.unit in _units_of_one(pair.evidence) and not rivals:
            return Difference(veto="number", said=write(one), found=f"1 {one.unit}")
    return None


def unit(pair: Pair) -> Difference | None:
    """The same number with another unit."""
    for one in pair.claim.numbers:
        units = {two.unit for analysis in pair.passage.analyses for two in analysis.numbers if two.stem == one.stem}
        if one.unit and units and "" not in units and one.unit not in units and pair.agrees():
            other = next((two for two in pair.evidence.numbers if two.stem == one.stem), None)
            if other is not None:
                return differ("unit", one, other)
    for said, stands in pair.substituted:  # "12 euros a month"
        units = {said.kind.unit, stands.kind.unit} if said.kind and stands.kind else {""}
        if len(units) == 2 and units <= PERIODS and pair.agrees(1):
            return differ("unit", said, stands)
    return None


def date(pair: Pair) -> Difference | None:
    """Another month or weekday at the same place."""
    for one, two in pair.substituted:
        if one.kind and two.kind and one.kind.calendar and two.kind.calendar and pair.agrees(1):
            return differ("date", one, two)
    return None


def name(pair: Pair) -> Difference | None:
    """Another name at the same place."""
    for one, two in pair.substituted:
        if one.name and two.name and one.stem not in pair.context and pair.agrees(1):
            return differ("name", one, two)
    return None


def subject(pair: Pair) -> Difference | None:
    """What the evidence says of its subject is said of the subject of another sentence or row."""
    if not pair.anchors or pair.place.first != pair.place.last or pair.place.share < _ANCHORED:
        return None
    own = pair.evidence.content[0]
    others = {analysis.content[0].stem for analysis in pair.passage.analyses if analysis.content}
    said = pair.claim.content[: pair.anchors[0][0]]
    conditions = load_lexicon(pair.claim.language).conditions
    if not said or any(t.stem in pair.evidence.stems for t in said):
        return None
    if any(t.kind and t.kind.folded in conditions for t in pair.claim.tokens if t.start < said[0].start):
        return None  # "If you rent, …" names a case in words of its own
    kept = len(pair.anchors) / max(1, len(pair.claim.content) - len(said))
    for one in said:
        if one.stem in others - pair.evidence.stems and own.stem not in pair.claim.stems and kept >= _SUBJECT_SHARE:
            return differ("subject", one, own)
    return None


def label(pair: Pair) -> Difference | None:
    """A number under the label of another one: their labels have changed places."""
    return _find_misplaced(pair, swapped=True) if pair.agrees() else None


def _find_misplaced(pair: Pair, *, swapped: bool) -> Difference | None:
    """A number whose label is nearer to another number; `swapped`: which the claim names, too."""
    said, stands = pair.labels
    units = _units(pair)
    follow = _followers(pair)
    for one, words in said:
        own = [(two, found) for two, found in stands if two.stem == one.stem]
        own_words = frozenset().union(*(found for _, found in own))
        for two, found in stands if own else ():
            if two.stem == one.stem or not units[one.stem] & units[two.stem]:
                continue
            farther = len(words & (found - own_words)) > len(words & (own_words - found))
            if not farther or {(one.stem, two.stem), (two.stem, one.stem)} & follow:
                continue
            cell = {token.stem for token in pair.evidence.content if token.clause // SENTENCE == two.clause // SENTENCE}
            in_other_cell = not words & own_words and all(abs(two.clause - it.clause) >= SENTENCE for it, _ in own)
            in_other_cell = in_other_cell and bool(words & found & cell)  # no head of a table
            if not swapped or two.stem in pair.claim.stems or in_other_cell:
                return differ("label", one, two)
    return None


def _followers(pair: Pair) -> set[tuple[str, str]]:
    """Words that follow each other in the same order on both sides, as the ends of a range do."""
    said, stands = ({(a.stem, b.stem) for a, b in pairwise(side.content)} for side in (pair.claim, pair.evidence))
    return said & stands


def _units(pair: Pair) -> dict[str, set[str]]:
    """The units that each number has in either text: one may leave out what the other says."""
    units: dict[str, set[str]] = {}
    for token in (*pair.claim.numbers, *pair.evidence.numbers):
        units.setdefault(token.stem, set()).add(token.unit)
    return {stem: of - {""} or {""} for stem, of in units.items()}


def find_doubt(pair: Pair) -> Difference | None:
    """What no judge may verify: a negation on one side only, or a figure, month or weekday that code cannot place.

    Such a figure does not stand in the passage, or other figures of its unit share more of its label. A negation on one
    side may mean the same: "nobody owes the tax" for "is not subject to the tax".
    """
    if pair.place.share >= _NEGATION_SHARE and _negated(pair.claim) != _negated(pair.evidence):
        said, found = ("negated" if side.negated else "not negated" for side in (pair.claim, pair.evidence))
        return Difference(veto="negation", said=said, found=found)
    own = pair.passage.numbers
    for one in pair.claim.numbers:
        stands = any(one.stem == two.stem and (one.unit == two.unit or not one.unit or not two.unit) for two in own)
        converted = any(convert(two, one.unit) == one.stem for two in own)
        if not stands and not converted and one.stem not in pair.context:
            return Difference(veto="figure", said=write(one), found="not in the passage")
    for token in pair.claim.content:
        if token.kind is not None and token.kind.calendar and token.stem not in pair.passage.stems:
            return Difference(veto="figure", said=write(token), found="not in the passage")
    for one, two in pairwise(pair.claim.content):
        if one.kind and two.kind and one.kind.calendar and two.kind.calendar and not _adjoin(one, two, pair.passage):
            return Difference(veto="figure", said=f"{write(one)} {write(two)}", found="not together in the passage")
    for unit in _units_of_one(pair.claim) - _units_of_one(pair.evidence):  # "after one year" for "after two years"
        numbers = {two.stem for two in pair.evidence.numbers if two.unit == unit}
        if numbers and "1" not in numbers:
            return Difference(veto="figure", said=f"1 {unit}", found="not in the evidence")
    misplaced = _find_misplaced(pair, swapped=False) or _find_other_row(pair)
    return None if misplaced is None else Difference(veto="figure", said=misplaced.said, found=misplaced.found)


def _negated(analysis: Analysis) -> set[str]:
    return {analysis.content[position].stem for position in analysis.negated}


def _units_of_one(analysis: Analysis) -> set[str]:
    """The units that stand after "one" in words: "one year", "un mes"."""
    ones = load_lexicon(analysis.language).one
    kinds = [(one.kind, two.kind) for one, two in pairwise(analysis.tokens) if one.kind and two.kind]
    return {two.unit for one, two in kinds if two.unit and one.folded in ones}


def _adjoin(one: Token, two: Token, passage: Passage) -> bool:
    """Whether two words follow each other in the passage, as the ends of a range do."""
    return any(
        (a.stem, b.stem) == (one.stem, two.stem) for analysis in passage.analyses for a, b in pairwise(analysis.content)
    )


def _find_other_row(pair: Pair) -> Difference | None:
    """A number whose label stands in another sentence or row, beside another number of its unit."""
    analyses = pair.passage.analyses
    for one, words in pair.labels[0]:
        holders = [a for a in analyses if any(two.stem == one.stem for two in a.numbers)]
        if not holders or any(words & analysis.stems for analysis in holders):
            continue
        for analysis in analyses:
            two = next((two for two in analysis.numbers if comparable(one, two)), None)
            if two is not None and words & analysis.stems:
                return differ("label", one, two)
    return None


def limit(pair: Pair) -> Difference | None:
    """The opposite limit before the same number: at least / at most, before / after."""
    opposite = {"minimum": "maximum", "maximum": "minimum", "before": "after", "after": "before"}
    for one in pair.claim.numbers:
        said = pair.claim.bound(one)
        stands = [two for two in pair.evidence.numbers if two.stem == one.stem and two.unit == one.unit]
        bounds = [pair.evidence.bound(two) for two in stands]
        differs = bool(said and bounds) and all(bound == opposite[said] for bound in bounds)
        if differs and pair.agrees(1) and pair.claim.is_negative == pair.evidence.is_negative:
            return Difference(veto="limit", said=f"{said} {one.stem}", found=f"{bounds[0]} {one.stem}")
    return None


def opposite(pair: Pair) -> Difference | None:
    """A word with an opposite, where the evidence has that opposite before the same word, and never the word itself."""
    if not pair.agrees(1) or pair.claim.is_negative != pair.evidence.is_negative:
        return None
    stands = list(_poles(pair.evidence))
    for one in _poles(pair.claim):
        if classify(one.word, pair.claim.language).stem in pair.context:
            continue
        near = [two for two in stands if two.pole.pair == one.pole.pair and two.ends_limit == one.ends_limit]
        near = [two for two in near if (one.before | one.after) & (two.before | two.after)]
        turned = any(one.before & two.after and one.after & two.before for two in near)  # "A before B", "B after A"
        if near and not turned and all(two.pole.side != one.pole.side for two in near):
            return Difference(veto=one.pole.veto, said=one.word, found=near[0].word)
    return None


class _Opposable(NamedTuple):
    """A word with an opposite."""

    pole: Pole
    word: str
    before: frozenset[str]  # content words next to it in its clause
    after: frozenset[str]
    ends_limit: bool  # as "least" does in "at least"


def _poles(analysis: Analysis) -> Iterator[_Opposable]:
    limits = {found.end() for found in load_lexicon(analysis.language).limits.finditer(analysis.text)}
    for at, token in enumerate(analysis.tokens):
        if token.kind is None or not token.kind.poles:
            continue
        before = [one.stem for one in analysis.tokens[:at] if one.content and one.clause == token.clause][-2:]
        after = [one.stem for one in analysis.tokens[at + 1 :] if one.content and one.clause == token.clause][:2]
        for pole in token.kind.poles:
            yield _Opposable(pole, token.kind.folded, frozenset(before), frozenset(after), token.end in limits)


def antonym(pair: Pair) -> Difference | None:
    """A word at the same place that a prefix makes the opposite: valid / invalid."""
    if pair.claim.is_negative != pair.evidence.is_negative:
        return None
    prefixes = load_lexicon(pair.claim.language).negating_prefixes
    for one, two in pair.substituted:
        if one.kind is None or two.kind is None:
            continue
        short, long = sorted((one.kind.folded, two.kind.folded), key=len)
        if len(short) >= 4 and any(long == prefix + short for prefix in prefixes):
            return differ("antonym", one, two)
    return None


def swap(pair: Pair) -> Difference | None:
    """Two words that have changed places around the same verb, all else in its order: who informs whom."""
    one, two = pair.claim.content, pair.evidence.content
    common = pair.claim.stems & pair.evidence.stems
    said, stands = ([token for token in tokens if token.stem in common] for tokens in (one, two))
    if pair.place.share < _SWAP_SHARE or len(said) != len(stands):
        return None
    moved = [i for i, (a, b) in enumerate(zip(said, stands, strict=True)) if a.stem != b.stem]
    if len(moved) != 2 or said[moved[0]].stem != stands[moved[1]].stem:
        return None
    if {one.pole for one in _poles(pair.claim)} != {two.pole for two in _poles(pair.evidence)}:
        return None  # "A makes more than B", "B makes less than A"
    first, last = moved
    if said[first].clause != said[last].clause or stands[first].clause != stands[last].clause:
        return None  # "If A, B": "B if A"
    between = [(said[i].kind, stands[i].kind) for i in range(first + 1, last)]
    if between and all(a is not None and a == b for a, b in between):
        return differ("swap", said[first], said[last])
    return None


VETOES: tuple[Callable[[Pair], Difference | None], ...] = (
    number, unit, date, label, limit, name, subject, opposite, antonym, swap,
)  # fmt: skip


def find_difference(pair: Pair) -> Difference | None:
    """The first veto that fires."""
    return next((difference for veto in VETOES if (difference := veto(pair))), None)
