"""What clients ask the coordinator for, checked and carried out on the driver.

A request is untrusted: whatever is wrong with it is a sentence, never a traceback. The reply
is given to the loop, which sends it when the request's events are durable.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from aver.client import vault
from aver.client.job_files import (
    change_env,
    check_env,
    has_env,
    read_env,
    write_scripts,
)
from aver.coordinator.background import Failed, Later
from aver.coordinator.order.allocations import want_more
from aver.coordinator.order.generated import Generated, Sealed
from aver.coordinator.recovery import load_run, past_jobs
from aver.coordinator.requests import actions, update
from aver.coordinator.requests.submit import Submissions
from aver.coordinator.state.changes import CPUS, DEPENDENCY, MEMORY, PRIORITY, TIME_LIMIT, is_readable
from aver.coordinator.state.dependency import PROBLEM
from aver.coordinator.state.fold import REQUEUE, REQUEUE_HOLD
from aver.coordinator.state.machine import Driver
from aver.coordinator.state.run import LiveRun
from aver.engines.api import LOCAL
from aver.errors import UsageError
from aver.home import Home
from aver.judge.local import judge_acceptance
from aver.judge.scheduler import judge_cluster_acceptance
from aver.model.codec import decode
from aver.model.evidence import Accepted, GeneratedRead, Verdict
from aver.model.job import Argv, FlowSpec, JobSpec, Scope
from aver.model.states import State
from aver.plan.matrix import FlowIndex
from aver.spec.sbatch.dependency import parse_dependency
from aver.store.read.reader import Reader
from aver.store.secrets import keep_values

RETRIED = frozenset(State) - {State.COMPLETED, State.SKIPPED}


@dataclass(slots=True)
class Requests:
    """Each method is one op of docs/design/coordinator.md."""

    home: Home
    driver: Driver
    open_reader: Callable[[], Reader | None]
    generated: Generated
    submissions: Submissions

    def submit(self, request: dict[str, Any], now: float) -> dict[str, Any] | Later:
        return self.submissions.submit(request, now)

    def sbatch(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        return self.submissions.sbatch(request, now)

    def cancel(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        signal = request.get("signal")
        if signal is not None and (not isinstance(signal, int) or not 1 <= signal <= 64):
            raise UsageError(f"{signal!r} is not a signal number")
        by = _by(request)
        scope = _scope(request)

        def act(run: LiveRun, index: int | None) -> str:
            if signal is not None:
                indices = [index] if index is not None else list(range(run.job_count))
                done = [actions.signal(self.driver, run, one, signal, by, now, scope) for one in indices]
                return done[0] if len(done) == 1 else f"signalled {done.count('signalled')} jobs"
            if index is None:
                return actions.cancel_run(self.driver, run, by, now, bool(request.get("now")))
            return actions.cancel(self.driver, run, index, by, now)

        return self._each(request, now, act, revive=False)

    def hold(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        return self._each_job(request, now, lambda run, index: actions.hold(self.driver, run, index, by, now))

    def release(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        return self._each_job(request, now, lambda run, index: actions.release(self.driver, run, index, by, now))

    def suspend(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        return self._each_job(
            request, now, lambda run, index: actions.suspend(self.driver, run, index, by, now, resume=False)
        )

    def resume(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        return self._each_job(
            request, now, lambda run, index: actions.suspend(self.driver, run, index, by, now, resume=True)
        )

    def requeue(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        how = REQUEUE_HOLD if request.get("hold") is True else REQUEUE

        def act(run: LiveRun, index: int) -> str:
            if run.state.is_settled and not has_env(self.home, run.number):
                return "its environment was removed; submit it again"
            return update.requeue(self.driver, run, index, how, by, now)

        return self._each_job(request, now, act, revive=True)

    def update(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        changes = request.get("changes")
        if not isinstance(changes, dict) or not changes:
            raise UsageError("the request changes nothing")
        time_s, priority = changes.get(TIME_LIMIT), changes.get(PRIORITY, 0)
        if not (time_s is None or (isinstance(time_s, int) and time_s > 0)) or not isinstance(priority, int):
            raise UsageError("the request's changes can't be read")
        if not is_readable(changes):
            raise UsageError(PROBLEM if DEPENDENCY in changes else "the request's changes can't be read")
        self._learn_dependency(str(changes.get(DEPENDENCY, "")))
        self._check_size(changes)
        return self._each_job(request, now, lambda run, index: update.update(self.driver, run, index, changes, by, now))

    def _learn_dependency(self, text: str) -> None:
        """Refuse a dependency on a job that there never was."""
        after = parse_dependency(text)
        if after is None:
            return
        reader = self.open_reader()
        try:
            if self.driver.dependencies.learn((JobSpec("", Argv(()), after=after),), past_jobs(reader)):
                raise UsageError(PROBLEM)
        finally:
            if reader is not None:
                reader.close()

    def _check_size(self, changes: dict[str, Any]) -> None:
        total = self.driver.packer.total
        cpus, mem_bytes = changes.get(CPUS), changes.get(MEMORY)
        if (cpus is not None and not 1 <= cpus <= total.cpus) or (mem_bytes or 0) > total.mem_bytes:
            raise UsageError("Requested node configuration is not available")

    def allocate(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        found = self.driver.runs.get(request["run"]) if isinstance(request.get("run"), int) else None
        if found is None or found.state.is_settled:
            known = isinstance(request.get("run"), int) and self._settled_state(request["run"]) is not None
            hint = "is settled; aver retry runs again what failed, in new allocations" if known else "is not there"
            raise UsageError(f"run {request.get('run')} {hint}")
        want_more(self.driver, found, request.get("allocation"), _by(request), now)
        return {"run": found.number}

    def accept(self, request: dict[str, Any], now: float) -> dict[str, Any] | Later:
        """What a job has generated is read first: whether it completed depends on that."""
        questions = []
        for number in _ids(request):
            found = self.driver.find(number)
            if found is None and self._settled_state(number) is State.UNVERIFIED:
                self._revive(number, now)
                found = self.driver.find(number)
            run, index = found or (None, None)
            if run is None or index is None or run.plan.state(index) is not State.UNVERIFIED:
                continue
            if run.spec(index).generates is not None:
                questions.append((number, self.generated.question(run, index)))
        if not questions:
            return self._accept(request, {}, now)

        def read() -> dict[int, Sealed | str]:
            return {number: self.generated.ask(question) for number, question in questions}

        def then(found: dict[int, Sealed | str] | Failed, then: float) -> dict[str, Any]:
            return self._accept(request, found, then)

        return Later(f"generated {questions[0][1].path}", read, then)

    def _accept(
        self, request: dict[str, Any], generated: dict[int, Sealed | str] | Failed, now: float
    ) -> dict[str, Any]:
        by = _by(request)

        def act(run: LiveRun, index: int | None) -> str:
            if index is None:
                return "a run: name the job"
            state = run.plan.state(index)
            if state is None:
                return "not settled yet"
            stored = self._stored_verdict(run.job_number(index))
            if stored is None:
                return "not settled yet"
            accepts = judge_acceptance if run.engine(index) == LOCAL else judge_cluster_acceptance
            accepted, read = Accepted(now, by), GeneratedRead(now)
            if accepts(stored, accepted, read) is None:
                return f"already {state}: only a job whose end nobody saw (UNVERIFIED, NODE_FAIL) can be accepted"
            if run.spec(index).generates is not None:
                found = generated if isinstance(generated, Failed) else generated.get(run.job_number(index))
                if found is None:
                    return "not accepted: it generates jobs, which were not read; ask again"
                actions.reopen_run(self.driver, run, now)
                batch = self.generated.keep(run.number, found)
                read = self.driver.add_generated(run, index, batch, now)
            verdict = accepts(stored, accepted, read)
            assert verdict is not None
            actions.correct(self.driver, run, index, verdict, f"accepted by {by}", by, now)
            return f"accepted as {verdict.state}"

        return self._each(request, now, act, revive=True)

    def _stored_verdict(self, job: int) -> Verdict | None:
        reader = self.open_reader()
        if reader is None:
            return None
        with reader:
            row = reader.job(job)
        return None if row is None else row.verdict

    def retry(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        run = self._revive(request.get("run"), now)
        if run is None:
            raise UsageError(f"there is no run {request.get('run')}")
        jobs = request.get("jobs")
        if jobs is None:
            indices = [index for index in range(run.job_count) if run.plan.state(index) in RETRIED]
        else:
            indices = []
            for job in jobs:
                index = run.index_of(job) if isinstance(job, int) else None
                if index is None:
                    raise UsageError(f"job {job} is not of run {run.number}")
                state = run.plan.state(index)
                if state is None:
                    raise UsageError(f"job {job} is not settled; it can't be retried before")
                indices.append(index)
        if not indices:
            raise UsageError(f"run {run.number} has nothing to retry: no job failed, was lost or was cancelled")
        check_env(self.home, run.number)
        actions.retry(self.driver, run, indices, by, now)
        return {"run": run.number, "jobs": [run.job_number(index) for index in indices], "round": run.round}

    def reinit(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        run = self._revive(request.get("run"), now)
        if run is None:
            raise UsageError(f"there is no run {request.get('run')}")
        try:
            flow = None if request.get("flow") is None else decode(FlowSpec, request["flow"])
        except ValueError as error:
            raise UsageError(f"the flow can't be read: {error}") from None
        if not run.state.is_settled:
            raise UsageError(f"run {run.number} is not settled; aver watch {run.number}")
        causes: dict[int, str] = {}
        for pair in request.get("causes") or ():
            job, why = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
            index = run.index_of(job) if isinstance(job, int) else None
            if index is None or not isinstance(why, str):
                raise UsageError(f"the request names {job!r}, which is no job of run {run.number}")
            causes[index] = why
        if not causes:
            raise UsageError("the request names no jobs")
        inherit = request.get("inherit") or []
        if not isinstance(inherit, list) or not all(_is_variable(pair) for pair in inherit):
            raise UsageError("the request's environment can't be read")
        check_env(self.home, run.number)
        if flow is not None:
            self.submissions.check(replace(run.submission, flow=flow))
            if list(FlowIndex(flow).names()) != list(run.segments[0].index.names()):
                raise UsageError(f"the flow has other jobs now than run {run.number}; submit it as a new run")
            flow, _ = vault.seal(self.home, flow)
            values = _sealed_values(request)
            vault.store(self.home, run.number, values)
            secrets = vault.secret_values(flow, run.submission.origin.secrets, values)
            keep_values(os.fspath(self.home.path), run.number, secrets)
            write_scripts(self.home, run.number, flow)
        if inherit:
            before = read_env(self.home, run.number)
            old = [before[name] for name in run.submission.origin.secrets if name in before]
            keep_values(os.fspath(self.home.path), run.number, old)
            change_env(self.home, run.number, inherit)
        try:
            run = actions.reinit(self.driver, run, causes, flow, by, now)
        except ValueError as error:
            raise UsageError(f"the flow is wrong: {error}") from None
        return {"run": run.number, "jobs": [run.job_number(index) for index in causes], "round": run.round}

    def _each_job(
        self, request: dict[str, Any], now: float, act: Callable[[LiveRun, int], str], revive: bool = False
    ) -> dict[str, Any]:
        def each(run: LiveRun, index: int | None) -> str:
            indices = [index] if index is not None else list(range(run.job_count))
            done = [act(run, one) for one in indices]
            return done[0] if len(set(done)) == 1 else ", ".join(sorted(set(done)))

        return self._each(request, now, each, revive)

    def _each(
        self, request: dict[str, Any], now: float, act: Callable[[LiveRun, int | None], str], revive: bool
    ) -> dict[str, Any]:
        return {"results": [{"id": one, "did": self._one(one, now, act, revive)} for one in _ids(request)]}

    def _one(self, number: int, now: float, act: Callable[[LiveRun, int | None], str], revive: bool) -> str:
        found = self.driver.find(number)
        if found is None:
            state = self._settled_state(number)
            if state is None:
                return "no such job"
            if not revive or self._revive(number, now) is None:
                return f"already {state}"
            found = self.driver.find(number)
            assert found is not None
        run, index = found
        return act(run, index)

    def _settled_state(self, number: int) -> State | None:
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
        return self._revive(number, now)

    def _revive(self, number: object, now: float) -> LiveRun | None:
        """The live run that has this number or this job; taken up again from the store if it was settled."""
        if not isinstance(number, int):
            return None
        found = self.driver.find(number)
        if found is not None:
            return found[0]
        reader = self.open_reader()
        if reader is None:
            return None
        with reader:
            job = reader.job(number)
            run = reader.run(job.run if job is not None else number)
            revived = load_run(self.driver, reader, run.id, now) if run is not None else None
        if revived is not None and revived.state.is_settled:
            self.driver.out.finished_runs.append(revived.number)  # unless the request changes that, it is let go again
        return revived


def _ids(request: dict[str, Any]) -> list[int]:
    ids = request.get("ids")
    if not isinstance(ids, list) or not all(isinstance(one, int) for one in ids):
        raise UsageError("the request names no jobs")
    return ids


def _scope(request: dict[str, Any]) -> Scope | None:
    """Whom a signal is for; None: every process."""
    word = request.get("scope")
    try:
        return None if word is None else Scope(word)
    except ValueError:
        raise UsageError(f"{word!r} is not whom a signal can be for") from None


def _sealed_values(request: dict[str, Any]) -> dict[str, str]:
    values = request.get("values") or {}
    if not isinstance(values, dict) or not all(
        vault.is_sealed(digest) and isinstance(value, str) and "\0" not in value for digest, value in values.items()
    ):
        raise UsageError("the flow's environment can't be read")
    return values


def _is_variable(pair: object) -> bool:
    return isinstance(pair, str) and "\0" not in pair and bool(pair.partition("=")[0])


def _by(request: dict[str, Any]) -> str:
    by = request.get("by")
    return by if isinstance(by, str) and by else "somebody"
