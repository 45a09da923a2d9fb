"""More questions than the model can take: an honest "busy" at once, and no search for nothing."""

from __future__ import annotations

import asyncio
import json

from tests.doubles.ollama import CHAT, Hang, OllamaDouble, chat
from tests.integration.resilience.conftest import QUESTION, Start, add_document
from tests.serving import wait_until
from tests.soak.rig import Reply, request

STREAM, SEARCH = "/api/v1/query/answer/stream", "/api/v1/query"
ASKED = {"query": QUESTION}


async def test_beyond_slots_and_queue_the_answer_is_busy_at_once(start: Start, ollama: OllamaDouble) -> None:
    client = start(model_concurrency=2, model_queue=3, first_token_timeout=300)
    add_document(client)
    ollama.script(CHAT, *[chat(Hang())] * 5)
    port = client.base_url.port or 0

    async def ask() -> Reply:
        return await request(port, "POST", STREAM, ASKED)

    asking = [asyncio.create_task(ask()) for _ in range(5)]
    await asyncio.to_thread(wait_until, lambda: ollama.open_streams == 2)
    await asyncio.to_thread(wait_until, lambda: "rag_model_waiting 3.0" in client.get("/metrics").text)
    searched = _searches(client.get("/metrics").text)
    refused = await asyncio.wait_for(ask(), 60)  # not the minutes that those before it wait
    assert refused.status == 503
    assert json.loads(refused.body)["code"] == "llm_busy"
    assert int(refused.headers["retry-after"]) >= 1
    assert _searches(client.get("/metrics").text) == searched  # it cost no search
    assert client.post(SEARCH, json=ASKED).status_code == 200  # searching needs no model
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await asyncio.to_thread(wait_until, lambda: ollama.open_streams == 0)
    ollama.answer = "The limit for travel is 300 euros a day [C1]."
    ollama._scripts.clear()
    assert (await ask()).ending == "done"


def _searches(metrics: str) -> float:
    """Answers that have searched so far."""
    lines = [line for line in metrics.splitlines() if line.startswith('rag_questions_total{channel="answer"')]
    return sum(float(line.rpartition(" ")[2]) for line in lines)
