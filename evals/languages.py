"""`python -m evals.languages FILE …`: whether the service speaks to people in a third language.

Asks questions in many languages over the sample documents, without a chat model or with one that refuses, and looks
for the service's own sentences in the replies: each has to be in the question's language or, if there are no texts in
it, in English. Files are XQuAD's (`xquad.de.json`) or MKQA's (`mkqa.jsonl`; also a language a file, as the shared task
of MIA 2022 has them), which are not part of this repository.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from evals.written.model import MODEL, ModelServer, WrittenModel
from rag_service import open_service
from rag_service.answering.prompt.templates import load_prompts
from rag_service.client.results import CitedAnswer
from rag_service.indices import shipped_folder
from rag_service.language.languages import FALLBACK_LANGUAGE

_SEED = 66
_LEAST = 12  # characters of a sentence of ours, between its placeholders, by which it is recognised
_PLACEHOLDER = re.compile(r"\{\w*\}")


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--each", type=click.IntRange(1), default=20, show_default=True, help="Questions of each language.")
@click.option("--model", is_flag=True, help="With a model that refuses, in the words that its prompt asks for.")
@click.option("--show", is_flag=True, help="Also print the questions that are answered in a third language.")
def main(files: Sequence[Path], each: int, model: bool, show: bool) -> None:
    """Ask questions of these FILES and count replies with a sentence of ours in a third language."""
    asked = _read(files)
    spoken = _our_sentences()
    third: list[tuple[str, str, str]] = []
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory())
        chat: dict[str, Any] = {}
        if model:
            server = opened.enter_context(ModelServer(WrittenModel()))
            chat = {"chat_provider": "openai_like", "openai_url": server.url, "model_name": MODEL}
        service = opened.enter_context(open_service(data_dir=folder, log_level="ERROR", **chat))
        service.ingest(shipped_folder("indices") / "general" / "documents")
        for language, questions in sorted(asked.items()):
            drawn = random.Random(_SEED).sample(questions, min(each, len(questions)))  # noqa: S311 - the same in every run
            used = Counter[str]()
            for question in drawn:
                languages = set(_languages_of(service.ask(question), spoken))
                used.update(languages)
                third += [(language, one, question) for one in languages - {language, FALLBACK_LANGUAGE}]
            told = ", ".join(f"{code} {count}" for code, count in used.most_common()) or "none"
            click.echo(f"{language}: {len(drawn)} questions; replies with sentences of ours by language: {told}")
    click.echo(f"{len(third)} replies have a sentence of ours in a third language")
    if show:
        for language, used_language, question in third:
            click.echo(f"  {language} → {used_language}: {question}")


def _read(files: Sequence[Path]) -> dict[str, list[str]]:
    """Return language → questions."""
    found: dict[str, list[str]] = {}
    for file in files:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".json":
            articles = json.loads(text)["data"]
            questions = [one["question"] for page in articles for part in page["paragraphs"] for one in part["qas"]]
            found.setdefault(file.stem.rpartition(".")[2], []).extend(questions)
        else:
            for line in text.splitlines():
                one = json.loads(line)
                queries = one["queries"] if "queries" in one else {one["lang"]: one["question"]}
                for code, question in queries.items():
                    found.setdefault(code.partition("_")[0], []).append(question)
    return found


def _our_sentences() -> dict[str, list[str]]:
    """Return language → parts of our sentences that no other language shares."""
    messages = load_prompts().messages.values()
    parts: dict[str, set[str]] = {}
    for by_language in messages:
        for code, sentence in by_language.items():
            parts.setdefault(code, set()).update(part.strip() for part in _PLACEHOLDER.split(sentence))
    shared = Counter(part for own in parts.values() for part in own)
    return {code: [one for one in own if len(one) >= _LEAST and shared[one] == 1] for code, own in parts.items()}


def _languages_of(answer: CitedAnswer, spoken: Mapping[str, Sequence[str]]) -> Iterator[str]:
    said = "\n".join([answer.text, *(reason.text for reason in answer.body.reasons)])
    return (code for code, sentences in spoken.items() if any(sentence in said for sentence in sentences))


if __name__ == "__main__":
    main()
