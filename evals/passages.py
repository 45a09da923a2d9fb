"""`python -m evals.passages`: which passages to show to a chat model, by whether the words of the answer are in them.

Searches for the answerable questions of the blind halves of `evals/sets`, without a model, and fills a prompt with
passages in several orders. Only counts are printed.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from evals.sets.measure import is_said
from evals.sets.questions import read_set
from evals.written.measure import WITHOUT, Bench, open_bench
from rag_service.answering.prompt.templates import new_boundary, render_passage
from rag_service.domain import LOCAL_ADMIN, Filters, Hit, Scores
from rag_service.language.words import count_tokens
from rag_service.retrieval.question import Question
from rag_service.store.search.reach import read_chunks

SETS = (
    "ferry_and_laboratory", "hospitals_and_ports", "observatory_and_stage", "office_files_two", "team_files_two",
    "versions_two", "workshop_and_clinic",
)  # fmt: skip
_BOUNDARY = new_boundary()
_TOP = 5


@click.command()
@click.option("--tokens", multiple=True, type=click.IntRange(100), default=(1000, 2500), show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="Keep the database here.")
def main(tokens: Sequence[int], folder: Path | None) -> None:
    """Count the questions whose answer is in the prompt, by order and limit of the passages."""
    with tempfile.TemporaryDirectory() as made:
        asked, held, used = asyncio.run(_measure(tokens, folder or Path(made)))
    click.echo(f"{asked} questions")
    for (order, limit), total in sorted(used.items(), key=lambda one: one[0][1]):
        share = 100 * held[order, limit] / asked
        click.echo(f"{limit} tokens, {order}: {held[order, limit]} ({share:.1f} %), {total / asked:.0f} tokens")


async def _measure(
    tokens: Sequence[int], folder: Path
) -> tuple[int, Counter[tuple[str, int]], Counter[tuple[str, int]]]:
    held, used, asked = Counter[tuple[str, int]](), Counter[tuple[str, int]](), 0
    async with open_bench(WITHOUT, folder) as bench:
        await bench.ingest(SETS, lambda text: click.echo(text, err=True))
        for name in SETS:
            for question in read_set(name).questions:
                if not question.answers or question.half != "blind":
                    continue
                asked += 1
                orders = await _order(bench, name, question.text)
                for order, hits in orders.items():
                    for limit in tokens:
                        shown, cost = _pack(hits, limit)
                        held[order, limit] += is_said(question, "\n".join(hit.chunk.text for hit in shown))
                        used[order, limit] += cost
    return asked, held, used


async def _order(bench: Bench, name: str, text: str) -> dict[str, list[Hit]]:
    """Return the passages in the orders that are compared."""
    filters = Filters(corpus_ids=(bench.corpora[name],))
    question = Question(text, identity=LOCAL_ADMIN, top_k=_TOP, filters=filters)
    found = await bench.backend.components.engine.search(question)
    best, others = found.passages, found.other_versions
    rest = [hit for hit in found.hits if hit.chunk.document.id not in others]
    near, whole = [], []
    for hit in best:
        chunks = await _read(bench, hit)
        near += [one for one in chunks if abs(one.chunk.index - hit.chunk.index) == 1]
        whole += chunks if sum(map(_cost, chunks)) <= 2_000 else []
    return {
        "the best four": [*best, *rest][:4],
        "by rank": [*best, *rest],
        "the best five, their neighbours, then by rank": [*best, *near, *rest],
        "the best five, the whole of their small documents, then by rank": [*best, *whole, *rest],
        "by rank, then neighbours and small documents": [*best, *rest, *near, *whole],
    }


async def _read(bench: Bench, hit: Hit) -> list[Hit]:
    async with bench.backend.transaction() as connection:
        chunks = await read_chunks(connection, hit.chunk.document.id, types=(), hidden=())
    return [Hit(chunk=chunk, scores=Scores(relevance=0.0)) for chunk in chunks]


def _pack(hits: Iterable[Hit], limit: int) -> tuple[list[Hit], int]:
    """Return (what fits, its tokens), as the prompt packs it."""
    shown: dict[str, Hit] = {}
    used = 0
    for hit in hits:
        if hit.chunk.id not in shown and used + _cost(hit) <= limit:
            shown[hit.chunk.id] = hit
            used += _cost(hit)
    return list(shown.values()), used


def _cost(hit: Hit) -> int:
    return count_tokens(render_passage(1, hit, _BOUNDARY))


if __name__ == "__main__":
    main()
