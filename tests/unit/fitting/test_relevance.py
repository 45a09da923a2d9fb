"""An unknown embedding model gets the relevance that the packaged one would get, whatever the scale of its cosines."""

from __future__ import annotations

import numpy as np
import pytest

from rag_service.fitting.question_sets import LANGUAGES, load_shipped
from rag_service.fitting.relevance import EmbeddedSet, fit_relevance, fit_scales, measure_pairs
from rag_service.indices import Calibration, IndexDefinition, QueryDefinition, RelevanceFit, load_index
from rag_service.models.embedding.relevance import ModelRelevance, relevance
from rag_service.retrieval.fusion import Candidates, fuse
from rag_service.settings.models import PACKAGED_MODEL
from rag_service.store.relevance_fits import CosineScale, ModelFit
from tests.fitting import VectorOf, load_part, plain, projected, shifted

COVERAGES = np.array([0.0, 0.1, 0.3, 0.6])


@pytest.fixture(scope="module")
def index() -> IndexDefinition:
    return load_index("general")


def embed_part(vector_of: VectorOf, dimension: int) -> list[EmbeddedSet]:
    return [
        EmbeddedSet(
            questions=part,
            of_passages=np.array([vector_of(text, dimension) for text in part.passages]),
            of_questions=np.array([vector_of(asked.text, dimension) for asked in part.questions]),
        )
        for part in load_part()
    ]


@pytest.fixture(scope="module")
def base() -> list[EmbeddedSet]:
    return embed_part(plain, 384)


def test_the_shipped_sets_are_large_enough() -> None:
    for questions in load_shipped():
        assert len(questions.passages) >= 120 and len(questions.questions) >= 350
        assert any(asked.target is None for asked in questions.questions)


@pytest.mark.parametrize(("model", "dimension"), [(shifted, 384), (projected, 1024)])
@pytest.mark.slow
def test_a_model_on_another_scale_gets_the_same_relevance_and_the_same_ranks(
    base: list[EmbeddedSet], index: IndexDefinition, model: VectorOf, dimension: int
) -> None:
    other = embed_part(model, dimension)
    scales, others = fit_scales(base), fit_scales(other)
    fits = fit_relevance(base, scales, index, run="base")
    their_fits = fit_relevance(other, others, index, run="other")
    assert set(their_fits) == {*LANGUAGES, "*"}
    for one, two in zip(base, other, strict=True):
        language = one.questions.language
        assert one.questions == two.questions
        ours, theirs = one.cosines[:30].ravel(), two.cosines[:30].ravel()
        for coverage in COVERAGES:
            held = np.full(len(ours), coverage)
            expected = relevance(ours, held, fits[language])
            found = relevance(theirs, held, their_fits[language])
            assert np.abs(expected - found).mean() < 0.03
        # Mapped onto one scale, cosines weigh the same against BM25.
        assert np.abs(scales[language](ours) - others[language](theirs)).mean() < 0.05


def test_unrelated_texts_of_a_shifted_model_are_mapped_onto_those_of_the_packaged_one() -> None:
    parts = embed_part(shifted, 384)
    mean, deviation = measure_pairs(parts[0])
    assert mean > 0.7 and deviation < 0.05
    scale = fit_scales(parts)["en"]
    assert scale(np.array([mean, mean + deviation])) == pytest.approx([0.7855, 0.7855 + 0.0236])


def test_a_model_that_says_the_same_of_every_text_counts_for_nothing(
    base: list[EmbeddedSet], index: IndexDefinition
) -> None:
    blind = [
        EmbeddedSet(
            questions=part.questions,
            of_passages=np.ones((len(part.of_passages), 8)),
            of_questions=np.ones((len(part.of_questions), 8)),
        )
        for part in base
    ]
    scales = fit_scales(blind)
    assert scales["en"] == CosineScale()
    fits = fit_relevance(blind, scales, index, run="blind")
    assert all(np.isfinite([fit.intercept, fit.cosine, fit.coverage]).all() for fit in fits.values())


def test_fusion_is_the_same_on_every_scale() -> None:
    cosines, bm25 = np.array([0.86, 0.8, 0.83]), np.array([1.0, 6.0, 4.0])

    def rank(values: np.ndarray, scale: CosineScale) -> list[int]:
        found = Candidates(ids=np.array([1, 2, 3]), cosines=values, bm25=bm25, coverage=bm25 / 10)
        return [number for number, _ in fuse(found, alpha=0.6, ceiling=8.0, calibration=None, scale=scale)]

    scale = CosineScale(offset=0.6, factor=0.4)
    assert rank((cosines - 0.6) / 0.4, scale) == rank(cosines, CosineScale()) == [3, 2, 1]
    assert rank((cosines - 0.6) / 0.4, CosineScale()) != rank(cosines, CosineScale())


FIT = RelevanceFit(intercept=-5, cosine=8, coverage=9, run="of the index", alpha=0.65)
SCALE = CosineScale(offset=-1.0, factor=2.0)


def known(**fits: RelevanceFit) -> ModelRelevance:
    made = ModelRelevance("other-model")
    made.known = ModelFit(model="other-model", revision=b"", scales={"*": SCALE}, fits=fits)
    return made


def rules(model: str | None) -> QueryDefinition:
    return QueryDefinition(calibration=Calibration(**FIT.model_dump(), model=model))


def test_until_the_fit_is_there_a_calibration_for_another_model_is_read_on_the_scale_of_random_pairs() -> None:
    fit = known().fit_for(rules(PACKAGED_MODEL), "en")
    assert fit is not None and (fit.alpha, fit.coverage) == (0.65, 9)
    assert relevance(np.array([0.7]), np.array([0.2]), fit) == pytest.approx(
        relevance(SCALE(np.array([0.7])), np.array([0.2]), FIT)
    )


def test_an_index_calibrated_for_the_model_itself_keeps_its_numbers() -> None:
    measured = RelevanceFit(intercept=-1, cosine=1, coverage=1, run="background", alpha=0.5)
    for model in ("other-model", None):
        fit = known(en=measured).fit_for(rules(model), "en")
        assert fit is not None and fit.run == "of the index"
    assert known(en=measured).fit_for(rules(PACKAGED_MODEL), "en") == measured
    assert known(**{"*": measured}).fit_for(QueryDefinition(), "pt") == measured


def test_nothing_is_measured_of_the_packaged_model() -> None:
    assert ModelRelevance(PACKAGED_MODEL).state == "packaged"
    assert ModelRelevance("other-model", watched=False).state == "off"
    assert [ModelRelevance("other-model").state, known().state, known(en=FIT).state] == ["unknown", "scaled", "fitted"]
    assert ModelRelevance(PACKAGED_MODEL).scale("en") == CosineScale()


def test_another_model_under_the_same_name_is_noticed() -> None:
    vectors = np.random.default_rng(1).standard_normal((2, 64)).astype("<f4")
    fit = ModelFit(model="m", revision=vectors[0].tobytes())
    assert fit.is_of((vectors[0] * 1.0001).astype("<f4").tobytes())  # arithmetic differs between machines
    assert not fit.is_of(vectors[1].tobytes())
    assert not fit.is_of(vectors[0][:32].tobytes())
