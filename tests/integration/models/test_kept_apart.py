"""What the models in this process compute for one user makes nothing faster for another, counted in calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from rag_service.models.embedding.encoder import Encoder, Ids, Layers
from rag_service.models.embedding.guarded import GuardedEmbedding
from rag_service.models.embedding.local import LocalEmbedding
from rag_service.models.embedding.model_folder import read_model_folder
from rag_service.models.embedding.packaged import required_folder
from rag_service.recent import keep_for
from rag_service.settings import Settings

ANNA, BERTA = uuid4(), uuid4()
QUESTION = "Who knows the code of the safe?"
SECRET = "Vera keeps the code of the safe in the blue folder."


@dataclass
class Counted:
    """The packaged model with a count of the texts that it reads."""

    size: int = 512  # RAG_QUERY_CACHE_SIZE
    calls: int = 0
    model: LocalEmbedding = field(init=False)
    guarded: GuardedEmbedding = field(init=False)

    def __post_init__(self) -> None:
        folder = read_model_folder(required_folder(), name="multilingual-e5-small")
        encoder = Encoder(folder)
        read = encoder.layers

        def layers(ids: Ids) -> Layers:
            self.calls += 1
            return read(ids)

        encoder.layers = layers
        self.model = LocalEmbedding(folder, lambda: encoder)
        self.guarded = GuardedEmbedding(self.model, Settings(query_cache_size=self.size), in_process=True)

    async def ask(self) -> int:
        """Do all that an answer does with a question and a passage; returns how often the model was called."""
        before = self.calls
        await self.guarded.aget_query_embedding(QUESTION)
        await self.model.aget_token_vectors(QUESTION, [SECRET])
        return self.calls - before

    async def ingest(self) -> int:
        """Embed the passage; returns how often the model was called."""
        before = self.calls
        await self.guarded.aget_text_embedding_batch([SECRET])
        return self.calls - before


@pytest.fixture
def counted() -> Counted:
    return Counted()


async def test_a_question_is_computed_once_for_a_user_and_anew_for_each_other(counted: Counted) -> None:
    with keep_for(ANNA):
        first, again = await counted.ask(), await counted.ask()
    with keep_for(BERTA):
        other = await counted.ask()
    assert first == other == 2  # the question, for both kinds of vectors, and the passage
    assert again == 0


async def test_a_document_of_one_user_makes_neither_upload_nor_question_of_another_faster(counted: Counted) -> None:
    with keep_for(ANNA):
        assert await counted.ingest() == 1
    with keep_for(BERTA):
        assert await counted.ingest() == 1
        assert await counted.ask() <= 2
    with keep_for(uuid4()):
        assert await counted.ask() == 2


async def test_nothing_is_kept_where_no_user_is_known(counted: Counted) -> None:
    assert [await counted.ingest(), await counted.ingest()] == [1, 1]
    assert [await counted.ask(), await counted.ask()] == [3, 3]


async def test_without_a_cache_nothing_is_kept_from_one_question_to_the_next() -> None:
    counted = Counted(size=0)
    for _ in range(2):
        with keep_for(None):  # as the engine does with RAG_QUERY_CACHE_SIZE=0
            assert await counted.ask() == 2
