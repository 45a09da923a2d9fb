"""Asks the questions of `reports.jsonl` over filings that are stored already: `python -m evals.reports development`.

The filings are not part of the project. Ingest a folder that holds them first, with the same RAG_DATA_DIR.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from rag_service.cli.running import read_quiet_settings
from rag_service.components import open_components
from rag_service.domain import LOCAL_ADMIN, Answer, Decision
from rag_service.retrieval.question import Question


def is_right(asked: dict[str, Any], answer: Answer) -> bool:
    """Whether the answer holds one of the values, alone, and says yes where it has to."""
    holds = any(re.search(rf"(?<![\d,.]){re.escape(value)}(?!\d)", answer.text) for value in asked["value"])
    return holds and asked["begins"] in answer.text


async def measure(name: str) -> str:
    """Right answers, certain ones among them, and wrong ones given as certain, of one set of the questions."""
    lines = Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    questions = [asked for asked in map(json.loads, lines) if asked["set"] == name]
    right = certain = wrong = 0
    async with open_components(read_quiet_settings()) as components:
        for asked in questions:
            answer = await components.engine.answer(Question(asked["question"], identity=LOCAL_ADMIN))
            proceeds = answer.decision is Decision.CAN_PROCEED
            if is_right(asked, answer):
                right, certain = right + 1, certain + proceeds
            else:
                wrong += proceeds
                sys.stdout.write(f"{'wrong' if proceeds else 'missed'}: {asked['question']}\n  {answer.text[:200]}\n")
    return f"{name}: right {right} of {len(questions)}, {certain} of them certain; wrong and certain {wrong}\n"


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(measure(sys.argv[1])))
