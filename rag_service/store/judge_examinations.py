"""How judges did on the shipped claims, and what follows from it: whether the yes of a judge proves anything.

A judge is examined by `rag_service.fitting.examination`, once for its name and revision.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import msgspec

from rag_service.store.database import Connection

LEASE_SECONDS = 180  # a process that died is replaced after so long; one call may take a minute
PRECISION = 0.95  # of its yes: one false sentence in twenty
MIN_YES = 20  # with fewer, a single mistake is already more than `PRECISION` allows, and no mistake shows nothing

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
    def precision(self) -> float:
        """Share of the accepted claims that are true, 0..1."""
        return self.right / max(1, self.yes)

    @property
    def state(self) -> State:
        if self.yes < MIN_YES:
            return "silent"
        return "passed" if self.precision >= PRECISION else "failed"

    @property
    def tells_answers(self) -> bool:
        """Whether its word on whole answers counts: it is more often right than wrong about either kind."""
        return 2 * self.kept > self.answering and 2 * self.beside > self.answers - self.answering

    def describe(self) -> str:
        """The outcome with its figures, for operators."""
        figures = (
            f"it accepted {self.yes} of {self.claims} shipped claims, {self.right} of them rightly"
            f" ({self.true} are true)"
        )
        if self.state == "silent":
            return f"Not used, reworded sentences stay unchecked: {figures}; it says yes too seldom to be of use."
        if self.state == "failed":
            return (
                f"Not used, reworded sentences stay unchecked: {figures}, a precision of {self.precision:.2f};"
                f" {PRECISION} is needed."
            )
        return f"In use: {figures}, a precision of {self.precision:.2f}. {self._describe_answers()}"

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
