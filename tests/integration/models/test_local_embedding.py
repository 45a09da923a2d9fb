"""The packaged MiniLM, for real: what its vectors mean, and that it never holds up the event loop."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import TextNode

from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.encoder import Encoder, Precision
from rag_service.models.embedding.local import LocalEmbedding
from rag_service.models.embedding.model_folder import read_model_folder
from rag_service.models.embedding.packaged import required_folder
from rag_service.models.local_runtime import somebody_waits
from rag_service.settings import Settings

SPANISH = {
    "question": "¿Cuándo vence el plazo para presentar la solicitud?",
    "answer": "El plazo de presentación de la solicitud termina el 30 de mayo.",
    "other": "La receta lleva dos huevos, harina y una pizca de sal.",
}
ENGLISH = {
    "question": "When does the supplier have to deliver the parts?",
    "answer": "The supplier delivers the parts within ten working days.",
    "other": "Employees may retire early from the age of sixty.",
}
FILLER = "The committee met on Tuesday and approved the minutes of the last session without changes. "


def local_embedding(precision: Precision = "float32") -> LocalEmbedding:
    embedding = build_embedding(Settings(embedding_precision=precision)).inner
    assert isinstance(embedding, LocalEmbedding)
    return embedding


def packaged_encoder(precision: Precision) -> Encoder:
    return Encoder(read_model_folder(required_folder(), name="all-minilm-l6-v2"), precision=precision)


@pytest.fixture(scope="module")
def minilm() -> Iterator[LocalEmbedding]:
    """One loaded model for the module."""
    embedding = local_embedding()
    asyncio.run(embedding.warm_up())
    yield embedding
    asyncio.run(embedding.aclose())


def cosine(left: list[float], right: list[float]) -> float:
    return float(np.dot(left, right))


@pytest.mark.parametrize(("texts", "margin"), [(ENGLISH, 0.3), (SPANISH, 0.1)], ids=["en", "es"])
async def test_a_question_is_nearer_to_its_answer_than_to_another_text(
    minilm: LocalEmbedding, texts: dict[str, str], margin: float
) -> None:
    """By less in Spanish: the model is an English one."""
    question = await minilm.aget_query_embedding(texts["question"])
    answer, other = await minilm.aget_text_embedding_batch([texts["answer"], texts["other"]])
    assert cosine(question, answer) > cosine(question, other) + margin


async def test_every_vector_has_384_dimensions_and_length_one(minilm: LocalEmbedding) -> None:
    vectors = await minilm.aget_text_embedding_batch(["", "a", "ñ🙂", FILLER * 3, FILLER * 60])
    assert np.asarray(vectors).shape == (5, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-5)


async def test_a_batch_of_mixed_lengths_keeps_its_order(minilm: LocalEmbedding) -> None:
    texts = [ENGLISH["answer"], FILLER * 20, "short", SPANISH["answer"], FILLER * 5, *map(str, range(8))]
    together = await minilm.aget_text_embedding_batch(texts)
    apart = [await minilm.aget_text_embedding(text) for text in texts]
    assert np.asarray(together) @ np.asarray(apart).T == pytest.approx(
        np.asarray(apart) @ np.asarray(apart).T, abs=1e-3
    )
    assert [cosine(one, other) for one, other in zip(together, apart, strict=True)] == pytest.approx([1] * 13, abs=1e-4)


async def test_many_callers_at_once_get_what_each_would_get_alone(minilm: LocalEmbedding) -> None:
    """They share a tokenizer and a model."""
    texts = [f"{number} {FILLER * (number % 4)}" for number in range(24)]
    alone = [await minilm.aget_text_embedding(text) for text in texts]
    questions = [await minilm.aget_query_embedding(text) for text in texts[:8]]
    *together, asked = await asyncio.gather(
        *(minilm.aget_text_embedding_batch(texts[start : start + 3]) for start in range(0, 24, 3)),
        asyncio.gather(*(minilm.aget_query_embedding(text) for text in texts[:8])),
    )
    pairs = zip([*alone, *questions], [*itertools.chain(*together), *asked], strict=True)
    assert [cosine(one, other) for one, other in pairs] == pytest.approx([1] * 32, abs=1e-4)


async def test_vectors_are_those_of_torch(minilm: LocalEmbedding) -> None:
    """The sentence-transformers library on torch is the oracle; each text fits one window."""
    from sentence_transformers import SentenceTransformer

    texts = [ENGLISH["answer"], SPANISH["answer"], FILLER * 7, "short", "ñ🙂", "x" * 3000, "."]
    expected = SentenceTransformer(str(required_folder()), device="cpu", local_files_only=True).encode(texts)
    assert np.asarray(await minilm.aget_text_embedding_batch(texts)) == pytest.approx(expected, abs=1e-5)


async def test_eight_bits_give_nearly_the_same_vectors(minilm: LocalEmbedding) -> None:
    texts = [ENGLISH["answer"], SPANISH["answer"], FILLER * 20, "short", "", "ñ🙂", "x" * 3000]
    embedding = local_embedding("int8")
    vectors = np.asarray(await embedding.aget_text_embedding_batch(texts))
    apart = [await embedding.aget_text_embedding(text) for text in texts]
    await embedding.aclose()
    expected = np.asarray(await minilm.aget_text_embedding_batch(texts))
    assert np.array_equal(vectors, apart)  # a vector does not depend on its neighbours
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-5)
    assert 0.97 < (vectors * expected).sum(axis=1).min() < 0.9999


def test_the_model_in_eight_bits_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = packaged_encoder("int8").encode("a text")
    (kept,) = (tmp_path / "rag_service").iterdir()
    made = kept.stat().st_mtime_ns
    assert np.array_equal(packaged_encoder("int8").encode("a text"), first)
    assert kept.stat().st_mtime_ns == made


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_word_pieces_beyond_the_model_s_limit_are_left_out(precision: Precision) -> None:
    """A window of 128 word pieces, cut out and read anew, may have more; the model has places for 512."""
    encoder = packaged_encoder(precision)
    short, long, longer = (encoder.encode(" ".join(["word"] * count)) for count in (254, 300, 900))
    assert np.allclose(long, short, atol=1e-6)
    assert np.allclose(longer, short, atol=1e-6)


async def test_the_end_of_a_long_passage_counts(minilm: LocalEmbedding) -> None:
    """The model alone reads 256 word pieces; this sentence stands behind some 700."""
    question = await minilm.aget_query_embedding(ENGLISH["question"])
    without, with_answer = await minilm.aget_text_embedding_batch([FILLER * 45, FILLER * 40 + ENGLISH["answer"] * 5])
    assert cosine(question, with_answer) > cosine(question, without) + 0.05


async def test_the_event_loop_stays_free_while_passages_are_embedded(minilm: LocalEmbedding) -> None:
    work = asyncio.create_task(minilm.aget_text_embedding_batch([FILLER * 7] * 24))
    worst = 0.0
    while not work.done():
        began = time.monotonic()
        await asyncio.sleep(0.005)
        worst = max(worst, time.monotonic() - began)
    assert worst < 0.5


async def test_a_question_overtakes_passages_that_wait(minilm: LocalEmbedding) -> None:
    passages = asyncio.create_task(minilm.aget_text_embedding_batch([FILLER * 10] * 64))
    await asyncio.sleep(0.1)
    await minilm.aget_query_embedding(ENGLISH["question"])
    assert not passages.done()
    passages.cancel()


async def test_what_a_person_waits_for_overtakes_passages_that_wait(
    minilm: LocalEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, gates = minilm._threads, [threading.Event() for _ in range(minilm._threads.count)]
    begun: list[str] = []
    cut = LocalEmbedding._cut

    def record(self: LocalEmbedding, texts: Sequence[str], prefix: str) -> Any:
        begun.append(texts[0])
        return cut(self, texts, prefix)

    monkeypatch.setattr(LocalEmbedding, "_cut", record)
    busy = [threads.submit(gate.wait) for gate in gates]
    passages = asyncio.create_task(minilm.aget_text_embedding_batch(["ingested", "too"]))
    await asyncio.sleep(0.05)
    with somebody_waits():
        sentences = asyncio.create_task(minilm.aget_text_embedding_batch(["quoted", "as well"]))
        await asyncio.sleep(0.05)
    gates[0].set()  # one thread is free
    await asyncio.gather(passages, sentences)
    for gate, job in zip(gates, busy, strict=True):
        gate.set()
        await asyncio.wrap_future(job)
    assert begun == ["quoted", "ingested"]


async def test_cancelled_passages_are_not_embedded(minilm: LocalEmbedding) -> None:
    passages = asyncio.create_task(minilm.aget_text_embedding_batch([FILLER * 40] * 200))
    await asyncio.sleep(0.1)
    passages.cancel()
    began = time.monotonic()
    await minilm.aget_text_embedding("a passage that comes after")
    assert time.monotonic() - began < 5  # embedding them all would take far longer


async def test_it_works_in_an_ingestion_pipeline_and_in_code_that_is_not_async(minilm: LocalEmbedding) -> None:
    (node,) = await IngestionPipeline(transformations=[minilm], disable_cache=True).arun(
        nodes=[TextNode(text=ENGLISH["answer"])]
    )
    direct = await asyncio.to_thread(minilm.get_text_embedding, ENGLISH["answer"])
    assert cosine(node.embedding or [], direct) == pytest.approx(1, abs=1e-4)


async def test_loading_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []

    def refuse(self: socket.socket, address: object) -> None:
        opened.append(address)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    embedding = local_embedding()
    await embedding.warm_up()
    await embedding.aclose()
    assert opened == []
