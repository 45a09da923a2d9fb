"""How far a citation proves its sentence, in words and colours, for notebooks and terminals."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_service.api.http.schemas import CitationBody, EvidenceBody, StepBody
from rag_service.domain import Citation

# Each status has a sign as well as a colour. The last one is the worst.
SIGNS = {"verified": "✓", "unchecked": "≈", "misattributed": "≠", "contradicted": "✗", "not_found": "✗"}
TERMINAL_COLOURS = {
    "verified": "green",
    "unchecked": "default",
    "misattributed": "yellow",
    "contradicted": "red",
    "not_found": "red",
}
_WORDS = {
    "quote": "exact quote",
    "computed": "computed",
    "unchecked": "reworded; compare with the source",
    "misattributed": "from another passage than the one cited",
    "contradicted": "the source says something else",
    "not_found": "not found in the documents",
}
DECISIONS = {
    "can_proceed": "Certain",
    "uncertain": "Not certain",
    "out_of_scope": "Not covered by the documents",
}
CHECKED = {
    "can_proceed": "Every sentence is proved.",
    "uncertain": "Not certain.",
    "out_of_scope": "The text states nothing.",
}
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # would steer a terminal


_STEPS = {"search": "Searched for", "read": "Read", "compute": "Computed"}


def describe_step(step: StepBody) -> str:
    """What the chat model did before it answered: `Searched for “…” (2 passages)`."""
    failed = ", failed" if step.failed else ""
    asked = _UNSHOWN.sub("\ufffd", step.asked)
    return f"{_STEPS.get(step.tool, 'Tried')} “{asked}” ({step.found} new passage(s){failed})"


def describe_proof(citation: Citation | CitationBody) -> str:
    """How a citation was verified, or what is wrong: "exact quote", "checked by llama3.2", "computed: 24 + 60 = 84"."""
    if citation.method == "judge":
        return f"checked by {citation.judge or 'a model'}"
    said = _WORDS.get(citation.method or citation.status, citation.status)
    if citation.formula:
        return f"{said}: {citation.formula}"
    return f"{said}: {citation.reason}" if citation.reason else said


def quoted_words(citation: CitationBody) -> Sequence[CitationBody | EvidenceBody]:
    """Return all words that a sentence rests on, each with its place; none if nothing supports it."""
    return citation.evidence or ([] if citation.quote is None else [citation])


def describe_kind(citation: Citation | CitationBody) -> str:
    """What all citations of this kind have in common."""
    if citation.method == "judge":
        return describe_proof(citation)
    return _WORDS.get(citation.method or citation.status, citation.status)
