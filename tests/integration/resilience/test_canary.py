"""A secret in key, document, question and prompt shows in no log, metric or error body by default."""

from __future__ import annotations

import io
import json
from pathlib import Path

import httpx
import pytest

from tests.doubles.ollama import CHAT, EMBED, Done, ErrorLine, OllamaDouble, Say, chat, failure
from tests.integration.resilience.conftest import Start, add_document

KEY, DOCUMENT, QUESTION, PROMPT, REPLY = (f"canary-{place}-4f9a" for place in ("key", "doc", "ask", "prompt", "model"))
CANARIES = (KEY, DOCUMENT, QUESTION, PROMPT, REPLY)
ECHO = f"cannot process: You are {PROMPT}. Answer {DOCUMENT} for {QUESTION}"  # servers repeat what they were sent
ANSWER, STREAM, SEARCH = "/api/v1/query/answer", "/api/v1/query/answer/stream", "/api/v1/query"
TEMPLATE = """---
variables: [context, question]
---
# system
You are {secret}. Answer from the passages alone.
# user
{{{{context}}}}

{{{{question}}}}
"""


@pytest.mark.usefixtures("quick_retries")
def test_no_canary_leaves_by_logs_metrics_or_errors(
    start: Start, ollama: OllamaDouble, logged: io.StringIO, tmp_path: Path
) -> None:
    template = tmp_path / "prompt.md"
    template.write_text(TEMPLATE.format(secret=PROMPT), encoding="utf-8")
    client = start(prompt_template_path=template, openai_api_key=KEY, metrics_token=KEY, extractive_fallback=False)
    client.headers["Authorization"] = f"Bearer {KEY}"
    client.headers["Cookie"] = f"session={KEY}"
    add_document(client, f"The limit for travel is 300 euros. {DOCUMENT} is the code.", "travel.txt")
    errors = _provoke(client, ollama)

    assert len([body for body in errors if "code" in json.loads(body)]) == len(errors) > 8
    for name, output in {
        "log": logged.getvalue(),
        "metrics": client.get("/metrics").text,
        "errors": "\n".join(errors),
    }.items():
        assert output
        for canary in CANARIES:
            assert canary not in output, f"{canary} shows in {name}"
    assert PROMPT in json.dumps(ollama.bodies(CHAT))  # it was really in play
    assert DOCUMENT in json.dumps(ollama.bodies(CHAT))


def _provoke(client: httpx.Client, ollama: OllamaDouble) -> list[str]:
    """Questions that go well and in all the ways wrong; returns the bodies of the errors."""
    question = {"query": f"What is the limit for travel, {QUESTION}?"}
    bodies: list[str] = []

    def ask(url: str = ANSWER, body: object = question, **options: object) -> None:
        response = client.post(url, json=body, headers={"Accept": "application/x-ndjson"})
        if response.is_success:
            for line in response.text.splitlines():
                event = json.loads(line)
                if event.get("event") == "error":
                    bodies.append(json.dumps(event["data"]))
        else:
            bodies.append(response.text)

    ollama.script(CHAT, chat(Say(f"It is 300 euros, {REPLY} [C1].")))
    ask()
    ollama.script(CHAT, chat(Say("300 euros [C1]."), Done(prompt_eval_count=1)))
    ask()
    for reply in (
        failure(500, ECHO),
        failure(404, ECHO),
        chat(ErrorLine(ECHO)),
        chat(Say(REPLY), ErrorLine(ECHO)),
    ):
        for url in (ANSWER, STREAM):
            ollama.script(CHAT, reply)
            ask(url)
    ollama.script(EMBED, *[failure(500, ECHO)] * 3)
    ask(SEARCH)  # by words alone
    ask(body={**question, "topK": 99})
    ask(body={**question, "unknown": QUESTION})
    ask("/nothing/here")
    ask(SEARCH, body={"query": QUESTION * 2000})
    return bodies
