"""What can speak against an answer: stable codes, in the order of what weighs most."""

from __future__ import annotations

from enum import StrEnum


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
