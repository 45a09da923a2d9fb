"""What is asked: a question with everything that decides how it is searched and answered."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Literal
from uuid import UUID, uuid4

from rag_service.domain import Filters, Hit, Identity, Turn
from rag_service.retrieval.answer_schema import AnswerSchema

Mode = Literal["hybrid", "dense", "lexical"]

RERANKED = 20  # passages that the postprocessors see


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """How a follow-up was made standalone."""

    asked: str  # the question as the user wrote it
    joined: bool  # to the questions before it; False: a chat model rewrote it


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a program asks of the model alone, such as a title of the conversation: without a search and citations."""

    prompt: str
    otherwise: str  # the reply without a model


@dataclass(frozen=True)
class Question:
    """A request: what is asked, by whom, and under what limits.

    Two that are equal have the same answer, if the same is found for them: what says nothing about the answer is not
    compared.
    """

    text: str  # as it is searched for; a follow-up is replaced by a question that needs no conversation
    _: KW_ONLY
    identity: Identity  # whose permissions the search has
    filters: Filters = field(default_factory=Filters)
    top_k: int = 5  # maximum number of passages returned
    threshold: float | None = None  # every passage must reach it, 0..1; None: see `ChoosePassages`
    candidates: int = RERANKED  # passages that the retriever returns, unless `top_k` is larger
    mode: Mode | None = None  # None: as the settings say
    alpha: float | None = None  # weight of the vector search, 0..1; None: the index definition's
    as_asked: bool = False  # one search, whatever it asks for
    given: tuple[Hit, ...] | None = None  # answered from these passages only, in this order; None: from what is found
    task: Task | None = None  # what a program wants instead of an answer
    schema: AnswerSchema | None = None  # of the JSON that the answer is to be; None: a text
    languages: tuple[str, ...] = ()  # that the user may write in, likeliest first: of the conversation, and as set
    prompt: str | None = None  # template; None: the index's
    instructions: str = ""  # an agent's, added to the rules of the template
    personal_corpora: frozenset[UUID] = frozenset()  # their passages are shown in a block of their own
    retractable: bool = True  # whether the reader of the stream can take back text: `AnswerDelta.restart`
    # For the record only.
    answer_id: UUID = field(default_factory=uuid4, compare=False)  # under which the answer is recorded
    agent_id: UUID | None = field(default=None, compare=False)  # the agent that answers
    recorded: bool = field(default=True, compare=False)  # whether the answer is stored
    said: tuple[Turn, ...] = field(default=(), compare=False)  # the conversation, if it may be continued by its id
    # The conversation before it.
    turns: tuple[Turn, ...] = ()  # oldest first: the engine makes the question standalone
    follow_up: FollowUp | None = None  # what `text` was made of; None: it is searched for as asked
    history: str = ""  # the turns for the prompt, neutralised
    remembered: tuple[int, ...] = ()  # places of earlier turns that the question comes back to
    earlier: tuple[Hit, ...] = ()  # passages that the last answers cited and that may still be read
    earlier_still: tuple[Hit, ...] = ()  # likewise of the remembered answers

    @property
    def asked(self) -> str:
        """The question as the user wrote it."""
        return self.text if self.follow_up is None else self.follow_up.asked

    @property
    def searched_for(self) -> str | None:
        """The question with what it needs of the conversation; None: it was searched for as asked."""
        return None if self.follow_up is None else self.text

    @property
    def is_joined(self) -> bool:
        """Whether it stands behind the questions before it, as a follow-up without a chat model does."""
        return self.follow_up is not None and self.follow_up.joined
