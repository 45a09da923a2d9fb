"""Several documents deleted or moved by one request: each by itself, and only those of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx

from rag_service.domain import CorpusKind
from rag_service.store.corpora import Corpus
from rag_service.store.documents.documents import DocumentInput
from tests.integration.tenancy.conftest import ADMIN, House, text_file
from tests.integration.tenancy.web import build_application, client_of, new_key, web_settings

AT = "/api/v1/documents/batch"


async def send(client: httpx.AsyncClient, action: str, ids: Sequence[UUID], **more: Any) -> list[str | None]:
    """The code of each document's problem."""
    body = {"action": action, "documentIds": [str(one) for one in ids], **{name: str(of) for name, of in more.items()}}
    reply = (await client.post(AT, json=body)).raise_for_status().json()
    assert [item["documentId"] for item in reply["items"]] == body["documentIds"]
    return [item["problem"] and item["problem"]["code"] for item in reply["items"]]


async def share(house: House) -> Corpus:
    """A corpus that everybody may read."""
    corpus = await house.corpus(ADMIN, "shared", CorpusKind.GLOBAL)
    with house.owner() as owner:
        owner.execute("UPDATE rag.corpora SET shared = true WHERE id = %s", [corpus.id])
    return corpus


async def test_documents_are_deleted_and_those_of_others_stay(house: House) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    shared = await share(house)
    mine = await house.index(ana, await house.corpus(ana), text_file("a.txt", "Llamas."), text_file("b.txt", "Emus."))
    (theirs,) = await house.index(ben, await house.corpus(ben), text_file("c.txt", "Yaks."))
    (common,) = await house.index(ADMIN, shared, text_file("d.txt", "Geese."))
    ids = [mine[0].document_id, theirs.document_id, common.document_id, uuid4(), mine[1].document_id]
    async with client_of(build_application(house, web_settings()), await new_key(house, ana)) as client:
        assert await send(client, "delete", ids) == [None, "not_found", "not_permitted", "not_found", None]
        for wrong in ({"action": "move"}, {"action": "delete", "corpusId": str(shared.id)}, {"action": "hide"}):
            assert (await client.post(AT, json={"documentIds": [str(uuid4())], **wrong})).status_code == 400
        for count in (0, 501):
            body = {"action": "delete", "documentIds": [str(uuid4()) for _ in range(count)]}
            assert (await client.post(AT, json=body)).status_code == 400
    assert await house.ask(ana, "animals") == {"Geese."}
    assert await house.ask(ben, "animals") == {"Yaks.", "Geese."}


async def test_documents_move_with_what_was_said_of_them_and_into_no_corpus_of_others(house: House) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    notes, archive = await house.corpus(ana), await house.corpus(ana, "archive")
    shared, theirs = await share(house), await house.corpus(ben)
    ends = datetime.now(UTC) + timedelta(days=3)
    llamas = DocumentInput(data=b"Llamas.", file_name="a.txt", title="On llamas", tags=("wool",), metadata={"x": 1})
    first, second = await house.index(ana, notes, llamas, text_file("b.txt", "Emus."))
    await house.index(ana, archive, text_file("b.txt", "Other emus."))
    with house.owner() as owner:
        owner.execute("UPDATE rag.documents SET expires_at = %s WHERE id = %s", [ends, first.document_id])
    ids = [first.document_id, second.document_id]
    async with client_of(build_application(house, web_settings()), await new_key(house, ana)) as client:
        for corpus, status in ((theirs, 404), (shared, 403)):
            body = {"action": "move", "documentIds": [str(one) for one in ids], "corpusId": str(corpus.id)}
            assert (await client.post(AT, json=body)).status_code == status
        assert await send(client, "move", ids, corpusId=archive.id) == [None, "conflict"]
        async with house.working():
            listed = (await client.get(f"/api/v1/corpora/{archive.id}/documents?q=a.txt")).json()["items"]
            await client.get(f"/api/v1/uploads/{listed[0]['uploadId']}/events")  # ends when it is indexed
        (moved,) = (await client.get(f"/api/v1/corpora/{archive.id}/documents?q=a.txt")).json()["items"]
        assert (moved["title"], moved["tags"], moved["status"]) == ("On llamas", ["wool"], "indexed")
        assert abs(datetime.fromisoformat(moved["expiresAt"]) - ends) < timedelta(minutes=1)
        left = (await client.get(f"/api/v1/corpora/{notes.id}/documents")).json()["items"]
        assert [one["name"] for one in left] == ["b.txt"], "nothing was replaced"
        assert (await client.get(f"/api/v1/documents/{moved['id']}/original")).content == b"Llamas."
        assert await send(client, "move", [UUID(moved["id"])], corpusId=archive.id) == ["conflict"], "it is there"
    assert await house.ask(ana, "animals") == {"Llamas.", "Emus.", "Other emus."}
    assert await house.ask(ben, "animals") == set()


async def test_a_key_without_the_scope_moves_nothing_out_of_a_global_corpus(house: House) -> None:
    shared, own = await share(house), await house.corpus(ADMIN)
    (common,) = await house.index(ADMIN, shared, text_file("d.txt", "Geese."))
    key = await new_key(house, ADMIN, ("read", "write"))
    async with client_of(build_application(house, web_settings()), key) as client:
        assert await send(client, "move", [common.document_id], corpusId=own.id) == ["not_permitted"]
        assert await send(client, "delete", [common.document_id]) == ["not_permitted"]
