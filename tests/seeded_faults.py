"""Seeds faults one by one into a copy of the tree and shows which tests find them.

    python -m tests.seeded_faults [NUMBER …]               the fast tests, which must find 17 of 20
    python -m tests.seeded_faults --tier all [NUMBER …]    then the slow ones; together they must find every fault

Each fault is a slip that a good engineer could make. Its `near` tests run first, and the whole tier only if they
pass. A failing test counts if it fails again, and passes on an untouched copy. The exit status is 1 when too few faults
are found, or when one no longer fits the code.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
TIERS = {"fast": ["-m", "not slow"], "slow": ["-m", "slow or hypothesis", "--hypothesis-profile", "slow"]}
FAST_SHARE = 17 / 20  # of the faults that the fast tests must find
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::\w+)", re.MULTILINE)  # in the summary of pytest
_PASSED, _NONE_SELECTED = 0, 5  # exit statuses of pytest


@dataclass(frozen=True)
class Fault:
    name: str
    file: str
    loss: str
    old: str  # stands in the file exactly once
    new: str
    near: tuple[str, ...]  # tests that are likely to find it


FAULTS = (
    Fault(
        "conversations without row-level security", "rag_service/store/migrations/0002_tenancy.sql",
        "Users read each other's conversations.",
        "ALTER TABLE rag.conversations ENABLE ROW LEVEL SECURITY;\n", "",
        ("tests/integration/tenancy/test_isolation.py",),
    ),
    Fault(
        "keys exceed their creator", "rag_service/api/accounts.py",
        "A key that may only read creates one that may do everything.",
        "for scope in scopes | (", "for scope in (",
        ("tests/integration/tenancy/test_scopes.py", "tests/integration/tenancy/test_foreign_ids.py"),
    ),
    Fault(
        "citation ends a character early", "rag_service/answering/proof/verify.py",
        "The place of a citation is not the quoted text.",
        "end = start + len(quote)\n", "end = start + len(quote) - 1\n",
        ("tests/unit/answering/proof/test_verify.py", "tests/integration/answers/test_answers.py"),
    ),
    Fault(
        "mark on the wrong passage accepted", "rag_service/answering/proof/verify.py",
        "A sentence is verified although it does not stand in the passage that its mark names.",
        "return replace(quoted, status=CitationStatus.MISATTRIBUTED, method=None)", "return quoted",
        ("tests/unit/answering/proof/test_verify.py",),
    ),
    Fault(
        "figures of nowhere go unnoticed", "rag_service/answering/proof/verify.py",
        "Where nobody judges well, a sentence with a figure that its words do not have is in no doubt.",
        'return "" if figure is None else f"', 'return "" if figure else f"',
        ("tests/unit/answering/drafts/test_judged.py",),
    ),
    Fault(
        "a judge needs no words", "rag_service/answering/drafts/judged.py",
        "A judge that says yes to everything, and names no words for it, puts a tick on wrong sentences.",
        "        elif not has_words:\n", "        elif False:\n",
        ("tests/unit/answering/drafts/test_judged.py",),
    ),
    Fault(
        "unchecked sentences may proceed", "rag_service/answering/decision/conclusion.py",
        "An answer of which only one sentence is proved is passed on as reliable.",
        "not checked.has_proof or bool(checked.flagged or checked.withheld)", "not checked.has_proof",
        ("tests/integration/answers/test_answers.py",),
    ),
    Fault(
        "vector search ignores chunk types", "rag_service/store/search/dense.py",
        "A search that is restricted to some chunk types finds others.",
        'chunk_conditions(self._scope, "c", with_type=True, keep_plan=True)',
        'chunk_conditions(self._scope, "c", with_type=False, keep_plan=True)',
        ("tests/integration/store/test_search_filters.py",),
    ),
    Fault(
        "threshold not applied", "rag_service/retrieval/postprocessors.py",
        "Passages that have nothing to do with the question are answered from.",
        "with_passages(hits[: max(relevant, default=0)])", "with_passages(hits)",
        ("tests/integration/answers/test_answers.py",),
    ),
    Fault(
        "lifetime of a corpus ignored", "rag_service/ingest/uploads.py",
        "Documents that should have expired are kept and found for ever.",
        "lifetime = ttl_seconds or corpus.ttl_seconds or", "lifetime = ttl_seconds or",
        ("tests/integration/tenancy/test_uploads.py",),
    ),
    Fault(
        "status 429 not retried", "rag_service/models/servers/failures.py",
        "An answer fails whenever its model server is busy for a moment.",
        "BUSY_STATUSES = frozenset({429, 503})", "BUSY_STATUSES = frozenset({503})",
        ("tests/unit/models/servers", "tests/integration/models/test_chat.py"),
    ),
    Fault(
        "same content ingested again", "rag_service/ingest/ingestor.py",
        "Every run of an ingestion embeds and stores unchanged documents again.",
        "== (content_hash, fingerprint):", "== (content_hash, index.name):",
        ("tests/integration/answers/test_ingestion.py",),
    ),
    Fault(
        "upload changes what is still searched", "rag_service/store/documents/uploads.py",
        "Title, tags and hash of a new version are shown with the text of the old one, and stay if it fails.",
        "if row is not None and row[2]:", "if row is not None and row[1] == new.content_hash:",
        ("tests/integration/tenancy/test_uploads.py",),
    ),
    Fault(
        "deleted files stay", "rag_service/sources/sync.py",
        "Documents whose files were deleted from the source are found for ever.",
        "if delete is False or emptied:", "if not delete or emptied:",
        ("tests/integration/sync/test_folder.py",),
    ),
    Fault(
        "filter value pasted into the statement", "rag_service/store/search/conditions.py",
        "A request reads what its SQL pleases.",
        "strpos(v, {bind(value)}::text)", "strpos(v, '{value}')",
        ("tests/integration/store/test_filter_trees.py",),
    ),
    Fault(
        "rarity of words counted in all corpora", "rag_service/store/search/postings.py",
        "Documents of other corpora move the scores of a search, and tell what they hold.",
        '" WHERE {within} AND term = ANY(%(terms)s) GROUP BY term"', '" WHERE term = ANY(%(terms)s) GROUP BY term"',
        ("tests/integration/store/test_search_bm25.py",),
    ),
    Fault(
        "answers not counted", "rag_service/api/limits.py",
        "One caller may keep the model busy: the limit of answers a minute does not hold.",
        "            await self.require_answer(identity)\n            async for", "            async for",
        ("tests/integration/resilience/test_rate_limits.py",),
    ),
    Fault(
        "heartbeat lost", "rag_service/api/http/streaming.py",
        "Proxies cut the stream of a model that thinks for long.",
        "                yield None\n                continue", "                continue",
        ("tests/unit/api/http", "tests/integration/api/test_answers.py"),
    ),
    Fault(
        "question logged", "rag_service/answering/engine.py",
        "Logs hold what users ask.",
        'log.info("answer_started", answer_id=str(answer_id),',
        'log.info("answer_started", question=run.question.text, answer_id=str(answer_id),',
        ("tests/integration/answers/test_answers.py", "tests/integration/resilience/test_canary.py"),
    ),
    Fault(
        "record without the hash of a passage's text", "rag_service/answering/record.py",
        "A replay does not notice that a passage has another text than at the time of the answer.",
        '"textSha256": _hash(hit.chunk.text)', '"textSha256": _hash(hit.chunk.id)',
        ("tests/integration/answers/test_answers.py",),
    ),
    Fault(
        "one public address is enough", "rag_service/sources/fetch.py",
        "A name that also points into the internal network is fetched from there.",
        "if not all(is_allowed(", "if not any(is_allowed(",
        ("tests/unit/test_fetch_addresses.py", "tests/integration/sync/test_web.py"),
    ),
    Fault(
        "parsers without a memory limit", "rag_service/readers/sandbox_child.py",
        "One hostile file takes the memory of the whole machine.",
        "        resource.RLIMIT_AS: (memory, memory),\n", "",
        ("tests/integration/test_sandbox.py",),
    ),
    Fault(
        "expiry of tokens not checked", "rag_service/auth/tokens.py",
        "A bearer token opens the service for ever.",
        '"verify_aud": audience is not None}', '"verify_aud": audience is not None, "verify_exp": False}',
        ("tests/integration/tenancy/test_identity.py",),
    ),
    Fault(
        "no room for the answer", "rag_service/models/llm/token_rates.py",
        "The prompt fills the window of the model, which then cuts the prompt or the answer.",
        "limit = int(window * (1 - RESERVE)) - answer_tokens", "limit = int(window * (1 - RESERVE))",
        ("tests/unit/answering/prompt",),
    ),
    Fault(
        "session without its token", "rag_service/auth/sessions.py",
        "Other sites act with the session of a user who is signed in.",
        "if not hmac.compare_digest(", "if given and not hmac.compare_digest(",
        ("tests/integration/tenancy/test_sign_in.py",),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Copy:
    """The tracked files of the tree, as they are now."""

    folder: Path
    ignored: set[str] = field(default_factory=set)  # tests that fail without a fault

    @classmethod
    def make(cls, folder: Path) -> Copy:
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
        for name in filter(None, tracked.stdout.split("\0")):
            if (ROOT / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        for command in (["init", "--quiet"], ["add", "--all"]):  # some tests ask git for its files
            subprocess.run(["git", *command], cwd=folder, check=True)
        return cls(folder)

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "CI": "1"}  # CI: the same examples in every run
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def check_package(self) -> None:
        """Raise ClickException unless the tests would load the package from here."""
        loaded = Path(self.python("-c", "import rag_service; print(rag_service.__file__)").stdout.strip())
        if not loaded.is_relative_to(self.folder):
            raise click.ClickException(f"rag_service is loaded from {loaded}, not from the copy.")

    def find_failure(self, tier: str, paths: tuple[str, ...]) -> str | None:
        """The first test of a tier that fails; without paths, of the whole tier."""
        options = ["-p", "no:cacheprovider", "-p", "no:randomly", "-x", "-rfE", *TIERS[tier]]
        workers = [] if paths else ["-n", "2", "--dist", "worksteal"]
        run = self.python("-m", "pytest", *options, *workers, *(f"--deselect={one}" for one in self.ignored), *paths)
        if failed := _FAILED.search(run.stdout):
            return failed[1]
        if run.returncode not in (_PASSED, _NONE_SELECTED):
            raise click.ClickException(f"pytest could not run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        return None


@contextmanager
def seeded(fault: Fault, copy: Copy) -> Iterator[None]:
    file = copy.folder / fault.file
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    yield
    file.write_text(text, encoding="utf-8")


def why_outdated(fault: Fault, copy: Copy) -> str:
    """What of a fault no longer fits the tree; empty if it fits."""
    if gone := [path for path in (fault.file, *fault.near) if not (copy.folder / path).exists()]:
        return f"{gone[0]} does not exist"
    count = (copy.folder / fault.file).read_text(encoding="utf-8").count(fault.old)
    return "" if count == 1 else f"its text stands in {fault.file} {count} times"


def find(fault: Fault, copy: Copy, untouched: Copy, tiers: list[str], *, check: bool) -> tuple[str, str] | None:
    """The first tier and test that find a fault."""
    for tier in tiers:
        for paths in (fault.near, ()):
            with seeded(fault, copy):
                while (test := copy.find_failure(tier, paths)) is not None:
                    if not check or (copy.find_failure(tier, (test,)) and not untouched.find_failure(tier, (test,))):
                        return tier, test
                    click.echo(f"    {test} fails without the fault or only at times, and is ignored")
                    copy.ignored.add(test)
    return None


@click.command()
@click.argument("numbers", type=click.IntRange(1, len(FAULTS)), nargs=-1)
@click.option("--tier", type=click.Choice(["fast", "all"]), default="fast", show_default=True)
@click.option("--check/--no-check", default=True, help="Repeat each failing test, also on an untouched copy.")
def main(numbers: tuple[int, ...], tier: str, *, check: bool) -> None:
    """Seed faults, by default all, and show which tests find them."""
    chosen = [(number, FAULTS[number - 1]) for number in numbers or range(1, len(FAULTS) + 1)]
    tiers = list(TIERS) if tier == "all" else [tier]
    found: list[str] = []  # the tier that found each
    outdated = 0
    with tempfile.TemporaryDirectory(prefix="rag-faults-") as name:
        copy, untouched = Copy.make(Path(name, "seeded")), Copy.make(Path(name, "untouched"))
        copy.check_package()
        for number, fault in chosen:
            if why := why_outdated(fault, copy):
                outdated += 1
                click.echo(f"{number:2}  out of date          {fault.name}: {why}")
                continue
            began = time.monotonic()
            finding = find(fault, copy, untouched, tiers, check=check)
            seconds = time.monotonic() - began
            found += [finding[0]] if finding else []
            by = f"{finding[0]}: {finding[1]}" if finding else f"NOT FOUND. {fault.loss}"
            click.echo(f"{number:2}  {seconds:5.0f} s  {fault.name:42}  {by}")
    fast, needed = found.count("fast"), math.ceil(FAST_SHARE * len(chosen))
    click.echo(f"{len(chosen)} faults: fast tests found {fast} (at least {needed}), slow ones {len(found) - fast} more")
    sys.exit(outdated > 0 or fast < needed or (tier == "all" and len(found) < len(chosen)))


if __name__ == "__main__":
    main()
