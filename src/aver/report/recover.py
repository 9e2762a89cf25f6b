"""Plan the recovery of a run: which failed jobs a further attempt can fix, and which need a person.

Pure. A job that ran out of memory or time gets a larger request; one that the engine lost, or whose end nobody saw,
runs again unchanged; one with a checkpoint continues. All others are left alone: a program that fails by itself would
fail again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aver.client.changes import Rerun
from aver.model import reasons
from aver.model.reasons import parse_need_reason
from aver.model.record import Record
from aver.model.states import State
from aver.render.causes import is_failure
from aver.report.results import lines_of
from aver.store.columns import Outcome

SHORT_OF = {State.OUT_OF_MEMORY: "memory", State.TIMEOUT: "time"}
LOST = {
    State.NODE_FAIL: "its node was lost",
    State.BOOT_FAIL: "its node did not start",
    State.PREEMPTED: "the engine ended it to make room",
    State.UNVERIFIED: "nobody saw how it ended",
    State.CHECKPOINTED: "it goes on from its checkpoint",
}


class Hopeless(Record):
    """A job that a further attempt can't fix, and the command that explains it."""

    job: int
    name: str
    state: State
    why: str
    next: str


class Prospect(Record):
    """`waiting`: jobs that never ran, and start once the jobs that they need complete."""

    mended: tuple[Rerun, ...]
    hopeless: tuple[Hopeless, ...]
    waiting: int


def prospect(rows: Sequence[Outcome], larger: Mapping[str, str], why_not: Mapping[str, str]) -> Prospect:
    """Sort the failed jobs of a settled run into those to rerun, those without hope, and those that wait.

    `larger`: by definition, how its request has grown; `why_not`: by definition, why it has not.
    """
    mended: list[Rerun] = []
    hopeless: list[Hopeless] = []
    waiting = 0
    for line in lines_of(rows):
        row = line.row
        if not line.is_newest or not is_failure(row.job_state, row.job_reason):
            continue
        state = State(row.job_state)
        group = row.name.partition("[")[0]
        if state in LOST:
            mended.append(Rerun(row.job, row.name, LOST[state]))
        elif state is State.TIMEOUT and row.job_reason == reasons.DEADLINE:
            hopeless.append(Hopeless(row.job, row.name, state, "its deadline passed", f"aver why {row.job}"))
        elif state in SHORT_OF and group in larger:
            mended.append(Rerun(row.job, row.name, f"it was {state}: {larger[group]}"))
        elif state in SHORT_OF:
            why = why_not.get(group, f"no larger request for {SHORT_OF[state]} is known")
            hopeless.append(Hopeless(row.job, row.name, state, why, f"aver why {row.job}"))
        elif state is State.SKIPPED and parse_need_reason(row.job_reason) is not None:
            waiting += 1
        else:
            noted = row.job_reason if row.job_reason != reasons.NONE else "no cause is noted"
            hopeless.append(Hopeless(row.job, row.name, state, row.job_detail or noted, f"aver why {row.job}"))
    return Prospect(tuple(sorted(mended, key=lambda one: one.job)), tuple(hopeless), waiting)
