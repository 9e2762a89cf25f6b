"""What clients ask the coordinator for, checked and carried out on the driver.

A request is untrusted: whatever is wrong with it is a sentence, never a traceback. The reply
is given to the loop, which sends it when the request's events are durable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from aver.coordinator import altering, asking, batching, vault
from aver.coordinator.allocations import check_allocation, want_more
from aver.coordinator.altered import CPUS, DEPENDENCY, MEMORY, PRIORITY, is_readable
from aver.coordinator.crashpoint import reached
from aver.coordinator.depending import PROBLEM
from aver.coordinator.driver import Driver
from aver.coordinator.files import (
    adopt_stdin,
    change_env,
    check_env,
    has_env,
    prepare_outputs,
    read_env,
    remove_outputs,
    remove_run_files,
    write_env,
    write_scripts,
)
from aver.coordinator.live import LiveRun
from aver.coordinator.packers import LOCAL
from aver.coordinator.recovery import load_run
from aver.core.codec import decode, encode
from aver.core.evidence import Accepted, Rules, Verdict, WitnessVanished
from aver.core.expand import FlowIndex
from aver.core.judge import judge
from aver.core.model import Argv, FlowSpec, JobSpec, Scope, Submission
from aver.core.pack import room_of
from aver.core.states import State
from aver.core.units import MIB, size_text
from aver.errors import AverError, UsageError
from aver.home import Home
from aver.spec.afters import parse_dependency
from aver.store.reader import Reader
from aver.store.secrets import keep_values

RETRIED = frozenset(State) - {State.COMPLETED, State.SKIPPED}
LARGEST_RUN = 2_000_000


@dataclass(slots=True)
class Requests:
    """Each method is one op of docs/design/coordinator.md."""

    home: Home
    driver: Driver
    open_reader: Callable[[], Reader | None]

    def submit(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        try:
            submission = decode(Submission, request.get("submission"))
        except ValueError as error:
            raise UsageError(f"the submission can't be read: {error}") from None
        env = request.get("env", [])
        if not isinstance(env, list) or not all(isinstance(pair, str) and "\0" not in pair for pair in env):
            raise UsageError("the submission's environment can't be read")
        return self._submit(submission, env, now)

    def sbatch(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        try:
            call = batching.read_call(request, now)
            if request.get("script") is None:
                return {}  # only its options were to be checked
            submission = batching.submission_of(call, request, now)
            reply = self._submit(submission, batching.environment(call, request), now, tests=call.has("test-only"))
        except UsageError as error:
            raise batching.refused(error) from None
        return batching.answer(call, submission, reply)

    def _submit(self, submission: Submission, env: list[str], now: float, tests: bool = False) -> dict[str, Any]:
        submission = self._fit_cpus(submission)
        _check_text(submission.origin)
        self._check(submission)
        self._check_afters(submission.flow)
        number = self.driver.next_id
        if tests:
            return {"run": number, "first_job": number, "jobs": FlowIndex(submission.flow).count}
        clustered = [spec for spec in submission.flow.jobs if (spec.engine or submission.engine) != LOCAL]
        if any(not (submission.host if spec.host is None else spec.host) for spec in clustered):
            from aver.coordinator.cluster import check_shared_folder  # most homes never need it

            check_shared_folder(self.home)
        secrets = vault.secret_values(submission.flow, submission.origin.secrets)
        sealed, values = vault.seal(self.home, submission.flow)
        submission = replace(submission, flow=adopt_stdin(self.home, number, sealed))
        try:
            prepare_outputs(submission, number, submission.flow.jobs)
            write_env(self.home, number, env)
            vault.store(self.home, number, values)
            keep_values(os.fspath(self.home.path), number, secrets)
            write_scripts(self.home, number, submission.flow)
            if clustered:
                from aver.coordinator.cluster import note_site

                note_site(self.home, env)
            reached("submit-files-written")
            run = self.driver.submit(submission, now)
        except ValueError as error:
            self.take_back(number, submission)
            raise UsageError(f"the flow {submission.flow.name!r} is wrong: {error}") from None
        except AverError:
            self.take_back(number, submission)
            raise
        return {"run": run.number, "first_job": run.job_number(0), "jobs": run.job_count}

    def take_back(self, number: int, submission: Submission) -> None:
        """Remove all that a submission wrote that is not accepted."""
        remove_run_files(self.home, number)
        remove_outputs(submission, number)

    def _fit_cpus(self, submission: Submission) -> Submission:
        """What jobs of Slurm's commands take of this machine."""
        total = self.driver.packer.total.cpus
        jobs = tuple(
            replace(spec, request=batching.taken(spec.request, dict(spec.facts), total))
            if spec.facts and (spec.engine or submission.engine) == LOCAL
            else spec
            for spec in submission.flow.jobs
        )
        return replace(submission, flow=replace(submission.flow, jobs=jobs))

    def _check(self, submission: Submission) -> None:
        """Refuse flows that are no graph, and what could never start here."""
        flow = submission.flow
        if not flow.jobs:
            raise UsageError(f"the flow {flow.name!r} has no jobs")
        try:
            count = FlowIndex(flow).count
        except ValueError as error:
            raise UsageError(f"the flow {flow.name!r} is wrong: {error}") from None
        if not 0 < count <= LARGEST_RUN:
            raise UsageError(f"the flow {flow.name!r} has {count} jobs; 1 to {LARGEST_RUN} are possible")
        self.check_fits(flow, submission.engine)
        check_allocation(submission)

    def _check_afters(self, flow: FlowSpec) -> None:
        """Refuse jobs that are to run after one that there never was."""
        if all(spec.after is None for spec in flow.jobs):
            return
        reader = self.open_reader()
        try:
            if self.driver.depending.learn(flow.jobs, reader):
                raise UsageError(PROBLEM)
        finally:
            if reader is not None:
                reader.close()

    def check_fits(self, flow: FlowSpec, engine: str = LOCAL) -> None:
        """Refuse what this machine can never give, and texts that no file name or argument can hold."""
        _check_text(flow)
        total = self.driver.packer.total
        for spec in flow.jobs:
            if (spec.engine or engine) != LOCAL:
                continue  # the cluster says itself what it does not have
            room = room_of(spec.request)
            if room.cpus < 1:
                raise UsageError(f"job {spec.name!r} asks for {room.cpus} cpus; at least 1 is needed")
            for word, asked, there in (("cpus", room.cpus, total.cpus), ("gpus", room.gpus, total.gpus)):
                if asked > there:
                    raise UsageError(f"job {spec.name!r} asks for {asked} {word}, and this machine has {there}")
            if room.mem_bytes > total.mem_bytes:
                raise UsageError(
                    f"job {spec.name!r} asks for {size_text(room.mem_bytes)} of memory, "
                    f"and this machine has {size_text(total.mem_bytes - total.mem_bytes % MIB)}"
                )

    def cancel(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        signal = request.get("signal")
        if signal is not None and (not isinstance(signal, int) or not 1 <= signal <= 64):
            raise UsageError(f"{signal!r} is not a signal number")
        by = _by(request)
        scope = _scope(request)

        def act(run: LiveRun, index: int | None) -> str:
            if signal is not None:
                indices = [index] if index is not None else list(range(run.job_count))
                done = [asking.signal(self.driver, run, one, signal, by, now, scope) for one in indices]
                return done[0] if len(done) == 1 else f"signalled {done.count('signalled')} jobs"
            if index is None:
                return asking.cancel_run(self.driver, run, by, now, bool(request.get("now")))
            return asking.cancel(self.driver, run, index, by, now)

        return self._each(request, now, act, revive=False)

    def hold(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        return self._each_job(request, now, lambda run, index: asking.hold(self.driver, run, index, by, now))

    def release(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        return self._each_job(request, now, lambda run, index: asking.release(self.driver, run, index, by, now))

    def suspend(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        return self._each_job(
            request, now, lambda run, index: asking.suspend(self.driver, run, index, by, now, resume=False)
        )

    def resume(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        return self._each_job(
            request, now, lambda run, index: asking.suspend(self.driver, run, index, by, now, resume=True)
        )

    def requeue(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        how = altering.REQUEUE_HOLD if request.get("hold") is True else altering.REQUEUE

        def act(run: LiveRun, index: int) -> str:
            if run.state.is_settled and not has_env(self.home, run.number):
                return "its environment was removed; submit it again"
            return altering.requeue(self.driver, run, index, how, by, now)

        return self._each_job(request, now, act, revive=True)

    def update(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)
        changes = request.get("changes")
        if not isinstance(changes, dict) or not changes:
            raise UsageError("the request changes nothing")
        time_s, priority = changes.get(altering.TIME_LIMIT), changes.get(PRIORITY, 0)
        if not (time_s is None or (isinstance(time_s, int) and time_s > 0)) or not isinstance(priority, int):
            raise UsageError("the request's changes can't be read")
        if not is_readable(changes):
            raise UsageError(PROBLEM if DEPENDENCY in changes else "the request's changes can't be read")
        self._learn_dependency(str(changes.get(DEPENDENCY, "")))
        self._check_size(changes)
        return self._each_job(
            request, now, lambda run, index: altering.update(self.driver, run, index, changes, by, now)
        )

    def _learn_dependency(self, text: str) -> None:
        """Refuse a dependency on a job that there never was."""
        after = parse_dependency(text)
        if after is None:
            return
        reader = self.open_reader()
        try:
            if self.driver.depending.learn((JobSpec("", Argv(()), after=after),), reader):
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

    def accept(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        by = _by(request)

        def act(run: LiveRun, index: int | None) -> str:
            if index is None:
                return "a run: name the job"
            state = run.plan.state(index)
            if state is None:
                return "not settled yet"
            if state is not State.UNVERIFIED:
                return f"already {state}: only an UNVERIFIED job can be accepted"
            gone = WitnessVanished(now)  # that is what UNVERIFIED says
            verdict: Verdict | None = judge([gone, Accepted(now, by)], Rules())
            assert verdict is not None
            asking.correct(self.driver, run, index, verdict, f"accepted by {by}", by, now)
            return f"accepted as {verdict.state}"

        return self._each(request, now, act, revive=True)

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
        asking.retry(self.driver, run, indices, by, now)
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
            self._check(replace(run.submission, flow=flow))
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
            run = asking.reinit(self.driver, run, causes, flow, by, now)
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
        ids = request.get("ids")
        if not isinstance(ids, list) or not all(isinstance(one, int) for one in ids):
            raise UsageError("the request names no jobs")
        return {"results": [{"id": one, "did": self._one(one, now, act, revive)} for one in ids]}

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


def _check_text(value: object) -> None:
    """Bytes that are not UTF-8 are surrogates of their own, which can be turned back; others can't."""
    try:
        json.dumps(encode(value), ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        wrong = ascii(error.object[error.start : error.end])
        raise UsageError(f"the character {wrong} stands for no text and can't be used") from None


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
