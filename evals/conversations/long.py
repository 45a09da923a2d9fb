"""Long conversations: whether what was said in the first turns is found in the thirtieth.

A long conversation begins with one of the developed half, goes on with others of them, and comes back to the first.
What was said is asked once for all: passages are recalled by the text of an answer, whichever conversation it is in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.conversations.turns import FOLDER, Conversation, Turn, read_turn
from evals.written.answers import BLOCK, fold
from evals.written.measure import Bench, Reply
from rag_service.api.http.schemas import MessageRequest

FILE = FOLDER / "long.jsonl"
LENGTH = 30  # turns


@dataclass(frozen=True, kw_only=True)
class LongConversation:
    """A conversation of the developed half, and the turn that comes back to it when thirty turns are over."""

    begins: str  # id of that conversation
    said: str  # words of it that the last turn needs
    turn: Turn


@dataclass(frozen=True, kw_only=True)
class LongReply:
    """The last turn, and what the model was shown for it."""

    conversation: LongConversation
    reply: Reply

    @property
    def is_told(self) -> bool:
        """The conversation in the prompt has what was said."""
        blocks = [text for prompt in self._prompts for _, mark, text in BLOCK.findall(prompt) if not mark]
        return any(fold(self.conversation.said) in fold(text) for text in blocks)

    @property
    def is_shown(self) -> bool:
        """All that the answer rests on is among the passages."""
        return self.reply.outcome == "answer"

    @property
    def characters(self) -> int:
        """The length of the prompt."""
        return max(map(len, self._prompts))

    @property
    def _prompts(self) -> list[str]:
        calls = [call for call in self.reply.calls if call.purpose in ("answer", "refusal", "step")]
        return [call.request["messages"][1]["content"] for call in calls]


def read_long(path: Path = FILE) -> list[LongConversation]:
    """Read the long conversations."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [
        LongConversation(
            begins=row["begins"], said=row["said"], turn=read_turn(row, row["turn"], half="", number=LENGTH)
        )
        for row in rows
    ]


async def hold_long(
    bench: Bench, conversations: Sequence[Conversation], asked: Sequence[LongConversation]
) -> list[LongReply]:
    """Hold the conversations once, and ask each last turn after the first 29 of them, the one that it needs first."""
    held = {one.id: await _say(bench, one) for one in conversations}
    found = []
    for one in asked:
        names = [one.begins, *(name for name in held if name != one.begins)]
        said = [message for name in names for message in held[name]][: 2 * (LENGTH - 1)]
        found.append(LongReply(conversation=one, reply=await bench.ask(one.turn.answer, said)))
    return found


async def _say(bench: Bench, conversation: Conversation) -> list[MessageRequest]:
    said: list[MessageRequest] = []
    for turn in conversation.turns:
        reply = await bench.ask(turn.answer, said)
        said += [
            MessageRequest(role="user", content=turn.answer.question),
            MessageRequest(role="assistant", content=reply.body.answer),
        ]
    return said
