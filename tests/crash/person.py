"""A person with a stopwatch who runs jobs, does things to them, and says how each must have ended.

The person knows what each program does with a signal, and what was asked of it and in which order: each act waits for
its effect, so that no two race. What becomes of the coordinator meanwhile changes nothing that the person says.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign import crash_at

from aver.client.submit import new_key, submit_once
from aver.errors import UnreachableError
from aver.model.events import Observed
from aver.model.job import FlowSpec, Request
from aver.model.record import replace
from aver.protocol.messages import ResultCode
from aver.store.read.rows import JobRow
from live_home import LiveHome, is_alive, shell_job, wait_for

DEADLINE_S = 60.0
TERM = {"default": ("", "0:15"), "caught": ("trap 'exit 7' TERM", "7:0"), "ignored": ("trap '' TERM", "0:9")}
USR = {"default": "", "caught": "trap 'echo >> {0}.usr' USR1", "ignored": "trap '' USR1"}
WAIT_FOR_GO = "while [ ! -e {0}.go ]; do sleep 0.02; done; read code < {0}.go; exit $code"
SAY_PID = "echo $$ > {0}.part; mv {0}.part {0}.pid"
LIVELY = ("heard", "before-commit", "committed", "acted", "told")
STEPS = {"plain": "-n1", "-K": "-n2 -K", "-W": "-n2 -W1", "-t": "-n1 -t 0:01"}
SLACK_S = 0.05  # of the clocks of two processes


@dataclass
class Watch:
    """What the stopwatch says of a span, at least and at most."""

    least_s: float = 0.0
    most_s: float = 0.0


@dataclass
class Subject:
    """A job, what the person did to it, and what must become of it."""

    name: str
    term: str
    usr: str
    step: str = ""  # of the script, which waits for it, a key of STEPS; "" once it has ended
    number: int = 0
    is_suspended: bool = False
    waiting: str = ""  # what was done while it was suspended, and takes effect when it goes on
    end: str = ""  # state and exit, once it has an end
    step_end: str = ""
    asked_at: float = 0.0
    seen_at: float = 0.0
    alive_at: float = 0.0  # when it was last known to live
    gone_at: float = 0.0
    stopped_at: tuple[float, float] = (0.0, 0.0)  # asked, and seen
    suspended: Watch = field(default_factory=Watch)


class Person:
    """`do` does one thing, chosen by chance among those whose effect is certain; `judge` compares all ends."""

    def __init__(self, live: LiveHome, seed: int) -> None:
        self.live = live
        self.chance = random.Random(seed)
        self.subjects: list[Subject] = []
        self.done: list[str] = []  # for who reads a failure

    # ---- acts -----------------------------------------------------------------------------------

    def do(self) -> None:
        open_ones = [one for one in self.subjects if not one.end]
        if not open_ones or (len(open_ones) < 3 and self.chance.random() < 0.3):
            self.submit()
            return
        one = self.chance.choice(open_ones)
        acts = self._acts(one)
        name = self.chance.choice([*acts])
        self._note(f"{name} {one.name}")
        one.alive_at = time.monotonic()
        with self._trouble():
            acts[name]()

    def finish(self) -> None:
        """Let all go on and end by themselves."""
        for one in self.subjects:
            if one.end:
                continue
            self._note(f"finish {one.name}")
            one.alive_at = time.monotonic()
            if one.is_suspended:
                self.resume(one)
            if not one.end and one.step:
                self.end_step(one, 0)
            if not one.end:
                self.go(one, 0)
        self._until_answered(lambda: self._call("ping"))  # whoever was killed last left its files to the next one

    def _note(self, text: str) -> None:
        self.done.append(text)

    def _acts(self, one: Subject) -> dict[str, Callable[[], None]]:
        """What can be done to it now, with an effect that is certain."""
        acts: dict[str, Callable[[], None]] = {"resume" if one.is_suspended else "suspend": lambda: self._move(one)}
        if one.waiting:
            return acts
        acts |= {
            "cancel": lambda: self.cancel(one, force=False),
            "kill": lambda: self.cancel(one, force=True),
        }
        if one.step:
            if not one.is_suspended:
                acts |= {
                    "limit": lambda: self.limit(one),
                    "end step": lambda: self.end_step(one, self.chance.choice((5,) if one.step == "-K" else (0, 3))),
                    "cancel step": lambda: self.cancel_step(one),
                }
            return acts
        acts |= {
            "go": lambda: self.go(one, self.chance.choice((0, 0, 3, 137))),
            "limit": lambda: self.limit(one),
            "signal": lambda: self.signal(one),
        }
        if not one.is_suspended:
            acts["kill witness"] = lambda: self.kill_witness(one)
        return acts

    def submit(self) -> None:
        one = Subject(
            f"j{len(self.subjects)}", self.chance.choice([*TERM]), self.chance.choice([*USR]),
            self.chance.choice(("", "", "", *STEPS)),
        )  # fmt: skip
        self._note(f"submit {one.name} TERM {one.term} USR1 {one.usr} step {one.step or 'none'}")
        text = [TERM[one.term][0], USR[one.usr].format(one.name), SAY_PID.format(one.name)]
        if one.step:
            task = [f"n={one.name}.t$SLURM_PROCID", SAY_PID.format("$n"), WAIT_FOR_GO.format("$n")]
            (self.live.folder / f"{one.name}.sh").write_text("\n".join(task) + "\n")
            text.append(f'"$AVER_HOME/bin/srun" {STEPS[one.step]} sh {one.name}.sh')
            text.append(f"echo $? > {one.name}.part; mv {one.name}.part {one.name}.srun")
        text.append(WAIT_FOR_GO.format(one.name))
        kill_wait_s = 1.0 if one.term == "ignored" else 2 * DEADLINE_S  # who heeds TERM has all the time
        spec = shell_job(one.name, "\n".join(text), request=Request(cpus=2), kill_wait_s=kill_wait_s)
        submission = replace(self.live.submission(FlowSpec(one.name, (spec,), is_single=True)), key=new_key())
        settings = {"AVER_CONFIG": os.environ["AVER_CONFIG"]}  # for the coordinator that its srun may start
        environment = self.live.environment(settings)
        one.asked_at = time.monotonic()
        with self._trouble():
            reply = self._until_answered(lambda: submit_once(self.live.home, submission, environment))
        one.number = reply.run
        self.subjects.append(one)
        self._pid(one.name)
        for task in self._tasks(one):
            self._pid(task)
        self._until_shown(one, "RUNNING")
        one.seen_at = one.alive_at = time.monotonic()
        if one.step == "-t":
            self._step_ends(one, "TIMEOUT 0:15", 143)

    def go(self, one: Subject, code: int) -> None:
        """It ends by itself with this code."""
        self._give(f"{one.name}.go", str(code))
        self._takes_effect(one, f"{'COMPLETED' if code == 0 else 'FAILED'} {code}:0")

    def signal(self, one: Subject) -> None:
        self._ask("cancel", one, signal=int(signal.SIGUSR1))
        if one.usr == "default":
            self._takes_effect(one, "FAILED 0:10")
        elif one.usr == "caught" and not one.is_suspended:
            self._wait_for((self.live.folder / f"{one.name}.usr").exists, f"{one.name} has caught USR1")

    def limit(self, one: Subject) -> None:
        """Its time limit becomes a second, which may have passed already."""
        self._ask("update", one, changes={"time_s": 1})
        self._takes_effect(one, f"TIMEOUT {TERM[one.term][1]}", "CANCELLED 0:15")

    def cancel(self, one: Subject, force: bool) -> None:
        began = time.monotonic()
        self._ask("cancel", one, force=force)
        one.is_suspended, was_suspended = False, one.is_suspended
        self._takes_effect(
            one, f"CANCELLED {'0:9' if force else TERM[one.term][1]}", f"CANCELLED {'0:9' if force else '0:15'}"
        )
        if was_suspended:
            one.suspended.least_s += began - one.stopped_at[1]
            one.suspended.most_s += one.gone_at - one.stopped_at[0]

    def kill_witness(self, one: Subject) -> None:
        """Nobody is left who could say how it ended. Its processes are ended."""
        pid = self._pid(one.name)
        os.kill(self.live.witness_of(one.number), signal.SIGKILL)
        self._takes_effect(one, "UNVERIFIED None")
        self._wait_for(lambda: not is_alive(pid), f"the end of what {one.name} left")

    def _move(self, one: Subject) -> None:
        if one.is_suspended:
            self.resume(one)
        else:
            self.suspend(one)

    def suspend(self, one: Subject) -> None:
        asked = time.monotonic()
        self._ask("suspend", one)
        self._until_shown(one, "SUSPENDED")
        runs = [pid for pid in self._pids(one) if _state(pid) not in ("T", "D")]  # in D it has the signal, and waits
        assert not runs, f"{one.name} is shown as SUSPENDED, and {runs} run"
        one.stopped_at = (asked, time.monotonic())
        one.is_suspended = True

    def resume(self, one: Subject) -> None:
        one.suspended.least_s += time.monotonic() - one.stopped_at[1]
        self._ask("resume", one)
        one.is_suspended = False
        for pid in self._pids(one):
            self._wait_for(lambda pid=pid: not _is_stopped(pid), f"{one.name} goes on")
        one.suspended.most_s += time.monotonic() - one.stopped_at[0]
        end, one.waiting = one.waiting, ""
        if end:
            self._takes_effect(one, end, "CANCELLED 0:15")
        else:
            self._until_shown(one, "RUNNING")

    def end_step(self, one: Subject, code: int) -> None:
        """The last task of the step ends by itself; with -K and -W the other is ended after that."""
        tasks = self._tasks(one)
        for task in tasks if code == 0 and one.step == "-K" else tasks[-1:]:
            self._give(f"{task}.go", str(code))
        killed = {"-K": 143 if code else 0, "-W": 137}.get(one.step, code)
        ended_as = (
            "CANCELLED 0:9" if code == 0 and one.step == "-W" else f"{'COMPLETED' if code == 0 else 'FAILED'} {code}:0"
        )
        self._step_ends(one, ended_as, killed)

    def cancel_step(self, one: Subject) -> None:
        key = self.live.attempt(one.number).key
        self._until_answered(lambda: self._call("signal_step", key=key, step=0, signal=None, by="tester"))
        self._step_ends(one, "CANCELLED 0:9", 137)

    def _step_ends(self, one: Subject, end: str, code: int) -> None:
        one.step, one.step_end = "", end
        said = self.live.folder / f"{one.name}.srun"
        self._wait_for(said.exists, f"the end of the step of {one.name}")
        assert said.read_text().strip() == str(code), f"srun of {one.name} ended with {said.read_text()}"

    def _takes_effect(self, one: Subject, end: str, step_end: str = "") -> None:
        """Now, or when it goes on."""
        if one.is_suspended:
            one.waiting = end
            return
        one.end = end
        if one.step:
            one.step, one.step_end = "", step_end
        row = self._wait_for(lambda: self._settled(one), f"the verdict of {one.name}, {end}")
        assert row is not None
        one.gone_at = time.monotonic()
        assert f"{row.state} {row.exit}" == end, f"{one.name} is {row.state} {row.exit}, and was {end}: {row}"

    # ---- the coordinator ------------------------------------------------------------------------

    @contextlib.contextmanager
    def _trouble(self) -> Iterator[None]:
        """What becomes of the coordinator while something is asked: nothing, or it is killed before, during or at a
        named point of it."""
        kind = self.chance.choice(("none", "none", "before", "during", "point", "point"))
        if kind in ("before", "point"):
            self._kill()
        if kind == "point":
            point = f"{self.chance.choice(LIVELY)}:{self.chance.choice((1, 1, 2, 3))}"
            self._note(f"  the next coordinator dies at {point}")
            with crash_at(point), contextlib.suppress(UnreachableError):
                self._call("ping")
            yield
        elif kind == "during":
            delay_s = self.chance.random() ** 2 * 0.2
            self._note(f"  the coordinator is killed {delay_s:.3f} s later")
            killer = threading.Timer(delay_s, self._kill)
            killer.start()
            try:
                yield
            finally:
                killer.join()
        else:
            self._note(f"  the coordinator: {kind}")
            yield

    def _kill(self) -> None:
        pid = self.live.coordinator()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _ask(self, op: str, one: Subject, **arguments: Any) -> None:
        """Ask until somebody answers; what was done before the answer was lost is done already."""
        reply = self._until_answered(lambda: self._call(op, ids=[one.number], by="tester", **arguments))
        (result,) = reply["results"]
        ends_it = op not in ("suspend", "resume") or one.waiting  # one that goes on may end at once
        may_be_over = ends_it and result["code"] == ResultCode.SETTLED  # by what was lost
        assert ResultCode(result["code"]).is_so or may_be_over, f"{op} of {one.name}: {result}"

    def _call(self, op: str, **arguments: Any) -> dict[str, Any]:
        with self.live.client() as client:
            return client.call(op, **arguments)

    def _until_answered(self, ask: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                return ask()
            except UnreachableError:
                if time.monotonic() > deadline:
                    raise

    # ---- looking --------------------------------------------------------------------------------

    def _tasks(self, one: Subject) -> list[str]:
        return [f"{one.name}.t{rank}" for rank in range({"": 0, "plain": 1, "-t": 1}.get(one.step, 2))]

    def _pids(self, one: Subject) -> list[int]:
        return [self._pid(name) for name in (one.name, *self._tasks(one))]

    def _pid(self, name: str) -> int:
        path = self.live.folder / f"{name}.pid"
        return int(self._wait_for(lambda: path.exists() and path.read_text(), f"{name} has begun"))

    def _wait_for(self, predicate: Callable[[], Any], what: str) -> Any:
        """Wait, and see to it that there is a coordinator: who was answered need not ask again, but somebody does."""

        def look() -> Any:
            if self.live.coordinator() is None:
                self._until_answered(lambda: self._call("ping"))
            return predicate()

        return wait_for(look, what)

    def _give(self, name: str, text: str) -> None:
        part = self.live.folder / "given"
        part.write_text(f"{text}\n")
        part.rename(self.live.folder / name)

    def _row(self, one: Subject) -> JobRow:
        return self.live.job(one.number)

    def _settled(self, one: Subject) -> JobRow | None:
        row = self._row(one)
        return row if row.state.is_settled else None

    def _until_shown(self, one: Subject, state: str) -> None:
        self._wait_for(lambda: self._row(one).state == state, f"{one.name} is shown as {state}")

    def story(self) -> str:
        """For who reads a failure: what was done, and what the store says."""
        rows = [str(self.live.job(one.number)) for one in self.subjects]
        return "\n".join([*self.done, *rows])

    # ---- judging --------------------------------------------------------------------------------

    def judge(self) -> None:
        """Each job has the end, once, and the times that the person says."""
        for one in self.subjects:
            row = self.live.job(one.number)
            assert (f"{row.state} {row.exit}", row.attempt) == (one.end, 1), f"{one.name}: {row}"
            with self.live.reader() as reader:
                steps = [f"{step.state} {step.exit}" for step in reader.steps(one.number)]
                elapsed_s = reader.attempts(one.number)[-1].elapsed_s
                said = [
                    seen.event.said for seen in reader.events(run=one.number)
                    if isinstance(seen.event, Observed) and seen.event.verdict is not None
                ]  # fmt: skip
            assert steps == ([one.step_end] if one.step_end else []), f"the step of {one.name}"
            if one.end.startswith("UNVERIFIED"):
                assert elapsed_s is None, f"{one.name}: nobody saw its end"
                continue
            assert elapsed_s is not None, one.name
            least_s, most_s = one.alive_at - one.seen_at, one.gone_at - one.asked_at
            assert least_s - SLACK_S <= elapsed_s <= most_s + SLACK_S, f"{one.name}: {least_s} {elapsed_s} {most_s}"
            suspended_s = json.loads(said[-1])["suspended"]
            least_s, most_s = one.suspended.least_s, one.suspended.most_s
            assert least_s - SLACK_S <= suspended_s <= most_s + SLACK_S, (
                f"{one.name} was suspended: {least_s} {suspended_s} {most_s}"
            )


def _is_stopped(pid: int) -> bool:
    """Whether it stands still: it is stopped, or waits in vfork for a child that is stopped before its exec."""
    state = _state(pid)
    if state != "D":
        return state == "T"
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return False
    return bool(children) and all(_state(int(child)) == "T" for child in children)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""
