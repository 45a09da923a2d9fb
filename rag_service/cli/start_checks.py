"""What a start reads besides definitions and prompts, by the same functions: what they refuse, `check` refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from rag_service.answering.decision.confidence import read_fit
from rag_service.errors import ConfigurationError
from rag_service.settings import Settings
from rag_service.sources.declared import load_readers
from rag_service.store.documents.originals import Originals
from rag_service.store.embedded import check_data_dir
from rag_service.store.opening import check_conninfo
from rag_service.store.replication.replica import replica_conninfo


def find_wrong_files(settings: Settings) -> Iterator[ConfigurationError]:
    """The addresses, folders and files of the settings that a start would refuse."""
    database = settings.database
    urls = {"URL": database.url, "OWNER_URL": database.owner_url, "REPLICA_URL": database.replica_url}
    steps: list[Callable[[], object]] = [partial(check_data_dir, database.data_dir)]
    steps += [
        partial(check_conninfo, url.get_secret_value(), setting=f"RAG_DATABASE_{name}")
        for name, url in urls.items()
        if url is not None
    ]
    if database.replica_url is not None:
        steps.append(partial(replica_conninfo, database.replica_url.get_secret_value()))
    steps.append(partial(load_readers, settings.sync.readers))
    steps.append(partial(read_fit, settings.answers.confidence_fit))
    steps.append(partial(Originals, settings.uploads.originals_url))
    for step in steps:
        try:
            step()
        except ConfigurationError as error:
            yield error
