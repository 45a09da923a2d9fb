"""The packaged model, for real: what its vectors mean, and that it never holds up the event loop."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import TextNode

from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.encoder import Encoder
from rag_service.models.embedding.local import LocalEmbedding
from rag_service.models.embedding.model_folder import read_model_folder
from rag_service.models.embedding.packaged import required_folder
from rag_service.models.local_runtime import somebody_waits
from rag_service.settings import Settings
from tests.timing import watched_turns

SPANISH = {
    "question": "¿Cuándo tiene que entregar las piezas el proveedor?",
    "answer": "El proveedor entrega las piezas en un plazo de diez días laborables.",
    "other": "La receta lleva dos huevos, harina y una pizca de sal.",
}
ENGLISH = {
    "question": "When does the supplier have to deliver the parts?",
    "answer": "The supplier delivers the parts within ten working days.",
    "other": "Employees may retire early from the age of sixty.",
}
TEXTS = {"en": ENGLISH, "es": SPANISH}
FILLER = "The committee met on Tuesday and approved the minutes of the last session without changes. "


def local_embedding() -> LocalEmbedding:
    embedding = build_embedding(Settings()).inner
    assert isinstance(embedding, LocalEmbedding)
    return embedding


@pytest.fixture(scope="module")
def packaged_model() -> Iterator[LocalEmbedding]:
    """One loaded model for the module."""
    embedding = local_embedding()
    asyncio.run(embedding.warm_up())
    yield embedding
    asyncio.run(embedding.aclose())


def cosine(left: list[float], right: list[float]) -> float:
    return float(np.dot(left, right))


@pytest.mark.parametrize(("asked", "told"), [("en", "en"), ("es", "es"), ("en", "es"), ("es", "en")])
async def test_a_question_is_nearer_to_its_answer_than_to_another_text_also_across_languages(
    packaged_model: LocalEmbedding, asked: str, told: str
) -> None:
    question = await packaged_model.aget_query_embedding(TEXTS[asked]["question"])
    answer, other = await packaged_model.aget_text_embedding_batch([TEXTS[told]["answer"], TEXTS[told]["other"]])
    assert cosine(question, answer) > cosine(question, other) + 0.03


async def test_every_vector_has_384_dimensions_and_length_one(packaged_model: LocalEmbedding) -> None:
    vectors = await packaged_model.aget_text_embedding_batch(["", "a", "ñ🙂", FILLER * 3, FILLER * 60])
    assert np.asarray(vectors).shape == (5, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-5)


async def test_a_batch_of_mixed_lengths_keeps_its_order(packaged_model: LocalEmbedding) -> None:
    texts = [ENGLISH["answer"], FILLER * 20, "short", SPANISH["answer"], FILLER * 5, *map(str, range(8))]
    together = await packaged_model.aget_text_embedding_batch(texts)
    apart = [await packaged_model.aget_text_embedding(text) for text in texts]
    assert np.asarray(together) @ np.asarray(apart).T == pytest.approx(
        np.asarray(apart) @ np.asarray(apart).T, abs=1e-3
    )
    assert [cosine(one, other) for one, other in zip(together, apart, strict=True)] == pytest.approx([1] * 13, abs=1e-4)


async def test_many_callers_at_once_get_what_each_would_get_alone(packaged_model: LocalEmbedding) -> None:
    """They share a tokenizer and a model."""
    texts = [f"{number} {FILLER * (number % 4)}" for number in range(24)]
    alone = [await packaged_model.aget_text_embedding(text) for text in texts]
    questions = [await packaged_model.aget_query_embedding(text) for text in texts[:8]]
    *together, asked = await asyncio.gather(
        *(packaged_model.aget_text_embedding_batch(texts[start : start + 3]) for start in range(0, 24, 3)),
        asyncio.gather(*(packaged_model.aget_query_embedding(text) for text in texts[:8])),
    )
    pairs = zip([*alone, *questions], [*itertools.chain(*together), *asked], strict=True)
    assert [cosine(one, other) for one, other in pairs] == pytest.approx([1] * 32, abs=1e-4)


def test_word_pieces_beyond_the_model_s_limit_are_left_out() -> None:
    """A window, cut out and read anew, may have more word pieces; the model has places for 512."""
    encoder = Encoder(read_model_folder(required_folder(), name="multilingual-e5-small"))
    short, long, longer = (encoder.encode(" ".join(["word"] * count)) for count in (510, 600, 900))
    assert np.allclose(long, short, atol=1e-6)
    assert np.allclose(longer, short, atol=1e-6)


async def test_the_end_of_a_long_passage_counts(packaged_model: LocalEmbedding) -> None:
    """The model alone reads 512 word pieces; this sentence comes after some 700."""
    question = await packaged_model.aget_query_embedding(ENGLISH["question"])
    texts = [FILLER * 45, FILLER * 40 + ENGLISH["answer"] * 5]
    without, with_answer = await packaged_model.aget_text_embedding_batch(texts)
    assert cosine(question, with_answer) > cosine(question, without) + 0.01


async def test_the_event_loop_stays_free_while_passages_are_embedded(packaged_model: LocalEmbedding) -> None:
    async with watched_turns() as turns:
        await packaged_model.aget_text_embedding_batch([FILLER * 7] * 24)
    assert len(turns) > 5
    assert max(turns) < 0.25


async def test_a_question_overtakes_passages_that_wait(packaged_model: LocalEmbedding) -> None:
    passages = asyncio.create_task(packaged_model.aget_text_embedding_batch([FILLER * 10] * 1_000))
    await asyncio.sleep(0.1)
    await packaged_model.aget_query_embedding(ENGLISH["question"])
    assert not passages.done()
    passages.cancel()


async def test_what_a_person_waits_for_overtakes_passages_that_wait(
    packaged_model: LocalEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, gates = packaged_model._threads, [threading.Event() for _ in range(packaged_model._threads.count)]
    begun: list[str] = []
    cut = LocalEmbedding._cut

    def record(self: LocalEmbedding, texts: Sequence[str], prefix: str) -> Any:
        begun.append(texts[0])
        return cut(self, texts, prefix)

    monkeypatch.setattr(LocalEmbedding, "_cut", record)
    busy = [threads.submit(gate.wait) for gate in gates]
    passages = asyncio.create_task(packaged_model.aget_text_embedding_batch(["ingested", "too"]))
    await asyncio.sleep(0.05)
    with somebody_waits():
        sentences = asyncio.create_task(packaged_model.aget_text_embedding_batch(["quoted", "as well"]))
        await asyncio.sleep(0.05)
    gates[0].set()  # one thread is free
    await asyncio.gather(passages, sentences)
    for gate, job in zip(gates, busy, strict=True):
        gate.set()
        await asyncio.wrap_future(job)
    assert begun == ["quoted", "ingested"]


async def test_cancelled_passages_are_not_embedded(
    packaged_model: LocalEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    cut = LocalEmbedding._cut

    def record(self: LocalEmbedding, texts: Sequence[str], prefix: str) -> Any:
        begun.extend(texts)
        return cut(self, texts, prefix)

    monkeypatch.setattr(LocalEmbedding, "_cut", record)
    passages = asyncio.create_task(packaged_model.aget_text_embedding_batch([FILLER * 40] * 2_000))
    await asyncio.sleep(0.1)
    passages.cancel()
    await packaged_model.aget_text_embedding("a passage that comes after")
    assert len(begun) < 1_000


async def test_it_works_in_an_ingestion_pipeline_and_in_code_that_is_not_async(packaged_model: LocalEmbedding) -> None:
    (node,) = await IngestionPipeline(transformations=[packaged_model], disable_cache=True).arun(
        nodes=[TextNode(text=ENGLISH["answer"])]
    )
    direct = await asyncio.to_thread(packaged_model.get_text_embedding, ENGLISH["answer"])
    assert cosine(node.embedding or [], direct) == pytest.approx(1, abs=1e-4)


async def test_loading_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    connect, others = socket.socket.connect, set(threading.enumerate()) - {threading.current_thread()}

    def refuse(self: socket.socket, address: Any) -> None:
        if threading.current_thread() in others:  # of earlier tests, such as one that watches a model's server
            return connect(self, address)
        opened.append(address)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    embedding = local_embedding()
    await embedding.warm_up()
    await embedding.aclose()
    assert opened == []


async def test_the_head_points_at_the_words_that_answer(packaged_model: LocalEmbedding) -> None:
    text = (
        "The library\nThe library has 40,000 books. It was closed for repairs in March 2019 and opened again later."
        " Members pay 12 euros a year. Books can be kept for three weeks."
    )
    for question, answer in (("When did the library close for repairs?", "2019"), ("What do members pay?", "12")):
        _, read = await packaged_model.aget_token_vectors(question, [text])
        assert read.answers is not None
        begin, end = read.places[read.answers.argmax()]
        assert answer in text[max(0, begin - 10) : end + 10]
