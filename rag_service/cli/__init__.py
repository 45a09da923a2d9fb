"""The command line. Modules that load models are imported when a command needs them."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from uuid import UUID

import click
from pydantic import SecretStr

from rag_service import __version__
from rag_service.cli.models import MODELS, models_group
from rag_service.cli.running import (
    begin_start,
    failures,
    owner_and_service,
    read_quiet_settings,
    read_settings,
    run_command,
)
from rag_service.errors import RagError
from rag_service.settings import Settings, setting_fields, setting_name

if TYPE_CHECKING:
    from rag_service.indices import IndexDefinition


# Commands whose modules load more than a list of commands needs: module, name there, and what the list says.
LATER = {
    "documents": ("documents", "documents", "Stored documents: list, show, delete."),
    "eval": ("eval", "eval_group", "Measure retrieval and answers on eval sets."),
    "export": (
        "transfer",
        "export_command",
        "Write a corpus to one file, with originals and vectors.",
    ),
    "import": ("transfer", "import_command", "Read an exported corpus into a new corpus."),
    "keys": ("admin", "keys", "API keys: create, list, revoke."),
    "mcp": ("mcp", "mcp_command", "Serve the documents to an MCP client over standard input and output."),
    "reingest": ("admin", "reingest", "Re-ingest stale documents of all users from their originals."),
    "sources": ("sync", "sources", "Sources that a running `serve` or `worker` syncs: add, list, run, remove."),
    "sync": (
        "sync",
        "sync_command",
        "Keep a corpus equal to a folder, a page, a sitemap, a bucket or a LlamaIndex reader.",
    ),
    "users": ("admin", "users", "Users: create, invite, list, deactivate."),
    "worker": ("admin", "worker", "Process uploads and sync sources until stopped."),
}


class _Commands(click.Group):
    """Loads the modules of `LATER` when one of their commands runs: the help takes a fifth of the time."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*self.commands, *LATER])

    def get_command(self, context: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in LATER:
            return super().get_command(context, cmd_name)
        module, name, _ = LATER[cmd_name]
        command: click.Command = getattr(import_module(f"rag_service.cli.{module}"), name)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (name, LATER[name][2] if name in LATER else self.commands[name].get_short_help_str(1000))
            for name in self.list_commands(context)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rag-service")
def main() -> None:
    """Answer questions from your own documents and prove every answer."""
    if sys.platform == "win32":
        raise click.ClickException("Windows is not supported. Run rag-service in WSL 2 or use its container image.")


@main.command()
@click.option(
    "--documents", type=click.Path(exists=True, path_type=Path), help="File or folder instead of the samples."
)
@click.option("--question", help="Question to ask instead of the sample question.")
@click.option("--once", is_flag=True, help="Exit after the answer instead of serving.")
@click.option("--port", type=int, help="Port to serve on.")
@click.option(
    "--models", type=click.Choice(sorted(MODELS)),
    help="Download and use models: `gguf`: Qwen2.5-1.5B-Instruct to write answers (1.1 GB, Apache-2.0, extra `gguf`)."
    " `huggingface`: multilingual-e5-base to search (1.1 GB). `ollama`: bge-m3 and a chat model with Ollama.",
)  # fmt: skip
def quickstart(documents: Path | None, question: str | None, once: bool, port: int | None, models: str | None) -> None:
    """Set everything up, ingest documents, ask a question, and serve the page and the API."""
    chosen = dict(MODELS[models]) if models else {}
    if os.environ.get("RAG_MODEL_NAME"):  # such as a file that was brought to a machine without network
        chosen.pop("model_name", None)
    settings = read_settings(port=port, log_level="WARNING", log_format="console", **chosen)
    for key, value in chosen.items():
        click.echo(f"{setting_name(key)}={value}  # set this for other commands too", err=True)
    begin_start(settings)
    from rag_service.cli.quickstart import run_quickstart

    run_command(run_quickstart(settings, documents=documents, question=question, serve=not once))


@main.command()
@click.option("--host", help="Address to listen on (RAG_HOST).")
@click.option("--port", type=int, help="Port to listen on (RAG_PORT).")
def serve(host: str | None, port: int | None) -> None:
    """Serve the API and the page."""
    gc.disable()  # until the server is up: an eighth of the start would go into garbage collection
    from rag_service.cli.server import serve_app

    run_command(serve_app(read_settings(host=host, port=port)))


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--ray", "address", metavar="[ADDRESS]", is_flag=False, flag_value="local",
    help="Read and embed on a Ray cluster (extra `ray`): HOST:PORT of its head, or `auto` for the "
    "cluster on this machine. Without an address, a cluster is started here.",
)  # fmt: skip
def ingest(paths: tuple[Path, ...], address: str | None) -> None:
    """Ingest files or folders into the default corpus."""
    from rag_service.cli.quickstart import ingest_paths

    failed = run_command(ingest_paths(read_quiet_settings(), paths, ray=address))
    if failed:
        sys.exit(1)


def _read_follow(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    with suppress(ValueError):
        return value and str(value if value == "last" else UUID(value))
    raise click.BadParameter(f"{value!r} is neither the id of a conversation nor 'last'.")


@main.command()
@click.argument("question")
@click.option("--corpus", "corpora", multiple=True, help="Only this corpus: name or id; may be given several times.")
@click.option("--file", help="Only the file with this name.")
@click.option("--tag", "tags", multiple=True, help="Only documents with this tag; of several they have all.")
@click.option("--keep", is_flag=True, help="Store question and answer in a new conversation.")
@click.option(
    "--follow", metavar="ID", callback=_read_follow,
    help="Continue a stored conversation: its id, or `last` for the one that was changed last.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the answer as the API sends it.")
def ask(
    question: str,
    corpora: tuple[str, ...],
    file: str | None,
    tags: tuple[str, ...],
    keep: bool,
    follow: str | None,
    as_json: bool,
) -> None:
    """Ask a question and print the answer with its citations.

    If `rag-service serve` runs with the same settings and without sign-in, it answers, without a start of its own.

    The exit code is 0 if the answer is certain (`can_proceed`), 3 if it is not (`uncertain`), 4 if the documents do not
    answer the question (`out_of_scope`), 1 after an error and 2 for wrong arguments.
    """
    from rag_service.api.http.queries import check_question
    from rag_service.cli.asking import EXIT_CODES, Asked, ask_server, print_answer

    if not question.strip():
        raise click.UsageError("The question is empty.")
    if keep and follow is not None:
        raise click.UsageError("--keep begins a conversation and --follow continues one: give one of them.")
    settings = read_quiet_settings()
    asked = Asked(question=question, corpora=corpora, file=file, tags=tags, keep=keep, follow=follow)
    with failures():
        check_question(question, settings)
        answer = ask_server(settings, asked)
    if answer is None:
        begin_start(settings)
        from rag_service.cli.quickstart import ask_once

        answer = run_command(ask_once(settings, asked))
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(answer)).decode())
    else:
        from rich.console import Console

        print_answer(question, answer, Console())
    sys.exit(EXIT_CODES.get(answer.decision, 0))


@main.command(name="check-answer")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.argument("passages", nargs=-1, required=True, type=click.File(encoding="utf-8"))
@click.option("--language", help="ISO 639-1 code of the text. Default: it is detected.")
def check_answer(file: TextIO, passages: tuple[TextIO, ...], language: str | None) -> None:
    """Check the sentences of a text file against passages.

    Each further file is a passage; [C1] names the first. `-` is standard input. The exit code is 0 if every sentence is
    proved. Reworded sentences are judged only by a running service, see `POST /api/v1/check`.
    """
    from rag_service.answering.checking import TextChecker
    from rag_service.answering.prompt.templates import load_prompts
    from rag_service.api.http.check import check_text
    from rag_service.api.http.schemas import CheckedPassage, CheckRequest
    from rag_service.client.results import TextCheck
    from rag_service.domain import LOCAL_ADMIN

    settings = read_quiet_settings()
    text = file.read()
    if not text.strip():
        raise click.UsageError("The text is empty.")
    with failures():
        prompts = load_prompts(settings.answers.prompts_path, replacement=settings.answers.template_path)
    given = [CheckedPassage(text=passage.read(), title=passage.name) for passage in passages]
    request = CheckRequest(text=text, passages=given, language=language)
    body = run_command(check_text(TextChecker(prompts, None, None).check, request, LOCAL_ADMIN))
    click.echo(repr(TextCheck(body=body)))
    if body.decision != "can_proceed":
        sys.exit(1)


@main.command()
@click.argument("answer_id", type=click.UUID)
@click.option("--user", "user_name", default="local", show_default=True, help="Who asked: name or id.")
def replay(answer_id: UUID, user_name: str) -> None:
    """Repeat a recorded question and show what has changed."""
    from rag_service.components import open_components
    from rag_service.domain import LOCAL_ADMIN, Identity
    from rag_service.store.accounts.users import find_user

    settings = read_quiet_settings()

    async def work() -> int:
        async with open_components(settings) as components:
            async with components.database.transaction(LOCAL_ADMIN) as connection:
                user = await find_user(connection, user_name)
            differences = await components.replay(answer_id, Identity(user_id=user.id, role=user.role))
        for difference in differences:
            click.echo(f"{difference.what}: {difference.detail}")
        return len(differences)

    if not run_command(work()):
        click.echo("Identical: nothing that affects the answer has changed.")


@main.command()
def migrate() -> None:
    """Update the database to the latest schema."""
    from rag_service.store.migrate import migrate as migrate_database

    settings = read_settings()

    async def work() -> bool:
        owner, service = await owner_and_service(settings)
        return await migrate_database(owner, service, dimension=settings.embedding.dimension)

    click.echo("The database has been updated." if run_command(work()) else "The database is up to date.")


def _calibration_remark(index: IndexDefinition, settings: Settings) -> str:
    from rag_service.settings.models import PACKAGED_MODEL

    calibration = index.query.calibration
    model = settings.embedding.model
    if calibration is not None and calibration.model in (None, model):
        return ""
    if settings.retrieval.fit_relevance and model.casefold() != PACKAGED_MODEL:
        return f"; its relevance for {model} is fitted in the background at the first start"
    if calibration is None:
        return "; its relevance is not calibrated: run `rag-service eval calibrate`"
    return (
        f", but its relevance is calibrated for {calibration.model}, not for {model}: turn on RAG_FIT_RELEVANCE"
        " or run `rag-service eval calibrate`"
    )


@main.command()
@click.option("--live", is_flag=True, help="Also check the database and the model servers.")
def check(live: bool) -> None:
    """Check settings, index definitions and prompts, and print one line for each.

    Classes that settings and definitions name are imported, but not created.
    """
    from rag_service.answering.prompt.templates import load_prompts
    from rag_service.cli.class_paths import find_wrong_classes
    from rag_service.cli.start_checks import find_wrong_files
    from rag_service.indices import list_indices, load_index

    settings = read_quiet_settings()
    failed = 0
    definitions: list[IndexDefinition] = []
    click.echo("settings: ok")
    for name in dict.fromkeys([*list_indices(indices_path=settings.indices.path), settings.indices.default]):
        try:
            index = load_index(name, indices_path=settings.indices.path)
            click.echo(f"index {name}: ok{_calibration_remark(index, settings)}")
            definitions.append(index)
        except RagError as error:
            failed += 1
            click.echo(f"index {name}: {error.message}", err=True)
    try:
        prompts = load_prompts(settings.answers.prompts_path, replacement=settings.answers.template_path)
        click.echo(f"prompts: ok ({len(prompts.templates)} templates)")
    except RagError as error:
        failed += 1
        click.echo(f"prompts: {error.message}", err=True)
    for wrong in find_wrong_classes(settings, definitions):
        failed += 1
        click.echo(f"class: {wrong.message}", err=True)
    for refused in find_wrong_files(settings):
        failed += 1
        click.echo(f"start: {refused.message}", err=True)
    click.echo(f"sandbox: {_missing_limits()}")
    if live:
        from rag_service.cli.checks import check_live

        for result in run_command(check_live(settings)):
            click.echo(result.line, err=not result.ok)
            failed += not result.ok
    if failed:
        sys.exit(1)


def _missing_limits() -> str:
    """What the operating system does not limit where documents are read. Not a failure: no setting changes it."""
    from rag_service.readers.sandbox import missing_limits

    missing = [limit.replace("_", " ") for limit in missing_limits()]
    return f"without {' and '.join(missing)}, see SECURITY.md" if missing else "ok"


@main.command(name="settings")
@click.option("--markdown", is_flag=True, help="Print all settings with their defaults as a Markdown table.")
def settings_command(markdown: bool) -> None:
    """Print the settings that differ from their default. Secrets are not shown."""
    if markdown:
        click.echo("\n".join(table_lines()))
        return
    settings = read_settings()
    fields = setting_fields()
    changed = [(setting_name(key), value) for key, value in settings.flat().items() if value != fields[key].default]
    for name, value in changed:
        click.echo(f"{name}={'(set)' if isinstance(value, SecretStr) else _shown(value)}")
    if not changed:
        click.echo("All settings have their default values.")


def table_lines() -> Iterator[str]:
    """A Markdown table of all settings."""
    yield "| setting | default | meaning |"
    yield "|---|---|---|"
    for key, field in setting_fields().items():
        default = _shown(field.default)
        yield f"| `{setting_name(key)}` | {f'`{default}`' if default else ''} | {field.description} |"


def _shown(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


main.add_command(models_group)
