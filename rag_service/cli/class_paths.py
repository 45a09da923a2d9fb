"""The classes that settings and index definitions name: imported and compared with what is expected, not created."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

from rag_service.errors import ConfigurationError
from rag_service.indices import IndexDefinition
from rag_service.settings import Settings
from rag_service.settings.group import CLASS_PATH


@dataclass(frozen=True, kw_only=True)
class _Named:
    """A class path and where it stands."""

    setting: str
    path: str
    base: str | None  # class path of what it must be; None: anything with the method `judge`
    options: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments


_LLM = "llama_index.core.llms:LLM"
_EMBEDDING = "llama_index.core.base.embeddings.base:BaseEmbedding"
_POSTPROCESSOR = "llama_index.core.postprocessor.types:BaseNodePostprocessor"
_READER = "llama_index.core.readers.base:BaseReader"
_TRANSFORMATION = "llama_index.core.schema:TransformComponent"


def find_wrong_classes(settings: Settings, indices: Sequence[IndexDefinition]) -> Iterator[ConfigurationError]:
    """An error for each class that cannot be imported, is of the wrong kind, or does not know an option.

    LlamaIndex is loaded only where a class is named.
    """
    for index in indices:
        for named in _of_index(index):
            yield from _check(named)
    plugins = {
        "RAG_CHAT_PROVIDER": (settings.chat.provider, _LLM, "RAG_CHAT_OPTIONS", settings.chat.options),
        "RAG_EMBEDDING_PROVIDER": (
            settings.embedding.provider, _EMBEDDING, "RAG_EMBEDDING_OPTIONS", settings.embedding.options,
        ),
        "RAG_RERANK_STRATEGY": (
            settings.rerank.strategy, _POSTPROCESSOR, "RAG_RERANK_OPTIONS", settings.rerank.options,
        ),
        "RAG_JUDGE": (settings.judge.strategy or "", None, "RAG_JUDGE_OPTIONS", settings.judge.options),
    }  # fmt: skip
    for setting, (path, base, of_options, given) in plugins.items():
        if CLASS_PATH.fullmatch(path):
            from rag_service.models.plugins import parse_options

            try:
                options = parse_options(given, setting=of_options)
            except ConfigurationError as error:
                yield error
                continue
            yield from _check(_Named(setting=setting, path=path, base=base, options=options))
    for path in settings.chat.agent_providers_list:
        if CLASS_PATH.fullmatch(path):
            yield from _check(_Named(setting="RAG_AGENT_PROVIDERS", path=path, base=_LLM))


def _of_index(index: IndexDefinition) -> Iterator[_Named]:
    file = index.folder / "index.yaml"
    for suffix, plugin in index.ingest.readers.items():
        yield _Named(setting=f"{file}: ingest.readers.{suffix}", path=plugin.use, base=_READER, options=plugin.options)
    lists = {
        "ingest.transformations": (index.ingest.transformations, _TRANSFORMATION),
        "query.postprocessors": (index.query.postprocessors, _POSTPROCESSOR),
    }
    for place, (plugins, base) in lists.items():
        for number, plugin in enumerate(plugins):
            setting = f"{file}: {place}[{number}]"
            yield _Named(setting=setting, path=plugin.use, base=base, options=plugin.options)


def _check(named: _Named) -> Iterator[ConfigurationError]:
    from rag_service.models.plugins import check_options, load_class

    base = object if named.base is None else resolve_name(named.base)
    try:
        found = load_class(named.path, base, setting=named.setting)
        check_options(found, named.options, setting=named.setting)
    except ConfigurationError as error:
        yield error
        return
    if named.base is None and not callable(getattr(found, "judge", None)):
        yield ConfigurationError(
            f"{named.setting}: {named.path} has no method `judge(claims)`, see rag_service.models.judge.judge:Judge.",
            field=named.setting,
        )
