"""`python -m evals.steps [dev|blind]`: questions that need two or three passages, in steps.json.

A scripted model asks the sub-questions by tool calls: do they lead to all passages? Without a model: does one more
search find them, and is an answer to the first step alone ever one that can proceed?
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import click
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    LLMMetadata,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms.mock import MockFunctionCallingLLM

from rag_service.components import Components, Plugins, open_components
from rag_service.domain import LOCAL_ADMIN, CorpusKind, Decision, Filters
from rag_service.evaluation.metrics import holds_answer
from rag_service.observability.logs import configure_logging
from rag_service.retrieval.question import Question
from rag_service.settings import Settings
from rag_service.store.corpora import create_corpus, find_corpus
from rag_service.store.documents.documents import DocumentInput

_SET = Path(__file__).parent / "steps.json"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A question and what was found for it."""

    question: str
    held: int  # passages that it needs, and that were shown
    needed: int
    is_right: bool  # the answer holds the right one
    is_green: bool


class ScriptedModel(MockFunctionCallingLLM):
    """Asks the sub-questions of a script, one in each turn, and then says that it is done."""

    script: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=16_000, is_function_calling_model=True, model_name="scripted")

    async def astream_chat_with_tools(self, *_: Any, **__: Any) -> ChatResponseAsyncGen:
        return self._say()

    async def astream_chat(self, *_: Any, **__: Any) -> ChatResponseAsyncGen:
        return self._say()

    async def _say(self) -> ChatResponseAsyncGen:
        if self.script:
            block = ToolCallBlock(tool_name="search", tool_call_id="1", tool_kwargs={"query": self.script.pop(0)})
            yield ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, blocks=[block]), delta="")
        else:
            block_text = TextBlock(text="Done [C1].")
            yield ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, blocks=[block_text]), delta="Done [C1].")


def read_steps(half: str) -> list[dict[str, Any]]:
    """The questions of a half that need several passages, or "single": those that one answers."""
    read = json.loads(_SET.read_text(encoding="utf-8"))
    if half == "single":
        return [
            {**one, "passages": [{"document": one["document"], "holds": one["holds"]}], "steps": []}
            for one in read["single"]
        ]
    return [one for one in read["questions"] if one["half"] == half]


async def ask_steps(service: Components, asked: Sequence[dict[str, Any]], model: ScriptedModel | None) -> list[Reply]:
    """Ask each question over the documents of the set, with a scripted model or without any."""
    corpus, found = await _corpus(service), []
    for one in asked:
        if model is not None:
            model.script = list(one["steps"])
        query = Question(one["question"], identity=LOCAL_ADMIN, filters=Filters(corpus_ids=(corpus,)), recorded=False)
        answer = await service.engine.answer(query)
        passages = [hit.chunk.text for hit in answer.shown]
        held = sum(any(_holds(text, needed["holds"]) for text in passages) for needed in one["passages"])
        found.append(
            Reply(
                question=one["question"],
                held=held,
                needed=len(one["passages"]),
                is_right=holds_answer(answer.text, [one["answer"]]),
                is_green=answer.decision is Decision.CAN_PROCEED,
            )
        )
    return found


def _holds(text: str, part: str) -> bool:
    return " ".join(part.split()) in " ".join(text.split())


async def _corpus(service: Components) -> UUID:
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        if (known := await find_corpus(connection, name="steps", kind=CorpusKind.GLOBAL)) is not None:
            return known.id
        corpus = await create_corpus(
            connection, LOCAL_ADMIN, name="steps", kind=CorpusKind.GLOBAL, index_name="general"
        )
    index = service.indices["general"]
    for document in json.loads(_SET.read_text(encoding="utf-8"))["documents"]:
        source = DocumentInput(data=document["text"].encode(), file_name=document["name"])
        await service.ingestor.ingest(source, corpus=corpus, index=index, identity=LOCAL_ADMIN)
    return corpus.id


@click.command()
@click.argument("half", type=click.Choice(("dev", "blind")), default="blind")
@click.option("--replies", is_flag=True, help="Print each question that was not found whole, or is green and wrong.")
@click.option("--folder", type=click.Path(path_type=Path), help="Keep the database here, for another run.")
def main(half: str, replies: bool, folder: Path | None) -> None:
    """Ask the questions of a half with a scripted model and without any, and those that one passage answers."""
    asyncio.run(_measure(half, replies, folder))


async def _measure(half: str, replies: bool, folder: Path | None) -> None:
    with tempfile.TemporaryDirectory() as made:
        for name, model in (("scripted", ScriptedModel()), ("no model", None)):
            settings = Settings().replace(
                {
                    "data_dir": folder or Path(made), "database_url": None, "embedding_provider": "local",
                    "chat_provider": "extractive", "chat_tools": "on", "judge": "none", "log_level": "ERROR",
                }
            )  # fmt: skip
            configure_logging(settings)
            async with open_components(settings, plugins=Plugins(llm=model)) as service:
                found = await ask_steps(service, read_steps(half), model)
                _tell(name, half, found, replies)
                if model is None:
                    _tell(name, "single", await ask_steps(service, read_steps("single"), None), replies)


def _tell(name: str, half: str, found: Sequence[Reply], replies: bool) -> None:
    whole = [reply for reply in found if reply.held == reply.needed]
    green = [reply for reply in found if reply.is_green]
    false = sum(not one.is_right for one in green)
    click.echo(
        f"{name}, {half}: {len(found)} questions, all passages {len(whole)},"
        f" right {sum(one.is_right for one in found)}, green {len(green)}, green without the answer {false}"
    )
    for one in found if replies else ():
        if one.held < one.needed or (one.is_green and not one.is_right):
            click.echo(f"  {one.held}/{one.needed} green={one.is_green} right={one.is_right} {one.question}")


if __name__ == "__main__":
    main()
