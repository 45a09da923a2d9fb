"""The passages that the model is shown for a question, for authors to copy from."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from evals.written.answers import Answer, Evidence, Sentence, Step, fold
from evals.written.measure import Bench
from evals.written.model import Shown
from rag_service.api.http.schemas import PassageBody

# It rests on words that no passage holds: the model takes the steps, and then says that nothing answers.
_NOTHING = (Sentence(text="-", right=True, evidence=(Evidence(file="", words="\0nothing"),)),)


def read_questions(path: Path) -> list[Answer]:
    """Read lines with `question`, `set` and, if tools are to be called, `steps`, as answers that say nothing."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [
        Answer(
            id=str(number),
            set_name=row["set"],
            language="",
            question=row["question"],
            right=True,
            sentences=_NOTHING,
            answers="yes",
            steps=tuple(Step(**step) for step in row.get("steps", ())),
        )
        for number, row in enumerate(rows, start=1)
    ]


async def show_passages(bench: Bench, questions: Sequence[Answer]) -> AsyncIterator[str]:
    """Yield what the model was shown for each question; if it was not asked, what a search finds."""
    for question in questions:
        reply = await bench.ask(question)
        shown = reply.calls[-1].shown if reply.calls else ()
        parts = [f"##### {question.question} ({question.set_name})", *map(_write_shown, shown)]
        if not shown:
            parts.append(f"The model is not asked: {reply.body.answer}\nA search finds:")
            parts += [_write_found(passage) for passage in await bench.search(question)]
        yield "\n\n".join(parts)


async def find_unfound(bench: Bench, answer: Answer) -> list[str]:
    """Return the evidence that a search for the question does not find either, where the model was not asked.

    What its own steps would have found is not known.
    """
    if answer.steps:
        return []
    texts = [fold(passage.text) for passage in await bench.search(answer)]
    words = [piece.words for sentence in answer.sentences for piece in sentence.evidence]
    return [one for one in words if not any(fold(one) in text for text in texts)]


def _write_found(passage: PassageBody) -> str:
    return f"---\ndocument: {passage.title}\nsource: {passage.file_name}\n\n{passage.text}"


def _write_shown(shown: Shown) -> str:
    mark = f"[C{shown.mark}]" if shown.mark else "(a tool's result without a mark)"
    return f"--- {mark}\n{shown.text}"
