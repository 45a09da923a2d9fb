"""Why an answer may not be relied on: stable codes, each with a sentence. The decision follows from them.

An answer without a reason can proceed. Everything that doubts one adds its code here, in the order of what weighs most,
and every channel shows the first sentence or all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from rag_service.domain import Decision, Reason


class Doubt(StrEnum):
    """What speaks against relying on an answer; the values are part of the API."""

    # There is no answer.
    NO_QUESTION = "no_question"  # a greeting or thanks
    NO_DOCUMENTS = "no_documents"
    NOTHING_SELECTED = "nothing_selected"  # by the filters
    NOTHING_FOUND = "nothing_found"  # no passage is near enough
    NOT_ANSWERED = "not_answered"  # the passages do not answer it
    # There is one.
    MODEL_FAILED = "model_failed"
    INCOMPLETE = "incomplete"
    CONTRADICTED = "contradicted"  # a source says otherwise, or does not say it
    UNPROVED = "unproved"  # a sentence without a verified citation
    NO_DOCUMENT_USED = "no_document_used"
    RULE_BROKEN = "rule_broken"  # of the knowledge base
    JUDGED_PARTIAL = "judged_partial"
    JUDGED_OTHER = "judged_other"
    PART_OPEN = "part_open"  # of a question that asks for several things
    STEP_OPEN = "step_open"  # of a question about something that it does not name
    NAME_UNKNOWN = "name_unknown"  # no document mentions it
    FILE_UNKNOWN = "file_unknown"
    ABOUT_ANOTHER = "about_another"  # month, number or name than the question; or it lacks what is asked for
    AMENDED = "amended"  # a later document changes what is quoted
    SOURCES_DIFFER = "sources_differ"  # another document says the same with another figure
    LANGUAGE_UNMEASURED = "language_unmeasured"  # no set of questions says how often quotes in it are right
    ENCODING_GUESSED = "encoding_guessed"  # of a cited document: its letters and signs may be wrong
    TABLE_READING = "table_reading"  # the table can be read in another way, or only a part of it was
    JOINED_QUESTION = "joined_question"  # with those before it
    LOW_RELEVANCE = "low_relevance"
    LITTLE_CONTEXT = "little_context"
    LOW_CONFIDENCE = "low_confidence"
    # Of an advisor.
    DATA_MISSING = "data_missing"
    MODEL_UNSURE = "model_unsure"


_NO_ANSWER = frozenset({
    Doubt.NO_QUESTION, Doubt.NO_DOCUMENTS, Doubt.NOTHING_SELECTED, Doubt.NOTHING_FOUND, Doubt.NOT_ANSWERED,
})  # fmt: skip


def decide(doubts: Collection[Doubt]) -> Decision:
    """Return the decision on an answer with these doubts."""
    if not doubts:
        return Decision.CAN_PROCEED
    return Decision.UNCERTAIN if _NO_ANSWER.isdisjoint(doubts) else Decision.OUT_OF_SCOPE


def find_doubts(found: Mapping[Doubt, bool]) -> tuple[Doubt, ...]:
    """Those that hold, in the order of what weighs most; where there is no answer, why there is none."""
    held = [doubt for doubt in Doubt if found.get(doubt)]
    return tuple(doubt for doubt in held if doubt in _NO_ANSWER) or tuple(held)


def make_reasons(
    doubts: Iterable[Doubt], sentences: Mapping[str, Mapping[str, str]], language: str
) -> tuple[Reason, ...]:
    """Each doubt with its sentence in a language, else in English."""
    told = {doubt: sentences[f"reason_{doubt}"] for doubt in dict.fromkeys(doubts)}
    return tuple(Reason(code=doubt.value, text=by.get(language) or by["en"]) for doubt, by in told.items())
