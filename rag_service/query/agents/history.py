"""What was said before: cut to a budget, made harmless, and leant on by short questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag_service.query.prompting.prompt import neutralise
from rag_service.query.retrieval.names import find_names
from rag_service.text.guessed_language import guess_language
from rag_service.text.tokens import count_tokens
from rag_service.text.words import terms, words

HISTORY_TURNS = 5  # turns before the question that are kept
HISTORY_TOKENS = 4000  # most tokens of them together
_FEW_TERMS = 4  # a question of fewer content words may lean on what was asked before
_LEAST_TERMS = 2  # one of fewer always does
_BEFORE_CHARS = 600  # of the earlier question that is leant on

# Folded words of all three languages: those that begin a question which goes on from the one before,
_GOES_ON = {("what", "about"), ("how", "about"), ("que", "hay"), ("que", "tal"), ("qu", "en")}
# those that stand for what was named before,
_REFERS = frozenset(
    """
    it its they them their this that these those he him his she her same eso esto ese esa esos esas este esta estos
    estas aquel aquella aquello ello ella ellos ellas su sus lo mismo misma cela ca cet cette ces elle ils elles lui
    leur leurs sa ses meme celui celle ceux
    """.split()  # noqa: SIM905  # a list literal would take a page
)
# and those that begin a whole question.
_ASKS = frozenset(
    """
    what which who whom whose when where why how is are do does did can could may must should que cual cuales quien
    quienes cuando donde como cuanto cuanta cuantos cuantas por hay es son puedo puede quel quelle quels quelles qui
    quand ou comment combien pourquoi est sont peut
    """.split()  # noqa: SIM905  # a list literal would take a page
)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one side said."""

    role: Literal["user", "assistant"]
    content: str


def cut_history(turns: Sequence[Turn], *, most_tokens: int) -> tuple[Turn, ...]:
    """The last five turns, as many of the newest as fit the tokens together."""
    kept: list[Turn] = []
    used = 0
    for turn in reversed(turns[-HISTORY_TURNS:]):
        used += count_tokens(turn.content)
        if used > most_tokens:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def render_history(turns: Sequence[Turn]) -> str:
    """Turns as the model reads them: no citation marks, nothing invisible. "-" when there are none."""
    names = {"user": "User", "assistant": "Assistant"}
    return "\n".join(f"{names[turn.role]}: {neutralise(turn.content)}" for turn in turns) or "-"


def lean_on_history(question: str, history: Sequence[Turn], language: str) -> str:
    """A question that leans on those before it, together with them, back to one that stands alone: a rewriting without
    a model."""
    asked = [turn.content for turn in history if turn.role == "user"] + [question]
    first = len(asked) - 1
    while first > 0 and not _stands_alone(asked[first], asked[first - 1], language):
        first -= 1
    before = " ".join(part.strip() for part in asked[first:-1])
    return f"{before[:_BEFORE_CHARS].strip()} {question}" if before else question


def _stands_alone(question: str, before: str, language: str) -> bool:
    """Whether a question says all that it asks for: it refers to nothing, and is long or whole and names something."""
    content = len(terms(question, language))
    if content >= _FEW_TERMS:
        return True
    asked = words(question)
    if content < _LEAST_TERMS or asked[0] not in _ASKS or not _REFERS.isdisjoint(asked):
        return False
    if tuple(asked[:2]) in _GOES_ON:
        return False
    languages = guess_language(question), guess_language(before)
    return bool(find_names(question)) or (None not in languages and languages[0] != languages[1])
