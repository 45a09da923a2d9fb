"""How judges did on the shipped claims, and what follows from it: whether the yes of a judge proves anything.

A judge is examined by `rag_service.fitting.examination`, once for its name and revision.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import msgspec

from rag_service.store.database import Connection

LEASE_SECONDS = 180  # a process that died is replaced after so long; one call may take a minute
ACCURACY = 0.9  # share of right verdicts that a judge needs; below, its word is worth too little beside code's doubts
BELIEVED = 0.99  # from here on, code's doubts do not count beside its word
MIN_YES = 20  # a judge that says yes more seldom is of no use

State = Literal["passed", "failed", "silent", "waiting"]


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What a judge said of the shipped claims and answers."""

    judge: str  # its name
    revision: str
    weights: str = ""  # digest of the model's weights; "": the server does not tell it
    claims: int  # asked about
    true: int  # of them
    yes: int  # claims that it accepted, with words that stand in the passage
    right: int  # of them
    answers: int = 0  # that it said a word on, whether they answer their question; 0: it cannot tell
    answering: int = 0  # of them answer it
    kept: int = 0  # of those it said so
    beside: int = 0  # answers that tell something else, and of which it said so

    @property
    def let_through(self) -> int:
        """False claims that it accepted."""
        return self.yes - self.right

    @property
    def refused(self) -> int:
        """True claims that it did not accept."""
        return self.true - self.right

    @property
    def accuracy(self) -> float:
        """Share of its verdicts that are right, 0..1."""
        return 1 - (self.let_through + self.refused) / max(1, self.claims)

    @property
    def state(self) -> State:
        if self.yes < MIN_YES:
            return "silent"
        # A false claim with a tick is what must not happen: a judge that refuses too much is held to half the claims.
        false = max(1, self.claims - self.true)
        return "passed" if self.accuracy >= ACCURACY and self.let_through <= (1 - ACCURACY) * false else "failed"

    @property
    def is_believed(self) -> bool:
        """Whether a doubt of code does not count beside its word."""
        return self.state == "passed" and self.accuracy >= BELIEVED

    @property
    def tells_answers(self) -> bool:
        """Whether its word on whole answers counts: it is more often right than wrong about either kind."""
        return 2 * self.kept > self.answering and 2 * self.beside > self.answers - self.answering

    def describe(self) -> str:
        """Return what the judge is worth, with its figures, for people."""
        false = self.claims - self.true
        figures = (
            f"of {self.claims} sentences it let {self.let_through} of {false} wrong ones through and refused"
            f" {self.refused} of {self.true} right ones"
        )
        if self.state != "passed":
            why = "it says yes too seldom" if self.state == "silent" else "it has to be right in nine of ten"
            return f"Not used, sentences in the model's own words stay unchecked: {figures}; {why}."
        weight = "its word decides" if self.is_believed else "a doubtful figure counts beside its word"
        return f"In use: {figures}; {weight}. {self._describe_answers()}"

    def _describe_answers(self) -> str:
        if not self.answers:
            return "It does not say whether an answer answers its question."
        of_others = self.answers - self.answering
        figures = (
            f"it recognised {self.kept} of {self.answering} answers to their question and {self.beside} of {of_others}"
            " beside it"
        )
        return f"Whether an answer answers its question: {figures}{'' if self.tells_answers else '; not used'}."


async def read_examination(connection: Connection, judge: str, revision: str) -> Examination | None:
    """The stored outcome; None: not examined."""
    cursor = await connection.execute(
        "SELECT weights, figures FROM judge_examinations WHERE judge = %s AND revision = %s", [judge, revision]
    )
    row = await cursor.fetchone()
    if row is None or row[1] is None:
        return None
    return Examination(judge=judge, revision=revision, weights=row[0], **row[1])


async def lease_judge(connection: Connection, judge: str, revision: str, weights: str) -> bool:
    """Take the right to examine a judge for `LEASE_SECONDS`; False: another process has it.

    The outcome of a model with other weights is deleted. For administrators.
    """
    cursor = await connection.execute(
        """INSERT INTO judge_examinations AS e (judge, revision, weights, leased_until)
           VALUES (%(judge)s, %(revision)s, %(weights)s, now() + make_interval(secs => %(seconds)s))
           ON CONFLICT (judge, revision) DO UPDATE
           SET weights = excluded.weights, leased_until = excluded.leased_until, figures = NULL
           WHERE e.leased_until NOT BETWEEN now() AND now() + make_interval(secs => 2 * %(seconds)s)
             AND (e.figures IS NULL OR excluded.weights NOT IN ('', e.weights))
           RETURNING 1""",
        {"judge": judge, "revision": revision, "weights": weights, "seconds": LEASE_SECONDS},
    )
    return await cursor.fetchone() is not None


async def renew_judge_lease(
    connection: Connection, judge: str, revision: str, *, seconds: float = LEASE_SECONDS
) -> None:
    """Keep the right to examine a judge; 0 seconds give it back."""
    await connection.execute(
        "UPDATE judge_examinations SET leased_until = now() + make_interval(secs => %s)"
        " WHERE judge = %s AND revision = %s",
        [seconds, judge, revision],
    )


async def store_examination(connection: Connection, outcome: Examination) -> None:
    """Store an outcome. For administrators."""
    figures = {key: value for key, value in asdict(outcome).items() if key not in ("judge", "revision", "weights")}
    await connection.execute(
        """INSERT INTO judge_examinations (judge, revision, weights, figures, leased_until)
           VALUES (%s, %s, %s, %s::jsonb, now())
           ON CONFLICT (judge, revision) DO UPDATE
           SET weights = excluded.weights, figures = excluded.figures, leased_until = now()""",
        [outcome.judge, outcome.revision, outcome.weights, msgspec.json.encode(figures).decode()],
    )
