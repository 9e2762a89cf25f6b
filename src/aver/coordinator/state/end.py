"""How an attempt ends: it has one verdict, gives back what it took, and its engine may forget it once that is durable.

As the driver: no sockets, no disk, no clock. A script that ended before its steps waits for them; what never began is
given its verdict too, and never begins.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from aver.coordinator.state.live import LiveAttempt, LiveRun
from aver.coordinator.state.scheduler_job import usage_of
from aver.engines.api import LOCAL, Heard
from aver.judge.local import COORDINATOR, judge, judge_unstarted
from aver.judge.scheduler import is_open, judge_cluster
from aver.model import reasons
from aver.model.events import Observed
from aver.model.evidence import CancelledBefore, DeadlinePassed, Evidence, GeneratedRead, Verdict
from aver.model.job import FlowSpec
from aver.model.states import State, attempt_may_move

if TYPE_CHECKING:
    from aver.coordinator.state.machine import Driver

KEPT_REASONS = (  # by Slurm, when it cancels
    reasons.JOB_HELD_USER,
    reasons.JOB_REQUEUED_HELD,
    reasons.BEGIN_TIME,
    reasons.DEPENDENCY_NEVER_SATISFIED,
)


class Ending:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._reading: set[str] = set()  # keys of attempts whose generated jobs are being read
        self._ending: set[str] = set()  # keys of attempts whose verdict is not durable yet
        self._open: set[tuple[int, int]] = set()  # on a cluster, and nobody said how: late evidence is waited for
        self._earlier_keys: dict[tuple[int, int], str] = {}  # of attempts of an earlier boot that have ended

    # ---- a verdict --------------------------------------------------------------------------------

    def settle(
        self, run: LiveRun, attempt: LiveAttempt, source: str, said: str, evidence: Evidence, verdict: Verdict,
        now: float,
    ) -> None:  # fmt: skip
        """The attempt has its verdict; the job has it too, unless another attempt is due.

        Of a completion that brings jobs these are read first: they are part of how it ended.
        """
        if self._brings_jobs(run, attempt, verdict):
            self._read_generated(run, attempt, Heard(attempt.key, source, said, evidence), verdict, now)
        else:
            self._settle(run, attempt, Heard(attempt.key, source, said, evidence), verdict, now)

    def _settle(self, run: LiveRun, attempt: LiveAttempt, one: Heard, verdict: Verdict, now: float) -> None:
        driver = self._driver
        self.let_go(attempt)
        self._ending.add(attempt.key)
        if attempt.engine != LOCAL and is_open(verdict.state, verdict.exit, verdict.verified):
            self._open.add((attempt.job, attempt.attempt))
        usage = usage_of(attempt, one.evidence, driver.identity.host)
        job_state, job_reason = verdict.state, verdict.reason
        goes_on = driver.clustering.goes_on(attempt)
        again = reasons.REQUEUE if goes_on else driver.following.again(run, attempt, verdict, now)
        if again is not None:
            job_state, job_reason = State.PENDING, again
        driver.emit(
            Observed(
                now, run.number, attempt.job, attempt.attempt, one.source, one.said,
                verdict.state, verdict.reason, verdict, usage,
                None if job_state is verdict.state else job_state,
                None if job_reason == verdict.reason else job_reason,
            )
        )  # fmt: skip
        driver.forget_reason(attempt.job)
        if again is None:
            driver.end(run, attempt.index, verdict, now)
            return
        driver.note_reason(attempt.job, again)
        if goes_on:
            driver.starting.go_on(attempt, now)

    def park(self, run: LiveRun, attempt: LiveAttempt, one: Heard, verdict: Verdict, now: float) -> None:
        """The script has ended and steps of it run: they are ended first, and the job is COMPLETING meanwhile."""
        attempt.parked = (one, verdict)
        attempt.state = State.COMPLETING
        said = "its script has ended; its steps are being ended"
        self._driver.emit(
            Observed(now, run.number, attempt.job, attempt.attempt, COORDINATOR, said, State.COMPLETING, reasons.NONE)
        )
        attempt.is_over_time = attempt.is_over_time or verdict.state is State.TIMEOUT
        steps = self._driver.steps
        steps.end_all(attempt, now)
        if not steps.is_busy(attempt.key):
            self.unpark(attempt, now)

    def unpark(self, attempt: LiveAttempt, now: float) -> None:
        """The last step has ended: what waited for it goes on."""
        if attempt.parked is None or attempt.key not in self._driver.attempts or self.is_reading(attempt):
            return
        one, verdict = attempt.parked
        attempt.parked = None
        self.settle(self._driver.runs[attempt.run], attempt, one.source, one.said, one.evidence, verdict, now)

    # ---- jobs that it generated -------------------------------------------------------------------

    def _brings_jobs(self, run: LiveRun, attempt: LiveAttempt, verdict: Verdict) -> bool:
        """One that is to begin again brings none: its next attempt does."""
        is_over = not attempt.requeue and not self._driver.clustering.goes_on(attempt)
        return verdict.state is State.COMPLETED and run.spec(attempt.index).generates is not None and is_over

    def _read_generated(self, run: LiveRun, attempt: LiveAttempt, one: Heard, verdict: Verdict, now: float) -> None:
        """The attempt is COMPLETING while its file is read; after a crash its end is heard again, and so on."""
        attempt.parked = (one, verdict)
        self._reading.add(attempt.key)
        if attempt_may_move(attempt.state, State.COMPLETING):
            attempt.state = State.COMPLETING
            said = "it has completed; the jobs that it generated are being read"
            self._driver.emit(
                Observed(
                    now, run.number, attempt.job, attempt.attempt, COORDINATOR, said, State.COMPLETING, reasons.NONE
                )
            )

        self._driver.following.read_generated(run, attempt.index, partial(self._end_reading, attempt))

    def _end_reading(self, attempt: LiveAttempt, found: FlowSpec | str, now: float) -> None:
        if not self.is_reading(attempt):
            return  # it was cancelled meanwhile
        run = self._driver.runs[attempt.run]
        if attempt.requeue:
            self._judge_again(run, attempt, None, now)
        else:
            read = self._driver.following.add_generated(run, attempt.index, found, now)
            self._judge_again(run, attempt, read, now)

    def is_reading(self, attempt: LiveAttempt) -> bool:
        """Whether the attempt has completed, and only the jobs that it generated are not known yet."""
        return attempt.key in self._reading

    def stop_reading(self, attempt: LiveAttempt, by: str, now: float) -> None:
        """A person cancels it: nobody waits for its file any longer, and nothing of it is added."""
        problem = f"cancelled by {by} before the jobs that it generated were read"
        attempt.cancel_asked = True
        self._judge_again(self._driver.runs[attempt.run], attempt, GeneratedRead(now, problem, True), now)

    def _judge_again(self, run: LiveRun, attempt: LiveAttempt, read: GeneratedRead | None, now: float) -> None:
        assert attempt.parked is not None
        one, verdict = attempt.parked
        attempt.parked = None
        self._reading.discard(attempt.key)
        if read is not None:
            attempt.evidence.append(read)
            decide = judge if attempt.engine == LOCAL else judge_cluster
            judged = decide(attempt.evidence, run.rules(attempt.index))
            assert judged is not None
            verdict = judged
        self._settle(run, attempt, one, verdict, now)

    # ---- without a verdict of its own -------------------------------------------------------------

    def let_go(self, attempt: LiveAttempt) -> None:
        """It is live no more."""
        driver = self._driver
        self._reading.discard(attempt.key)
        driver.steps.forget(attempt.key)
        driver.attempts.pop(attempt.key, None)
        driver.by_job.pop(attempt.job, None)
        if not driver.identity.is_of_this_boot(attempt.key):
            self._earlier_keys[attempt.job, attempt.attempt] = attempt.key
        driver.starting.give_back(attempt)

    # ---- without a start --------------------------------------------------------------------------

    def end_cancelled(self, attempt: LiveAttempt, now: float) -> None:
        """Its cancellation is durable, and it turned out that it never began."""
        driver = self._driver
        run = driver.runs[attempt.run]
        self.end_unstarted(run, attempt.index, CancelledBefore(now, "a request before it began"), now)
        driver.obey(run, run.plan.settle(attempt.index, State.CANCELLED), now)
        driver.check_run(run, now)

    def end_unstarted(self, run: LiveRun, index: int, evidence: CancelledBefore | DeadlinePassed, now: float) -> None:
        """A job that has not started gets its verdict, and so has its planned attempt. It never starts."""
        driver = self._driver
        job = run.job_number(index)
        shown = driver.shown_reason(job)
        if isinstance(evidence, CancelledBefore) and shown in KEPT_REASONS and run.spec(index).facts:
            evidence = replace(evidence, pending_reason=shown)
        verdict = judge_unstarted(evidence)
        driver.packer.remove(job)
        run.held.discard(index)
        driver.timers.drop(job, "begin", "again")
        attempt = driver.by_job.get(job)
        if attempt is None:
            driver.move(run, index, verdict.state, verdict.reason, now, verdict)
            return
        self.let_go(attempt)
        driver.forget_reason(job)
        said = verdict.detail or str(verdict.state)
        driver.emit(
            Observed(
                now, run.number, job, attempt.attempt, verdict.source, said, verdict.state, verdict.reason, verdict
            )
        )

    # ---- durable ----------------------------------------------------------------------------------

    def is_ending(self, key: str) -> bool:
        """Whether this attempt has a verdict that is not durable yet: its engine must not forget it."""
        return key in self._ending

    def note_key(self, job: int, attempt: int, key: str) -> None:
        """The key of an attempt that has ended, for its engine."""
        self._earlier_keys[job, attempt] = key

    def committed(self, event: Observed) -> str | None:
        """A verdict is durable: the key that its engine may forget; None: it goes on asking."""
        which = (event.job, event.attempt)
        key = self._earlier_keys.get(which) or self._driver.identity.key(*which)
        self._ending.discard(key)
        if which in self._open:
            self._open.discard(which)
            return None
        self._earlier_keys.pop(which, None)
        return key
