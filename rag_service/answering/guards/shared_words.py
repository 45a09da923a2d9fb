"""Whether a quote that a judge points at can be about the sentence that it is to prove."""

from __future__ import annotations

from rag_service.answering.proof.analysis import analyse

_MIN_SHARED = 2  # content words or figures; one, where the sentence has no more than three


def shares_content(quote: str, sentence: str, *, language: str | None) -> bool:
    """Whether a quote has content in common with a sentence: words by their stems, or figures.

    A judge that obeys a note in a document, or points at "the", proves nothing. Quotes in another language than the
    sentence share figures and names only, and reworded ones a word or two: so little is asked for.
    """
    said, quoted = analyse(sentence, language), analyse(quote, language)
    return len(said.stems & quoted.stems) >= (_MIN_SHARED if len(said.stems) > 3 else 1)
