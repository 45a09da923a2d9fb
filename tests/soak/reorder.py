"""50 rounds of versions of a file with the database away in between: `python -m tests.soak.reorder [rounds]`.

In each round versions of one file are uploaded one after the other, and sent again until they are accepted; at a random
moment the database stops, and at a later one it starts again. Exits with 1 when another version than the last one is
stored in the end, when one waits for ever, or when a reply is neither an acceptance nor a failure that may pass.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import click
import httpx
import psycopg

from rag_service.domain import LOCAL_ADMIN
from tests.integration.resilience.conftest import StoppableServer
from tests.soak.rig import paced_embedder, running_server

_VERSIONS = 6
_WITHIN = 120.0  # seconds in which the last version must be stored
_STORED = """
    SELECT t.text, array(
        SELECT u.status FROM rag.uploads u WHERE u.document_id = d.id AND u.code IS DISTINCT FROM 'superseded'
    )
    FROM rag.documents d LEFT JOIN rag.document_texts t ON t.document_id = d.id
    WHERE d.corpus_id = %s AND d.name = %s"""


@dataclass(kw_only=True)
class Rounds:
    """The service, its database and what was seen so far."""

    server: StoppableServer
    client: httpx.AsyncClient
    corpus: str
    draw: random.Random
    replies: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    async def play(self, number: int) -> bool:
        """Whether the last version won."""
        stops = self.draw.randrange(0, _VERSIONS - 1)
        starts = self.draw.randrange(stops + 1, _VERSIONS)
        name, starting = f"round-{number}.txt", None
        for version in range(_VERSIONS):
            if version == stops:
                await asyncio.to_thread(self.server.stop, self.draw.choice(["fast", "immediate"]))
            if version == starts:  # while it starts, versions go on coming
                starting = asyncio.create_task(asyncio.to_thread(self.server.start))
                await asyncio.sleep(self.draw.uniform(0, 0.6))
            await self._upload(name, f"This is version {version} of round {number}.")
        if starting is not None:
            await starting
        wanted = f"version {_VERSIONS - 1} of round {number}."
        stored = await self._settled(name, wanted)
        if stored is None or wanted not in stored:
            self.faults.append(f"{name}: wanted {wanted!r}, stored {stored!r}; away from {stops} to {starts}")
            return False
        return True

    async def _upload(self, name: str, text: str) -> None:
        """Until it is accepted."""
        while True:
            try:
                reply = await self.client.post(
                    f"/api/v1/corpora/{self.corpus}/documents", files={"file": (name, text.encode(), "text/plain")}
                )
            except httpx.TransportError as error:
                self.replies[type(error).__name__] += 1
            else:
                code = "" if reply.status_code == 202 else reply.json()["code"]
                self.replies[f"{reply.status_code} {code}".strip()] += 1
                if reply.status_code == 202:
                    return
                if code not in ("store_unavailable", "rate_limited"):
                    self.faults.append(reply.text)
                    return
            await asyncio.sleep(0.1)

    async def _settled(self, name: str, wanted: str) -> str | None:
        """What is stored once nothing is under way: some time after that, since kept versions come late."""
        until, text = time.monotonic() + _WITHIN, None
        quiet = 0
        while time.monotonic() < until and quiet < 3:
            await asyncio.sleep(0.5)
            async with await psycopg.AsyncConnection.connect(self.server.conninfo) as connection:
                await connection.execute(f"SET rag.user_id = '{LOCAL_ADMIN.user_id}'")  # type: ignore[arg-type]
                row = await (await connection.execute(_STORED, [UUID(self.corpus), name])).fetchone()
            text = row[0] if row else None
            is_quiet = row is not None and text is not None and set(row[1]) <= {"indexed"}
            quiet = quiet + 1 if is_quiet and (wanted in text or quiet) else int(is_quiet)
        return text


async def main(server: StoppableServer, folder: Path, rounds: int) -> int:
    seed = random.randrange(10**6)  # noqa: S311 - the moments
    async with (
        paced_embedder(0.02) as embedder,
        running_server(
            folder / "server.log", data_dir=folder, database_url=server.conninfo, fit_relevance=False,
            upload_keep_mb=64, embedding_provider="ollama", embedding_model="llama3.2", ollama_url=embedder,
            database_timeout=1, within=300.0,
        ) as rig,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{rig.port}", timeout=60, trust_env=False) as client,
    ):  # fmt: skip
        corpus = (await client.post("/api/v1/corpora", json={"name": "versions"})).raise_for_status().json()["id"]
        played = Rounds(server=server, client=client, corpus=corpus, draw=random.Random(seed))  # noqa: S311
        won = 0
        for number in range(rounds):
            began = time.monotonic()
            won += await played.play(number)
            click.echo(f"round {number}: {won} of {number + 1}, {time.monotonic() - began:.1f} s")
    click.echo(f"the newest version won {won} of {rounds} times; seed {seed}, replies {dict(played.replies)}")
    for fault in played.faults:
        click.echo(fault)
    return 0 if won == rounds and not played.faults else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="rag-soak-") as made:
        at = Path(made)
        at.chmod(0o755)  # the database may run as another user
        stoppable = StoppableServer(at / "database")
        try:
            code = asyncio.run(main(stoppable, at, int(sys.argv[1]) if len(sys.argv) > 1 else 50))
        finally:
            stoppable.stop()
    sys.exit(code)
