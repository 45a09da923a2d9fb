"""`python -m evals.labelled SET PATH`: public sets of labelled sentences, as `rag-service eval claims` reads them.

The sets are no part of the repository; PATH is a file or folder of a clone:

- `faithbench`: `data_for_release/` of github.com/vectara/FaithBench: sentences of summaries, by the spans that
  annotators marked. Spans that they call questionable or benign are left out.
- `wice`: `dev.jsonl` or `test.jsonl` of github.com/ryokamoi/wice (`oracle_chunks/claim`): claims of Wikipedia and the
  sentences that are cited for them. Those that are supported in part are left out.
- `covidfact`: `COVIDFACT_dataset.jsonl` of github.com/asaakyan/covidfact: claims, and the same with a word replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from rag_service.language.sentences import read_sentences

_UNWANTED, _OK = "Unwanted", "free"


def read_faithbench(path: Path) -> Iterator[tuple[str, str, str]]:
    """Give passage, sentence and label of each sentence of the summaries."""
    for file in sorted(path.glob("batch_*.json")):
        for sample in json.loads(file.read_text(encoding="utf-8"))["samples"]:
            spans = [one for one in sample["annotations"] if one["summary_start"] is not None]
            for sentence in read_sentences(sample["summary"], language="en"):
                touching = [
                    one["label"] for one in spans
                    if one["summary_start"] < sentence.end and sentence.start < one["summary_end"]
                ]  # fmt: skip
                if not touching:
                    yield sample["source"], sentence.text, _OK
                elif any(_UNWANTED in labels for labels in touching):
                    yield sample["source"], sentence.text, "false"


def read_wice(path: Path) -> Iterator[tuple[str, str, str]]:
    """Give passage, claim and label of each claim that is supported, or not at all."""
    labels = {"supported": _OK, "not_supported": "unsupported"}
    for line in path.read_text(encoding="utf-8").splitlines():
        claim = json.loads(line)
        if claim["label"] in labels:
            yield "\n".join(claim["evidence"]), claim["claim"], labels[claim["label"]]


def read_covidfact(path: Path) -> Iterator[tuple[str, str, str]]:
    """Give passage, claim and label of each claim."""
    labels = {"SUPPORTED": _OK, "REFUTED": "false"}
    for line in path.read_text(encoding="utf-8").splitlines():
        claim = json.loads(line)
        yield "\n".join(claim["evidence"]), claim["claim"], labels[claim["label"]]


SETS: Mapping[str, Callable[[Path], Iterator[tuple[str, str, str]]]] = {
    "faithbench": read_faithbench,
    "wice": read_wice,
    "covidfact": read_covidfact,
}


@click.command()
@click.argument("name", type=click.Choice([*SETS]))
@click.argument("path", type=click.Path(exists=True, path_type=Path))
def main(name: str, path: Path) -> None:
    """Write the sentences of a public set as claims, a line each."""
    for number, (passage, sentence, label) in enumerate(SETS[name](path), start=1):
        claim: dict[str, Any] = {"id": f"{name}-{number}", "lang": "en", "passage": passage, "claim": sentence.strip()}
        click.echo(json.dumps({**claim, "label": label}, ensure_ascii=False))


if __name__ == "__main__":
    main(prog_name="python -m evals.labelled")
