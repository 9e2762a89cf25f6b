"""The data that commands answer with. `docs/json.schema.json` describes the same shapes.

Keys are stable: they are added, never renamed. Times are unix seconds, sizes are bytes, unknown
is None. A table or a JSON document is made from these and from nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aver.cli.output.report_documents import ReportDocument
from aver.client.documents import ExitFacts as ExitFacts
from aver.client.documents import JobFacts as JobFacts
from aver.client.documents import Preview as Preview
from aver.client.documents import RunFacts as RunFacts
from aver.client.use.series import AttemptUse as AttemptUse
from aver.model.record import Record
from aver.report.pools import PoolFacts as PoolFacts

if TYPE_CHECKING:
    from aver.protocol.messages import CutRun


class AttemptFacts(Record):
    attempt: int
    key: str
    engine: str
    state: str
    reason: str | None
    exit: ExitFacts | None
    verified: bool | None  # None while nobody has said anything
    source: str | None
    warnings: tuple[str, ...]
    detail: str
    planned_at: float
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    user_s: float | None
    sys_s: float | None
    is_cpu_least: bool  # children that nobody waited for may have used more
    peak_bytes: int | None
    peak_of: str | None  # all: its processes together; largest: one process; parts: script and steps; None: nobody said
    node: str | None
    cpus: int | float | None
    gpus: int | None
    mem_bytes: int | None
    time_s: int | None
    stdout: str | None
    stderr: str | None


class TaskFacts(Record):
    """A task that has ended. `because`: it was killed because another task failed, or had ended."""

    task: int
    state: str
    reason: str | None
    exit: ExitFacts | None
    because: bool
    detail: str
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    user_s: float | None
    sys_s: float | None
    peak_bytes: int | None
    node: str | None


class StepFacts(Record):
    """One `srun`. `summary` is the Task Exit Code Summary; `task_ends` are the tasks that have ended."""

    step: int
    address: str
    attempt: int
    name: str
    state: str
    is_settled: bool
    reason: str | None
    exit: ExitFacts | None
    srun_code: int | None
    first_failed: int | None
    tasks: int
    command: tuple[str, ...]
    started_at: float
    ended_at: float | None
    summary: str
    task_ends: tuple[TaskFacts, ...]


class JobList(Record):
    jobs: tuple[JobFacts, ...]
    left_out: int  # how many more there are


class RunList(Record):
    runs: tuple[RunFacts, ...]
    left_out: int


class AskedFacts(Record):
    """What was asked for the job; `needs` are the jobs that it waits for, `retries` how often it may be tried again."""

    cpus: int | float
    gpus: int
    mem_bytes: int | None
    time_s: int | None
    needs: tuple[str, ...]
    retries: int
    begin_at: float | None
    deadline_at: float | None
    priority: int
    comment: str | None


class JobShown(Record):
    job: JobFacts
    sentence: str
    asked: AskedFacts
    waiting_since: float | None  # None: it does not wait
    command: tuple[str, ...]
    folder: str
    user: str
    host: str
    typed: tuple[str, ...]
    secrets: tuple[str, ...]  # names, never values
    attempts: tuple[AttemptFacts, ...]
    steps: tuple[StepFacts, ...]
    use: tuple[AttemptUse, ...]  # memory and CPUs over time, of attempts that were measured, the newest ones


class StepShown(Record):
    job: JobFacts
    step: StepFacts


class RunShown(Record):
    run: RunFacts
    user: str
    host: str
    typed: tuple[str, ...]
    params: dict[str, str]
    unselected: tuple[str, ...]  # jobs of the flow that are not in this run
    jobs: tuple[JobFacts, ...]
    left_out: int


class Happening(Record):
    """One line of the timeline: who said it, what it means, and the words as they came."""

    at: float
    source: str
    what: str
    attempt: int | None
    said: str | None


class Explained(Record):
    job: JobFacts
    sentence: str
    timeline: tuple[Happening, ...]
    next: tuple[str, ...]


class TransitionFacts(Record):
    """One line of a job's story. `state` is what it led to; None where it led to no other state."""

    at: float
    attempt: int | None
    state: str | None
    source: str
    what: str
    said: str | None  # the source's own words


class Timeline(Record):
    job: JobFacts
    transitions: tuple[TransitionFacts, ...]


class Written(Record):
    """Answer of `report` and `export`: the file and its contents."""

    run: int
    format: str
    path: str
    size_bytes: int
    jobs: int
    is_settled: bool


class Pruned(Record):
    """Answer of `prune`; `left_bytes` is the size of all remaining logs."""

    is_dry_run: bool
    runs: tuple[CutRun, ...]
    freed_bytes: int
    left_bytes: int


class SubmittedFacts(Record):
    run: int
    first_job: int
    jobs: int


class PlannedJob(Record):
    """What would become of one job: it runs, or `from_run` and `from_job` did its work. `script` goes to `command`."""

    name: str
    runs: bool
    why: str | None
    from_run: int | None
    from_job: int | None
    command: tuple[str, ...]
    script: str | None  # None: the command has no shell
    folder: str
    env: dict[str, str]  # its own; secrets are masked


class Planned(Record):
    """Answer of `run --dry-run`. `since` is the run that it was compared with, `inherited` counts variables."""

    flow: str
    since: int | None
    jobs: tuple[PlannedJob, ...]
    inherited: int


class Ended(Record):
    """Final answer of `run` and `watch`. `waiting` are the numbers that are not settled."""

    runs: tuple[RunFacts, ...]
    jobs: tuple[JobFacts, ...]
    is_settled: bool
    exit_status: int
    waiting: tuple[int, ...]


class Done(Record):
    """What became of one job or run: `done` is false where it is not as was asked, and `code` says why."""

    id: int
    did: str
    done: bool = True
    code: str = "done"


class Acted(Record):
    """Answer of cancel, hold, release, accept and retry."""

    what: str
    results: tuple[Done, ...]


class LogText(Record):
    """`text` has the replacement character where the bytes are not UTF-8."""

    job: int
    attempt: int
    stream: str
    path: str
    is_shared: bool  # other attempts wrote to this file too
    size_bytes: int
    is_cut: bool  # the beginning is left out
    text: str


class CoordinatorFacts(Record):
    is_running: bool
    pid: int | None
    version: str | None
    running: int | None
    pending: int | None
    home: str
    detail: str
    problems: tuple[str, ...]  # of its store: what was lost, what can't be stored


class Check(Record):
    """`status` is ok, limited or missing."""

    name: str
    status: str
    fact: str
    advice: str | None


class Diagnosis(Record):
    version: str
    home: str
    checks: tuple[Check, ...]


class AccountFacts(Record):
    """One row of the cluster's accounting, in its own words; `job` and `attempt`: whose it is."""

    id: str
    name: str
    job: int | None
    attempt: int | None
    state: str
    exit: str
    started_at: float | None
    ended_at: float | None
    elapsed_s: float | None
    maxrss_bytes: int | None
    node: str


class PoolList(Record):
    pools: tuple[PoolFacts, ...]


class SettingFacts(Record):
    key: str
    value: str | None  # as it is in force; None: it has none
    default: str | None
    is_set: bool  # in the file
    meaning: str


class SettingList(Record):
    file: str
    settings: tuple[SettingFacts, ...]


class AccountList(Record):
    run: int
    rows: tuple[AccountFacts, ...]


Document = (
    JobList
    | RunList
    | JobShown
    | StepShown
    | RunShown
    | Explained
    | SubmittedFacts
    | Planned
    | Preview
    | Ended
    | Acted
    | LogText
    | CoordinatorFacts
    | Diagnosis
    | Timeline
    | Written
    | Pruned
    | AccountList
    | PoolList
    | SettingList
    | ReportDocument
)
