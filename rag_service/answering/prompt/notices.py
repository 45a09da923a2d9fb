"""What the service itself says: why there is no answer, what no document mentions, and which files were searched."""

from __future__ import annotations

from collections.abc import Sequence

from rag_service.answering.guards.injection import neutralise_metadata
from rag_service.answering.prompt.reasons import Doubt
from rag_service.answering.prompt.templates import Prompts
from rag_service.domain import Hit
from rag_service.language.languages import quote_text
from rag_service.language.words import fold
from rag_service.retrieval.named_files import MissingFile
from rag_service.retrieval.query import Retrieval


def explain_refusal(retrieval: Retrieval, prompts: Prompts) -> tuple[str, Doubt]:
    """Why a search that found no relevant passage is not answered: in a sentence, and as a code."""
    files, language = retrieval.files, retrieval.plan.language
    if files is not None and files.missing:
        return tell_files(retrieval, (), prompts)[1], Doubt.NOTHING_FOUND
    if files is not None and files.place is not None and not retrieval.hits:
        names = ", ".join(quote_text(neutralise_metadata(file.name), language) for file in files.found)
        return prompts.message("no_such_place", language).replace("{names}", names), Doubt.NOTHING_FOUND
    if not retrieval.scope.chunk_count:
        return prompts.message("no_documents", language), Doubt.NO_DOCUMENTS
    if not retrieval.scope.reachable:
        return prompts.message("nothing_selected", language), Doubt.NOTHING_SELECTED
    said = prompts.message("nothing_found", language)
    return f"{warn_of_absent(retrieval, prompts)} {said}" if retrieval.absent else said, Doubt.NOTHING_FOUND


def warn_of_absent(retrieval: Retrieval, prompts: Prompts) -> str:
    """A sentence with the names in the question that no document mentions."""
    names = ", ".join(quote_text(name, retrieval.plan.language) for name in retrieval.absent)
    return prompts.message("not_mentioned", retrieval.plan.language).replace("{names}", names)


def mentioning(file: MissingFile, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The passages that mention a missing file, such as "robots.txt": only they can answer a question about it."""
    name = fold(file.name)
    return tuple(hit for hit in hits if name in fold(hit.chunk.text))


def tell_files(retrieval: Retrieval, sources: Sequence[Hit], prompts: Prompts) -> tuple[str, str]:
    """(which files were searched, which are missing or hold nothing about the question), in sentences or empty."""
    files, language = retrieval.files, retrieval.plan.language
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
