"""`rag-service keys` and `users`, as an operator types them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from rag_service.auth.authenticator import Authenticator, Principal
from rag_service.cli import main
from rag_service.cli.admin import keys, users
from rag_service.errors import AuthenticationError
from rag_service.settings import Settings
from rag_service.store.accounts.keys import Scope
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer


@pytest.fixture
def run(database_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAG_DATABASE_URL", database_server.service_conninfo)
    monkeypatch.setattr("rag_service.observability.logs.configure_logging", lambda settings: None)

    def call(group: object, *arguments: str) -> Result:
        return CliRunner().invoke(group, arguments)  # type: ignore[arg-type]

    return call


def authenticate(server: EmbeddedServer, secret: str) -> Principal:
    async def work() -> Principal:
        database = Database(server.service_conninfo, pool_size=1, timeout=5)
        await database.open()
        try:
            settings = Settings(auth="required", auth_cache_seconds=0)
            return await Authenticator(database, settings).authenticate({"x-api-key": secret})
        finally:
            await database.close()

    return asyncio.run(work())


def test_a_key_is_created_listed_and_revoked(run, database_server: EmbeddedServer) -> None:
    user_id = UUID(run(users, "create", "ana", "--subject", "ana|1").output.strip())
    created = run(keys, "create", "--user", str(user_id), "--name", "laptop", "--scope", "read", "--days", "7")
    assert created.exit_code == 0, created.output
    secret = created.stdout.strip()
    principal = authenticate(database_server, secret)
    assert (principal.user_id, principal.scopes) == (user_id, {Scope.READ})
    listed = run(keys, "list", "--user", "ana").output
    assert "laptop" in listed
    assert secret not in listed
    key_id = listed.splitlines()[1].split()[0]
    assert run(keys, "revoke", key_id).exit_code == 0
    assert "revoked" in run(keys, "list").output
    with pytest.raises(AuthenticationError):
        authenticate(database_server, secret)


def test_quickstart_over_a_folder_without_documents_is_one_sentence(run, tmp_path: Path) -> None:
    outcome = run(main, "quickstart", "--once", "--documents", str(tmp_path))
    assert outcome.exit_code == 1
    assert f"Error: No documents found in {tmp_path}." in outcome.output
    assert "Traceback" not in outcome.output and "request" not in outcome.output


def test_quickstart_once_fails_where_no_document_can_be_read(run, tmp_path: Path) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 no more")
    outcome = run(main, "quickstart", "--once", "--documents", str(tmp_path))
    assert outcome.exit_code == 1
    assert "not ingested: broken.pdf" in outcome.output
    assert "None of the documents in" in outcome.output


def test_an_empty_question_is_refused(run) -> None:
    outcome = run(main, "ask", " ")
    assert (outcome.exit_code, "The question is empty." in outcome.output) == (2, True)


def test_users_are_created_listed_and_deactivated(run) -> None:
    assert run(users, "create", "ana").exit_code == 0
    assert run(users, "create", "boss", "--admin").exit_code == 0
    assert run(users, "deactivate", "ana").exit_code == 0
    lines = run(users, "list").output.splitlines()
    assert [line.split()[1:4] for line in lines[1:]] == [
        ["ana", "user", "inactive"],
        ["boss", "admin", "active"],
        ["local", "admin", "active"],
    ]


@pytest.mark.parametrize(
    ("group", "arguments", "said"),
    [
        (
            keys,
            ("create", "--user", "nobody", "--name", "x"),
            "There is no user 'nobody'.\n`rag-service users list` shows all users.",
        ),
        (keys, ("create", "--name", "x", "--scope", "everything"), "is not one of"),
        (keys, ("revoke", "00000000-0000-4000-8000-00000000dead"), "This key does not exist"),
        (keys, ("revoke", "7"), "not a valid UUID"),
        (keys, ("create", "--name", ""), "A name must have 1 to 200 characters."),
        (users, ("create", " "), "needs a name"),
        (users, ("create", "x" * 201), "A name must have 1 to 200 characters."),
        (users, ("create", "local"), "already"),
        (users, ("deactivate", "local"), "cannot"),
    ],
)
def test_mistakes_are_explained(run, group: object, arguments: tuple[str, ...], said: str) -> None:
    result = run(group, *arguments)
    assert result.exit_code != 0
    assert said in result.output
