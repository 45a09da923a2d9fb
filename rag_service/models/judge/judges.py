"""The judge that RAG_JUDGE names, with a time limit, metrics and a span around it.

    judge = build_judge(settings, chat=chat, write_prompt=..., count=metrics.judged)
    judgement = await judge.judge_answer(answer)

A judge may fail, hang or answer nonsense; the answer is not lost by it. Its claims then stay unjudged.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog

from rag_service.domain import AnswersQuestion
from rag_service.errors import ConfigurationError
from rag_service.models.judge.calibration import calibration_file, read_thresholds
from rag_service.models.judge.judge import AnswerJudge, Judge, JudgedAnswer, JudgedClaim, Judgement, Verdict
from rag_service.models.judge.llm import LLMJudge, WritePrompt
from rag_service.models.llm.model import ChatModel
from rag_service.models.plugins import build, parse_options, require_extra
from rag_service.models.servers.clients import read_digest
from rag_service.models.servers.resilience import Slots
from rag_service.observability.tracing import span
from rag_service.settings import Settings
from rag_service.store.judge_examinations import Examination

log = structlog.get_logger(__name__)

MAX_CALLS = 5  # for one answer; further sentences are not judged
_OPTIONS = "RAG_JUDGE_OPTIONS"


class CountVerdicts(Protocol):
    """Receives what a judge did, such as `Metrics.judged`."""

    def __call__(self, *, supported: int, unsupported: int, unjudged: int, seconds: float) -> None: ...


class WatchedJudge:
    """A judge with a time limit. It never raises, and gives one verdict or None for each claim.

    Its verdicts count once its examination is passed, see `is_used`.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        seconds: float,
        count: CountVerdicts | None = None,
        read_weights: Callable[[], Awaitable[str]] | None = None,
    ):
        """
        Args:
            judge: decides.
            seconds: time limit of one call.
            count: receives the outcome of each call.
            read_weights: asks for the digest of the model's weights; None: nobody can tell it.
        """
        self.name = str(getattr(judge, "name", None) or type(judge).__name__)
        self.slots: Slots | None = getattr(judge, "slots", None)  # of the chat model, if that judges
        self.examination: Examination | None = None  # None: not examined yet
        self._judge = judge
        self._seconds = seconds
        self._count = count
        self._read_weights = read_weights

    @property
    def revision(self) -> str:
        """A hash of what decides its verdicts beside its name and weights."""
        kind = f"{type(self._judge).__module__}.{type(self._judge).__qualname__}"
        return hashlib.sha256(f"{kind}\0{getattr(self._judge, 'revision', '')}".encode()).hexdigest()

    @property
    def is_used(self) -> bool:
        """Return whether its yes proves anything: it has been examined, and passed."""
        return self.examination is not None and self.examination.state == "passed"

    @property
    def is_believed(self) -> bool:
        """Return whether it errs so seldom that a doubt of code does not count beside its word."""
        return self.is_used and self.examination is not None and self.examination.is_believed

    @property
    def sees_answers(self) -> bool:
        """Return whether it is shown whole answers, and not one sentence at a time."""
        return isinstance(self._judge, AnswerJudge)

    @property
    def tells_answers(self) -> bool:
        """Return whether its word on whole answers counts."""
        return self.sees_answers and self.is_used and self.examination is not None and self.examination.tells_answers

    async def read_weights(self) -> str:
        """Return the digest of the model's weights; "": nobody can tell it. Raises ModelError if its server is down."""
        return "" if self._read_weights is None else await self._read_weights()

    async def judge(self, claims: Sequence[JudgedClaim]) -> list[Verdict | None]:
        """One verdict for each claim, in the same order; None where the judge gave none in time."""
        return list((await self.judge_answer(JudgedAnswer(question="", claims=claims))).verdicts)

    async def judge_answer(self, answer: JudgedAnswer) -> Judgement:
        """One verdict for each claim, in the same order, and a word on the answer.

        None where the judge gave none in time. It is asked once, unless the answer is too long for that, and not
        without claims.
        """
        claims = answer.claims
        if not claims:
            return Judgement(verdicts=[])
        began = time.perf_counter()
        said: list[Judgement] = []  # of each part; what comes too late or fails loses no earlier ones
        try:
            with span("judge", judge=self.name, claims=len(claims)):
                async with asyncio.timeout(self._seconds):
                    for part in _split(answer, getattr(self._judge, "claims_at_once", None) or len(claims)):
                        said.append(await self._ask(part))  # noqa: PERF401 - what was said must not be lost
        except TimeoutError:
            log.warning("judge_timed_out", judge=self.name, claims=len(claims), seconds=self._seconds)
        except Exception as error:  # whatever a plug-in raises must not cost the answer
            log.warning("judge_failed", judge=self.name, claims=len(claims), exc_info=error)
        verdicts = [verdict for judgement in said for verdict in judgement.verdicts]
        if self._count is not None:
            given = [verdict.entailed for verdict in verdicts if verdict is not None]
            self._count(
                supported=sum(given),
                unsupported=len(given) - sum(given),
                unjudged=len(claims) - len(given),
                seconds=time.perf_counter() - began,
            )
        is_whole = len(verdicts) == len(claims)
        verdicts += [None] * (len(claims) - len(verdicts))
        return Judgement(verdicts=verdicts, answers=said[-1].answers if is_whole else None)

    async def ask(self, answer: JudgedAnswer) -> Judgement:
        """Return the same in one call, uncounted. Raises TimeoutError, and whatever the judge raises."""
        async with asyncio.timeout(self._seconds):
            return await self._ask(answer)

    async def _ask(self, answer: JudgedAnswer) -> Judgement:
        if isinstance(self._judge, AnswerJudge):
            return _check(await self._judge.judge_answer(answer), len(answer.claims))
        return _check(Judgement(verdicts=await self._judge.judge(answer.claims)), len(answer.claims))

    def describe(self) -> str:
        """Its name, and from which probability on it says yes, where it has thresholds."""
        describe = getattr(self._judge, "describe_thresholds", None)
        return f"{self.name}, {describe()}" if describe else self.name

    async def warm_up(self) -> None:
        """Load what the first call would otherwise wait for, if the judge has something to load.

        Raises ConfigurationError if its model cannot be used.
        """
        if load := getattr(self._judge, "warm_up", None):
            await load()

    async def aclose(self) -> None:
        """Release what the judge holds."""
        if close := getattr(self._judge, "aclose", None):
            await close()


def _split(answer: JudgedAnswer, at_once: int) -> Iterator[JudgedAnswer]:
    """An answer in parts, each after the sentences before it; the last is asked whether all of it answers."""
    claims, before = answer.claims, ""
    for first in range(0, len(claims), at_once)[:MAX_CALLS]:
        part = [replace(claims[first], before=f"{before} {claims[first].before}".strip())]
        part += claims[first + 1 : first + at_once]
        is_last = first + at_once >= len(claims)
        yield replace(answer, claims=part, question=answer.question if is_last else "")
        before = " ".join([part[0].before, part[0].sentence, *(f"{one.before} {one.sentence}" for one in part[1:])])


def _check(judgement: Judgement, count: int) -> Judgement:
    verdicts = judgement.verdicts
    if len(verdicts) != count or not all(isinstance(verdict, Verdict | None) for verdict in verdicts):
        raise ValueError(f"{len(verdicts)} verdicts for {count} claims, or one that is no Verdict")
    if not isinstance(judgement.answers, AnswersQuestion | None):
        raise ValueError("no AnswersQuestion")
    return judgement


def build_judge(
    settings: Settings,
    *,
    chat: ChatModel,
    write_prompt: WritePrompt,
    prompt_revision: str = "",
    judge: Judge | None = None,
    count: CountVerdicts | None = None,
) -> WatchedJudge | None:
    """Return the judge that RAG_JUDGE names; None: nobody judges. No model is loaded yet.

    Raises ConfigurationError if a package is missing, the class path or options are wrong, or the chat model is
    unsuitable.

    Args:
        chat: the chat model, which is the judge `llm`.
        write_prompt: the prompt of that judge.
        prompt_revision: changes with that prompt.
        judge: replaces what the settings name.
        count: receives the outcome of each call.
    """
    chosen = judge or _choose(settings, chat, write_prompt, prompt_revision)
    if chosen is None:
        return None
    seconds = min(settings.judge.timeout, settings.servers.answer_timeout)
    read_weights = None
    if isinstance(chosen, LLMJudge) and chat.provider == "ollama":
        read_weights = partial(read_digest, settings, chat.model_name)
    return WatchedJudge(chosen, seconds=seconds, count=count, read_weights=read_weights)


def _choose(settings: Settings, chat: ChatModel, write_prompt: WritePrompt, prompt_revision: str) -> Judge | None:
    strategy = settings.judge.strategy or ("llm" if chat.structured_output else "none")
    options = parse_options(settings.judge.options, setting=_OPTIONS)
    match strategy:
        case "none":
            return None
        case "llm":
            if not chat.structured_output:
                raise ConfigurationError(
                    f"RAG_JUDGE=llm needs a language model; the chat provider `{chat.provider}` is not one."
                    " Choose `cross_encoder` or `none`, or RAG_CHAT_PROVIDER=ollama.",
                    field="RAG_JUDGE",
                )
            return LLMJudge(chat, write_prompt, revision=prompt_revision)
        case "cross_encoder":
            require_extra("sentence_transformers", extra="sbert", setting="RAG_JUDGE", value="cross_encoder")
            from rag_service.models.judge.cross_encoder import CrossEncoderJudge

            model = settings.judge.model
            if Path(model).is_absolute() and not Path(model).is_dir():
                raise ConfigurationError(f"RAG_JUDGE_MODEL: there is no folder {model}.", field="RAG_JUDGE_MODEL")
            thresholds = read_thresholds(calibration_file(settings), model)
            return CrossEncoderJudge(model, thresholds=thresholds, options=options)
        case path:
            made = build(path, options, object, setting="RAG_JUDGE")
            if not callable(getattr(made, "judge", None)):
                raise ConfigurationError(
                    f"RAG_JUDGE: {path} has no method `judge(claims)`, see rag_service.models.judge.judge:Judge.",
                    field="RAG_JUDGE",
                )
            return made  # type: ignore[return-value]  # checked as far as can be
