"""What Slurm's commands show of a job: one place that gathers it.

A job of an array (a run whose one spec has the single axis `array`) is `RUN_INDEX`; any other job is its number.
Everything is worked out when asked for, from plain rows and documents: these commands are called in loops.
"""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING
from aver.model.exit_text import raw_text, slurm_exit, step_warning
from aver.model.slurm_names import PARTITION, QOS, STEP_CANCEL, sluid, slurm_document
from aver.protocol import fast_client
from aver.slurm_cli import texts, words
from aver.store.read.light import UNSETTLED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol

    from aver.client.output_paths import JobFiles
    from aver.store.columns import LightJob, LightStep

    class Book(Protocol):
        """The store of one home, as far as a job's facts need it."""

        now: float
        converts: bool
        expands: bool

        def asked(self, run: int, job: int) -> list[tuple[float, dict[str, Any]]]: ...
        def said(self, job: int, attempt: int) -> list[tuple[float, dict[str, Any]]]: ...
        def numbered(self, numbers: Iterable[int]) -> list[JobFacts]: ...
        def active_in(self, run: int) -> int: ...
        def is_updated_alone(self, row: LightJob) -> bool: ...
        def read_steps(self, jobs: list[JobFacts]) -> None: ...
        def masked(self, text: str) -> str: ...
        def shown(self, text: str) -> str: ...


_DOMAIN = "."
_CHANGED_FACTS = ("partition", "account", "qos", "nice", "reservation", "wckey", "licenses", "features")


def node_name() -> str:
    """This machine's short name."""
    return os.uname().nodename.partition(_DOMAIN)[0] or "localhost"


class JobFacts:
    """One job, or one attempt of it."""

    def __init__(self, book: Book, row: LightJob, origin: dict[str, Any], flow: dict[str, Any]) -> None:
        self.book = book
        self.row = row
        self.origin = origin
        specs = flow.get("jobs", [])
        self.spec: dict[str, Any] = dict(specs[row.spec]) if row.spec < len(specs) else {}
        self.slurm = slurm_document(self.spec)  # None: neither a batch script nor a job of Slurm's commands
        self.named: dict[str, Any] = dict(self.slurm or {})
        asked = fast_client.loads(row.request.encode()) if row.request else self.spec.get("request", {})
        self.request: dict[str, Any] = asked
        self.changed: dict[str, Any] = {}  # by `scontrol update`
        for at, event in book.asked(row.run, row.id):
            if event.get("what") == "update":
                self._change(at, event)
        matrix: dict[str, Any] = self.spec.get("matrix") or {}
        axes: list[Any] = matrix.get("axes", []) if len(specs) == 1 else []
        self.array_job: int | None = None
        self.array_index, self.array_size = "", 0
        self.array_limit: int | None = None
        self.derived = row.derived  # None: unknown; of an earlier attempt to be set by who has its steps
        self.steps: list[LightStep] | None = None  # None: not read yet
        self.is_requeued = False  # of an earlier attempt to be set by who has all of them
        self.rest, self.stands_for_array = "", False  # tasks shown as one (`5,7,9%2`); shown under the array's number
        self.is_single = bool(flow.get("is_single"))
        if self.slurm is not None and len(axes) == 1 and axes[0][0] == "array" and row.member < len(axes[0][1]):
            self.array_job = row.run
            self.array_index, self.array_size = axes[0][1][row.member], len(axes[0][1])
            self.array_limit = matrix.get("max_parallel")

    def _change(self, at: float, event: dict[str, Any]) -> None:
        """What an update asked for. A limit counts for the attempt that there was; later ones have it in their own."""
        try:
            changes = fast_client.loads(str(event.get("detail", "")).encode("ascii", "replace"))
        except fast_client.Lost:
            return
        self.changed |= changes
        self.named |= {name: str(changes[name]) for name in _CHANGED_FACTS if name in changes}
        if self.row.planned_at is None or at >= self.row.planned_at:
            sizes = [name for name in ("time_s", "mem_bytes", "cpus") if name in changes]
            self.request = {**self.request, **{name: changes[name] or None for name in sizes}}
        if "begin_at" in changes:
            self.spec["begin_at"] = changes["begin_at"]
        if "dependency" in changes:
            from aver.slurm_cli.dependency import document_of

            self.spec["after"] = document_of(str(changes["dependency"]))
        if "throttle" in changes and self.spec.get("matrix"):
            self.spec["matrix"] = {**self.spec["matrix"], "max_parallel": changes["throttle"] or None}

    @property
    def number(self) -> int:
        """Its own; of an array's tasks the array's while they wait to begin, and for those that stand for it."""
        return self.array_job_id if self.rest or self.stands_for_array or self.waits_with_array else self.row.id

    @property
    def id_text(self) -> str:
        if self.array_job is None:
            return str(self.row.id)
        return (
            f"{self.array_job}_[{texts.shortened(self.rest)}]" if self.rest else f"{self.array_job}_{self.array_index}"
        )

    @property
    def sluid(self) -> str:
        return sluid(self.row.id, self.row.attempt or 1)

    @property
    def first_sluid(self) -> str:
        return sluid(self.row.id, 1)

    @property
    def index_text(self) -> str:
        """`3`, `5,7,9%2`, or nothing outside of an array."""
        return texts.shortened(self.rest) if self.rest else self.array_index

    @property
    def array_job_id(self) -> int:
        return self.row.id if self.array_job is None else self.array_job

    @property
    def name(self) -> str:
        """The job's name; a member of a matrix has its values in it, a task of an array does not."""
        name = self.row.name if self.array_job is None else self.spec.get("name", self.row.name)
        return self.book.shown(str(self.changed.get("name") or name))

    @property
    def user(self) -> str:
        return str(self.origin.get("user", ""))

    @property
    def uid(self) -> int:
        return int(self.origin.get("uid", os.getuid()))

    @property
    def gid(self) -> int:
        import pwd

        try:
            return pwd.getpwuid(self.uid).pw_gid
        except KeyError:
            return os.getgid()

    @property
    def group(self) -> str:
        import grp

        try:
            return grp.getgrgid(self.gid).gr_name
        except KeyError:
            return str(self.gid)

    def text(self, name: str) -> str:
        """What was asked for by this name, as it may be shown."""
        return self.book.shown(self.named.get(name, ""))

    @property
    def partition(self) -> str:
        return self.book.shown(self.named.get("partition") or PARTITION)

    @property
    def account(self) -> str:
        """Empty where none was given."""
        return self.text("account")

    @property
    def qos(self) -> str:
        return self.book.shown(self.named.get("qos") or QOS)

    @property
    def ours(self) -> str:
        """The state in our own words."""
        return self.row.state

    @property
    def state(self) -> str:
        return words.long_state(self.row.state)

    @property
    def queue_state(self) -> str:  # accounting knows no SPECIAL_EXIT
        return words.queue_state(self.row.state, self.row.reason)

    @property
    def reason(self) -> str:
        waits_in_turn = self.is_pending and self.row.reason in ("Priority", "Resources")
        if self.array_limit and waits_in_turn and self.book.active_in(self.row.run) >= self.array_limit:
            return "JobArrayTaskLimit"  # the coordinator writes it down for the first that waits, and not for all
        return self.book.shown(words.reason(self.row.state, self.row.reason))

    @property
    def is_pending(self) -> bool:
        return self.row.state in ("PENDING", "SUBMITTED")

    @property
    def waits_with_array(self) -> bool:  # for its first start; an update of it alone splits it off
        return self.is_pending and self.row.newest <= 1 and not (self.restarts or self.book.is_updated_alone(self.row))

    @property
    def is_active(self) -> bool:
        return self.row.state in ("RUNNING", "SUSPENDED", "COMPLETING", "SETTLING")

    @property
    def is_settled(self) -> bool:
        return not self.is_pending and not self.is_active

    @property
    def is_held(self) -> bool:
        return self.is_pending and self.row.reason.startswith(("JobHeld", "job_requeued"))

    @property
    def has_run(self) -> bool:
        return self.row.started_at is not None and not self.is_pending

    @property
    def is_earlier(self) -> bool:
        """Whether this is an attempt after which the job was begun again, and not the job as it is now."""
        return bool(self.row.is_earlier)

    @property
    def is_batch(self) -> bool:
        """Whether there is a script: `srun` alone and `salloc` have none."""
        return self.named.get("kind") not in ("srun", "salloc")

    @property
    def submitted_at(self) -> float:
        return self.row.submitted_at

    @property
    def eligible_at(self) -> float | None:
        """When it could have started; None while it is held or waits for others."""
        if self.is_pending and (self.is_held or self.row.reason.startswith("Dependency")):
            return None
        begin: float = self.spec.get("begin_at") or 0.0
        waited = self.row.planned_at if self.spec.get("after") or self.spec.get("needs") else None
        return max(self.row.submitted_at, begin, waited or 0.0)

    @property
    def started_at(self) -> float | None:
        """When it started, or is to; Slurm lets a job that never ran start when it was cancelled."""
        if not self.is_pending:
            return self.row.ended_at if self.is_settled and self.row.started_at is None else self.row.started_at
        return self.spec.get("begin_at") if self.row.reason == "BeginTime" else None

    @property
    def ended_at(self) -> float | None:
        """When it ended, or will at the latest."""
        if self.is_settled:
            return self.row.ended_at
        started, limit = self.started_at, self.limit_s
        return None if started is None or limit is None else started + limit + self.suspended_s

    @property
    def limit_s(self) -> int | None:
        """Its time limit; one that has begun ends no later than its deadline."""
        limit: int | None = self.request.get("time_s")
        if self.row.started_at is None or not self.spec.get("deadline_at"):
            return limit
        from aver.model.units import limit_until

        return limit_until(limit, self.spec["deadline_at"], self.row.started_at)

    @property
    def elapsed_s(self) -> float:
        """How long it has run, without the time in which it was suspended."""
        if not self.has_run:
            return 0.0
        if self.row.elapsed_s is not None and not self.is_active:
            return max(0.0, self.row.elapsed_s - self.suspended_s)
        assert self.row.started_at is not None
        end = self.book.now if self.row.ended_at is None else self.row.ended_at
        return max(0.0, end - self.row.started_at - self.suspended_s)

    @property
    def suspended_s(self) -> float:
        return self.suspended_within(0.0, self.book.now if self.row.ended_at is None else self.row.ended_at)

    def suspended_within(self, begin: float, end: float) -> float:
        """For how many seconds of this time, such as that of a step, it was suspended."""
        asked = self.book.asked(self.row.run, self.row.id)  # else an ended job's events need not be read
        if self.row.attempt is None or not (self.is_active or any(one.get("what") == "suspend" for _, one in asked)):
            return 0.0
        return texts.suspended_s(self.book.said(self.row.id, self.row.attempt), begin, end)

    @property
    def suspended_at(self) -> float | None:
        """Since when it is suspended."""
        if self.row.state != "SUSPENDED" or self.row.attempt is None:
            return None
        times = [at for at, said in self.book.said(self.row.id, self.row.attempt) if said.get("state") == "SUSPENDED"]
        return times[-1] if times else None

    @property
    def cpus(self) -> int:
        return max(1, -int(-self.request.get("cpus", 1) // 1))  # Slurm counts whole ones

    @property
    def gpus(self) -> int:
        return int(self.request.get("gpus", 0))

    @property
    def mem_mib(self) -> int:
        return texts.mib(self.request.get("mem_bytes"))

    @property
    def is_mem_per_cpu(self) -> bool:
        return "mem_per_cpu" in self.named

    @property
    def shown_mem(self) -> str:
        """`200M` of the node, or of each cpu where that was asked for."""
        mib = self.mem_mib // max(1, self.cpus) if self.is_mem_per_cpu else self.mem_mib
        return texts.size(mib, "M", exact=self.book.converts)

    @property
    def tasks(self) -> int:
        return int(self.named.get("ntasks") or 1)

    @property
    def cpus_per_task(self) -> int:
        return int(self.named.get("cpus_per_task") or 1)

    @property
    def node(self) -> str:
        """Where it runs or ran; empty before."""
        if not self.has_run:
            return ""
        return str(self.row.node or self.origin.get("host", "")).partition(_DOMAIN)[0] or node_name()

    @property
    def tres(self) -> list[tuple[str, str]]:
        """What it has or asks for, in scontrol's order."""
        found = [("cpu", str(self.cpus))]
        if self.mem_mib:
            found.append(("mem", texts.size(self.mem_mib, "M", exact=self.book.converts)))
        found += [("node", "1"), ("billing", str(self.cpus))]
        return found + ([("gres/gpu", str(self.gpus))] if self.gpus else [])

    @property
    def launch(self) -> tuple[str, int] | None:
        """Which operation failed, and errno, where it could not start."""
        if self.row.state != "FAILED" or self.row.exit is not None or self.row.attempt is None:
            return None
        for _, said in reversed(self.book.said(self.row.id, self.row.attempt)):
            try:
                launch = fast_client.loads(str(said.get("said", "")).encode("ascii", "replace")).get("launch")
            except fast_client.Lost:
                continue
            if isinstance(launch, dict):
                return str(launch.get("op", launch.get("operation", ""))), int(launch.get("errno", 0))
        return None

    @property
    def exit_text(self) -> str:
        return slurm_exit(self.row.state, self.row.exit, self.launch)

    @property
    def derived_text(self) -> str:
        return raw_text(self.derived)

    @property
    def system_comment(self) -> str:
        """The warnings of its verdict and of its steps, where Slurm has what its own plugins say of a job."""
        said = self._step_warnings()
        if self.row.warnings and self.row.warnings != "[]":
            import json  # costs time, which only these jobs need

            said = [*(str(one) for one in json.loads(self.row.warnings)), *said]
        return self.book.shown("; ".join(said)) if said else ""

    def _step_warnings(self) -> list[str]:
        """Those of steps that its verdict does not show; they are in DerivedExitCode."""
        if self.derived == 0 or not self.has_run:
            return []
        if self.steps is None:
            self.book.read_steps([self])
        is_seen = self.row.exit is not None
        said = []
        for step in self.steps or ():
            ended_as = None if step.state in UNSETTLED else step.state
            label = f"{step.job}.{step.step} ({step.name})"
            said.append(step_warning(label, ended_as, step.derived, is_job_seen=is_seen))
        return [one for one in said if one]

    @property
    def comment(self) -> str:
        return self.book.shown(str(self.changed.get("comment", self.spec.get("comment")) or ""))

    @property
    def files(self) -> JobFiles:
        """Where it reads and writes, as the coordinator opens it."""
        from aver.slurm_cli.paths import files_of

        index = None if self.array_job is None else int(self.array_index)
        return files_of(self.spec, self.slurm, self.origin, self.row, index, self.is_single)

    def stream(self, name: str) -> str:
        """The path of `stdin`, `stdout` or `stderr`, as it may be shown."""
        files = self.files
        if name == "stdin":
            return self.book.shown(files.stdin or "/dev/null")
        return self.book.shown((files.stderr if name == "stderr" else None) or files.stdout)

    def shown_stream(self, name: str) -> str:
        """As sacct shows it: the pattern, unless it is to be expanded. Errors that go to the output have none."""
        pattern = self.pattern(name)
        if pattern and not self.book.expands:
            return pattern
        return "" if name == "stderr" and not pattern else self.stream(name)

    def pattern(self, name: str) -> str:
        """What was asked for as `stdin`, `stdout` or `stderr`: `slurm-%j.out`; empty if nothing was."""
        return self.book.shown(str((self.spec.get("streams") or {}).get(name) or ""))

    @property
    def workdir(self) -> str:
        folder = self.spec.get("folder")
        return self.book.shown(self.files.folder if folder else str(self.origin.get("folder", "")))

    @property
    def command(self) -> str:
        """What scontrol calls Command: the script's path and arguments, empty for text that was given inline."""
        if "command" in self.named:
            return self.book.shown(self.named["command"])
        command = self.spec.get("command", {})
        return self.book.shown(" ".join(command.get("args", ()))) if command.get("is") == "Argv" else ""

    @property
    def script(self) -> str | None:
        command = self.spec.get("command", {})
        return command.get("text") if command.get("is") in ("Script", "Shell") else None

    @property
    def submit_line(self) -> str:
        return self.book.shown(" ".join(self.origin.get("command", ())))

    @property
    def restarts(self) -> int:
        """How often it was begun again; from when its attempt has ended, the next one counts."""
        waits_again = self.is_pending and self.row.attempt_state not in (None, *UNSETTLED)
        return self.row.newest if waits_again else max(0, (self.row.attempt or self.row.newest) - 1)

    @property
    def requeue(self) -> int:
        return 0 if self.named.get("requeue") is False else 1

    @property
    def priority(self) -> int:
        """0 is held, as in Slurm."""
        return 0 if self.is_held else max(1, int(self.changed.get("priority", self.spec.get("priority", 0)) or 0))

    @property
    def cancelled_by(self) -> int | None:
        """The uid of who cancelled it; None where a rule did, or nobody."""
        if self.row.state != "CANCELLED":
            return None
        for at, asked in reversed(self.book.asked(self.row.run, self.row.id)):
            if asked.get("what") == "cancel" and at >= (self.row.planned_at or 0.0):  # else it ended another attempt
                return _uid(str(asked.get("by", "")), self)
        return None

    def step_cancelled_by(self, step: LightStep) -> int | None:
        """The uid of who cancelled the step by its number; None where nobody did."""
        for at, asked in reversed(self.book.asked(self.row.run, self.row.id)):
            is_it = asked.get("what") == STEP_CANCEL and asked.get("detail") == str(step.step)
            if step.state == "CANCELLED" and is_it and at >= step.started_at:
                return _uid(str(asked.get("by", "")), self)
        return None

    @property
    def dependency(self) -> str:
        """What it still waits for; empty when nothing."""
        from aver.slurm_cli.dependency import remaining

        after = self.spec.get("after") if self.is_pending else None
        return remaining(after, self.array_index, self.book.numbered) if after else ""


def _uid(name: str, job: JobFacts) -> int | None:
    if name == job.user:
        return job.uid
    if name.isascii() and name.isdigit():
        return int(name)
    import pwd

    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        return None
