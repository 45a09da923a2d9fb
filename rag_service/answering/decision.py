"""The decision on an answer: the weakest of what was proved, how sure the search is, and what the rules allow.

One function for answers, agents, the advisor and the OpenAI-compatible endpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_service.answering.proof.claims import strip_marks
from rag_service.answering.proof.lexicon import load_lexicon
from rag_service.domain import Citation, CitationStatus, Confidence, Decision
from rag_service.language.sentences import read_sentences
from rag_service.language.words import fold

MIN_CONFIDENCE = 0.70  # of the advisor; answers have the limit of their fit


def decide(
    confidence: Confidence,
    *,
    refused: bool,
    context_tokens: int,
    minimum: int,
    warned: bool = False,
    proved: bool = True,
    allowed: bool = True,
    least: float = MIN_CONFIDENCE,
) -> Decision:
    """The decision on an answer that was made from passages.

    Args:
        confidence: how sure the answer is.
        refused: whether the answer says that it has none, see `is_refusal`.
        context_tokens: size of the context shown to the model.
        minimum: smallest context that the index definition accepts.
        warned: whether the answer begins with a warning, such as of names that no document mentions.
        proved: whether every sentence that states something is verified, and no citation speaks against one.
        allowed: whether the answer says nothing that the knowledge base forbids to say.
        least: below this confidence it is uncertain, 0..1.
    """
    if refused:
        return Decision.OUT_OF_SCOPE
    if warned or not (proved and allowed) or confidence.value < least or context_tokens < minimum:
        return Decision.UNCERTAIN
    return Decision.CAN_PROCEED


def is_refusal(text: str, citations: Sequence[Citation], *, refusal: str, language: str | None) -> bool:
    """Whether an answer says that it has none, with the refusal of the prompt or in words of its own.

    An answer with a verified sentence is none, even if it says what the documents leave open.
    """
    if text.strip() in ("", refusal):
        return True
    if any(citation.status is CitationStatus.VERIFIED for citation in citations):
        return False
    sentences = [strip_marks(sentence.text) for sentence in read_sentences(text, language=language)]
    pattern = load_lexicon(language).refusal
    return bool(sentences) and pattern.search(fold(sentences[0].replace("’", "'")).strip()) is not None
