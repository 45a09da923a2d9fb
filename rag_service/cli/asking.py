"""`rag-service ask`: asked of the server that runs here, if there is one, and else of a service of its own."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from rag_service.api.agents.schemas import ConversationBody, ConversationList, KeptAnswerBody
from rag_service.api.corpora.schemas import CorpusBody, CorpusList
from rag_service.api.http.schemas import AnswerBody, AnswerRequest, PlaceBody
from rag_service.cli.running import Named, choose_corpora
from rag_service.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from rag_service.settings import Settings
    from rag_service.store.accounts.conversations import Conversation

_CONNECT_SECONDS = 2.0
# What may differ between the server and the one who asks.
_PAGE = 500  # items of a list that are asked for: as many as one reply has
_ANY = ("host", "port", "log_level", "log_format")


LAST = "last"  # the conversation that was changed last
# How certain an answer is → the exit code of `ask`; errors are 1, wrong arguments 2.
EXIT_CODES = {"can_proceed": 0, "uncertain": 3, "out_of_scope": 4}

_Body = TypeVar("_Body", bound=msgspec.Struct)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What `ask` is given."""

    question: str
    corpora: tuple[str, ...] = ()  # names or ids; none: all
    file: str | None = None
    tags: tuple[str, ...] = ()
    keep: bool = False  # store the answer in a new conversation
    follow: str | None = None  # id of the conversation that it goes on, or LAST


class _Server(msgspec.Struct):
    """The server that runs on a data folder."""

    address: str
    settings: str  # a digest of them: with others it would give other answers


def note_server(settings: Settings, address: str) -> None:
    """Write the address of a server that is up into the data folder, where `ask` finds it.

    Not with sign-in, where it would have to be asked with a key, and not where there is no such folder.
    """
    if settings.auth.mode == "none":
        with suppress(OSError):
            _file(settings).write_bytes(msgspec.json.encode(_Server(address=address, settings=_digest(settings))))


def forget_server(settings: Settings, address: str) -> None:
    """Undo `note_server`."""
    with suppress(OSError, msgspec.MsgspecError):
        if msgspec.json.decode(_file(settings).read_bytes(), type=_Server).address == address:
            _file(settings).unlink()


def complete(
    asked: Asked, corpora: Sequence[Named], conversations: Iterable[ConversationBody | Conversation]
) -> AnswerRequest:
    """The request of a question, with the ids of the corpora that it names and of the conversation that it goes on.

    Raises InputError if there is no such corpus, or no conversation.
    """
    corpus_ids = [one.id for name in asked.corpora for one in choose_corpora(corpora, name)]
    conversation_id = None
    if asked.follow == LAST:
        latest = max(conversations, key=lambda one: one.updated_at, default=None)
        if latest is None:
            raise InputError("No conversation is stored yet. `--keep` begins one.", field="follow")
        conversation_id = latest.id
    elif asked.follow is not None:
        conversation_id = UUID(asked.follow)
    return AnswerRequest(
        query=asked.question,
        corpus_ids=corpus_ids,
        file_name=asked.file,
        tags=list(asked.tags),
        keep=asked.keep,
        conversation_id=conversation_id,
    )


def ask_server(settings: Settings, asked: Asked) -> AnswerBody | None:
    """The answer of the server that runs here with the same settings; None if there is none.

    Raises InputError if it refuses the question.
    """
    try:
        noted = msgspec.json.decode(_file(settings).read_bytes(), type=_Server)
        if noted.settings != _digest(settings):
            return None
        address = urlsplit(noted.address)
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.hostname or "", address.hostname or "")  # noqa: S104
        connection = http.client.HTTPConnection(host, address.port, timeout=_CONNECT_SECONDS)
        connection.connect()
    except (OSError, ValueError, msgspec.MsgspecError):
        return None
    with suppress(AttributeError):
        connection.sock.settimeout(None)
    try:
        corpora: Sequence[CorpusBody] = ()
        conversations: Sequence[ConversationBody] = ()
        if asked.corpora:
            corpora = _call(connection, f"/api/v1/corpora?limit={_PAGE}", CorpusList).items
        if asked.follow == LAST:
            conversations = _call(connection, f"/api/v1/conversations?limit={_PAGE}", ConversationList).items
        request = complete(asked, corpora, conversations)
        kind: type[AnswerBody] = AnswerBody if asked.follow is None and not asked.keep else KeptAnswerBody
        return _call(connection, "/api/v1/query/answer", kind, request)
    except (OSError, ValueError, http.client.HTTPException):
        return None  # it stopped in between
    finally:
        connection.close()


def _call(
    connection: http.client.HTTPConnection, path: str, kind: type[_Body], request: AnswerRequest | None = None
) -> _Body:
    """The reply to a request. Raises InputError if it is refused."""
    if request is None:
        connection.request("GET", path)
    else:
        connection.request("POST", path, msgspec.json.encode(request), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    data = reply.read()
    if reply.status >= 400:
        problem = json.loads(data)
        raise InputError(str(problem.get("detail") or problem.get("title")))
    return msgspec.json.decode(data, type=kind)


def print_answer(question: str, answer: AnswerBody, console: Console) -> None:
    """Print question, answer, and each citation with its place and quote."""
    from rich.markup import escape

    from rag_service.client.proof_words import DECISIONS, TERMINAL_COLOURS, describe_proof

    console.print(f"\n[bold]Q:[/] {escape(question)}")
    if answer.places:
        _print_places(answer.places, console)
    else:
        console.print(f"[bold]A:[/] {escape(answer.answer)}\n")
    for citation in answer.citations:
        line = f"  [C{citation.mark}] {describe_proof(citation)}"
        if citation.document_id is None or citation.status == "not_found":
            console.print(line, style=TERMINAL_COLOURS[citation.status], markup=False)
            continue
        line += f" · {citation.place or citation.document_id} · characters {citation.start}-{citation.end}"
        console.print(line, style=TERMINAL_COLOURS[citation.status], markup=False)
        console.print(f"       “{citation.quote}”", style="dim", markup=False)
    for related in answer.related:
        console.print(f"  related, but not an answer: {related.place}", style="dim", markup=False)
    said = DECISIONS.get(answer.decision, answer.decision)
    console.print(f"\n  {said}, confidence {answer.confidence:.2f}, {answer.latency_ms:.0f} ms", style="dim")
    for reason in answer.reasons:
        console.print(f"  - {reason.text}", style="dim", markup=False)
    if isinstance(answer, KeptAnswerBody) and answer.conversation_id is not None:
        console.print(f"  conversation {answer.conversation_id}", style="dim", markup=False)


def _print_places(places: Sequence[PlaceBody], console: Console) -> None:
    """Print where the answer may stand, with the words of the question in bold."""
    from rich.padding import Padding
    from rich.text import Text

    console.print("\n  No answer is certain. These places come nearest:\n")
    for number, place in enumerate(places, start=1):
        part = f" ({place.part})" if place.part else ""
        console.print(f"  {number}. {place.place}{part}", style="cyan", markup=False)
        text = Text(place.text)
        for word in place.marked:
            text.stylize("bold", word.start, word.end)
        console.print(Padding(text, (0, 0, 1, 5)))


def _file(settings: Settings) -> Path:
    return Path(settings.database.data_dir) / "server.json"


def _digest(settings: Settings) -> str:
    values = {key: value for key, value in settings.flat().items() if key not in _ANY}  # secrets show as stars
    return hashlib.sha256(f"{sorted(values.items())}".encode()).hexdigest()
