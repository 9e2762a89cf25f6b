"""What the page is answered with, beside the documents of `--json`, with the same rules: unknown is None.

A list has a limit; `left_out` says how many rows it does not show, `next` is the cursor that goes on.
"""

from __future__ import annotations

from aver.cli.output.documents import CoordinatorFacts, Explained, JobShown
from aver.client.documents import JobFacts, RunFacts
from aver.client.use.now import UseNow
from aver.model.record import Record


class SessionFacts(Record):
    """Of this server. `change` goes with each change, in the header X-Aver-Change; None: it is read-only. `seq` is the
    number of the store's newest event: a page that follows the events from there misses nothing of what it asks next.
    """

    version: str
    home: str
    user: str
    host: str
    folder: str
    is_read_only: bool
    change: str | None
    seq: int


class MachineFacts(Record):
    """This machine: what it has, what the jobs that run here asked for, and what those of them use that are measured.

    None: jobs run here, and it is not known what any of them uses.
    """

    cpus: int | float
    cpus_asked: float
    cpus_used: float | None
    memory_bytes: int
    memory_asked_bytes: int
    memory_used_bytes: int | None
    gpus: int
    gpus_asked: int
    running: int  # jobs, here
    measured: int  # of these


class Item(Record):
    """A job of the first view. `note`: why it waits or ended so, never empty; `use`: of one that runs here."""

    job: JobFacts
    note: str
    use: UseNow | None


class Items(Record):
    items: tuple[Item, ...]
    left_out: int


class Now(Record):
    at: float
    coordinator: CoordinatorFacts
    machine: MachineFacts
    running: Items
    waiting: Items
    settling: Items
    failed: Items  # since `failed_since`
    failed_since: float


class RunItem(Record):
    """`believed`: how many of the jobs have a verdict that is believed and not verified."""

    run: RunFacts
    believed: int


class RunPage(Record):
    runs: tuple[RunItem, ...]
    next: str | None


class RunView(Record):
    """`causes` and `usage` are asked for on their own: they read all jobs of the run. A matrix is one definition."""

    run: RunFacts
    believed: int
    sentence: str
    user: str
    host: str
    typed: tuple[str, ...]
    params: dict[str, str]
    definitions: int
    begun_at: float | None
    ended_at: float


class JobItem(Record):
    job: JobFacts
    note: str


class JobPage(Record):
    jobs: tuple[JobItem, ...]
    total: int
    left_out: int
    next: str | None


class GroupNode(Record):
    """A node of the graph. `first_job` and `spec` choose its jobs in the table; None: it stands for several."""

    label: str
    x: int
    y: int
    counts: dict[str, int]
    first_job: int | None
    spec: int | None
    job: int | None  # its only job


class GroupEdge(Record):
    source: int
    target: int
    label: str
    is_alternative: bool


class GroupView(Record):
    width: int
    height: int
    node_width: int
    node_height: int
    nodes: tuple[GroupNode, ...]
    edges: tuple[GroupEdge, ...]
    is_grouped: bool


class Cell(Record):
    job: int
    name: str
    state: str
    believed: bool
    values: tuple[str, ...]  # by Grid.axes; "" for an axis that the member has not


class Grid(Record):
    """The members of a matrix in their order."""

    axes: tuple[str, ...]
    cells: tuple[Cell, ...]
    left_out: int


class JobView(Record):
    shown: JobShown
    why: Explained
    dependents: tuple[str, ...] | None  # None: the flow is too large to look
    reproduce: str
    hint: str | None
    use: UseNow | None


class EnvironmentView(Record):
    job: int
    variables: tuple[tuple[str, str], ...]


class LogRange(Record):
    """Bytes `begin` to `end` of the file as text, secrets masked; cut between lines where there are any.

    `problem`: why there is nothing to read.
    """

    job: int
    attempt: int
    stream: str
    path: str
    is_shared: bool
    size_bytes: int
    begin: int
    end: int
    text: str
    problem: str | None = None


class LogMatch(Record):
    """`at`: where the line with the text begins; None: not found up to `looked`, from where to go on."""

    at: int | None
    looked: int
    is_over: bool


class Difference(Record):
    """A job of both runs, or of one: then the other's facts are None."""

    name: str
    first: int | None
    second: int | None
    first_state: str | None
    second_state: str | None
    first_s: float | None
    second_s: float | None
    first_bytes: int | None
    second_bytes: int | None


class Comparison(Record):
    """`moves`: `COMPLETED FAILED` -> how many. `differences`: other verdicts first, then the largest change of time."""

    first: RunFacts
    second: RunFacts
    moves: dict[str, int]
    differences: tuple[Difference, ...]
    left_out: int


class ErrorFacts(Record):
    error: str


class MistakeFacts(Record):
    line: int | None
    column: int | None
    text: str
    hint: str | None


class CheckedFlow(Record):
    """`mistakes` is empty for a flow that may be submitted."""

    name: str | None
    jobs: int | None
    mistakes: tuple[MistakeFacts, ...]
