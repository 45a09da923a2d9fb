"""How sure an answer is, and the decision on it.

Answers, agents and the OpenAI-compatible endpoint give a probability: of answers with 0.9, nine in ten are right. It is
a logistic of a few signals, fitted to questions with known answers by `rag-service eval calibrate --answers`; the
numbers, and the evaluation that set them, are in `confidence.json` (decision 041). The advisor keeps a formula of its
own, whose sum it shows to the user: `rate_confidence`.

The decision is the weakest of what was proved, how sure the search is, and what the rules allow: one function for
answers, agents, the advisor and the OpenAI-compatible endpoint.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from heapq import nlargest
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from statistics import fmean

from rag_service.answering.proof.claims import strip_marks
from rag_service.answering.proof.lexicon import load_lexicon
from rag_service.domain import MAIL_HEADER, Citation, CitationStatus, Confidence, Hit, ProofMethod
from rag_service.errors import ConfigurationError
from rag_service.indices import QueryDefinition
from rag_service.language.languages import language_codes, languages_of, load_language, union_of
from rag_service.language.sentences import read_sentences
from rag_service.language.words import fold, word_forms, words
from rag_service.models.extractive.extractive import answer_type
from rag_service.retrieval.planner import QueryPlan
from rag_service.tables.asking.answers import asks_otherwise
from rag_service.tables.asking.planning.question import read_question
from rag_service.tables.vocabulary import column_word, is_verb, read_words

PACKAGED_FIT = Path(__file__).with_name("confidence.json")
SIGNALS = ("relevance", "lead")

NO_CONFIDENCE = Confidence(value=0.0, mean_relevance=0.0, mean_rerank=None, critical_boost=False)
_CERTAIN = 0.01  # probabilities are kept this far from 0 and 1, where log-odds end
_TOP = 3
_CRITICAL_BOOST = 1.1
_CRITICAL_CHUNKS = 2
_STRETCH = 6  # words from one month to the other in "from 1 June to 30 September"
_NUMBERED = re.compile(r"\b([^\W\d_]{3,}) (\d+)\b")
_ROW = "row"
_COLUMNS = re.compile(r"\S \| \S|\S {2,}\S")  # as readers write the cells of a row
_CALCULATED = ("sum", "mean", "median", "maximum", "minimum")
MIN_CONFIDENCE = 0.70  # of the advisor; answers have the limit of their fit


@dataclass(frozen=True, kw_only=True)
class ConfidenceFit:
    """Log-odds that an answer is right: intercept + weights · signals + the part of the question's language."""

    run: str  # the evaluation that made it
    intercept: float
    weights: Mapping[str, float]  # by the name of the signal
    languages: Mapping[str, float]  # by ISO 639-1 code; others have none
    typical: Mapping[str, float] = field(default_factory=dict)  # means, for signals that an answer does not have
    least: float  # below it an answer is uncertain, 0..1
    limits: Mapping[str, float] = field(default_factory=dict)  # the same for questions in one language

    def probability(self, signals: Mapping[str, float], language: str) -> float:
        """Probability that an answer is right, 0..1."""
        log_odds = self.intercept + self.languages.get(language, 0.0)
        known = {**self.typical, **signals}
        for name, weight in self.weights.items():
            log_odds += weight * known[name]
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, log_odds))))


@lru_cache(maxsize=4)
def read_fit(file: Path | None = None) -> ConfidenceFit:
    """The fit in a file; None: the packaged one. Raises ConfigurationError if the file holds none."""
    try:
        fit = ConfidenceFit(**json.loads((file or PACKAGED_FIT).read_text(encoding="utf-8")))
        fit.probability(dict.fromkeys(SIGNALS, 0.0), "en")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"RAG_CONFIDENCE_FIT: {file} is no file that `rag-service eval calibrate --answers` wrote.",
            field="RAG_CONFIDENCE_FIT",
        ) from error
    return fit


def read_signals(sources: Sequence[Hit], choice: Mapping[str, float] | None = None) -> dict[str, float]:
    """What the fit looks at, by the names in `SIGNALS`.

    `relevance`: log-odds of the best passage's relevance; `lead`: log-odds that the first quote holds the best of all
    sentences. Answers of a chat model have the first only.

    Args:
        sources: the passages above the threshold, best first; at least one.
        choice: `lead` as a probability, where the answer quotes.
    """
    signals = {"relevance": _log_odds(max(map(attrgetter("scores.relevance"), sources)))}
    return signals | ({"lead": _log_odds(choice["lead"])} if choice and "lead" in choice else {})


def _log_odds(probability: float) -> float:
    kept = min(1 - _CERTAIN, max(_CERTAIN, probability))
    return math.log(kept / (1 - kept))


def estimate_confidence(
    fit: ConfidenceFit, signals: Mapping[str, float], sources: Sequence[Hit], language: str, *, refuted: float
) -> Confidence:
    """Probability that an answer is right; 0 without sources.

    The fit knows answers that quote. A sentence that its source contradicts, or that no passage shows, is wrong however
    good the passages are: the probability is lowered by the share of such citations, `refuted`. `signals` are those of
    `read_signals`.
    """
    if not sources:
        return NO_CONFIDENCE
    probability = fit.probability(signals, language) * (1 - refuted)
    mean_relevance, mean_rerank = _means(sources)
    return Confidence(
        value=round(probability, 2), mean_relevance=mean_relevance, mean_rerank=mean_rerank, critical_boost=False
    )


def rate_confidence(hits: Sequence[Hit], query: QueryDefinition) -> Confidence:
    """The advisor's confidence 0..1: the mean of the top three relevances, averaged with that of the
    top three rerank scores if there are any, times 1.1 with two or more CRITICAL chunks; 0 without hits."""
    if not hits:
        return NO_CONFIDENCE
    mean_relevance, mean_rerank = _means(hits)
    value = mean_relevance if mean_rerank is None else (mean_relevance + mean_rerank) / 2
    critical = set(query.tiers.get("critical", ()))
    boost = sum(1 for hit in hits if hit.chunk.type in critical) >= _CRITICAL_CHUNKS
    if boost:
        value = min(1.0, value * _CRITICAL_BOOST)
    return Confidence(
        value=round(value, 2), mean_relevance=mean_relevance, mean_rerank=mean_rerank, critical_boost=boost
    )


def _means(hits: Sequence[Hit]) -> tuple[float, float | None]:
    """Means of the top three relevances and of the top three rerank scores."""
    relevances = nlargest(_TOP, map(attrgetter("scores.relevance"), hits))
    reranked = [score for score in map(attrgetter("scores.rerank"), hits) if score is not None]
    return round(fmean(relevances), 4), round(fmean(nlargest(_TOP, reranked)), 4) if reranked else None


def is_refusal(text: str, citations: Sequence[Citation], *, refusal: str, language: str | None) -> bool:
    """Whether an answer says that it has none, with the refusal of the prompt or in words of its own.

    An answer with a verified sentence is none, even if it says what the documents leave open.
    """
    if text.strip() in ("", refusal):
        return True
    if CitationStatus.VERIFIED in map(attrgetter("status"), citations):
        return False
    sentences = [strip_marks(sentence.text) for sentence in read_sentences(text, language=language)]
    pattern = load_lexicon(language).refusal
    return bool(sentences) and pattern.search(fold(sentences[0].replace("’", "'")).strip()) is not None


def names_another_month(question: str, quoted: str, language: str) -> bool:
    """Whether a question names a month and the quotes another one: what was paid in July says nothing about August.

    Months that stand close together are not judged: "from June to September" holds for July.
    """
    months = _months(language)
    asked = set(map(months.get, words(question))) - {None}
    if not asked:
        return False
    said = words(quoted)
    places = [place for place, word in enumerate(said) if word in months]
    is_stretch = any(after - place <= _STRETCH for place, after in pairwise(places))
    return bool(places) and not is_stretch and asked.isdisjoint(months[said[place]] for place in places)


def names_another_number(question: str, quoted: str) -> bool:
    """Whether a question names something by its number, "gate 9", and the quotes only others of the kind, "gate 11"."""
    held: dict[str, set[str]] = {}
    for kind, number in _NUMBERED.findall(fold(quoted)):
        held.setdefault(kind, set()).add(number)
    for kind, number in _NUMBERED.findall(fold(question)):
        if kind in held and number not in held[kind] and kind not in _stop_words():
            return True
    return False


@cache
def _stop_words() -> frozenset[str]:
    return union_of(data.stop_words for data in languages_of(None))


def leaves_open(plan: QueryPlan, weights: Mapping[str, float], quoted: str) -> bool:
    """Whether quotes lack a word of the question, in any form, that some passage has.

    Args:
        plan: of the question.
        weights: the index terms that the corpora hold.
        quoted: all quotes.
    """
    held = word_forms(quoted)
    asked = {term.group for term in plan.terms if term.group >= 0 and term.term in weights}
    return not asked <= {term.group for term in plan.terms if term.term in held}


def lacks_figure(question: str, quoted: str) -> bool:
    """Whether a question asks for a price or a number and the quotes hold none: no amount of money, no figure.

    A figure of a row may be a price by the name of its column.
    """
    wanted = answer_type(question)
    if wanted is None or wanted.search(fold(quoted)) or "%" in quoted:
        return False
    return " | " not in quoted or re.search(r"\d", quoted) is None


@cache
def _months(language: str) -> Mapping[str, int]:
    """The number of each name of a month; without those that are also stop words, such as "may"."""
    return {
        name: number
        for data in languages_of(language)
        for number, names in enumerate(data.proof.months)
        for name in names - data.stop_words
    }


def lacks_proof(question: str, citations: Sequence[Citation], language: str) -> bool:
    """Whether an answer only quotes headers of mails, or rows of tables that cannot prove it.

    A header says who wrote to whom and when, and nothing of what a mail says.
    A row proves no calculation, nor does it with a sentence behind it that does not name the calculation. It does not
    prove that others lack something, and nothing about an attribute that it lacks: no salary without such a column.
    Any word that is no verb may be one. A single row proves "how much is …" if the question has all words of its name;
    the first one proves a maximum or a total if that is its name.
    """
    if not citations:
        return False
    quoted = list(map(_quoted_part, citations))
    if set(quoted) == {MAIL_HEADER}:
        return True
    if quoted[0] != _ROW:
        return False
    if language not in language_codes():
        return False
    asked = None if asks_otherwise(question, language) else read_question(question, language)
    data = load_language(language).tables
    found = read_words(words(question), language)
    name = [column_word(word) for word in words((citations[0].quote or "").split(" | ")[0].partition(": ")[2])]
    is_asked_for = all(any(word.forms & one.forms for one in found) for word in name if word.is_content)
    cues = {phrase for key in _CALCULATED for phrase in data.phrases[key]}  # "maximum", not the "alto" of "más alto"
    is_called_so = is_asked_for and not cues.isdisjoint(word.text for word in name)
    is_amount = asked is not None and asked.asks_amount and len(citations) == 1
    if len(set(quoted)) > 1:
        prose = {
            word for part, one in zip(quoted, citations, strict=True) if part != _ROW for word in words(one.quote or "")
        }
        operations = () if asked is None or asked.asks_amount else asked.operations
        return any(prose.isdisjoint(words(" ".join(data.phrases[name]))) for name in operations)
    if asked is not None and (asked.negations or (asked.asks and not (is_amount or is_called_so))):
        return True
    if is_called_so:
        return False
    held = [column_word(word) for citation in citations for word in words(citation.quote or "")]
    missing = [
        word
        for word in found
        if word.is_content
        and word.text not in data.filler | load_language(language).files.overview
        and not any(word.forms & other.forms or word.concepts & other.concepts for other in held)
    ]
    if is_amount:  # "per user" is a calculation
        return bool(missing) or not is_asked_for or bool(asked is not None and asked.groups)
    if all(any(word.forms & one.forms for one in found) for word in held if word.is_content):
        return True  # a title tells nothing that the question does not say
    begins = " ".join(word.text for word in found).startswith(data.phrases["attribute"])
    return any(begins or word.concepts or not is_verb(word.text, language) for word in missing)


def _quoted_part(citation: Citation) -> str:
    """What a citation quotes: `_ROW` for cells of a sheet or a line of columns on a page, MAIL_HEADER, or nothing."""
    place = citation.location
    if place is None:
        return ""
    if (place.part or "").rpartition(" > ")[2] == MAIL_HEADER:
        return MAIL_HEADER
    is_row = place.cell or place.row or _COLUMNS.search(citation.quote or "")
    return _ROW if is_row and citation.method is not ProofMethod.COMPUTED else ""
