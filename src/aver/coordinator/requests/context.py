"""What the handlers of requests work with: the coordinator's parts, and how jobs are found by their numbers.

Each operation's module has its handler and the change of the state machine that it makes: who asked is an event, the
engines act only when that event is durable, and the sentence that comes back is for the one who asked. Asking twice is
harmless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from aver.coordinator.background import Background
from aver.coordinator.commit import Latency
from aver.coordinator.order.generated import Generated
from aver.coordinator.state.machine import Machine
from aver.coordinator.state.run import LiveRun
from aver.coordinator.upkeep import Upkeep
from aver.coordinator.watchers import Watchers
from aver.home import Home
from aver.model.record import Record
from aver.model.states import State
from aver.protocol.messages import Result, ResultCode, Results
from aver.store.read.reader import Reader


class Said(str):
    """What was done to one job, as a sentence for the one who asked; the code says it to a program."""

    code: ResultCode

    def __new__(cls, sentence: str, code: ResultCode = ResultCode.DONE) -> Said:
        said = super().__new__(cls, sentence)
        said.code = code
        return said


class Context(Record):
    """`check_writable` raises CantWriteError; `hear` takes what the engines have heard; `stop` ends the loop, and with
    `start_over` another coordinator follows."""

    home: Home
    machine: Machine
    open_reader: Callable[[], Reader | None]
    load_run: Callable[[Machine, Reader, int, float], LiveRun | None]
    generated: Generated
    background: Background
    watchers: Watchers
    upkeep: Upkeep
    kill_wait_s: float
    check_writable: Callable[[], None]
    hear: Callable[[float], None]
    stop: Callable[[], None]
    start_over: Callable[[], None]
    latency: Latency
    problem: Callable[[], str]  # what can't be stored at the moment

    def take_back(self, decided: int) -> None:
        """Only the first `decided` events, of those that wait for their commit, have happened."""
        events = self.machine.out.events
        if len(events) > decided:
            del events[decided:]
            self.start_over()

    def each_job(
        self, ids: Iterable[int], now: float, act: Callable[[LiveRun, int], Said], revive: bool = False
    ) -> Results:
        """Do it to each of the jobs, and to each job of the runs."""

        def each(run: LiveRun, index: int | None) -> Said:
            return act(run, index) if index is not None else together([act(run, one) for one in range(run.job_count)])

        return self.each(ids, now, each, revive)

    def each(
        self,
        ids: Iterable[int],
        now: float,
        act: Callable[[LiveRun, int | None], Said],
        revive: bool = False,
        settled: ResultCode = ResultCode.SETTLED,
    ) -> Results:
        """Do it to each of the jobs and runs; those that are settled are taken up again if `revive` says so.

        `settled`: what it means that a job is over.
        """
        done = [(one, self._one(one, now, act, revive, settled)) for one in ids]
        return Results(tuple(Result(number, str(said), said.code) for number, said in done))

    def _one(
        self, number: int, now: float, act: Callable[[LiveRun, int | None], Said], revive: bool, settled: ResultCode
    ) -> Said:
        found = self.machine.find(number)
        if found is None:
            state = self.settled_state(number)
            if state is None:
                return Said("no such job", ResultCode.NOT_FOUND)
            if not revive or self.revive(number, now) is None:
                return Said(f"already {state}", settled)
            found = self.machine.find(number)
            assert found is not None
        run, index = found
        return act(run, index)

    def settled_state(self, number: int) -> State | None:
        """As the store has it."""
        reader = self.open_reader()
        if reader is None:
            return None
        with reader:
            job = reader.job(number)
            if job is not None:
                return job.state
            run = reader.run(number)
            return run.state if run is not None else None

    def revive(self, number: int, now: float) -> LiveRun | None:
        """The live run that has this number or this job; taken up again from the store if it was settled."""
        found = self.machine.find(number)
        if found is not None:
            return found[0]
        reader = self.open_reader()
        if reader is None:
            return None
        with reader:
            job = reader.job(number)
            run = reader.run(job.run if job is not None else number)
            revived = self.load_run(self.machine, reader, run.id, now) if run is not None else None
        if revived is not None and revived.state.is_settled:
            self.machine.out.finished_runs.append(revived.number)  # unless the request changes that, it is let go again
        return revived


def together(said: Sequence[Said]) -> Said:
    """What was done to all jobs of a run: done if it was to any of them; what differs is counted."""
    counts = Counter(said)
    codes = {one.code for one in said}
    code = next(code for code in ResultCode if code in codes)
    if len(counts) == 1:
        return Said(said[0], code)
    return Said(", ".join(f"{count} {sentence}" for sentence, count in counts.items()), code)
