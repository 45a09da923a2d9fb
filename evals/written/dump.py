"""What the judge is shown, written out for readers who stand for it, and the count of what they accepted.

A reader gets `0001.md`, `0002.md` … in an order that tells nothing, and writes the reply of a judge to `0001.json`
beside it. `key.json`, which they must not see, says which answers these are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.written.judge import draw
from evals.written.measure import Reply

KEY = "key.json"


def write_dump(folder: Path, replies: Sequence[Reply]) -> int:
    """Write what the judge was shown of each answer, and the key; returns how many there are.

    An answer that no judge was asked about is left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    judged = sorted((reply for reply in replies if reply.judged), key=lambda reply: draw(f"dump {reply.answer.id}"))
    key = {}
    for number, reply in enumerate(judged, start=1):
        name = f"{number:04}"
        texts = [_write_call(call.request) for call in reply.judged]
        (folder / f"{name}.md").write_text("\n\n".join(texts), encoding="utf-8")
        answer = reply.answer
        key[name] = {"id": answer.id, "right": answer.right, "kind": answer.kind, "language": answer.language}
    (folder / KEY).write_text(json.dumps(key, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return len(judged)


def _write_call(request: Any) -> str:
    return "\n\n".join(
        f"=== {message['role']} ===\n\n{message.get('content') or ''}" for message in request["messages"]
    )


def score_dump(folder: Path) -> list[str]:
    """Return what the readers accepted, by kind, and each answer that they took wrongly, one line each."""
    counts: dict[str, list[int]] = {}
    wrong = []
    for name, entry in json.loads((folder / KEY).read_text(encoding="utf-8")).items():
        reply = folder / f"{name}.json"
        if not reply.exists():
            continue
        is_accepted = accepts(json.loads(reply.read_text(encoding="utf-8")))
        kind = "right" if entry["right"] else entry["kind"]
        asked = counts.setdefault(kind, [0, 0])
        asked[0] += 1
        asked[1] += is_accepted
        if is_accepted != entry["right"]:
            wrong.append(f"{name} {entry['id']}: {'accepted' if is_accepted else 'refused'}")
    kinds = sorted(counts, key=lambda kind: (kind != "right", kind))
    return [*(f"{kind}: {counts[kind][1]} of {counts[kind][0]} accepted" for kind in kinds), *wrong]


def accepts(reply: Any) -> bool:
    """Return whether the reply of a judge accepts the answer: every sentence, and that it answers the question."""
    return reply["answers"] == "yes" and all(one["supported"] for one in reply["verdicts"])
