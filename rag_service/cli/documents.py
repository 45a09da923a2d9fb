"""`rag-service documents`: what is stored, as the local administrator; no models are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import click

from rag_service.cli.running import choose_corpora, print_table, run_as_administrator
from rag_service.errors import InputError
from rag_service.store.corpora import Corpus, read_corpus, select_corpora
from rag_service.store.database import Connection
from rag_service.store.documents.catalogue import (
    DocumentChoice,
    DocumentOrder,
    StoredDocument,
    read_document,
    read_documents,
    remove_document,
)
from rag_service.store.documents.documents import find_document


@click.group()
def documents() -> None:
    """Stored documents: list, show, delete."""


@documents.command("list")
@click.option("--corpus", "corpus_name", help="Only this corpus: name or id.")
@click.option("--tag", help="Only documents with this tag.")
def list_command(corpus_name: str | None, tag: str | None) -> None:
    """List documents by name."""

    async def read(connection: Connection) -> list[Sequence[object]]:
        choice = DocumentChoice(tag=tag, order=DocumentOrder.NAME)
        return [
            (one.id, corpus.name, one.name, one.status.value, one.chunk_count, f"{one.updated_at:%Y-%m-%d %H:%M}")
            for corpus in await _find_corpora(connection, corpus_name)
            for one in await read_documents(connection, corpus.id, choice)
        ]

    print_table(("ID", "CORPUS", "NAME", "STATE", "PASSAGES", "CHANGED"), run_as_administrator(read))


@documents.command("show")
@click.argument("document")
def show_command(document: str) -> None:
    """Show a document, by id or name."""

    async def read(connection: Connection) -> list[tuple[str, object]]:
        one = await _find(connection, document)
        corpus = await read_corpus(connection, one.corpus_id)
        return [
            ("id", one.id), ("name", one.name), ("title", one.title), ("corpus", corpus.name), ("source", one.source),
            ("tags", ", ".join(one.tags)), ("language", one.language), ("type", one.media_type),
            ("bytes", one.size_bytes), ("passages", one.chunk_count), ("state", one.status.value),
            ("reason", one.reason), ("changed", one.updated_at), ("expires", one.expires_at),
            *(("note", warning) for warning in one.warnings),
        ]  # fmt: skip

    for name, value in run_as_administrator(read):
        if value not in (None, ""):
            click.echo(f"{name}: {value}")


@documents.command("delete")
@click.argument("names", metavar="DOCUMENT...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete_command(names: tuple[str, ...], yes: bool) -> None:
    """Delete documents, by id or name, with everything of them. A sync of their source brings them back."""

    async def find(connection: Connection) -> list[StoredDocument]:
        return [await _find(connection, name) for name in names]

    async def delete(connection: Connection) -> None:
        for one in found.values():
            await remove_document(connection, one.id)

    found = {one.id: one for one in run_as_administrator(find)}
    if not yes:
        click.confirm(f"Delete {', '.join(one.name for one in found.values())}?", abort=True, err=True)
    run_as_administrator(delete)
    click.echo(f"Deleted: {', '.join(one.name for one in found.values())}")


async def _find_corpora(connection: Connection, name: str | None) -> Sequence[Corpus]:
    """All corpora, or those of a name or id. Raises InputError if there is none."""
    there = await select_corpora(connection, "TRUE", {})
    return there if name is None else choose_corpora(there, name)


async def _find(connection: Connection, name: str) -> StoredDocument:
    """The document of an id or name. Raises NotFoundError or InputError if there is none, or several of the name."""
    try:
        return await read_document(connection, UUID(name))
    except ValueError:
        corpora = await select_corpora(connection, "TRUE", {})
    ids = [one.id for corpus in corpora if (one := await find_document(connection, corpus.id, name=name))]
    if not ids:
        raise InputError(f"There is no document named {name!r}. `rag-service documents list` lists all.")
    if len(ids) > 1:
        raise InputError(f"{len(ids)} documents are named {name!r}: give the id, {' or '.join(map(str, ids))}.")
    return await read_document(connection, ids[0])
