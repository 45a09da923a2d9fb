"""`python -m evals.wikitables FOLDER`: WikiTableQuestions, tables of others with questions of others, without a model.

The set (github.com/ppasupat/WikiTableQuestions, CC BY-SA 4.0) is not part of this repository. FOLDER holds its `data/`
and `csv/`. Each question is asked of its own table, or of all sampled tables with --together. A reply is

- right: computed, or said by a sentence of its own, and the value is the answer;
- quoted: the answer stands in a quoted row;
- wrong: a computed value that is not the answer;
- beside: rows without the answer;
- refused.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal
from uuid import UUID

import click

from evals.sets.measure import says
from rag_service.components import Components, open_components
from rag_service.domain import LOCAL_ADMIN, Answer, CorpusKind, Decision, Filters, ProofMethod
from rag_service.language.words import fold
from rag_service.observability.logs import configure_logging
from rag_service.retrieval.question import Question
from rag_service.settings import Settings
from rag_service.store.corpora import create_corpus
from rag_service.store.documents.documents import DocumentInput

Outcome = Literal["right", "quoted", "wrong", "beside", "refused"]
_OUTCOMES: tuple[Outcome, ...] = ("right", "quoted", "wrong", "beside", "refused")
ROWS = range(8, 61)
_THOUSANDS = re.compile(r"(?<=\d)[,  ](?=\d{3}\b)")


@dataclass(frozen=True, kw_only=True)
class TableQuestion:
    """A question with the values that answer it."""

    id: str
    text: str
    table: str  # path of its CSV file in the set
    values: tuple[str, ...]  # all of them make the answer


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the service replied."""

    question: TableQuestion
    text: str
    outcome: Outcome
    decision: str
    confidence: float


def read_questions(folder: Path, file: str, *, tables: int, questions: int, seed: int) -> list[TableQuestion]:
    """Questions about a sample of the tables of 8 to 60 rows."""
    rows = csv.DictReader((folder / "data" / file).open(encoding="utf-8"), delimiter="\t", quoting=csv.QUOTE_NONE)
    read = [
        TableQuestion(
            id=row["id"], text=row["utterance"], table=row["context"], values=tuple(row["targetValue"].split("|"))
        )
        for row in rows
    ]
    chance = random.Random(seed)  # noqa: S311
    fitting = [one for one in sorted({one.table for one in read}) if len(read_table(folder, one)) - 1 in ROWS]
    chosen = set(chance.sample(fitting, tables))
    asked = [one for one in read if one.table in chosen]
    return sorted(chance.sample(asked, min(questions, len(asked))), key=lambda one: (one.table, one.id))


def read_table(folder: Path, table: str) -> list[list[str]]:
    """The rows of a table; quotes in cells are escaped by a backslash there."""
    text = (folder / table).read_text(encoding="utf-8")
    rows = csv.reader(io.StringIO(text), doublequote=False, escapechar="\\")
    return [[cell.replace("\n", " ").strip() for cell in row] for row in rows]


async def ask(
    service: Components, folder: Path, asked: Sequence[TableQuestion], *, together: bool = False
) -> list[Reply]:
    """Ingest the tables and ask each question of its own table, or of all."""
    index = service.indices["general"]
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        corpus = await create_corpus(
            connection, LOCAL_ADMIN, name="tables", kind=CorpusKind.GLOBAL, index_name=index.name
        )
    documents: dict[str, UUID] = {}
    for table in sorted({one.table for one in asked}):
        written = io.StringIO()
        csv.writer(written).writerows(read_table(folder, table))
        name = re.sub(r"\W+", "-", table.removesuffix(".csv").removeprefix("csv/"))
        document = DocumentInput(data=written.getvalue().encode(), file_name=f"{name}.csv")
        report = await service.ingestor.ingest(document, corpus=corpus, index=index, identity=LOCAL_ADMIN)
        documents[table] = report.document_id
    replies = []
    for one in asked:
        chosen = () if together else (documents[one.table],)
        filters = Filters(corpus_ids=(corpus.id,), document_ids=chosen)
        answer = await service.engine.answer(Question(one.text, identity=LOCAL_ADMIN, filters=filters, recorded=False))
        replies.append(
            Reply(
                question=one,
                text=answer.text,
                outcome=judge(one, answer),
                decision=answer.decision.value,
                confidence=answer.confidence.value,
            )
        )
    return replies


def judge(question: TableQuestion, answer: Answer) -> Outcome:
    if not answer.citations:
        return "refused"
    said, values = _plain(answer.text), [_plain(value) for value in question.values]
    holds = all(says(said, value) for value in values)
    if any(citation.method is ProofMethod.COMPUTED for citation in answer.citations):
        return "right" if holds else "wrong"
    return "quoted" if holds else "beside"


def _plain(text: str) -> str:
    return _THOUSANDS.sub("", fold(text)).replace("−", "-").replace("–", "-")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--blind", is_flag=True, help="Ask the tables that are kept for the end, not those to develop with.")
@click.option("--tables", default=40, show_default=True)
@click.option("--questions", default=150, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--together", is_flag=True, help="Ask all tables at once.")
@click.option("--json", "written", type=click.Path(path_type=Path), help="Write each reply, to compare two runs.")
def main(
    folder: Path, blind: bool, tables: int, questions: int, seed: int, together: bool, written: Path | None
) -> None:
    """Ask the questions and count the replies."""
    file = "pristine-unseen-tables.tsv" if blind else "training.tsv"
    asked = read_questions(folder, file, tables=tables, questions=questions, seed=seed)
    replies = asyncio.run(_run(folder, asked, together))
    counted = Counter(reply.outcome for reply in replies)
    green = [reply for reply in replies if reply.decision == Decision.CAN_PROCEED]
    of_green = Counter(reply.outcome for reply in green)
    click.echo(f"{len(replies)} questions: {', '.join(f'{key} {counted[key]}' for key in _OUTCOMES)}")
    click.echo(f"green {len(green)}: {', '.join(f'{key} {of_green[key]}' for key in _OUTCOMES)}")
    if written:
        written.write_text(json.dumps([asdict(reply) for reply in replies], indent=1), encoding="utf-8")


async def _run(folder: Path, asked: Sequence[TableQuestion], together: bool) -> list[Reply]:
    with tempfile.TemporaryDirectory() as data:
        chosen = {"data_dir": data, "chat_provider": "extractive", "embedding_provider": "local", "log_level": "error"}
        settings = Settings().replace(chosen)
        configure_logging(settings)
        async with open_components(settings) as service:
            return await ask(service, folder, asked, together=together)


if __name__ == "__main__":
    main()
