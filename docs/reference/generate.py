"""Writes the reference pages from the code: `make reference`.

A test compares the pages with the code, so a change of a setting, metric, route, error or command
fails until they have been written again.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from rag_service import errors
from rag_service.api.http import problems
from rag_service.app import create_app
from rag_service.cli import main, table_lines
from rag_service.observability.metrics import DOCUMENTED
from rag_service.settings import load_settings

FOLDER = Path(__file__).parent
NOTE = "<!-- Written by `make reference`; do not edit. -->"
METHODS = ("get", "post", "put", "patch", "delete")


def pages() -> dict[str, str]:
    """File name to Markdown, for every generated page."""
    made = {
        "settings.md": settings_page(),
        "metrics.md": metrics_page(),
        "errors.md": errors_page(),
        "command-line.md": command_line_page(),
        "rest-api.md": rest_api_page(),
    }
    return {name: "\n".join(line.rstrip() for line in lines).strip() + "\n" for name, lines in made.items()}


def settings_page() -> Iterator[str]:
    """All settings with default and description."""
    yield from heading("Settings")
    yield "Settings are environment variables. An unknown `RAG_*` name is an error at start; an empty value counts as"
    yield "unset. `rag-service settings` prints the settings that differ from their default, and"
    yield "`rag-service settings --markdown` prints this table."
    yield ""
    yield from table_lines()


def metrics_page() -> Iterator[str]:
    """All metrics with their meaning."""
    yield from heading("Metrics")
    yield "`GET /metrics` serves these metrics in the Prometheus text format. Labels never contain questions,"
    yield "documents, users or keys. [Monitor](../how-to/monitor.md) explains access, the dashboard and traces."
    yield ""
    yield from table(("metric", "meaning"), ((f"`{name}`", meaning) for name, meaning in DOCUMENTED.items()))


def errors_page() -> Iterator[str]:
    """All error codes with status, whether a retry helps, and what to do."""
    yield from heading("Errors")
    yield "Every error reply is `application/problem+json` (RFC 9457). `code` is stable, `detail` says what is wrong,"
    yield "`help` says what to do, and `errors[]` lists the invalid fields. Use `correlationId` to find the log line"
    yield "with the cause. `Retry-After` says when to try again."
    yield ""
    rows: dict[tuple[int, str], tuple[bool, str]] = {}
    for error in sorted(error_classes(), key=lambda kind: (len(kind.__mro__), kind.__name__)):
        status = problems.describe(make_error(error)).status
        rows.setdefault((status, error.code), (error.retryable, error.help))
    yield from table(
        ("status", "code", "retryable", "what to do"),
        (
            (str(status), f"`{code}`", "yes" if retryable else "no", what)
            for (status, code), (retryable, what) in sorted(rows.items())
        ),
    )


def error_classes() -> Iterator[type[errors.RagError]]:
    """Every error class of the error tree and of the API."""
    for module in (errors, problems):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, errors.RagError) and value.__module__ == module.__name__:
                yield value


def make_error(kind: type[errors.RagError]) -> errors.RagError:
    """An example of an error class."""
    if kind is problems.InvalidRequestError:
        return problems.InvalidRequestError([problems.FieldError("query", "must not be empty")])
    return kind("example")


def command_line_page() -> Iterator[str]:
    """Every command with its arguments and options."""
    yield from heading("Command line")
    yield from command_lines(main, "rag-service", None)


def command_lines(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    """A command and those below it."""
    context = click.Context(command, info_name=name, parent=parent)
    if parent is not None:
        yield f"## {context.command_path}"
        yield ""
        yield f"`{context.command_path} {' '.join(command.collect_usage_pieces(context))}`"
        yield ""
        yield inspect.cleandoc(command.help or "")
        yield ""
        records = [one.get_help_record(context) for one in command.params]
        options = [record for record in records if record is not None and record[1]]
        if options:
            yield from table(("option", "meaning"), ((f"`{names}`", meaning) for names, meaning in options))
            yield ""
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None and not found.hidden:
                yield from command_lines(found, child, context)


def rest_api_page() -> Iterator[str]:
    """Every route with its parameters and the fields of its body and reply."""
    settings = load_settings(auth="required", public_url="https://rag.example.org")  # with the routes of sessions
    schema = create_app(settings).openapi_schema.to_schema()
    named: Mapping[str, Any] = schema["components"]["schemas"]
    by_tag: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, operations in sorted(schema["paths"].items()):
        for method in METHODS:
            if method in operations:
                tag = (operations[method].get("tags") or ["Other"])[0]
                by_tag.setdefault(tag, []).append((method.upper(), path, operations[method]))
    yield from heading("REST API")
    yield "JSON fields are in camelCase. A running service describes the same routes at `/schema` (readable without"
    yield "internet) and `/schema/openapi.json`. [Errors](errors.md) lists the codes of error replies."
    yield "Answers and sign-in can return 429 `rate_limited` with `Retry-After`; with rate limits, all routes below"
    yield "`/api`, `/v1` and `/mcp` can."
    for tag in sorted(by_tag):
        yield ""
        yield f"## {tag}"
        for method, path, operation in by_tag[tag]:
            yield ""
            yield f"### `{method} {path}`"
            yield ""
            yield f"{operation.get('summary', '').rstrip('.')}."
            if operation.get("description"):
                yield ""
                yield one_line(operation["description"])
            yield from operation_lines(operation, named)
    yield ""
    yield "## Types"
    for name in sorted(named):
        fields = list(field_rows(named[name], named))
        if fields:
            yield ""
            yield f"### {name}"
            yield ""
            yield from table(("field", "type", "meaning"), fields)


def operation_lines(operation: Mapping[str, Any], named: Mapping[str, Any]) -> Iterator[str]:
    """Parameters, body and replies of a route."""
    parameters = [
        (f"`{one['name']}`", one["in"], type_name(one.get("schema", {}), named), one.get("description", ""))
        for one in operation.get("parameters", [])
    ]
    if parameters:
        yield ""
        yield from table(("parameter", "in", "type", "meaning"), parameters)
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        body = content.get("schema", {})
        rows = list(field_rows(resolved(body, named), named))
        if rows:
            yield ""
            yield f"Body, `{media_type}`:"
            yield ""
            yield from table(("field", "type", "meaning"), rows)
    returned, failures = [], []
    for status, reply in operation.get("responses", {}).items():
        kinds = {type_name(content.get("schema", {}), named) for content in reply.get("content", {}).values()} - {"any"}
        if status < "400":
            returned.append(f"{status} {' or '.join(sorted(kinds))}".strip())
        else:
            failures.append(status)
    yield ""
    yield f"Returns {', '.join(returned)}." + (f" Errors: {', '.join(failures)}." if failures else "")


def resolved(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a reference points to."""
    reference = schema.get("$ref")
    return named[reference.rpartition("/")[2]] if reference else schema


def field_rows(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Name, type and meaning of an object's fields; required ones are marked."""
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        mark = " (required)" if name in required else ""
        yield f"`{name}`", type_name(field, named), field.get("description", "") + mark


def type_name(schema: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    """A short name of a JSON type, with a link if it is described below."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if name in named else name
    for combined in ("anyOf", "oneOf"):
        if combined in schema:
            return " or ".join(dict.fromkeys(type_name(one, named) for one in schema[combined]))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if "properties" in schema:
        return "object with " + ", ".join(f"`{name}`" for name in schema["properties"])
    if kind == "array":
        return f"list of {type_name(schema.get('items', {}), named)}"
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def heading(title: str) -> Iterator[str]:
    """First lines of a page."""
    yield f"# {title}"
    yield ""
    yield NOTE
    yield ""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in row)} |"


def one_line(text: str) -> str:
    """A text without line breaks."""
    return " ".join(text.split())


if __name__ == "__main__":
    for page, text in pages().items():
        (FOLDER / page).write_text(text, encoding="utf-8")
