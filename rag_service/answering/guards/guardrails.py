"""Guardrails of the knowledge base, checked against generated text by code.

A chunk of type `guardrails` holds bullets such as

    - Never say "you can take any amount you like", because the maximum depends on the balance.
    - Always mention "the origination fee is taken out of the amount you receive".

in any of the languages. A phrase is found literally (ignoring case, accents, quotes, white space and
markup), or as a near variant: the stems of its content words in their order within one sentence, at most two
others between them, and negated if and only if the rule is. A paraphrase in other words is not found.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_service.answering.proof.analysis import WORD, is_negation
from rag_service.answering.proof.lexicon import fold_word, load_lexicon
from rag_service.domain import Filters, GuardrailCheck, Hit
from rag_service.language.languages import languages_of
from rag_service.language.normalise import Normalised, normalise
from rag_service.language.words import terms
from rag_service.retrieval.query import AnswerRun, PassageRetriever
from rag_service.retrieval.question import Question

GUARDRAIL_TYPES = frozenset({"guardrails", "guardrail"})  # chunk types that hold rules
NEVER_SAY, ALWAYS_MENTION = "never_say", "always_mention"

_BULLET = re.compile(
    r"^[ \t]*(?:[-*+•‣▪–]|\d{1,2}[.)])[ \t]+(?P<rule>\S.*(?:\n(?![ \t]*(?:[-*+•‣▪–]|\d{1,2}[.)])[ \t])\S.*)*)", re.M
)
_PHRASE = re.compile(r"\"([^\"\n]{2,300})\"|“([^”\n]{2,300})”|«[ \u00a0\u202f]?([^»\n]{2,300}?)[ \u00a0\u202f]?»")
_WORDS = [language.knowledge_base for language in languages_of(None)]
_NEVER = re.compile(rf"\b(?:{'|'.join(words.never for words in _WORDS)})\b")
_ALWAYS = re.compile(rf"\b(?:{'|'.join(words.always for words in _WORDS)})\b")
_JOINERS = "|".join(word for words in _WORDS for word in words.joiners)
_BETWEEN = re.compile(rf"^\s*(?:,|{_JOINERS})?\s*(?:,\s*)?$")  # what joins two phrases of one rule
_SENTENCE_END = re.compile(r"[.!?…](?=\s|$)")
_MAX_BETWEEN = 2  # other content words inside a near variant
_BEFORE = 40  # characters before a near variant in which a negation counts


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One phrase that a knowledge base forbids or asks for."""

    kind: str  # never_say or always_mention
    phrase: str  # without its quotes
    text: str  # the whole bullet
    hit: Hit  # the chunk that holds it
    start: int  # the bullet in the document's stored text
    end: int


def read_rules(hits: Sequence[Hit]) -> tuple[Rule, ...]:
    """The rules of the guardrail chunks among the hits, in order."""
    return tuple(rule for hit in hits if hit.chunk.type in GUARDRAIL_TYPES for rule in _read_chunk(hit))


def _read_chunk(hit: Hit) -> Iterator[Rule]:
    for bullet in _BULLET.finditer(hit.chunk.text):
        text = bullet["rule"]
        first = _PHRASE.search(text)
        if first is None:
            continue
        lead = normalise(text[: first.start()], fold_case=True, fold_accents=True).text
        kind = ALWAYS_MENTION if _ALWAYS.search(lead) else NEVER_SAY if _NEVER.search(lead) else None
        if kind is None:
            continue
        last = first.start()
        for phrase in _PHRASE.finditer(text, first.start()):
            if (
                phrase is not first
                and phrase.start() != first.start()
                and not _BETWEEN.match(text[last : phrase.start()])
            ):
                break  # a quotation in the explanation
            last = phrase.end()
            yield Rule(
                kind=kind,
                phrase=next(group for group in phrase.groups() if group).rstrip(" .,;"),
                text=" ".join(text.split()),
                hit=hit,
                start=hit.chunk.start + bullet.start("rule"),
                end=hit.chunk.start + bullet.end("rule"),
            )


async def check_answer(
    retriever: PassageRetriever, run: AnswerRun, shown: Sequence[Hit], text: str
) -> tuple[GuardrailCheck, ...]:
    """Check what the documents that an answer was made from forbid to say.

    Raises:
        EmbeddingError, StoreError: as a search.
    """
    documents = tuple(dict.fromkeys(hit.chunk.document.id for hit in shown))
    filters = Filters(document_ids=documents, chunk_types=tuple(GUARDRAIL_TYPES))
    question = run.question
    found = await retriever.search(Question(question.text, identity=question.identity, filters=filters, mode="dense"))
    forbidden = [rule for rule in read_rules(found.hits) if rule.kind == NEVER_SAY]
    return check_rules(forbidden, [("answer", text)], language=run.language)


def check_rules(
    rules: Sequence[Rule], passages: Sequence[tuple[str, str]], *, language: str
) -> tuple[GuardrailCheck, ...]:
    """Check every rule against a generated text.

    Args:
        rules: as `read_rules` gives them.
        passages: (place, text) of each part of the generated text.
        language: ISO 639-1 of the text; decides the stems.
    """
    prepared = [(place, _Prepared(text, language)) for place, text in passages]
    return tuple(_check(rule, prepared, language) for rule in rules)


def _check(rule: Rule, passages: Sequence[tuple[str, _Prepared]], language: str) -> GuardrailCheck:
    phrase = _Prepared(rule.phrase, language)
    found = next(((place, span) for place, text in passages if (span := text.find(phrase))), None)
    return GuardrailCheck(
        kind=rule.kind,
        phrase=rule.phrase,
        passed=(found is None) == (rule.kind == NEVER_SAY),
        rule=rule.text,
        chunk_id=rule.hit.chunk.id,
        document_id=rule.hit.chunk.document.id,
        start=rule.start,
        end=rule.end,
        location=next((span.location for span in rule.hit.chunk.spans if span.start <= rule.start < span.end), None),
        found_in=None if found is None else found[0],
        found_start=None if found is None else found[1][0],
        found_end=None if found is None else found[1][1],
    )


@dataclass(frozen=True)
class _Stem:
    text: str
    start: int  # in the normalised text
    end: int
    sentence: int


class _Prepared:
    """A text as rules are looked for in it."""

    def __init__(self, text: str, language: str) -> None:
        self._normalised: Normalised = normalise(text, fold_case=True, fold_accents=True, markup=True)
        self.text = self._normalised.text.strip()
        self._language = language
        self._stems: list[_Stem] = []
        ends = [end.start() for end in _SENTENCE_END.finditer(self._normalised.text)]
        for word in WORD.finditer(self._normalised.text):
            if fold_word(word[0]) in load_lexicon(language).negations or word[0].endswith("n't"):
                continue  # "will not" and "won't" are one; whether it negates is compared apart
            for stem in terms(word[0], language):
                sentence = bisect_left(ends, word.start())
                self._stems.append(_Stem(stem, word.start(), word.end(), sentence))

    def find(self, phrase: _Prepared) -> tuple[int, int] | None:
        """Characters [start, end) of the original text that say the phrase."""
        exact = re.search(rf"(?<!\w){re.escape(phrase.text)}(?!\w)", self._normalised.text) if phrase.text else None
        place = exact.span() if exact else self._find_variant(phrase)
        return self._normalised.original(*place) if place else None

    def _find_variant(self, phrase: _Prepared) -> tuple[int, int] | None:
        wanted = [stem.text for stem in phrase._stems]
        if len(wanted) < 2:
            return None  # one word is no variant of a phrase
        for first in range(len(self._stems)):
            last = self._match(first, wanted)
            if last is None:
                continue
            start, end = self._stems[first].start, self._stems[last].end
            if self._is_negated(start, end) == phrase._is_negated(0, len(phrase._normalised.text)):
                return start, end
        return None

    def _match(self, first: int, wanted: Sequence[str]) -> int | None:
        """Position of the last stem when `wanted` stands from `first` on, within one sentence."""
        position, between = first, 0
        for number, stem in enumerate(wanted):
            limit = _MAX_BETWEEN if number else 0
            while position < len(self._stems) and self._stems[position].text != stem and between <= limit:
                position, between = position + 1, between + 1
            out = position >= len(self._stems) or self._stems[position].sentence != self._stems[first].sentence
            if out or between > limit:
                return None
            position += 1
        return position - 1

    def _is_negated(self, start: int, end: int) -> bool:
        text = self._normalised.text
        begin = max(0, start - _BEFORE)
        edge = max((match.end() for match in re.finditer(r"[.!?;:,]", text[begin:start])), default=0)
        part = text[begin + edge : end]
        return any(is_negation(fold_word(word[0]), part, word.end(), self._language) for word in WORD.finditer(part))
