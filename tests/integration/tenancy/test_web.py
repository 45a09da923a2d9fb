"""Corpora, documents, agents and people through the API: what works, and what bad input is told."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import httpx
import pytest

from rag_service.domain import Filters, Identity, ParsedDocument
from rag_service.ingest.reingest import Reingestion
from rag_service.store.accounts.agents import AgentSpec, create_agent
from rag_service.store.accounts.keys import list_keys, revoke_key
from rag_service.store.corpora import update_corpus
from rag_service.store.rows import Slice
from tests.integration.tenancy.conftest import ADMIN, House, parse_here, text_file
from tests.integration.tenancy.web import build_application, client_of, new_key, web_settings

LLAMAS = "# Llamas\n\nLlamas live in the Andes."


async def _ana(house: House) -> tuple[Identity, str]:
    ana = await house.user("ana")
    return ana, await new_key(house, ana)


async def test_a_document_from_upload_to_deletion(house: House) -> None:
    _, key = await _ana(house)
    async with client_of(build_application(house, web_settings()), key) as client, house.working():
        corpus = (await client.post("/api/v1/corpora", json={"name": "notes"})).json()
        documents = f"/api/v1/corpora/{corpus['id']}/documents"
        reply = await client.post(documents, files={"file": ("llamas é.md", LLAMAS)}, data={"ttlSeconds": "3600"})
        assert reply.status_code == 202
        upload = reply.json()
        assert upload["expiresAt"] is not None
        events = await _watch(client, reply.headers["location"] + "/events")
        assert [name for name, _ in events][-1] == "status"
        assert events[-1][1]["status"] == "indexed"
        assert events[-1][1]["progress"] == {"done": 1, "total": 1}
        assert (await client.get(reply.headers["location"])).json()["status"] == "indexed"
        document = f"/api/v1/documents/{upload['documentId']}"
        listed = (await client.get(documents)).json()
        assert (listed["total"], listed["items"][0]["fileName"]) == (1, "llamas é.md")
        original = await client.get(document + "/original")
        assert original.text == LLAMAS
        assert original.headers["content-disposition"] == "attachment; filename*=UTF-8''llamas%20%C3%A9.md"
        chunks = (await client.get(document + "/chunks")).json()
        assert chunks["items"][0]["spans"][0]["location"]["headings"] == ["Llamas"]
        again = (await client.post(documents, files={"file": ("llamas é.md", LLAMAS)})).json()
        assert (again["uploadId"], again["status"]) == (upload["uploadId"], "indexed")
        assert (await client.patch(document, json={"ttlSeconds": None})).json()["expiresAt"] is None
        assert (await client.delete(document)).status_code == 204
        assert (await client.get(document)).status_code == 404
        assert (await client.get(reply.headers["location"])).status_code == 404
        assert (await client.get(documents)).json() == {"items": [], "total": 0}


async def test_a_stream_of_progress_ends_with_the_key_that_began_it(house: House) -> None:
    ana, key = await _ana(house)
    async with client_of(build_application(house, web_settings()), key) as client:  # no worker: the upload waits
        corpus = (await client.post("/api/v1/corpora", json={"name": "notes"})).json()
        reply = await client.post(f"/api/v1/corpora/{corpus['id']}/documents", json={"text": LLAMAS})
        watched = asyncio.create_task(_watch(client, reply.headers["location"] + "/events"))
        await asyncio.wait({watched}, timeout=1)
        assert not watched.done()
        async with house.database.transaction(ana) as connection:
            [found] = (await list_keys(connection, Slice())).items
            await revoke_key(connection, found.id)
        (first, _), (last, problem) = await asyncio.wait_for(watched, 60)
    assert (first, last, problem["code"]) == ("status", "error", "not_authenticated")


async def test_tags_are_listed_with_the_documents_that_can_be_asked_about(house: House) -> None:
    ana, key = await _ana(house)
    other = await house.user("bob")
    notes, old = await house.corpus(ana), await house.corpus(ana, "old")
    tagged = [
        (ana, notes, "a.txt", ("leave", "2025")),
        (ana, notes, "b.txt", ("2025", "2025")),
        (ana, notes, "c.txt", ()),
        (ana, notes, "gone.txt", ("expired",)),
        (ana, old, "d.txt", ("inactive",)),
        (other, await house.corpus(other), "e.txt", ("2025", "of others")),
    ]
    for identity, corpus, name, tags in tagged:
        await house.index(identity, corpus, replace(text_file(name, name), tags=tags))
    waiting = replace(text_file("waits.txt", "waits"), tags=("waiting",))
    await house.uploads.accept(waiting, corpus_id=notes.id, identity=ana)
    with house.owner() as owner:
        owner.execute("UPDATE rag.documents SET expires_at = now() - interval '1 second' WHERE name = 'gone.txt'")
        owner.execute("UPDATE rag.corpora SET active = false WHERE id = %s", [old.id])
    async with client_of(build_application(house, web_settings()), key) as client:
        assert (await client.get("/api/v1/tags")).json() == {
            "items": [{"name": "2025", "documents": 2}, {"name": "leave", "documents": 1}],
            "total": 2,
        }
        second = (await client.get("/api/v1/tags?offset=1&limit=1")).json()
        assert [tag["name"] for tag in second["items"]] == ["leave"]


async def test_changed_tags_limit_questions_and_outlive_a_new_ingestion(house: House) -> None:
    ana, key = await _ana(house)
    corpus = await house.corpus(ana)
    (upload,) = await house.index(ana, corpus, replace(text_file("a.md", LLAMAS), tags=("old",)))
    document = f"/api/v1/documents/{upload.document_id}"
    async with client_of(build_application(house, web_settings()), key) as client:
        changed = (await client.patch(document, json={"tags": ["herd", "2025"]})).json()
        assert (changed["tags"], changed["expiresAt"]) == (["herd", "2025"], None)
        assert await house.ask(ana, "llamas", Filters(tags=("herd",)))
        assert not await house.ask(ana, "llamas", Filters(tags=("old",)))
        kept = (await client.patch(document, json={"ttlSeconds": 60})).json()
        assert kept["tags"] == ["herd", "2025"]
        assert (await client.patch(document, json={"tags": ["a\0"]})).status_code == 400
        assert (await client.patch(document, json={"tags": "herd"})).status_code == 400
        with house.owner() as owner:
            owner.execute("UPDATE rag.documents SET fingerprint = 'of other settings'")
        assert await Reingestion(house.database, house.fingerprints).enqueue_all() == 1
        async with house.working():
            await house.settled(ana, upload)
        assert (await client.get(document)).json()["tags"] == ["herd", "2025"]


async def test_tags_that_change_while_a_document_is_indexed_stay(house: House) -> None:
    ana, key = await _ana(house)
    corpus = await house.corpus(ana)

    async def parse(data: bytes, file_name: str) -> ParsedDocument:
        document = f"/api/v1/documents/{upload.document_id}"
        assert (await client.patch(document, json={"tags": ["new"]})).json()["tags"] == ["new"]
        return await parse_here(data, file_name)

    async with client_of(build_application(house, web_settings()), key) as client, house.working(parser=parse):
        source = replace(text_file("a.md", LLAMAS), tags=("old",))
        upload = await house.uploads.accept(source, corpus_id=corpus.id, identity=ana)
        await house.settled(ana, upload)
        assert (await client.get(f"/api/v1/documents/{upload.document_id}")).json()["tags"] == ["new"]


async def test_a_file_that_cannot_be_read_says_why_and_can_be_tried_again(house: House) -> None:
    _, key = await _ana(house)
    async with client_of(build_application(house, web_settings()), key) as client, house.working():
        corpus = (await client.post("/api/v1/corpora", json={"name": "notes"})).json()
        for name, data in (("empty.txt", b""), ("broken.pdf", b"%PDF-1.7"), ("photo.png", b"\x89PNG\r\n\x1a\n" * 9)):
            reply = await client.post(f"/api/v1/corpora/{corpus['id']}/documents", files={"file": (name, data)})
            assert reply.status_code == 202
            last = (await _watch(client, reply.headers["location"] + "/events"))[-1][1]
            assert last["status"] == "failed", last
            assert name in last["reason"]
        again = await client.post(reply.headers["location"] + "/retry")
        assert (again.status_code, again.json()["status"]) == (202, "pending")


async def test_lists_come_in_slices_with_their_total(house: House) -> None:
    _, key = await _ana(house)
    async with client_of(build_application(house, web_settings()), key) as client:
        for number in range(5):
            await client.post("/api/v1/corpora", json={"name": f"corpus {number}"})
        reply = (await client.get("/api/v1/corpora?offset=3&limit=9")).json()
        assert ([item["name"] for item in reply["items"]], reply["total"]) == (["corpus 3", "corpus 4"], 5)
        assert (await client.get("/api/v1/corpora?offset=99")).json() == {
            "items": [],
            "total": 5,
            "indices": ["general", "retirement"],
        }


async def test_the_description_names_the_parameters_that_lists_take(house: House) -> None:
    """A list refuses a parameter that it does not know, and names those that it knows."""
    _, key = await _ana(house)
    async with client_of(build_application(house, web_settings()), key) as client:
        corpus = (await client.post("/api/v1/corpora", json={"name": "notes"})).json()["id"]
        described = (await client.get("/schema/openapi.json")).json()["paths"]
        refused: set[str] = set()
        for path, methods in described.items():
            reply = await client.get(path.replace("{corpus_id}", corpus), params={"unheard": "1"})
            named = re.search(r"(?:parameters|those) are ([\w, ]+)", reply.text)
            if reply.status_code == 400 and named:
                declared = {one["name"] for one in methods["get"].get("parameters", []) if one["in"] == "query"}
                assert declared == set(named[1].split(", ")), path
                refused.add(path)
    assert refused >= {"/api/v1/conversations", "/api/v1/feedback", "/api/v1/corpora/{corpus_id}/documents"}


async def test_a_key_is_shown_once(house: House) -> None:
    _, key = await _ana(house)
    application = build_application(house, web_settings())
    async with client_of(application, key) as client:
        created = (await client.post("/api/v1/keys", json={"name": "ci", "scopes": ["read"]})).json()
        described = (await client.get(f"/api/v1/keys/{created['id']}")).json()
        assert described["key"] is None
        async with client_of(application, created["key"]) as other:
            assert (await other.get("/api/v1/users/me")).json()["name"] == "ana"
            assert (await other.delete(f"/api/v1/keys/{created['id']}")).status_code == 403
        assert (await client.delete(f"/api/v1/keys/{created['id']}")).status_code == 204
        async with client_of(application, created["key"]) as other:
            assert (await other.get("/api/v1/users/me")).status_code == 401


BAD_INPUT: tuple[tuple[str, str, Any, str], ...] = (
    ("POST", "/corpora", {"name": " "}, "name"),
    ("POST", "/corpora", {"name": "x" * 201}, "name"),
    ("POST", "/corpora", {"name": "a\0b"}, "name"),
    ("POST", "/corpora", {"name": "n", "kind": "secret"}, "kind"),
    ("POST", "/corpora", {"name": "n", "ttlSeconds": 0}, "ttlSeconds"),
    ("POST", "/corpora", {"name": "n", "ttlSeconds": -1}, "ttlSeconds"),
    ("POST", "/corpora", {"name": "n", "index": "nothing"}, "index"),
    ("POST", "/corpora", {"name": "n", "color": "red"}, "color"),
    ("GET", "/corpora?limit=0", None, "limit"),
    ("GET", "/corpora?offset=-1", None, "offset"),
    ("GET", "/corpora?limit=ten", None, "limit"),
    ("GET", "/corpora?kind=secret", None, "kind"),
    ("POST", "/keys", {"name": "k", "scopes": ["everything"]}, "scopes"),
    ("POST", "/keys", {"name": "k", "scopes": []}, "scopes"),
    ("POST", "/keys", {"name": "k", "expiresAt": "2001-01-01T00:00:00Z"}, "expiresAt"),
    ("POST", "/keys", {"name": "k", "expiresAt": "9999-12-31T23:59:59-23:59"}, "expiresAt"),
    ("POST", "/users", {"name": "u", "role": "emperor"}, "role"),
    ("POST", "/agents", {"name": "a", "temperature": 3}, "temperature"),
    ("POST", "/agents", {"name": "a", "maxTokens": 1}, "maxTokens"),
    ("PATCH", "/users/00000000-0000-4000-8000-000000000001", {"role": "king"}, "role"),
    ("GET", "/feedback?thumbs=sideways", None, "thumbs"),
    ("GET", "/conversations?projectId=7", None, "projectId"),
    ("GET", "/conversations?projectID=00000000-0000-4000-8000-000000000001", None, "projectID"),
    ("GET", "/corpora?ofset=3", None, "ofset"),
)


async def test_bad_input_names_its_field(house: House) -> None:
    key = await new_key(house, ADMIN)
    async with client_of(build_application(house, web_settings()), key) as client:
        for method, path, body, field in BAD_INPUT:
            reply = await client.request(method, "/api/v1" + path, json=body)
            assert reply.status_code == 400, reply.text
            assert [error["field"] for error in reply.json()["errors"]] == [field]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/users", {"name": "u", "role": "emperor"}, "must be one of admin, user, not 'emperor'"),
        ("/keys", {"name": "k", "scopes": ["read", "all"]}, "item 2 must be one of admin, read, write, not 'all'"),
        (
            "/agents",
            {"name": "a", "modelProvider": "skynet"},
            "must be one of extractive, ollama, openai_like, gguf, not 'skynet'",
        ),
    ],
)
async def test_a_wrong_choice_names_the_right_ones(house: House, path: str, body: Any, message: str) -> None:
    key = await new_key(house, ADMIN)
    async with client_of(build_application(house, web_settings()), key) as client:
        reply = await client.post("/api/v1" + path, json=body)
    assert [error["message"] for error in reply.json()["errors"]] == [message]


async def test_a_file_over_the_limit_is_told_in_the_words_of_the_setting(house: House) -> None:
    ana, key = await _ana(house)
    corpus = await house.corpus(ana)
    async with client_of(build_application(house, web_settings(upload_max_mb=1)), key) as client:
        for size in (1024 * 1024 + 1, 5 * 1024 * 1024):  # counted while it arrives; announced, and not read at all
            reply = await client.post(f"/api/v1/corpora/{corpus.id}/documents", files={"file": ("a.txt", b"x" * size)})
            assert (reply.status_code, reply.json()["code"]) == (413, "too_large")
            assert reply.json()["detail"] == "The file is larger than 1 MB."


async def test_bad_uploads_leave_no_half_state(house: House) -> None:
    ana, key = await _ana(house)
    corpus = await house.corpus(ana)
    path = f"/api/v1/corpora/{corpus.id}/documents"
    application = build_application(house, web_settings(upload_max_mb=1))
    async with client_of(application, key) as client:
        for files, data, status in (
            ({"file": ("a.txt", b"x" * (1024 * 1024 + 1))}, {}, 413),
            ({"file": ("a.txt", b"x")}, {"ttlSeconds": "0"}, 400),
            ({"file": ("a.txt", b"x")}, {"ttlSeconds": "-1"}, 400),
            ({"file": ("a.txt", b"x")}, {"ttlSeconds": "soon"}, 400),
            ({"file": ("a.txt", b"x")}, {"shelf": "top"}, 400),
            ({"other": ("a.txt", b"x")}, {}, 400),
        ):
            reply = await client.post(path, files=files, data=data)
            assert reply.status_code == status, reply.text
        broken = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhalf of'
        headers = {"content-type": "multipart/form-data; boundary=b"}
        assert (await client.post(path, content=broken, headers=headers)).status_code == 400
        assert (await client.post(path, content=b"x", headers={"content-type": "text/plain"})).status_code == 415
        async with house.database.transaction(ana) as connection:
            await update_corpus(connection, corpus.id, active=False)
        refused = await client.post(path, json={"text": "x"})
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    with house.owner() as owner:
        for table in ("documents", "uploads", "originals", "procrastinate_jobs"):
            assert owner.execute(f"SELECT count(*) FROM rag.{table}").fetchone() == (0,), table


async def test_conflicts_are_told(house: House) -> None:
    ana, key = await _ana(house)
    corpus = await house.corpus(ana)
    async with house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name="closed"))
    async with client_of(build_application(house, web_settings()), key) as client:
        refused = await client.put(f"/api/v1/agents/{agent.id}/corpora/{corpus.id}")
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert (await client.post("/api/v1/corpora", json={"name": "notes"})).status_code == 409
        twice = await client.get("/api/v1/corpora", headers=[("X-API-Key", key), ("Authorization", f"Bearer {key}")])
        assert twice.status_code == 400
    async with client_of(build_application(house, web_settings()), await new_key(house, ADMIN)) as client:
        oneself = await client.delete(f"/api/v1/users/{ADMIN.user_id}")
        assert (oneself.status_code, oneself.json()["code"]) == (409, "conflict")


async def _watch(client: httpx.AsyncClient, path: str) -> list[tuple[str, Any]]:
    """Events of a stream, as NDJSON."""
    reply = await client.get(path, headers={"Accept": "application/x-ndjson"}, timeout=30)
    assert reply.status_code == 200
    lines = [json.loads(line) for line in reply.text.splitlines()]
    return [(line["event"], line["data"]) for line in lines if line["event"] != "heartbeat"]
