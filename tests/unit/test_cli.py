"""The command line's own words: what `check` says and what the commands refuse."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import msgspec
import pytest
from click.testing import CliRunner

from rag_service.api.http.schemas import AnswerBody, ConfidenceBody, GuardrailsBody, TimingsBody
from rag_service.cli import LATER, main
from rag_service.cli.asking import LAST, Asked, ask_server, complete, forget_server, note_server
from rag_service.errors import InputError
from rag_service.settings import load_settings

ANSWER = AnswerBody(
    answer_id=UUID(int=1), answer="A loan lasts five years.", decision="uncertain", reasons=[], confidence=0.5,
    confidence_parts=ConfidenceBody(mean_relevance=0.5, mean_rerank=None, critical_boost=False), sources=[],
    context_used=[], citations=[], unmarked_sentences=0, withheld_sentences=0, flagged=[], guardrails=GuardrailsBody(),
    language="en", model="fixed", latency_ms=1, timings=TimingsBody(), steps=[], prompt_tokens=0, completion_tokens=0,
)  # fmt: skip

ASKED = Asked(question="How long is a loan?")


def invoke(*arguments: str, **variables: str) -> tuple[int, str]:
    outcome = CliRunner().invoke(main, arguments, env={"RAG_FIT_RELEVANCE": None, **variables})
    return outcome.exit_code, outcome.output


def test_the_package_runs_as_a_module() -> None:
    outcome = subprocess.run([sys.executable, "-m", "rag_service", "--version"], capture_output=True, text=True)
    assert outcome.stdout.startswith("rag-service, version ")


def test_the_help_loads_no_library_of_the_service() -> None:
    code = """
import sys
from rag_service.cli import main
main(["--help"], standalone_mode=False)
print(sorted({"llama_index", "psycopg", "numpy", "litestar", "sqlalchemy", "rich"} & set(sys.modules)))
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Ask a question and print the answer" in outcome.stdout, outcome.stderr
    assert outcome.stdout.splitlines()[-1] == "[]"


def test_the_help_says_of_each_command_what_its_own_help_says() -> None:
    context = click.Context(main)
    for name, (_, _, said) in LATER.items():
        command = main.get_command(context, name)
        assert command is not None and command.get_short_help_str(1000) == said


class _FixedAnswer(BaseHTTPRequestHandler):
    """A service that gives one answer, or the problem of a blank question."""

    body = msgspec.json.encode(ANSWER)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["query"]
        refused = asked == "refused"
        self.send_response(400 if refused else 200)
        self.end_headers()
        self.wfile.write(b'{"detail": "Not this one."}' if refused else self.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _FixedAnswer) as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def test_ask_is_answered_by_the_server_that_runs_with_the_same_settings(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("RAG_FIT_RELEVANCE", raising=False)  # as `invoke` does
    note_server(load_settings(port=1), server)
    code, said = invoke("ask", "How long is a loan?")
    assert code == 3, "it is not certain"
    assert ANSWER.answer in " ".join(said.split()) and "Q: How long is a loan?" in said
    assert "Not certain, confidence 0.50" in said
    code, said = invoke("ask", "How long is a loan?", "--json")
    assert (code, json.loads(said)) == (3, json.loads(_FixedAnswer.body))
    assert invoke("ask", "refused") == (1, "Error: Not this one.\n")
    assert "query must be valid Unicode text" in invoke("ask", "x\udcff")[1]
    assert ask_server(load_settings(topk_default=3), ASKED) is None
    assert ask_server(load_settings(auth="required"), ASKED) is None
    forget_server(load_settings(), "http://127.0.0.1:1")  # another server's end
    assert ask_server(load_settings(), ASKED) is not None
    forget_server(load_settings(), server)
    assert ask_server(load_settings(), ASKED) is None


@pytest.mark.parametrize(("decision", "code"), [("can_proceed", 0), ("uncertain", 3), ("out_of_scope", 4)])
def test_only_a_certain_answer_ends_ask_with_0(
    decision: str, code: int, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("RAG_FIT_RELEVANCE", raising=False)
    body = msgspec.json.encode(msgspec.structs.replace(ANSWER, decision=decision))
    monkeypatch.setattr(_FixedAnswer, "body", body)
    note_server(load_settings(), server)
    outcome, said = invoke("ask", "How long is a loan?")
    assert outcome == code
    assert decision not in said, "there are words for it"


@dataclass(frozen=True)
class _There:
    """A corpus or conversation."""

    id: UUID
    name: str = ""
    updated_at: int = 0


def test_a_question_names_corpora_and_the_last_conversation() -> None:
    pay, travel, again = _There(UUID(int=1), "pay"), _There(UUID(int=2), "travel"), _There(UUID(int=3), "travel")
    talks: list[Any] = [_There(UUID(int=8), updated_at=1), _There(UUID(int=9), updated_at=2)]
    asked = Asked(question="How long?", corpora=("travel", str(UUID(int=1))), file="a.md", tags=("x",), follow=LAST)
    request = complete(asked, [pay, travel, again], talks)
    assert request.corpus_ids == [UUID(int=2), UUID(int=3), UUID(int=1)]
    assert (request.file_name, request.tags, request.conversation_id) == ("a.md", ["x"], UUID(int=9))
    with pytest.raises(InputError, match="corpus 'sales'"):
        complete(Asked(question="How long?", corpora=("sales",)), [pay, travel], ())
    with pytest.raises(InputError, match="No conversation is stored yet"):
        complete(asked, [pay, travel], ())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--follow", "yesterday"], "'yesterday' is neither the id of a conversation nor 'last'"),
        (["--follow", "last", "--keep"], "--keep begins a conversation and --follow continues one"),
    ],
)
def test_wrong_arguments_of_ask_are_explained(arguments: list[str], said: str) -> None:
    code, output = invoke("ask", "How long?", *arguments)
    assert code == 2 and said in " ".join(output.split())


@pytest.mark.parametrize("noted", ["", "{}", '{"address": "nowhere", "settings": "x"}'])
def test_ask_goes_on_alone_where_no_server_answers(noted: str, tmp_path: Path) -> None:
    settings = load_settings(data_dir=tmp_path)
    (tmp_path / "server.json").write_text(noted, "utf-8")
    assert ask_server(settings, ASKED) is None
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    note_server(settings, address)
    assert ask_server(settings, ASKED) is None


def test_check_passes_the_shipped_files() -> None:
    code, said = invoke("check")
    assert code == 0
    for line in ("settings: ok", "index general: ok\n", "index procedures_es: ok\n", "prompts: ok", "sandbox: "):
        assert line in said


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"RAG_CHAT_PROVIDER": "llama_index.llms.nowhere:LLM"}, "RAG_CHAT_PROVIDER: the module"),
        ({"RAG_CHAT_PROVIDER": "llama_index.core.llms:MokLLM"}, "Did you mean MockLLM?"),
        ({"RAG_CHAT_PROVIDER": "llama_index.core.schema:TextNode"}, "is not a subclass of"),
        (
            {"RAG_CHAT_PROVIDER": "llama_index.core.llms:MockLLM", "RAG_CHAT_OPTIONS": '{"max_tokns": 1}'},
            "Did you mean max_tokens?",
        ),
        ({"RAG_RERANK_STRATEGY": "llama_index.core.llms:MockLLM"}, "RAG_RERANK_STRATEGY: "),
        ({"RAG_JUDGE": "llama_index.core.llms:MockLLM"}, "has no method `judge(claims)`"),
        ({"RAG_AGENT_PROVIDERS": "ollama, llama_index.core.llms:Nobody"}, "RAG_AGENT_PROVIDERS: "),
    ],
)
def test_check_tries_the_classes_that_settings_name(environment: dict[str, str], says: str) -> None:
    code, said = invoke("check", **environment)
    assert (code, said.count("class: ")) == (1, 1)
    assert says in said


def test_check_tries_the_classes_that_definitions_name(tmp_path: Path, checkout: Path) -> None:
    shutil.copytree(checkout / "indices", tmp_path / "indices")
    file = tmp_path / "indices" / "general" / "index.yaml"
    text = file.read_text("utf-8").replace("ingest:\n", "ingest:\n  readers: {.log: no.where:Reader}\n", 1)
    file.write_text(text, "utf-8")
    code, said = invoke("check", RAG_INDICES_PATH=str(tmp_path / "indices"))
    assert code == 1
    assert "ingest.readers..log: the module no.where is not installed" in said
    good = {"RAG_CHAT_PROVIDER": "llama_index.core.llms:MockLLM", "RAG_CHAT_OPTIONS": '{"max_tokens": 1}'}
    assert "class: " not in invoke("check", **good)[1]


def test_check_says_when_the_relevance_was_calibrated_for_another_embedding_model() -> None:
    code, said = invoke(
        "check", RAG_EMBEDDING_PROVIDER="ollama", RAG_EMBEDDING_MODEL="bge-m3", RAG_EMBEDDING_DIMENSION="1024"
    )
    assert code == 0
    assert "index general: ok; its relevance for bge-m3 is fitted in the background at the first start" in said
    _, said = invoke(
        "check",
        RAG_EMBEDDING_PROVIDER="ollama",
        RAG_EMBEDDING_MODEL="bge-m3",
        RAG_EMBEDDING_DIMENSION="1024",
        RAG_FIT_RELEVANCE="false",
    )
    assert "its relevance is calibrated for multilingual-e5-small, not for bge-m3" in said
    assert "rag-service eval calibrate" in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("alpha: 0.75", "alpha: 7", "alpha"),
        ("alpha: 0.75", "alpha: [", "index.yaml"),
        ("language: auto", "language: klingon", "language"),
        ("synonyms: synonyms.yaml", "synonyms: missing.yaml", "missing.yaml"),
    ],
)
def test_check_names_file_and_key_of_a_broken_definition(
    tmp_path: Path, checkout: Path, old: str, new: str, says: str
) -> None:
    shutil.copytree(checkout / "indices", tmp_path / "indices")
    file = tmp_path / "indices" / "general" / "index.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    code, said = invoke("check", RAG_INDICES_PATH=str(tmp_path / "indices"))
    assert code == 1
    assert "index general: " in said
    assert says in said
    assert "index procedures_es: ok" in said


@pytest.mark.parametrize(
    ("arguments", "variables", "told"),
    [
        (["ask", " "], {}, "The question is empty."),
        (["ask", "x\udcff"], {}, "query must be valid Unicode text"),
        (["ask", "x" * 4001], {}, "query must have at most 4000 characters, but has 4001"),
        (["ask", "x"], {"RAG_DATA_DIR": "{file}/below"}, "RAG_DATA_DIR: {file}/below cannot be used: Not a directory"),
        (["serve"], {"RAG_DATA_DIR": "{file}/below", "RAG_PORT": "0"}, "RAG_DATA_DIR: {file}/below cannot be used"),
        (["serve"], {"RAG_PORT": "{port}"}, "Cannot listen on 127.0.0.1:{port}: Address already in use. Set RAG_PORT."),
        (["serve"], {"RAG_PORT": "many"}, "RAG_PORT: Input should be a valid integer"),
        (["ask", "x"], {"RAG_DATABASE_URL": "mysql://x"}, "RAG_DATABASE_URL is no postgresql:// URL."),
        (["check"], {"RAG_INDEX": "nosuch"}, "index nosuch: There is no index 'nosuch'"),
        (["check"], {"RAG_PROMPTS_PATH": "{file}"}, "prompts: {file} is not a folder; correct RAG_PROMPTS_PATH."),
        (["ask", "x"], {"RAG_TOPK": "5"}, "Unknown setting RAG_TOPK. Did you mean RAG_TOPK_MAX?"),
    ],
    ids=str,
)
def test_errors_of_the_first_minutes_are_a_sentence(
    arguments: list[str], variables: dict[str, str], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        names = {"file": file, "port": taken.getsockname()[1]}
        code, said = invoke(*arguments, **{name: value.format(**names) for name, value in variables.items()})
    assert code in (1, 2)
    assert told.format(**names) in said
    assert "Traceback" not in said


def test_unknown_setting_is_refused_with_its_name() -> None:
    code, said = invoke("check", RAG_MODLE_NAME="x")
    assert code != 0
    assert "RAG_MODLE_NAME" in said


def test_settings_shows_what_differs_and_no_secret() -> None:
    code, said = invoke("settings", RAG_TOPK_DEFAULT="7", RAG_OPENAI_API_KEY="swordfish")
    assert code == 0
    assert said.splitlines() == ["RAG_OPENAI_API_KEY=(set)", "RAG_TOPK_DEFAULT=7"]


@pytest.mark.parametrize("command", ["quickstart", "ingest", "eval run", "eval calibrate", "replay"])
def test_every_command_explains_itself(command: str) -> None:
    code, said = invoke(*command.split(), "--help")
    assert code == 0
    assert "Usage:" in said


def test_windows_gets_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_service.cli.sys.platform", "win32")
    code, said = invoke("check")
    assert (code, said) == (
        1, "Error: Windows is not supported. Run rag-service in WSL 2 or use its container image.\n"
    )  # fmt: skip


@pytest.mark.slow
def test_the_package_imports_without_the_modules_that_windows_lacks(checkout: Path) -> None:
    """So that the sentence can be said."""
    code = (
        "import sys\n"
        "for name in ('resource', 'fcntl', 'pwd', 'grp', 'termios'): sys.modules[name] = None\n"
        "import rag_service.cli, rag_service.readers.sandbox"
    )
    outcome = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RAG_DATABASE_URL", "mysql://rag:secret@localhost/rag"),
        ("RAG_LOG_LEVEL", "LOUD"),
        ("RAG_DATABASE_TIMEOUT", "inf"),
        ("RAG_SEARCH_TIMEOUT", "1000000000000"),
        ("RAG_DATA_DIR", "{file}"),
        ("RAG_SOURCE_READERS", "{file}"),
        ("RAG_SOURCE_READERS", "{file}.missing"),
        ("RAG_CONFIDENCE_FIT", "{file}"),
    ],
)
def test_check_refuses_what_serve_refuses(tmp_path: Path, name: str, value: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("Neither a folder nor a declaration.", encoding="utf-8")
    code, said = invoke("check", **{name: value.format(file=file)})
    assert code != 0
    assert name in said
    assert "secret" not in said


def test_a_checked_text_is_reported_in_words(tmp_path: Path) -> None:
    (tmp_path / "passage.txt").write_text("The fee is 75 dollars. It is due in May.\n")
    for text, code, said in (("75", 0, "Every sentence is proved."), ("80", 1, "Not certain.")):
        (tmp_path / "text.txt").write_text(f"The fee is {text} dollars.\n")
        outcome, output = invoke("check-answer", str(tmp_path / "text.txt"), str(tmp_path / "passage.txt"))
        assert outcome == code and said in output
