"""Question sets in the formats in which they are published.

- SQuAD 1.1 and 2.0, and whatever has their form: answers are places in a paragraph.
- SelQA and WikiQA: sentences of which people said whether they answer.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_service.errors import InputError
from rag_service.language.detection import guess_language
from rag_service.language.sentences import split_sentences

_GZIP = b"\x1f\x8b"
_AROUND = 3  # sentences kept on each side of an answer, of a text as long as a paper
_LONG = 6_000  # characters of such a text


@dataclass(frozen=True, kw_only=True, eq=False)
class Passage:
    """A text that questions are asked about."""

    source: str  # file and article
    text: str
    sentences: tuple[tuple[int, int], ...]  # where each begins and ends


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a passage."""

    text: str
    passage: Passage
    right: frozenset[int]  # numbers of the sentences that answer it; none: it is not answered
    answer: tuple[int, int] | None  # where the answer begins and ends, if that is known
    near: int = 0  # of a question that is not answered: the sentence that seems to answer it


def read_published(file: Path) -> Iterator[Question]:
    """The questions of a file, which may be packed with gzip. Raises InputError if it has none of the formats."""
    data = file.read_bytes()
    text = (gzip.decompress(data) if data.startswith(_GZIP) else data).decode("utf-8")
    try:
        if file.suffix == ".txt":
            yield from _read_wikiqa(text, file.name)
            return
        content = json.loads(text)
        articles = content["data"] if isinstance(content, dict) else content
        for number, article in enumerate(articles):
            source = f"{file.name}: {article.get('title') or number}"
            if "paragraphs" in article:
                for paragraph in article["paragraphs"]:
                    yield from _read_paragraph(paragraph, source)
            else:
                sentences = article.get("candidates") or article["sentences"]
                source = f"{file.name}: {article['article']}"
                yield _judged(article["question"], sentences, set(article["answers"]), source)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{file} has none of the formats of SQuAD, SelQA and WikiQA ({type(error).__name__}: {error}).",
            field="FILES",
        ) from error


def _read_paragraph(paragraph: dict[str, Any], source: str) -> Iterator[Question]:
    text, asked = paragraph["context"], []
    for entry in paragraph["qas"]:
        is_unanswered = bool(entry.get("is_impossible"))
        answers = (entry.get("plausible_answers") if is_unanswered else entry.get("answers")) or []
        places = [(int(each["answer_start"]), each["text"]) for each in answers if each["text"].strip()]
        if places or is_unanswered:
            asked.append((entry, is_unanswered, [(start, start + len(said)) for start, said in places[:1]]))
    sentences = [
        (start, end) for start, end in split_sentences(text, language=guess_language(text)) if text[start:end].strip()
    ]
    if len(text) > _LONG:
        answering = [
            number
            for number, (start, end) in enumerate(sentences)
            if any(begin < end and finish > start for _, _, places in asked for begin, finish in places)
        ]
        kept = {near for number in answering for near in range(number - _AROUND, number + _AROUND + 1)}
        sentences = [bounds for number, bounds in enumerate(sentences) if number in kept]
    passage = Passage(source=source, text=text, sentences=tuple(sentences))
    for entry, is_unanswered, places in asked:
        found = {
            number
            for number, (start, end) in enumerate(sentences)
            if any(begin < end and finish > start for begin, finish in places)
        }
        if is_unanswered:
            yield Question(
                text=entry["question"], passage=passage,
                right=frozenset(), answer=None, near=min(found, default=0),
            )  # fmt: skip
        elif len(found) == 1:  # an answer over two sentences is usually a fault of the splitter
            yield Question(text=entry["question"], passage=passage, right=frozenset(found), answer=places[0])


def _read_wikiqa(text: str, name: str) -> Iterator[Question]:
    rows: dict[str, list[tuple[str, bool]]] = {}
    for question, sentence, label in csv.reader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        rows.setdefault(question, []).append((sentence, label == "1"))
    for question, judged in rows.items():
        right = {number for number, (_, is_right) in enumerate(judged) if is_right}
        yield _judged(question, [sentence for sentence, _ in judged], right, f"{name}: {question}")


def _judged(question: str, sentences: list[str], right: set[int], source: str) -> Question:
    bounds, place = [], 0
    for sentence in sentences:
        bounds.append((place, place + len(sentence)))
        place += len(sentence) + 1
    passage = Passage(source=source, text="\n".join(sentences), sentences=tuple(bounds))
    return Question(text=question, passage=passage, right=frozenset(right), answer=None)
