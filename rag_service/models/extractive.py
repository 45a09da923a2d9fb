"""The answerer without a model: quotes the sentences that answer best, each with its mark.

It is a LlamaIndex LLM like any other, so that every path (streaming, citations, records) runs the
same code with it. What it needs beyond the prompt's text, the passages themselves, comes with the
last message, which must be a `GroundedMessage`; other LLMs read that as a plain message.

A sentence scores by the share of the question's idf mass that it holds, by its cosine to the
question, by the relevance of its passage, and by whether it holds the kind of thing asked for: a
number for "how many", a date for "when", a name for "who".
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import structlog
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import CustomLLM

from rag_service.domain import Hit
from rag_service.errors import EmbeddingError, ModelOutputError
from rag_service.text.sentences import split_sentences
from rag_service.text.words import LANGUAGES, fold, terms, words

log = structlog.get_logger(__name__)

MODEL_NAME = "extractive"
MAX_SENTENCES = 3
_EMBEDDED = 16  # sentences compared by cosine: the lexically best
_LEAST_SHARE = 0.55  # a further sentence must reach this share of the best one's score
_LEAST_WORDS = 3
_LIST_LENGTH = 900  # characters of a list that is quoted whole
_LIST_ITEM = re.compile(r"[-*+•] |\d{1,2}[.)] |\|")
_ITEM_FOLLOWS = re.compile(rf"\n*+(?:{_LIST_ITEM.pattern})")
_RULE_FOLLOWS = re.compile(r"\s*+\|-")
_BULLET = re.compile(r"^(?:[-*+•>] |\d{1,2}[.)] )+")
_LEAD_BONUS = 0.5  # for the first sentences under a heading that is what the question asks for
_LEAD_SENTENCES = 2
_ASKED_FOR = 0.5  # of the question's idf mass: then a heading is what the question asks for
_HEADING_SHARE = 0.6  # of a term's weight, when a heading above the sentence holds it
_PASSAGE_SHARE = 0.8
_EQUIVALENT_SHARE = 0.7  # of a word's weight, for its synonyms
_COSINE_SHARE = 0.5
_NEXT_BONUS = 0.2  # for the sentence after the best one; XQuAD gold found: en 0.945 → 0.949, es 0.918 → 0.926
_BEFORE_BONUS = 0.1

_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|"
    r"seventy|eighty|ninety|hundred|thousand|million|billion|half|"
    r"dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|quince|veint\w*|treinta|cuarenta|cincuenta|sesenta|"
    r"setenta|ochenta|noventa|cien|ciento|mil|millones|mitad|"
    r"deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|quinze|vingt|trente|quarante|cinquante|"
    r"soixante|cents?|mille|millions?|milliards?|moitie|tiers)\b"
)
_DATE = re.compile(
    r"\b(?:1[0-9]|20)\d\d\b|\b\d{1,2}[./-]\d{1,2}\b|\b(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|"
    r"octubre|noviembre|diciembre|janvier|fevrier|mars|avril|mai|juin|juillet|aout|septembre|octobre|novembre|decembre|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|"
    r"lunes|martes|miercoles|jueves|viernes|sabado|domingo|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|veille|matin|midi|soir|\d{1,2} ?h\b(?: ?\d\d\b)?|horas?|heures?|"
    r"dias?|meses|mes|semanas?|anos?|jours?|mois|semaines?|ans?|annees?|days?|months?|weeks?|years?|century|siglo|siecle)\b"
)
_NAME = re.compile(r"(?<=[a-zà-ÿ,;] )[A-ZÀ-Ý][\w’'-]+")
_MONEY = re.compile(r"[€$£]|\b(?:EUR|USD|GBP|euros?|dollars?|pounds?|d[oó]lares)\b", re.IGNORECASE)
# "What … cost" is looked for from the first "what" of a line alone: from each, a long question would take seconds.
_ASKS_MONEY = re.compile(
    r"\b(?:cuanto (?:cuesta|vale|se paga|cobr|hay que pagar)|que (?:coste|precio|tasa|importe|cuantia)|"
    r"combien (?:coute|coutent|vaut|paie|paye|gagne|touche))|"
    r"^(?>.*?\bhow much (?:does|do|is|are|will|can|may) ).*(?:cost|pay|fee|price|borrow|charge|get|receive)|"
    r"^(?>.*?\bwhat ).*(?:cost|fee|price)|"
    r"^(?>.*?\bquel(?:le)? ).*(?:cout|prix|tarif|montant)",
    re.MULTILINE,
)
_ASKS_NUMBER = re.compile(
    r"\b(?:how (?:many|much|long|old|far|often|large|big|high)|cuant[oa]s?|combien|what (?:percentage|amount|number)|"
    r"que (?:porcentaje|cantidad|importe|numero)|quel(?:le)? (?:montant|pourcentage|nombre|quantite|est le taux))\b"
)
_ASKS_DATE = re.compile(
    r"\b(?:when|(?:what|which) (?:year|date|day|month|time)|cuando|que (?:ano|fecha|dia|mes)|que hora|quand|"
    r"quel(?:le)?s? (?:annee|date|jour|mois|heure)s?|"
    r"deadline|plazo|delai)\b"
)
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|where|which|quien(?:es)?|donde|qui|ou|quel(?:le)?s?)\b")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the extractive answerer answers from."""

    question: str
    language: str
    hits: tuple[Hit, ...]  # [C1] first
    weights: Mapping[str, float] = field(default_factory=dict)  # index term → idf in the searched corpora
    equivalents: Mapping[str, int] = field(
        default_factory=dict
    )  # index term → which word of the question it stands for
    refusal: str = ""  # said when nothing fits


class GroundedMessage(ChatMessage):
    """A chat message that also carries the evidence its text was rendered from."""

    _evidence: Evidence | None = PrivateAttr(default=None)

    @classmethod
    def with_evidence(cls, content: str, evidence: Evidence) -> GroundedMessage:
        """A user message."""
        message = cls(role=MessageRole.USER, content=content)
        message._evidence = evidence
        return message

    @property
    def evidence(self) -> Evidence | None:
        return self._evidence


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A candidate sentence of the answer."""

    mark: int  # number of its passage
    position: int  # among the sentences of the passage, from 0
    text: str
    score: float  # the higher the better; about 1.5 for a full match
    share: float  # of the question's idf mass, 0..1


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A word of the question in every form that a passage may hold it in."""

    weight: float  # idf
    terms: Mapping[str, float]  # index term → how well it stands for the word, 0..1

    def held_by(self, held: set[str]) -> float:
        return self.weight * max((exactness for term, exactness in self.terms.items() if term in held), default=0.0)


class ExtractiveLLM(CustomLLM):
    """Answers by quotation; needs no model server."""

    _embedding: BaseEmbedding | None = PrivateAttr(default=None)
    _context_window: int = PrivateAttr(default=32_000)

    def __init__(self, embedding: BaseEmbedding | None = None):
        """
        Args:
            embedding: compares sentences with the question; None scores by words alone.
        """
        super().__init__()
        self._embedding = embedding

    @classmethod
    def class_name(cls) -> str:
        return "ExtractiveLLM"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self._context_window, num_output=1000, model_name=MODEL_NAME, is_chat_model=True
        )

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponseAsyncGen:
        """Stream the answer sentence by sentence.

        Raises:
            ModelOutputError: the last message carries no evidence.
        """
        evidence = _evidence_of(messages)
        sentences = await select_sentences(evidence, self._embedding)

        async def stream() -> AsyncGenerator[ChatResponse]:
            text = ""
            for delta in compose(sentences, evidence.refusal):
                text += delta
                yield ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text), delta=delta)

        return stream()

    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        evidence = _evidence_of(messages)
        text = "".join(compose(await select_sentences(evidence, self._embedding), evidence.refusal))
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text))

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        raise ModelOutputError("The extractive answerer answers grounded chats only; configure a chat model.")

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:
        raise ModelOutputError("The extractive answerer answers grounded chats only; configure a chat model.")


def _evidence_of(messages: Sequence[ChatMessage]) -> Evidence:
    last = messages[-1] if messages else None
    if not isinstance(last, GroundedMessage) or last.evidence is None:
        raise ModelOutputError("The extractive answerer answers grounded chats only; configure a chat model.")
    return last.evidence


def compose(sentences: Sequence[Sentence], refusal: str) -> list[str]:
    """The answer in pieces as they are streamed; one paragraph a sentence, each with its mark."""
    if not sentences:
        return [refusal]
    pieces: list[str] = []
    for number, sentence in enumerate(sentences):
        pieces.append(("\n\n" if number else "") + sentence.text)
        pieces.append(f" [C{sentence.mark}]")
    return pieces


async def select_sentences(evidence: Evidence, embedding: BaseEmbedding | None) -> list[Sentence]:
    """The best sentences of the shown passages, best first; empty when none fits."""
    candidates = _candidates(evidence, _weigh(evidence))
    candidates.sort(key=lambda candidate: -candidate.score)
    if embedding is not None and candidates:
        try:
            candidates = await _add_cosine(evidence.question, candidates[:_EMBEDDED], embedding)
        except EmbeddingError as error:  # words alone choose well enough
            log.warning("answer_degraded", without="cosine", exc_info=error)
    best = candidates[0].score if candidates else 0.0
    chosen: list[Sentence] = []
    for candidate in _lift_neighbours(candidates):
        if len(chosen) == MAX_SENTENCES or candidate.score < _LEAST_SHARE * best:
            break
        if all(fold(candidate.text) not in fold(other.text) for other in chosen):
            chosen.append(candidate)
    return chosen


def _lift_neighbours(candidates: Sequence[Sentence]) -> list[Sentence]:
    """The best first, and what stands beside it lifted: "It does so in …" shares no word with the question."""
    if not candidates:
        return []
    best, *rest = candidates

    def lifted(candidate: Sentence) -> float:
        distance = candidate.position - best.position if candidate.mark == best.mark else 0
        return candidate.score + (_NEXT_BONUS if distance == 1 else _BEFORE_BONUS if distance == -1 else 0.0)

    rest = [replace(candidate, score=min(best.score, lifted(candidate))) for candidate in rest]
    return [best, *sorted(rest, key=lambda candidate: -candidate.score)]


def _weigh(evidence: Evidence) -> list[_Asked]:
    """What the question asks for; a word that no chunk holds in any form cannot tell sentences apart."""
    own = {term for language in {evidence.language, *LANGUAGES} for term in terms(evidence.question, language)}
    grouped: dict[int | str, dict[str, float]] = {}
    for term in own | evidence.equivalents.keys():
        if term in evidence.weights:
            exactness = 1.0 if term in own else _EQUIVALENT_SHARE
            grouped.setdefault(evidence.equivalents.get(term, term), {})[term] = exactness
    return [
        _Asked(weight=max(evidence.weights[term] for term in exactness), terms=exactness)
        for exactness in grouped.values()
    ]


def _candidates(evidence: Evidence, asked: Sequence[_Asked]) -> list[Sentence]:
    total = sum(word.weight for word in asked)
    kind = _kind_asked(fold(evidence.question))
    found = []
    for mark, hit in enumerate(evidence.hits, start=1):
        headed = set(terms(_headings(hit), evidence.language))
        match = _section_match(hit, asked, evidence.language)
        lead = _LEAD_BONUS * match
        units = _units(hit.chunk.text, evidence.language, whole_list=match >= _ASKED_FOR)
        for number, sentence in enumerate(units):
            held = set(terms(sentence, evidence.language))
            share = _share(asked, held, headed) / total if total else 0.0
            score = (
                share
                + _PASSAGE_SHARE * _standing(hit, evidence.hits)
                + (kind.bonus if kind and kind.stands_in(sentence) else 0.0)
                + (lead if number < _LEAD_SENTENCES else 0.0)
            )
            found.append(Sentence(mark=mark, position=number, text=sentence, score=score, share=share))
    return found


def _share(asked: Sequence[_Asked], held: set[str], headed: set[str]) -> float:
    """Idf mass of the question that a sentence holds, what its headings say counting for less."""
    return sum(max(word.held_by(held), _HEADING_SHARE * word.held_by(headed)) for word in asked)


def _section_match(hit: Hit, asked: Sequence[_Asked], language: str) -> float:
    """Share of the question's idf mass in the heading right above a passage, the document's title aside."""
    path = hit.chunk.spans[0].location.headings if hit.chunk.spans else ()
    if len(path) < 2 or not asked:
        return 0.0
    heading = set(terms(path[-1], language))
    return sum(word.held_by(heading) for word in asked) / sum(word.weight for word in asked)


def _headings(hit: Hit) -> str:
    paths = dict.fromkeys(heading for span in hit.chunk.spans for heading in span.location.headings)
    return " ".join([hit.chunk.document.title, *paths])


def _units(text: str, language: str, *, whole_list: bool) -> list[str]:
    """Sentences worth quoting: no headings, no header rows of tables; a sentence that announces a
    list ("You need:") takes the list with it, and so does the heading that the question asks for."""
    bounds = split_sentences(text, language=language)
    units: list[str] = []
    taken = 0  # end of the list that a heading took
    for number, (start, end) in enumerate(bounds):
        sentence = text[start:end].strip()
        if start < taken or sentence.startswith("#"):
            continue
        if whole_list and not units and _LIST_ITEM.match(sentence):
            taken = _end_of_list(text, bounds, number)
            sentence = text[start:taken].strip()
        elif sentence.endswith(":"):
            last = _end_of_list(text, bounds, number)
            sentence = text[start:last].strip() if last > end else ""
        is_header_row = "\n" not in sentence and sentence.startswith("|") and bool(_RULE_FOLLOWS.match(text, end))
        cleaned = _clean(sentence)
        if not is_header_row and len(words(cleaned)) >= _LEAST_WORDS:
            units.append(cleaned)
    return units


def _end_of_list(text: str, bounds: Sequence[tuple[int, int]], number: int) -> int:
    """Where the list or table ends that begins with, or right after, the sentence of that number."""
    start, last = bounds[number]
    for _, following in islice(bounds, number + 1, None):
        if following - start > _LIST_LENGTH or not _ITEM_FOLLOWS.match(text, last):
            break
        last = following
    return last


def _standing(hit: Hit, hits: Sequence[Hit]) -> float:
    """How a passage compares with the best one shown, 0..1."""
    best = max(_rating(other) for other in hits)
    return _rating(hit) / best if best > 0 else 0.0


def _rating(hit: Hit) -> float:
    fused = hit.scores.fused
    return max(0.0, hit.scores.relevance if fused is None else fused)


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """A kind of thing that questions ask for."""

    asked_by: re.Pattern[str]  # in a folded question
    pattern: re.Pattern[str]  # of such a thing
    folded: bool  # whether the pattern is one of folded text
    bonus: float  # for a sentence that holds one

    def stands_in(self, sentence: str) -> bool:
        return self.pattern.search(fold(sentence) if self.folded else sentence) is not None


_KINDS = (
    _Kind(asked_by=_ASKS_MONEY, pattern=_MONEY, folded=False, bonus=0.3),
    _Kind(asked_by=_ASKS_NUMBER, pattern=_NUMBER, folded=True, bonus=0.15),
    _Kind(asked_by=_ASKS_DATE, pattern=_DATE, folded=True, bonus=0.15),
    _Kind(asked_by=_ASKS_NAME, pattern=_NAME, folded=False, bonus=0.1),
)


def _kind_asked(question: str) -> _Kind | None:
    return next((kind for kind in _KINDS if kind.asked_by.search(question)), None)


async def _add_cosine(question: str, candidates: Sequence[Sentence], embedding: BaseEmbedding) -> list[Sentence]:
    query = np.asarray(await embedding.aget_query_embedding(question))
    vectors = np.asarray(await embedding.aget_text_embedding_batch([candidate.text for candidate in candidates]))
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    cosines = (vectors @ query) / np.where(norms > 0, norms, 1.0)
    rated = [
        replace(candidate, score=candidate.score + _COSINE_SHARE * float(cosine))
        for candidate, cosine in zip(candidates, cosines, strict=True)
    ]
    return sorted(rated, key=lambda candidate: -candidate.score)


def _clean(sentence: str) -> str:
    """A sentence in one line and without its list bullet; a list keeps its lines."""
    lines = [" ".join(line.split()) for line in sentence.splitlines() if line.strip()]
    if any(_LIST_ITEM.match(line) for line in lines[1:]):
        return "\n".join(lines)
    return _BULLET.sub("", " ".join(lines)).strip()
