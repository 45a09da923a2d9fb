"""The judge `cross_encoder` through its real package, on tiny models made here with random weights."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from rag_service.errors import ConfigurationError
from rag_service.models.judge.calibration import Threshold
from rag_service.models.judge.cross_encoder import BATCH, CrossEncoderJudge, entailment_label
from rag_service.models.judge.judge import JudgedClaim
from rag_service.models.judge.judges import WatchedJudge, build_judge
from rag_service.models.llm.model import build_chat
from rag_service.settings import Settings
from tests.doubles.tiny_models import save_cross_encoder

pytestmark = [
    pytest.mark.slow,
    # To import it here would load torch in every run.
    pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="the extra `sbert` is not installed"),
]

WORDS = ["the", "contract", "ends", "in", "may", "june", "supplier", "delivers", "parts", "never", "."]
XNLI = {0: "entailment", 1: "neutral", 2: "contradiction"}
MNLI = {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}

MakeModel = Callable[[Mapping[int, str]], Path]


@pytest.fixture(scope="module")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:

    def make(labels: Mapping[int, str]) -> Path:
        folder = tmp_path_factory.mktemp("nli")
        numbers = {label: number for number, label in labels.items()}
        save_cross_encoder(folder, WORDS, {"id2label": dict(labels), "label2id": numbers, "initializer_range": 0.4})
        return folder

    return make


@pytest.fixture(scope="module")
def folder(make_model: MakeModel) -> Path:
    return make_model(XNLI)


@pytest.fixture
async def judge(folder: Path) -> AsyncIterator[CrossEncoderJudge]:
    made = CrossEncoderJudge(str(folder))
    yield made
    await made.aclose()


def claim(sentence: str, language: str | None = "en") -> JudgedClaim:
    passage = "the contract ends in may . the supplier delivers parts ."
    return JudgedClaim(sentence=sentence, evidence="the contract ends in may .", passage=passage, language=language)


CLAIMS = [claim(f"the contract {word} in {month}") for word in WORDS for month in ("may", "june")]


async def test_probabilities_are_those_of_the_model_in_any_batch(judge: CrossEncoderJudge) -> None:
    assert len(CLAIMS) > BATCH
    together = await judge.rate(CLAIMS)
    alone = [(await judge.rate([one]))[0] for one in CLAIMS]
    assert together == pytest.approx(alone, abs=1e-4)
    assert len({round(probability, 3) for probability in together}) > 3
    assert all(0 <= probability <= 1 for probability in together)


async def test_the_column_of_entailment_is_read_from_the_configuration(make_model: MakeModel) -> None:
    # The weights are the same: what the columns mean is in the labels alone.
    columns = [
        await CrossEncoderJudge(str(make_model(labels))).rate(CLAIMS)
        for labels in (XNLI, {0: "neutral", 1: "entailment", 2: "contradiction"}, MNLI)
    ]
    assert [sum(three) for three in zip(*columns, strict=True)] == pytest.approx([1.0] * len(CLAIMS), abs=1e-4)


async def test_one_output_is_a_probability_too(make_model: MakeModel) -> None:
    probabilities = await CrossEncoderJudge(str(make_model({0: "LABEL_0"}))).rate(CLAIMS)
    assert all(0 <= probability <= 1 for probability in probabilities)


@pytest.mark.parametrize(
    ("labels", "number"),
    [
        (XNLI, 0),
        (MNLI, 2),
        ({0: "not_entailment", 1: "entailment"}, 1),
        ({0: "NOT_ENTAILED", 1: " Entailed "}, 1),
        ({0: "hallucinated", 1: "consistent"}, 1),
        ({0: "SUPPORTS", 1: "REFUTES", 2: "NOT ENOUGH INFO"}, 0),
        ({0: "LABEL_0"}, 0),
    ],
)
def test_entailment_is_recognised_under_its_usual_names(labels: dict[int, str], number: int) -> None:
    assert entailment_label(labels, "m") == number


async def test_labels_without_a_name_are_an_error_that_says_how_to_name_them(make_model: MakeModel) -> None:
    unnamed = str(make_model({0: "LABEL_0", 1: "LABEL_1"}))
    with pytest.raises(ConfigurationError, match="do not say which one is entailment"):
        await CrossEncoderJudge(unnamed).warm_up()
    named = CrossEncoderJudge(unnamed, options={"config_kwargs": {"id2label": {0: "neutral", 1: "entailment"}}})
    await named.warm_up()


async def test_a_model_that_is_not_there_is_an_error_that_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="RAG_JUDGE_MODEL"):
        await CrossEncoderJudge(str(tmp_path / "nothing")).warm_up()


async def test_the_threshold_of_the_language_decides(folder: Path) -> None:
    probabilities = await CrossEncoderJudge(str(folder)).rate(CLAIMS)
    middle = sorted(probabilities)[len(probabilities) // 2]
    thresholds = {"es": Threshold(threshold=middle, run="t"), "fr": Threshold(threshold=1.01, run="t")}
    judge = CrossEncoderJudge(str(folder), thresholds=thresholds)
    for language, least in (("es", middle), ("fr", 1.01), ("en", 0.5), (None, 0.5)):
        verdicts = await judge.judge([claim(one.sentence, language) for one in CLAIMS])
        assert [verdict is not None and verdict.entailed for verdict in verdicts] == [p >= least for p in probabilities]
    assert judge.describe_thresholds() == (
        f"thresholds: es {middle:.2f} (t), fr 1.01 (t), other languages 0.5 (not calibrated)"
    )


async def test_a_model_that_hangs_is_left_in_time_and_does_not_block_the_loop(folder: Path) -> None:
    release = threading.Event()

    class Hanging(CrossEncoderJudge):
        def _rate(self, claims: object) -> list[float]:
            release.wait(20)
            return []

    watched = WatchedJudge(Hanging(str(folder)), seconds=0.2)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    ticking = asyncio.create_task(tick())
    try:
        assert await watched.judge(CLAIMS[:2]) == [None, None]
        assert ticks
    finally:
        ticking.cancel()
        release.set()


async def test_it_is_built_from_settings_with_its_stored_thresholds(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "judge.json").write_text(f'{{"{folder}": {{"en": {{"threshold": 0, "run": "all"}}}}}}')
    settings = Settings(judge="cross_encoder", judge_model=str(folder), data_dir=tmp_path)  # type: ignore[call-arg]
    built = build_judge(settings, chat=build_chat(settings), write_prompt=lambda claims: [])
    assert built is not None
    assert built.name == folder.name
    await built.warm_up()
    assert all(verdict is not None and verdict.entailed for verdict in await built.judge(CLAIMS))
    await built.aclose()
