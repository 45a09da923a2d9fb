"""The background fit over a real database and a double of Ollama: once, resumed, and used by every process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import psycopg
import pytest

from rag_service.domain import LOCAL_ADMIN, Identity, Role
from rag_service.errors import EmbeddingError
from rag_service.fitting import background
from rag_service.fitting.background import RelevanceFitter
from rag_service.indices import load_index
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.guarded import close_embedding
from rag_service.models.embedding.relevance import DEFAULT_SCALE, ModelRelevance
from rag_service.settings import Settings
from rag_service.store.database import Database
from rag_service.store.relevance_fits import lease_model, read_model_fit, renew_lease
from tests.doubles.ollama import EMBED, OllamaDouble, failure, ollama
from tests.fitting import load_part, plain, shifted

pytestmark = pytest.mark.slow

__all__ = ["ollama"]

MODEL = "other-model"
MakeFitter = Callable[[], RelevanceFitter]


@pytest.fixture(autouse=True)
def _part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "load_shipped", load_part)
    monkeypatch.setattr(background, "LOOK_SECONDS", 0.05)


@pytest.fixture
async def make_fitter(database: Database, ollama: OllamaDouble) -> AsyncIterator[MakeFitter]:
    """A fitter as each process has one."""
    settings = Settings(embedding_provider="ollama", embedding_model=MODEL, ollama_url=ollama.url, breaker_failures=0)
    ollama.vector_of = shifted

    models = []

    def make() -> RelevanceFitter:
        models.append(build_embedding(settings))
        return RelevanceFitter(ModelRelevance(MODEL), database, models[-1], load_index("general"))

    yield make
    for model in models:
        await close_embedding(model)


def embedded(ollama: OllamaDouble) -> list[str]:
    """Texts that the model was asked for, but for the one by which it is known."""
    inputs = [body["input"] for body in ollama.bodies(EMBED)]
    texts = [text for given in inputs for text in ([given] if isinstance(given, str) else given)]
    return [text for text in texts if text != background._PROBE]


async def test_two_processes_measure_once_and_both_use_it(make_fitter: MakeFitter, ollama: OllamaDouble) -> None:
    one, two = make_fitter(), make_fitter()
    assert one.relevance.state == "unknown"
    async with asyncio.timeout(180):
        await asyncio.gather(one.complete(), two.complete())
    assert one.relevance.state == two.relevance.state == "fitted"
    assert one.relevance.known == two.relevance.known
    texts = embedded(ollama)
    wanted = {text for part in load_part() for text in (*part.passages, *(asked.text for asked in part.questions))}
    assert sorted(texts) == sorted(wanted)
    late = make_fitter()
    await late.load()
    assert late.relevance.known == one.relevance.known


async def test_an_interrupted_fit_goes_on_where_it_was(make_fitter: MakeFitter, ollama: OllamaDouble) -> None:
    first = make_fitter()
    task = asyncio.create_task(first.run())
    while first.progress.done < 150:  # noqa: ASYNC110 - progress is a number, not an event
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    second = make_fitter()
    async with asyncio.timeout(180):
        await second.complete()  # the lease was given back
    assert second.relevance.state == "fitted"
    texts = embedded(ollama)
    assert len(texts) <= len(set(texts)) + 20  # at most the batch that was on its way


async def test_the_scale_is_used_before_the_fit_is_there(
    make_fitter: MakeFitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitter = make_fitter()
    with monkeypatch.context() as patch:
        patch.setattr(background, "fit_relevance", _refuse)
        with pytest.raises(EmbeddingError):
            await fitter.complete()
    assert fitter.relevance.state == "scaled"
    assert fitter.report().detail == background.DETAILS["scaled"]
    assert fitter.relevance.scale("es") != DEFAULT_SCALE
    await fitter.complete()
    assert fitter.relevance.state == "fitted"


async def test_a_model_that_fails_is_asked_again(make_fitter: MakeFitter, ollama: OllamaDouble) -> None:
    ollama.script(EMBED, failure(400), failure(400))
    fitter = make_fitter()
    task = asyncio.create_task(fitter.run())
    async with asyncio.timeout(180):
        while fitter.relevance.state != "fitted":  # noqa: ASYNC110 - a state, not an event
            await asyncio.sleep(0.05)
    assert len(ollama.bodies(EMBED)) > 2, "after two failures"
    assert not task.done(), "it goes on looking"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _refuse(*_: object, **__: object) -> None:
    raise EmbeddingError("interrupted")


async def test_a_model_that_changed_under_its_name_is_measured_again(
    make_fitter: MakeFitter, ollama: OllamaDouble
) -> None:
    before = make_fitter()
    await before.complete()
    ollama.vector_of = plain
    after = make_fitter()
    await after.load()
    assert after.relevance.known == before.relevance.known  # until the model has been asked
    await after.complete()
    known = after.relevance.known
    assert known is not None and before.relevance.known is not None
    assert known.scales["en"].factor < before.relevance.known.scales["en"].factor / 2


async def test_users_read_what_was_measured_and_cannot_change_it(database: Database, make_fitter: MakeFitter) -> None:
    async with database.transaction(LOCAL_ADMIN) as connection:
        assert await lease_model(connection, MODEL, b"")
        assert not await lease_model(connection, MODEL, b"")  # somebody measures it
        await renew_lease(connection, MODEL, seconds=86_400)
        assert await lease_model(connection, MODEL, b"")  # no lease lasts that long: the clock was set back
        await renew_lease(connection, MODEL, seconds=0)
        user_id = (
            await (
                await connection.execute("INSERT INTO users (name, role) VALUES ('ana', 'user') RETURNING id")
            ).fetchone()
            or ()
        )[0]
    ana = Identity(user_id=user_id, role=Role.USER)
    async with database.transaction(ana) as connection:
        assert await read_model_fit(connection, MODEL) is not None
        await connection.execute("UPDATE relevance_fits SET scales = '{\"*\": {}}'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with database.transaction(ana) as connection:
            await lease_model(connection, "another-model", b"")
    async with database.transaction(LOCAL_ADMIN) as connection:
        found = await read_model_fit(connection, MODEL)
    assert found is not None and found.scales == {}
    async with database.transaction(None) as connection:
        assert await read_model_fit(connection, MODEL) is None
