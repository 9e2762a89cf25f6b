"""What tools take and what they answer with. Their JSON schemas are made from these types.

Answers are small: whoever reads them pays for every byte. Unknown is None.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from aver.client.documents import JobPreview
from aver.model.record import Record
from aver.report.change_events import EventFacts
from aver.report.digest import Digest
from aver.report.usage import GroupUse

WAIT_S = 50.0  # clients give up on a call after a minute
DIGEST_BYTES = 2000  # of the failures in the answer of a wait

Id = Annotated[str, Meta(description="A number (7), or run and name: 3/train, 3/tr*")]
Seconds = Annotated[float, Meta(ge=0, le=WAIT_S)]
Budget = Annotated[int, Meta(ge=1000, le=1_000_000)]
Rows = Annotated[int, Meta(ge=1, le=1000)]


class CheckAsked(Record):
    file: Annotated[str, Meta(description="A flow (.yaml, .json) or a batch script")]


class MistakeFound(Record):
    text: str
    line: int | None
    column: int | None
    hint: str | None


class Checked(Record):
    file: str
    is_right: bool
    name: str | None
    jobs: int | None
    mistakes: tuple[MistakeFound, ...]


class SubmitAsked(Record):
    """Give `file` or `command`. `key`: the same key and content is the same run, however often it is submitted."""

    file: Annotated[str | None, Meta(description="A flow (.yaml, .json) or a batch script")] = None
    command: Annotated[tuple[str, ...], Meta(description="A program and its arguments, run as one job")] = ()
    args: Annotated[tuple[str, ...], Meta(description="Arguments of a batch script")] = ()
    key: Annotated[str | None, Meta(description="Submit once: the same key is the same run")] = None
    name: str | None = None
    time: Annotated[str | None, Meta(description="Time limit of a job: 90s, 2h")] = None
    mem: Annotated[str | None, Meta(description="Memory limit of a job: 2G")] = None
    cpus: str | None = None
    folder: Annotated[str | None, Meta(description="Working folder of the job")] = None
    engine: str | None = None
    secrets: Annotated[tuple[str, ...], Meta(description="Names of variables whose values are masked everywhere")] = ()
    preview: Annotated[bool, Meta(description="Only say what would be submitted")] = False
    wait_s: Annotated[float, Meta(ge=0, le=WAIT_S, description="Wait so long for the verdict, as wait does")] = 0.0


class Subject(Record):
    """A job, or a run of several. `counts` are a run's jobs by state, `unselected` those of its flow that it lacks."""

    id: int
    is_run: bool
    name: str
    state: str
    is_settled: bool
    reason: str | None = None
    exit: str | None = None
    return_code: int | None = None
    verified: bool | None = None
    attempt: int | None = None
    elapsed_s: float | None = None
    warnings: tuple[str, ...] = ()
    counts: dict[str, int] | None = None
    unselected: tuple[str, ...] = ()


class Submission(Record):
    """`run` None: it was only a preview, and `definitions` are the first of what would run.

    With `wait_s` also as in the answer of wait.
    """

    run: int | None
    name: str
    jobs: int
    is_preview: bool
    ignored: tuple[str, ...]
    cursor: int
    definitions: tuple[JobPreview, ...] = ()
    is_settled: bool | None = None
    subjects: tuple[Subject, ...] = ()
    failures: Digest | None = None


class ListAsked(Record):
    run: Annotated[str | None, Meta(description="List the jobs of this run; without it, list runs")] = None
    state: str | None = None
    limit: Rows = 20


class Subjects(Record):
    subjects: tuple[Subject, ...]
    left_out: int


class StatusAsked(Record):
    id: Id


class WaitAsked(Record):
    id: Id
    timeout_s: Seconds = WAIT_S


class Waited(Record):
    """Not settled: call again. `cursor` is for wait_any's `since`. `failures` as of the tool failures, in few bytes;
    None while it is not settled, and if nothing failed."""

    is_settled: bool
    subjects: tuple[Subject, ...]
    cursor: int
    failures: Digest | None = None


class WaitAnyAsked(Record):
    """Without `ids`: any run. Without `since`: those of `ids` that are settled now, else what is from now on."""

    ids: tuple[Id, ...] = ()
    since: Annotated[int, Meta(ge=0, description="The cursor of the last answer that was handled")] | None = None
    timeout_s: Seconds = WAIT_S


class Settled(Record):
    """What was settled after `since`, in order, and the cursor for the next call."""

    events: tuple[EventFacts, ...]
    cursor: int


class WhyAsked(Record):
    job: Id


class Why(Record):
    job: int
    state: str
    sentence: str
    evidence: tuple[str, ...]
    next: tuple[str, ...]


class FailuresAsked(Record):
    run: Id
    max_bytes: Budget = 4000


class LogAsked(Record):
    """The end of a log, or with `first_line` a part of it; `grep` keeps lines that have this text."""

    job: Id
    attempt: Annotated[int, Meta(ge=1)] | None = None
    stderr: bool = False
    first_line: Annotated[int, Meta(ge=1)] | None = None
    grep: str | None = None
    max_bytes: Budget = 4000


class LogPart(Record):
    """`next_line` is the first_line that goes on; None: there is no more. `is_shared`: other attempts wrote to this
    file too."""

    job: int
    attempt: int
    path: str
    is_shared: bool
    size_bytes: int
    is_cut: bool
    next_line: int | None
    text: str


class IdsAsked(Record):
    ids: tuple[Id, ...]


class Outcome(Record):
    """`is_done`: it is as was asked, also if it was so before."""

    id: int
    did: str
    is_done: bool


class Acted(Record):
    what: str
    results: tuple[Outcome, ...]


class RecoverAsked(Record):
    """`preview` true changes nothing: look at it first."""

    run: Id
    preview: bool = True


class Recovery(Record):
    """`round` None: nothing was begun. Each text is `job: why`."""

    run: int
    is_preview: bool
    round: int | None
    file: str | None
    changes: tuple[str, ...]
    rerun: tuple[str, ...]
    hopeless: tuple[str, ...]
    left: tuple[str, ...]
    waiting: int


class UsageAsked(Record):
    run: Id
    limit: Rows = 20


class Usage(Record):
    run: int
    groups: tuple[GroupUse, ...]
    left_out: int
    never_ran: int
    cpu_s: float | None
    is_cpu_least: bool
    cpu_given_s: float | None
