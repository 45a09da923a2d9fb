"""`python -m evals.parts [dev|blind]`: questions that ask for several things, answered without a chat model.

Each part must be quoted, or named as one that no document answers. The questions are in parts.json; a question with a
single part holds a conjunction that joins no parts, and must be answered as it always was.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from rag_service.answering.prompt.templates import load_prompts
from rag_service.components import Components, open_components
from rag_service.domain import LOCAL_ADMIN, Answer, CorpusKind, Decision, Filters
from rag_service.evaluation.metrics import holds_answer
from rag_service.language.words import words
from rag_service.observability.logs import configure_logging
from rag_service.retrieval.question import Question
from rag_service.settings import Settings
from rag_service.store.corpora import create_corpus, find_corpus
from rag_service.store.documents.documents import DocumentInput

ROOT = Path(__file__).parents[1]
_NOTICES = [
    sentence for key in ("refusal", "doubtful", "nothing_found") for sentence in load_prompts().messages[key].values()
]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A question with parts and what the service replied."""

    question: str
    text: str
    parts: int
    told: int  # parts that are quoted, or named as missing
    quoted: int
    is_green: bool

    @property
    def is_whole(self) -> bool:
        return self.told == self.parts

    @property
    def is_false(self) -> bool:
        """Whether it proceeds although a part has no answer."""
        return self.is_green and self.quoted < self.parts


def read_questions(half: str) -> list[dict[str, Any]]:
    """The questions of a half, "dev" or "blind"."""
    asked = json.loads((Path(__file__).parent / "parts.json").read_text(encoding="utf-8"))["questions"]
    return [one for one in asked if one["half"] == half]


async def ask_parts(service: Components, asked: Sequence[dict[str, Any]]) -> list[Reply]:
    """Ask each question in its own corpus."""
    corpora = {name: await sample_corpus(service, name) for name in sorted({one["corpus"] for one in asked})}
    found = []
    for one in asked:
        filters = Filters(corpus_ids=(corpora[one["corpus"]],))
        answer = await service.engine.answer(
            Question(one["question"], identity=LOCAL_ADMIN, filters=filters, recorded=False)
        )
        quoted = [bool(part["answers"]) and holds_answer(answer.text, part["answers"]) for part in one["parts"]]
        told = [is_told or _names_missing(part, answer) for part, is_told in zip(one["parts"], quoted, strict=True)]
        found.append(
            Reply(
                question=one["question"],
                text=answer.text,
                parts=len(told),
                told=sum(told),
                quoted=sum(quoted),
                is_green=answer.decision is Decision.CAN_PROCEED,
            )
        )
    return found


def _names_missing(part: dict[str, Any], answer: Answer) -> bool:
    """Whether an answer says that it has nothing for a part that no document answers."""
    if part["answers"]:
        return False
    if not answer.citations:
        return True
    asked = set(words(part["asks"]))
    for section in answer.text.split("\n\n"):
        named = asked & set(words(section.partition("\n")[0]))
        if len(named) * 2 > len(asked) and any(notice in section for notice in _NOTICES):
            return True
    return False


async def sample_corpus(service: Components, name: str) -> UUID:
    """A corpus with the documents of an index, or with the articles of a set as documents; made if it is missing."""
    index = service.indices.get(name, service.indices["general"])
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        if (known := await find_corpus(connection, name=name, kind=CorpusKind.GLOBAL)) is not None:
            return known.id
        corpus = await create_corpus(connection, LOCAL_ADMIN, name=name, kind=CorpusKind.GLOBAL, index_name=index.name)
    for file_name, data in sample_documents(name).items():
        document = DocumentInput(data=data, file_name=file_name)
        await service.ingestor.ingest(document, corpus=corpus, index=index, identity=LOCAL_ADMIN)
    return corpus.id


def sample_documents(name: str) -> dict[str, bytes]:
    """The documents of an index, or the articles of a set, by the names of their files."""
    documents = {path.name: path.read_bytes() for path in sorted((ROOT / "indices" / name / "documents").glob("*"))}
    if not documents:
        for article in json.loads((ROOT / "evals" / f"{name}.json").read_text(encoding="utf-8"))["data"]:
            text = "\n\n".join([f"# {article['title']}", *(part["context"] for part in article["paragraphs"])])
            documents[f"{article['title']}.md"] = text.encode()
    return documents


@click.command()
@click.argument("half", type=click.Choice(("dev", "blind")), default="blind")
@click.option("--replies", is_flag=True, help="Print each reply that is not whole, or green although it must not.")
@click.option("--folder", type=click.Path(path_type=Path), help="Keep the database here, for another run.")
def main(half: str, replies: bool, folder: Path | None) -> None:
    """Ask the questions of a half and count the replies."""
    found = asyncio.run(_ask(read_questions(half), folder))
    several = [reply for reply in found if reply.parts > 1]
    for reply in found:
        if replies and (reply.is_false or not reply.is_whole):
            click.echo(f"{reply.question}\n  {reply.told}/{reply.parts} green={reply.is_green}\n  {reply.text}\n")
    single = [reply for reply in found if reply.parts == 1]
    click.echo(
        f"{len(several)} questions with parts: whole {sum(reply.is_whole for reply in several)},"
        f" parts told {sum(reply.told for reply in several)} of {sum(reply.parts for reply in several)},"
        f" green {sum(reply.is_green for reply in several)}, green without a part"
        f" {sum(reply.is_false for reply in several)}\n"
        f"{len(single)} with one: right {sum(reply.is_whole for reply in single)},"
        f" green {sum(reply.is_green for reply in single)}"
    )


async def _ask(asked: Sequence[dict[str, Any]], folder: Path | None) -> list[Reply]:
    with tempfile.TemporaryDirectory() as made:
        settings = Settings().replace(
            {
                "data_dir": folder or Path(made), "database_url": None, "embedding_provider": "local",
                "chat_provider": "extractive", "log_level": "ERROR",
            }
        )  # fmt: skip
        configure_logging(settings)
        async with open_components(settings) as service:
            return await ask_parts(service, asked)


if __name__ == "__main__":
    main()
