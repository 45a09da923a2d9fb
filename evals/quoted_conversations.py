"""`python -m evals.quoted_conversations`: conversations without a chat model, each turn asked after what was said.

A turn is right if the answer, or one of the three places, shows the right words.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evals.sets.measure import ingest_set, is_said
from evals.sets.questions import Question, read_set
from rag_service import open_service
from rag_service.answering.quoting.quotes import SHOWN_PLACES
from rag_service.client.service import Service
from rag_service.domain import Decision

FILE = Path(__file__).with_name("quoted_conversations.json")
EXTRACTIVE: Mapping[str, Any] = {"database_url": None, "chat_provider": "extractive", "embedding_provider": "local"}


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A turn of a conversation, as it was asked."""

    question: str
    needs: bool  # it cannot be understood without what was said before
    is_right: bool
    is_false: bool  # certain, although it is not right


def play(service: Service) -> Iterator[Turn]:
    """Ask the turns of all conversations, each after those before it and the replies to them."""
    conversations = json.loads(FILE.read_text(encoding="utf-8"))["conversations"]
    corpora = {
        name: ingest_set(service, read_set(name), corpus=f"conversations about {name}")
        for name in sorted({one["set"] for one in conversations})
    }
    for one in conversations:
        said: list[dict[str, str]] = []
        for asked in one["turns"]:
            reply = service.ask(asked["question"], corpus_ids=[corpora[one["set"]]], messages=said)
            shown = " ".join(place.text for place in reply.places[:SHOWN_PLACES]) or reply.text
            is_right = is_said(_question(asked, one["language"]), shown)
            yield Turn(
                question=asked["question"],
                needs=asked["needs"],
                is_right=is_right,
                is_false=reply.decision == Decision.CAN_PROCEED and not is_right,
            )
            said += [{"role": "user", "content": asked["question"]}, {"role": "assistant", "content": reply.text}]


def _question(asked: Any, language: str) -> Question:
    answers = tuple(tuple(one) if isinstance(one, list) else (one,) for one in asked["answers"])
    return Question(text=asked["question"], language=language, documents=(), answers=answers, half="blind")


@click.command()
@click.option("--replies", is_flag=True, help="Also print each turn that is not right. Leaves the set no longer blind.")
def main(replies: bool) -> None:
    """Play the conversations and count the turns whose right words are shown."""
    with tempfile.TemporaryDirectory() as folder, open_service(data_dir=Path(folder), **EXTRACTIVE) as service:
        turns = list(play(service))
    for needs, name in ((True, "need what was said"), (False, "are complete")):
        ours = [turn for turn in turns if turn.needs is needs]
        right = sum(turn.is_right for turn in ours)
        click.echo(
            f"turns that {name}: {len(ours)}, right {right} ({right / len(ours):.2f}),"
            f" certain and wrong {sum(turn.is_false for turn in ours)}"
        )
        for turn in ours:
            if replies and not turn.is_right:
                click.echo(f"  {turn.question}")


if __name__ == "__main__":
    main()
