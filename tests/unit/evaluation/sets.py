"""Small eval sets on disk, written for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_jsonl(file: Path, *rows: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return file


def write_documents(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "loan.md").write_text("---\narticle_id: RK-1\n---\n# Loan\n\nIt costs 75 dollars.\n")
    (folder / "leave.txt").write_text("Ten days of leave.\n")
    return folder


def own_row(**changes: Any) -> dict[str, Any]:
    row = {
        "id": "q1", "category": "cost", "question": "What does it cost?", "answerable": True,
        "documents": ["loan.md"], "sections": ["Loan"], "answers": ["75 dollars"],
    }  # fmt: skip
    return {key: value for key, value in {**row, **changes}.items() if value is not ...}


def squad(articles: int = 4, questions: int = 2) -> dict[str, Any]:
    """`articles` articles of two paragraphs with `questions` questions each."""
    return {
        "data": [
            {
                "title": f"article {article}",
                "paragraphs": [
                    {
                        "context": f"Paragraph {paragraph} of article {article} speaks of thing{article}x{paragraph}.",
                        "qas": [
                            {
                                "id": f"{article}-{paragraph}-{number}",
                                "question": f"Which paragraph speaks of thing{article}x{paragraph}?",
                                "answers": [{"text": f"Paragraph {paragraph}", "answer_start": 0}],
                            }
                            for number in range(questions)
                        ],
                    }
                    for paragraph in range(2)
                ],
            }
            for article in range(articles)
        ]
    }


def write_beir(folder: Path) -> Path:
    write_jsonl(folder / "corpus.jsonl", {"_id": "d1", "title": "Tea", "text": "green"}, {"_id": "d2", "text": "red"})
    write_jsonl(folder / "queries.jsonl", {"_id": "q1", "text": "tea?"}, {"_id": "q2", "text": "not judged"})
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n")
    return folder
