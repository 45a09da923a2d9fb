"""A cross-encoder for natural-language inference: does the evidence entail the sentence?

The premise is the evidence with the words around it, the hypothesis is the sentence. Which output means entailment is
read from the model's own configuration, since models disagree about the order of their labels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import structlog

from rag_service.errors import ConfigurationError
from rag_service.models.judge.calibration import UNCALIBRATED, Threshold
from rag_service.models.judge.judge import JudgedClaim, Verdict, extract
from rag_service.models.local_runtime import ModelThreads, import_torch

log = structlog.get_logger(__name__)

PREMISE_CHARACTERS = 1200  # about 300 tokens: with the sentence, within the 512 that most models read
BATCH = 16

_ENTAILS = re.compile(r"(?i)entail(s|ed|ment|ing)?|supports?|supported|consistent|e")


class CrossEncoderJudge:
    """A sentence-transformers `CrossEncoder`, by its Hugging Face name or its folder.

    It is loaded at the first use or `warm_up`. A name that is not in the local cache is downloaded then; a folder
    never needs the network. It runs in a daemon thread, so that one that hangs cannot keep the process from ending.
    """

    def __init__(
        self, model: str, *, thresholds: Mapping[str, Threshold] | None = None, options: Mapping[str, Any] | None = None
    ):
        """
        Args:
            model: name or folder.
            thresholds: least probability that counts as entailed, by language; others have `UNCALIBRATED`.
            options: further keyword arguments of `CrossEncoder`.
        """
        self.name = model.rstrip("/").rpartition("/")[2] or model
        self._model_name = model
        self._thresholds = dict(thresholds or {})
        self._options = dict(options or {})
        self._model: Any = None
        self._entailment = 0  # column of the model's output
        self._threads = ModelThreads("judge")

    @property
    def revision(self) -> str:
        """Its model and thresholds, which decide its verdicts."""
        thresholds = sorted((language, entry.threshold) for language, entry in self._thresholds.items())
        return f"{self._model_name} {thresholds}"

    async def warm_up(self) -> None:
        """Load the model; ConfigurationError if that fails or its labels do not say which one is entailment."""
        await self._threads.run(self._loaded)

    async def judge(self, claims: Sequence[JudgedClaim]) -> list[Verdict | None]:
        """Verdicts with probabilities. Raises what the model raises."""
        return [
            Verdict(entailed=probability >= self.threshold(claim.language), probability=round(probability, 4))
            for claim, probability in zip(claims, await self.rate(claims), strict=True)
        ]

    async def rate(self, claims: Sequence[JudgedClaim]) -> list[float]:
        """Probability of entailment for each claim, 0..1."""
        return await self._threads.run(lambda: self._rate(claims)) if claims else []

    def threshold(self, language: str | None) -> float:
        """Return the least probability that counts as entailed."""
        known = self._thresholds.get(language or "")
        return UNCALIBRATED if known is None else known.threshold

    def describe_thresholds(self) -> str:
        """Return the thresholds and where they come from, for people."""
        known = [f"{name} {entry.threshold:.2f} ({entry.run})" for name, entry in sorted(self._thresholds.items())]
        rest = f"{'other languages ' if known else ''}{UNCALIBRATED} (not calibrated)"
        return f"thresholds: {', '.join([*known, rest])}"

    async def aclose(self) -> None:
        """End its thread after the work that is queued."""
        self._threads.stop()

    def _rate(self, claims: Sequence[JudgedClaim]) -> list[float]:
        model = self._loaded()
        pairs = [(extract(claim.passage, claim.evidence, PREMISE_CHARACTERS), claim.sentence) for claim in claims]
        identity = import_torch().nn.Identity()  # the model's own activation may be anything
        logits = np.asarray(model.predict(pairs, batch_size=BATCH, activation_fn=identity, show_progress_bar=False))
        logits = logits.reshape(len(claims), -1).astype(np.float64)
        if not np.isfinite(logits).all():
            raise ValueError("the model gave a score that is no number")
        if logits.shape[1] == 1:
            return [1 / (1 + math.exp(-max(-700.0, min(700.0, float(logit))))) for logit in logits[:, 0]]
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return [float(share) for share in powers[:, self._entailment] / powers.sum(axis=1)]

    def _loaded(self) -> Any:
        if self._model is None:
            import_torch()
            from sentence_transformers import CrossEncoder

            try:
                model = CrossEncoder(self._model_name, **self._options)
            except Exception as error:
                raise ConfigurationError(
                    f"RAG_JUDGE_MODEL={self._model_name} cannot be loaded: give the name of a cross-encoder on"
                    " Hugging Face or the folder of one, and check RAG_JUDGE_OPTIONS.",
                    field="RAG_JUDGE_MODEL",
                ) from error
            self._entailment = entailment_label(model.config.id2label, self._model_name)
            self._model = model
            log.info("judge_loaded", judge=self.name, thresholds=self.describe_thresholds())
        return self._model


def entailment_label(labels: Mapping[int, str], model: str) -> int:
    """Number of the label that means entailment, as its configuration (`id2label`) names it.

    Raises ConfigurationError if none or several do. A single label is the entailment, whatever its name.
    """
    if len(labels) == 1:
        return int(next(iter(labels)))
    found = [int(number) for number, label in labels.items() if _ENTAILS.fullmatch(label.strip())]
    if len(found) != 1:
        raise ConfigurationError(
            f"RAG_JUDGE_MODEL={model}: its labels ({', '.join(labels.values())}) do not say which one is entailment."
            ' Name them in RAG_JUDGE_OPTIONS: {"config_kwargs": {"id2label": {"0": "entailment", …}}}.',
            field="RAG_JUDGE_MODEL",
        )
    return found[0]
