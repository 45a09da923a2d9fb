"""Ask the questions of written answers, with the written model behind the service, and count the replies."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from evals.sets.questions import read_set
from evals.written.answers import Answer
from evals.written.judge import WrittenJudge
from evals.written.model import Call, ModelServer, WrittenModel
from rag_service.api.http.schemas import AnswerBody, AnswerRequest, MessageRequest, PassageBody, SearchRequest
from rag_service.client.embedded import EmbeddedBackend
from rag_service.components import Plugins
from rag_service.domain import LOCAL_ADMIN, CorpusKind, Decision
from rag_service.indices import shipped_folder
from rag_service.observability.logs import configure_logging
from rag_service.settings import Settings
from rag_service.store.corpora import find_corpus

WITHOUT = "none"  # the judge that is nobody
EXAMINATION_SECONDS = 120  # it takes a few


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the service made of a written answer."""

    answer: Answer
    body: AnswerBody
    calls: Sequence[Call]

    @property
    def is_green(self) -> bool:
        """Return whether it can proceed; a near miss that the model was not asked for is not what the reply says."""
        is_said = self.answer.right or self.outcome == "answer"
        return is_said and self.body.decision == Decision.CAN_PROCEED

    @property
    def outcome(self) -> str:
        """Return what the model did: `answer`, `refusal`, or `not asked`."""
        return next((call.purpose for call in self.calls if call.purpose in ("answer", "refusal")), "not asked")

    @property
    def missing(self) -> Sequence[str]:
        """Evidence that the model was not shown."""
        return [words for call in self.calls for words in call.missing]

    @property
    def judged(self) -> Sequence[Call]:
        return [call for call in self.calls if call.purpose == "judge"]

    @property
    def why_not(self) -> str:
        """The reason that weighs most why it is not green; "": it is."""
        if self.is_green:
            return ""
        if self.outcome != "answer":
            return self.outcome
        return next((reason.code for reason in self.body.reasons), "no reason")


def describe_reply(reply: Reply, *, judge: str) -> dict[str, Any]:
    """Return what a confidence is fitted to and measured with, for a line of JSON."""
    body = reply.body
    flagged = {(sentence.start, sentence.end) for sentence in body.flagged}
    stated = flagged.union((citation.sentence_start, citation.sentence_end) for citation in body.citations)
    return {
        "judge": judge,
        "id": reply.answer.id,
        "half": reply.answer.half,
        "right": reply.answer.right,
        "kind": reply.answer.kind,
        "outcome": reply.outcome,
        "green": reply.is_green,
        "reasons": [reason.code for reason in body.reasons],
        "proved": 1 - len(flagged) / len(stated) if stated else 0.0,
        "answers": body.answers_question,
        "confidence": body.confidence,
    }


@dataclass(kw_only=True)
class Bench:
    """The service with a written model behind it."""

    backend: EmbeddedBackend
    model: WrittenModel
    corpora: dict[str, UUID] = field(default_factory=dict)  # set → corpus

    async def ingest(self, names: Iterable[str], tell: Callable[[str], None] = lambda _: None) -> None:
        """Ingest the files of these sets, each into a corpus of its own; what is there stays."""
        for name in sorted(set(names) - set(self.corpora)):
            async with self.backend.transaction() as connection:
                known = await find_corpus(connection, name=name, kind=CorpusKind.GLOBAL)
            if known is not None:
                self.corpora[name] = known.id
                continue
            tell(f"{name} ...")
            asked = read_set(name)
            with tempfile.TemporaryDirectory() as folder:
                for file_name in asked.file_names:
                    (Path(folder) / file_name).write_bytes(asked.read_file(file_name))
                sync = await self.backend.components.open_sync(folder, LOCAL_ADMIN, corpus_name=name)
                report = await sync.run()
            if report.left:
                raise ValueError(f"{name}: {report}")
            self.corpora[name] = sync.corpus.id

    async def examine(self) -> str:
        """Wait until the judge is examined; returns what is known of it."""
        examiner = self.backend.components.examiner
        report = examiner.report()
        for _ in range(10 * EXAMINATION_SECONDS):  # it tells nobody when it is done
            if report is None or report.state != "waiting":
                break
            await asyncio.sleep(0.1)
            report = examiner.report()
        return "nobody judges" if report is None else f"{report.state}: {report.detail}"

    async def ask(self, answer: Answer, said: Sequence[MessageRequest] = ()) -> Reply:
        """Ask the question of an answer, which the model then gives."""
        self.model.begin(answer)
        request = AnswerRequest(query=answer.question, corpus_ids=[self.corpora[answer.set_name]], messages=list(said))
        body = await self.backend.answer(request)
        return Reply(answer=answer, body=body, calls=tuple(self.model.calls))

    async def search(self, answer: Answer) -> Sequence[PassageBody]:
        """Return what a search for its question finds."""
        request = SearchRequest(query=answer.question, corpus_ids=[self.corpora[answer.set_name]])
        return (await self.backend.search(request)).passages


@asynccontextmanager
async def open_bench(
    judge: str, folder: Path, *, model: WrittenModel | None = None, settings: Mapping[str, object] | None = None
) -> AsyncIterator[Bench]:
    """Open the service with the packaged embedding model and a written model.

    Args:
        judge: its name, or `WITHOUT`.
        folder: the service's data.
        model: instead of one that judges by this name.
        settings: further ones.
    """
    examination = (shipped_folder("evals") / "judge_examination.json").read_text(encoding="utf-8")
    model = model or WrittenModel(judge=WrittenJudge(judge, examination))
    with ModelServer(model) as server:
        chosen = {
            "data_dir": folder, "database_url": None, "embedding_provider": "local", "log_level": "ERROR",
            "chat_provider": "openai_like", "openai_url": server.url, "model_name": f"written-{judge}",
            "chat_tools": "on", "judge": "none" if judge == WITHOUT else "llm", **(settings or {}),
        }  # fmt: skip
        loaded = Settings().replace(chosen)
        configure_logging(loaded)
        backend = EmbeddedBackend(settings=loaded, plugins=Plugins())
        await backend.open()
        try:
            yield Bench(backend=backend, model=model)
        finally:
            await backend.close()


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Counts of replies to answers of one kind."""

    asked: int
    written: int  # the model gave the answer: it was asked, and shown the evidence
    green: int
    calls: int  # of the model, the most for one answer without steps
    why_not: Mapping[str, int]

    @property
    def share(self) -> float:
        """Green ones of those asked, in percent."""
        return 100 * self.green / max(1, self.asked)


def count(replies: Sequence[Reply]) -> Figures:
    """Return the figures of replies."""
    reasons = [reply.why_not for reply in replies if reply.why_not]
    return Figures(
        asked=len(replies),
        written=sum(reply.outcome == "answer" for reply in replies),
        green=sum(reply.is_green for reply in replies),
        calls=max((len(reply.calls) for reply in replies if not reply.answer.steps), default=0),
        why_not={code: reasons.count(code) for code in sorted(set(reasons), key=reasons.count, reverse=True)},
    )
