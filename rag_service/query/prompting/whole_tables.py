"""Questions that only a whole table answers: which is the highest, what do they add up to, how many are there.

An answer is made from the passages that were found. Of a long table those are some of its rows, and to name the
highest of some as the highest of all would be wrong, however well it is cited. No model can tell either. So the answer
says what it is made from, and is never certain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_service.text.words import fold, index_term

_BEST = 2  # passages; rows further down are not what the answer is made from
_LEAST_ROWS = 2
_WORD = re.compile(r"[^\W_]+")
_ROW = re.compile(r"^[^|:\n]{1,100}: [^|\n]+ \| .*", re.MULTILINE)
_NAMED = re.compile(r"([^|:\n]{1,100}): [^|\d\n]+(?: \||$)")  # a cell of words, and what they are

# Folded. A document that uses the word itself ("the highest rate is ...") has answered.
_COMPARING = {
    "en": r"(?:most|least) (?:expensive|costly|used|sold|paid|\w{4,}(?:ed|ive|ant|ent|ful|al|ous|ar))|cheapest|dearest"
    r"|highest|lowest|largest|biggest|smallest|longest|shortest|oldest|newest|youngest|fastest|slowest|heaviest"
    r"|lightest|greatest|fewest",
    "es": r"(?:el|la|los|las|lo) (?:\w+ )?(?:mas|menos|mejor|peor) \w+"
    r"|(?:cual|que|quien)\w* (?:\w+ ){0,2}(?:mas|menos)(?: \w+)?"
    r"|mayor(?:es)?|menor(?:es)?",
    "fr": r"(?:le|la|les) (?:\w+ )?(?:plus|moins) \w+|meilleure?s?|pires?",
}
_DEGREES = frozenset({"most", "least", "mas", "menos", "plus", "moins"})
_ADDING = {
    "en": r"in total|total|altogether|sum|add up|average|mean|overall",
    "es": r"en total|total|suma|suman|sumar|sumados|media|promedio",
    "fr": r"au total|total|totale|totaux|somme|additionnes|en tout|moyenne",
}
_COUNTING = {
    "en": r"how many (?:of the )?(\w{3,})",
    "es": r"cuant[oa]s (\w{3,})",
    "fr": r"combien de (\w{3,})|combien d (\w{3,})",
}


def needs_whole_table(question: str, language: str, passages: Sequence[str]) -> bool:
    """Whether a question compares, adds up or counts rows, and no passage says the outcome in words.

    Args:
        question: as it was asked.
        language: its language, ISO 639-1.
        passages: that the answer is made from, best first.
    """
    if language not in _COMPARING:
        return False
    found = [_ROW.findall(fold(passage)) for passage in passages[:_BEST]]
    rows = [row for of_passage in found if len(of_passage) >= _LEAST_ROWS for row in of_passage]
    if not rows:
        return False
    asked = " ".join(_WORD.findall(fold(question)))
    codes = [word for word in question.split() if any(map(str.isdigit, word))]
    # Two codes are compared with each other, not with all.
    patterns = [_ADDING[language]] if len(codes) > 1 else [_COMPARING[language], _ADDING[language]]
    for pattern in patterns:
        if (said := re.search(rf"\b(?:{pattern})\b", asked)) is not None:
            return not any(_holds(passage, said[0]) for passage in map(fold, passages))
    return _counts_rows(asked, language, rows)


def _holds(passage: str, said: str) -> bool:
    """Whether a passage uses what tells of what was said: "highest", "total", "most expensive", "más caro"."""
    words = said.split()
    if words[-1] in _DEGREES:
        return False
    telling = words[-2:] if len(words) > 1 and words[-2] in _DEGREES else words[-1:]
    return re.search(rf"\b{' '.join(map(re.escape, telling))}\b", passage) is not None


def _counts_rows(asked: str, language: str, rows: Sequence[str]) -> bool:
    """Whether what is counted is what rows are called by: "how many employees" over "Employee: Ana | Pay: 3,200"."""
    counted = re.search(rf"\b(?:{_COUNTING[language]})\b", asked)
    if counted is None:
        return False
    noun = next(word for word in counted.groups() if word)
    term = index_term(noun, language) or noun
    labels = {label for row in rows for label in _NAMED.findall(row)} | {row.partition(":")[0] for row in rows}
    return any(term == index_term(word, language) for label in labels for word in _WORD.findall(label))
