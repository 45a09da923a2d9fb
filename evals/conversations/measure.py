"""Hold written conversations with the service, and count the replies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evals.conversations.turns import Conversation, Turn, begins_as_written
from evals.written.measure import Bench, Reply
from rag_service.api.http.schemas import MessageRequest

CARRIED = 2  # answers whose evidence needs no second search


@dataclass(frozen=True, kw_only=True)
class TurnReply:
    """A turn, and what the service made of its answer or of a near miss of it."""

    turn: Turn
    reply: Reply
    was_cited: bool  # the answers just before rest on all that this one rests on

    @property
    def is_right(self) -> bool:
        """The reply says what it must, whoever wrote it."""
        return re.search(self.turn.answer.gold, self.reply.body.answer, re.DOTALL) is not None

    @property
    def is_clean(self) -> bool:
        """Nothing stands before what the model wrote, if it was asked."""
        return self.reply.outcome == "not asked" or begins_as_written(self.reply.body.answer, self.turn.answer)

    @property
    def steps(self) -> int:
        return sum(call.purpose == "step" for call in self.reply.calls)

    @property
    def calls_before(self) -> int:
        """Calls of the model before its text, steps left aside."""
        return sum(call.purpose == "rewrite" for call in self.reply.calls)


async def hold(bench: Bench, conversation: Conversation) -> list[TurnReply]:
    """Ask the turns one after the other; near misses of a turn are asked beside it, and are no part of what follows."""
    said: list[MessageRequest] = []
    found: list[TurnReply] = []
    cited: list[set[str]] = []
    for turn in conversation.turns:
        rests_on = {piece.words or piece.computed for one in turn.answer.sentences for piece in one.evidence}
        was_cited = bool(cited) and rests_on <= set().union(*cited[-CARRIED:])
        reply = await bench.ask(turn.answer, said)
        beside = [await bench.ask(miss, said) for miss in turn.near]
        found += [TurnReply(turn=turn, reply=one, was_cited=was_cited) for one in (reply, *beside)]
        cited.append(rests_on)
        said += [
            MessageRequest(role="user", content=turn.answer.question),
            MessageRequest(role="assistant", content=reply.body.answer),
        ]
    return found


@dataclass(frozen=True, kw_only=True)
class TurnFigures:
    """Counts of replies to turns of one kind."""

    turns: int
    right: int
    clean: int  # right, and nothing before what the model wrote
    green: int
    green_wrong: int
    steps: int
    second: int  # turns that searched for what the answers just before had cited
    calls_before: int  # the most of one turn


def count_replies(replies: Sequence[TurnReply]) -> TurnFigures:
    """Return the figures of replies."""
    return TurnFigures(
        turns=len(replies),
        right=sum(one.is_right for one in replies),
        clean=sum(one.is_right and one.is_clean for one in replies),
        green=sum(one.reply.is_green for one in replies),
        green_wrong=sum(one.reply.is_green and not (one.is_right and one.reply.answer.right) for one in replies),
        steps=sum(one.steps for one in replies),
        second=sum(one.steps > 0 and one.was_cited for one in replies),
        calls_before=max((one.calls_before for one in replies), default=0),
    )
