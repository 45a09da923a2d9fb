"""What the service itself says: why there is no answer, what no document mentions, and which files were searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.guards.injection import neutralise_metadata
from rag_service.answering.prompt.templates import Prompts
from rag_service.domain import Hit
from rag_service.language.languages import quote_text
from rag_service.language.words import fold
from rag_service.retrieval.found import Found
from rag_service.retrieval.named_files import MissingFile


@dataclass(frozen=True, kw_only=True)
class Notices:
    """What the service itself says around an answer from passages, and what it doubts before there is one."""

    refusal: str  # the sentence for questions that the passages do not answer
    introduction: str  # of quotes: which files were searched, and what makes the answer uncertain; may be empty
    doubts: Mapping[Doubt, bool]  # what the introduction warns of
    model_failed: str  # before the quotes that take the place of a failing model's answer
    unfinished: str  # after an answer that was cut off, or ended in a repetition
    withheld: str  # in the place of unproved sentences

    @property
    def harmless(self) -> Sequence[str]:
        """Sentences that need no proof."""
        return [self.refusal, self.introduction, self.model_failed, self.unfinished]

    @property
    def after_failure(self) -> str:
        """What stands before the quotes after the model has failed."""
        return f"{self.model_failed} {self.introduction}".strip()


def make_notices(found: Found, sources: Sequence[Hit], prompts: Prompts) -> Notices:
    """Return the notices for an answer from these passages."""
    language = found.plan.language
    files_searched, about_files = tell_files(found, sources, prompts)
    absent = warn_of_absent(found, prompts) if found.absent else ""
    warning = f"{about_files} {absent}".strip()
    if found.is_doubtful and not warning:
        warning = prompts.message("doubtful", language)
    return Notices(
        refusal=prompts.message("refusal", language),
        introduction=f"{files_searched} {warning}".strip(),
        doubts={
            Doubt.NAME_UNKNOWN: bool(found.absent),
            Doubt.FILE_UNKNOWN: bool(about_files),
            Doubt.LOW_RELEVANCE: found.is_doubtful,
        },
        model_failed=prompts.message("model_failed", language),
        unfinished=prompts.message("unfinished", language),
        withheld=prompts.message("withheld", language),
    )


def explain_refusal(found: Found, prompts: Prompts) -> tuple[str, Doubt]:
    """Why a search that found no relevant passage is not answered: in a sentence, and as a code."""
    files, language = found.files, found.plan.language
    if files is not None and files.missing:
        return tell_files(found, (), prompts)[1], Doubt.NOTHING_FOUND
    if files is not None and files.place is not None and not found.hits:
        names = ", ".join(quote_text(neutralise_metadata(file.name), language) for file in files.found)
        return prompts.message("no_such_place", language).replace("{names}", names), Doubt.NOTHING_FOUND
    if not found.scope.chunk_count:
        return prompts.message("no_documents", language), Doubt.NO_DOCUMENTS
    if not found.scope.reachable:
        return prompts.message("nothing_selected", language), Doubt.NOTHING_SELECTED
    said = prompts.message("nothing_found", language)
    return f"{warn_of_absent(found, prompts)} {said}" if found.absent else said, Doubt.NOTHING_FOUND


def warn_of_absent(found: Found, prompts: Prompts) -> str:
    """A sentence with the names in the question that no document mentions."""
    names = ", ".join(quote_text(name, found.plan.language) for name in found.absent)
    return prompts.message("not_mentioned", found.plan.language).replace("{names}", names)


def mentioning(file: MissingFile, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The passages that mention a missing file, such as "robots.txt": only they can answer a question about it."""
    name = fold(file.name)
    return tuple(hit for hit in hits if name in fold(hit.chunk.text))


def tell_files(found: Found, sources: Sequence[Hit], prompts: Prompts) -> tuple[str, str]:
    """(which files were searched, which are missing or hold nothing about the question), in sentences or empty."""
    files, language = found.files, found.plan.language
    if files is None:
        return "", ""

    def tell(message: str, names: Sequence[str]) -> str:
        quoted = ", ".join(quote_text(neutralise_metadata(name), language) for name in dict.fromkeys(names))
        return prompts.message(message, language).replace("{names}", quoted) if names else ""

    answering = {hit.chunk.document.id for hit in sources}
    several = len({file.name for file in files.found}) > 1
    silent = [file.name for file in files.found if file.id not in answering] if several else []
    missing = [file for file in files.missing if not mentioning(file, sources)]
    warnings = [tell("no_such_file", [file.name for file in missing])]
    warnings.append(tell("similar_files", [near.name for file in missing for near in file.near]))
    warnings.append(tell("nothing_in_files", silent))
    return tell("searched_files", [file.name for file in files.found] if several else []), " ".join(
        filter(None, warnings)
    )


def mentioned_sources(found: Found) -> tuple[Hit, ...]:
    """Return the passages chosen; of a question about a file that is missing only those that mention it."""
    files = found.files
    if files is not None and files.missing and not files.found:
        return mentioning(files.missing[0], found.passages)
    return found.passages


def unique(*hits: Hit) -> tuple[Hit, ...]:
    """Return passages in their order, each once."""
    by_id: dict[str, Hit] = {}
    for hit in hits:
        by_id.setdefault(hit.chunk.id, hit)
    return tuple(by_id.values())
