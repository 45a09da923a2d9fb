"""What was said before a question: cut to a budget, made safe for the prompt, and used to make the question standalone.

With a chat model one call rewrites the question, as LlamaIndex's condense engines do, with our prompt and limits;
without one, a question that needs the one before is joined to it.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence

import structlog
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.answering.guards.injection import neutralise
from rag_service.answering.prompt.templates import NO_HISTORY, Prompts, new_boundary
from rag_service.answering.proof.claims import strip_marks
from rag_service.domain import Hit, Purpose, Turn
from rag_service.errors import ModelError
from rag_service.language.detection import choose_language, guess_language
from rag_service.language.languages import Questions, languages_of
from rag_service.language.words import count_tokens, terms, word_forms, words
from rag_service.models.llm.model import ChatModel, collect
from rag_service.recent import kept_apart
from rag_service.retrieval.question import FollowUp

FindPassages = Callable[[str], Awaitable[Sequence[Hit]]]  # of a question, best first

log = structlog.get_logger(__name__)

HISTORY_TURNS = 5  # turns before the question that are kept
_SEARCHED = 200  # turns that are searched for what a message comes back to
_SEARCHED_CHARS = 1_000  # of each
_REMEMBERED = 3  # earlier exchanges that are shown again: of evals/conversations/long.jsonl 1, 2, 3 find 8, 9, 10
_HISTORY_TOKENS = 4000  # maximum of these turns together
_CHARS_OF_TOKEN = 8  # more than any text has on average: a longer one need not be counted to its end
_HISTORY_SHARE = 0.3  # maximum share of the window for the history: the passages need room, too
_REWRITE_TOKENS = 60  # a question has 10 to 30
_REWRITE_CHARS = 600
_FEW_TERMS = 4  # a question with fewer content words may depend on the one before
_MIN_TERMS = 2  # with fewer than these it always does
_BEFORE_CHARS = 600  # characters of the earlier questions that are added
_CHAIN = 5  # earlier questions looked at: each one of few words costs two searches
# Weight of the question before when passages are favoured. From 0.6 to 0.85 all choose alike over evals/follow_ups.json
# and evals/conversations.json; at 1 the old subject always wins.
_FAVOUR = 0.7


def history_for(chat: ChatModel, turns: Sequence[Turn], remembered: Sequence[int] = ()) -> str:
    """Return the newest turns and the remembered ones, as many as a model's window has room for, as it reads them."""
    limit = min(_HISTORY_TOKENS, int(chat.context_window * _HISTORY_SHARE))
    return render_history(cut_history(turns, max_tokens=limit, remembered=remembered))


def cut_history(turns: Sequence[Turn], *, max_tokens: int, remembered: Sequence[int] = ()) -> tuple[Turn, ...]:
    """Return the last five turns, newest first as far as they fit into the tokens, then those at these places.

    In the order of the conversation. Of a turn that does not fit the beginning is kept.
    """
    kept: dict[int, Turn] = {}
    room = max_tokens
    for place in (*reversed(range(max(0, len(turns) - HISTORY_TURNS), len(turns))), *remembered):
        turn = turns[place]
        content = turn.content[: room * _CHARS_OF_TOKEN]
        if (used := count_tokens(content)) > room:
            content, used = content[:room], room
        if content:
            kept[place] = Turn(role=turn.role, content=content)
            room -= used
    return tuple(kept[place] for place in sorted(kept))


def find_remembered(turns: Sequence[Turn], message: str) -> tuple[int, ...]:
    """Return the places of turns before the last five that a message comes back to, those that fit best first.

    A question and its answer belong together. What they share with the message is weighted as BM25 weights terms:
    a word that most exchanges have says little. No model is asked.
    """
    exchanges: list[list[int]] = []
    for place in range(max(0, len(turns) - _SEARCHED), max(0, len(turns) - HISTORY_TURNS)):
        if turns[place].role == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(place)
    held = [frozenset().union(*(_forms(turns[place].content[:_SEARCHED_CHARS]) for place in one)) for one in exchanges]
    weights = {term: _weigh(term, held) for term in _content(message)}
    shared = [sum(weights[term] for term in weights.keys() & forms) for forms in held]
    best = sorted((number for number, score in enumerate(shared) if score), key=lambda number: -shared[number])
    return tuple(place for number in best[:_REMEMBERED] for place in exchanges[number])


def _weigh(term: str, held: Sequence[frozenset[str]]) -> float:
    """Return the idf of BM25."""
    count = sum(term in forms for forms in held)
    return math.log(1 + (len(held) - count + 0.5) / (count + 0.5))


@kept_apart(5_000)
def _forms(text: str) -> frozenset[str]:
    return frozenset(word_forms(text))


def languages_of_turns(turns: Sequence[Turn]) -> tuple[str, ...]:
    """The languages of the user's last turns, newest first."""
    found = (guess_language(turn.content) for turn in reversed(turns[-HISTORY_TURNS:]) if turn.role == "user")
    return tuple(dict.fromkeys(filter(None, found)))


def render_history(turns: Sequence[Turn]) -> str:
    """Turns as the model reads them, without citation marks or invisible characters; "-" if there are none."""
    names = {"user": "User", "assistant": "Assistant"}
    return "\n".join(f"{names[turn.role]}: {neutralise(turn.content)}" for turn in turns) or NO_HISTORY


async def lean_on_history(question: str, history: Sequence[Turn], find: FindPassages) -> tuple[str, FollowUp | None]:
    """A question after the questions that it needs, a line each: rewriting without a model.

    None where it can be understood by itself.
    """
    asked = [turn.content.strip() for turn in history if turn.role == "user"]
    chain: list[str] = []
    for text in [*asked[-_CHAIN:], question]:
        if chain and not (_needs_more(text) or await _stays_with_subject(text, "\n".join(chain), find)):
            chain = []
        chain.append(text)
    before = "\n".join(chain[:-1])[:_BEFORE_CHARS].strip()
    if not before:
        return question, None
    return f"{before}\n{question}", FollowUp(asked=question, joined=True)


def _needs_more(question: str) -> bool:
    """Whether a question cannot be understood without the one before: it says so, or has next to no content words."""
    asked = words(question)
    every = [data.questions for data in languages_of(None)]
    if any(_goes_on(asked, questions) for questions in every):
        return True
    count = len(_content(question))
    return count < _MIN_TERMS or (
        count < _FEW_TERMS and any(not questions.references.isdisjoint(asked) for questions in every)
    )


async def _stays_with_subject(question: str, before: str, find: FindPassages) -> bool:
    """Whether a question of few words is about the subject of those before, as what is found for both suggests.

    It is not if its own best passage stays the best when the passages of the question before are favoured: "Is
    subletting allowed?" has such a passage, "What happens if I miss one?" none.
    """
    if len(_content(question)) >= _FEW_TERMS:
        return False
    own, favoured = _rate(await find(question)), _rate(await find(before))
    together = {key: own.get(key, 0.0) + _FAVOUR * favoured.get(key, 0.0) for key in own | favoured}
    return bool(own) and max(own, key=own.__getitem__) != max(together, key=together.__getitem__)


def _content(question: str) -> set[str]:
    return set(terms(question, choose_language(question)))


def _rate(hits: Sequence[Hit]) -> dict[str, float]:
    """Chunk id → how good it is for a question; the best one has 1."""
    standing = {hit.chunk.id: hit.scores.relevance if hit.scores.fused is None else hit.scores.fused for hit in hits}
    best = max(standing.values(), default=0.0)
    return {key: value / best for key, value in standing.items()} if best > 0 else {}


def _goes_on(asked: Sequence[str], questions: Questions) -> bool:
    """Whether a question begins with "and" or "what about"."""
    begins = any(" ".join([*asked, ""]).startswith(f"{phrase} ") for phrase in questions.follow_ups)
    return begins or not questions.conjunctions.isdisjoint(asked[:1])


async def make_standalone(
    question: str, history: Sequence[Turn], said: str, chat: ChatModel, prompts: Prompts, find: FindPassages
) -> tuple[str, FollowUp | None]:
    """The question rewritten to be understood without the conversation, and what was done to it.

    If the model fails, the question is joined to those before. `said` is the conversation as a model reads it, and
    `find` searches for a question.
    """
    if not history:
        return question, None
    if chat.only_quotes:
        return await lean_on_history(question, history, find)
    values = {"boundary": new_boundary(), "context": said, "question": neutralise(question)}
    language = choose_language(question, languages_of_turns(history))
    system, user = prompts.template("rewrite", language).render(values)
    messages = [ChatMessage(role=MessageRole.SYSTEM, content=system), ChatMessage(role=MessageRole.USER, content=user)]
    try:
        text, last = await collect(chat.stream(messages, purpose=Purpose.REWRITE, max_tokens=_REWRITE_TOKENS))
    except ModelError as error:
        log.warning("question_not_rewritten", exc_info=error)
        return await lean_on_history(question, history, find)
    if last.finish_reason == "length":  # it thought aloud, or explained itself
        log.warning("question_not_rewritten", reason="cut")
        return await lean_on_history(question, history, find)
    lines = [line.strip(" \t\"'«»“”") for line in strip_marks(text).splitlines()]  # marks are of earlier passages
    rewritten = next((line for line in lines if line), "")
    if not 0 < len(rewritten) <= _REWRITE_CHARS or rewritten == question:
        return question, None
    return rewritten, FollowUp(asked=question, joined=False)
