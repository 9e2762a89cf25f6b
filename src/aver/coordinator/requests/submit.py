"""New runs: what is submitted is checked, numbered, written to the home and given to the driver.

A run's number is reserved before the folder of its outputs is made, which happens aside: others are numbered and run
meanwhile. What is refused leaves no file behind, and its number is given again if nobody has a later one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from aver.client import batch_submission, vault
from aver.client.job_files import (
    adopt_stdin,
    needs_outputs,
    prepare_outputs,
    remove_outputs,
    remove_run_files,
    write_env,
    write_scripts,
)
from aver.coordinator.background import Background, Failed, Later
from aver.coordinator.fits import check_fits, check_text
from aver.coordinator.order.allocations import check_allocation
from aver.coordinator.recovery import past_jobs
from aver.coordinator.state.dependency import PROBLEM
from aver.coordinator.state.machine import Driver
from aver.coordinator.state.succession import LARGEST_RUN
from aver.crashpoint import reached
from aver.engines.api import LOCAL
from aver.errors import AverError, CantWriteError, UsageError
from aver.home import Home
from aver.model.codec import decode
from aver.model.job import FlowSpec, JobSpec, Submission
from aver.plan.matrix import FlowIndex
from aver.store.read.reader import Reader
from aver.store.secrets import keep_values


@dataclass(slots=True)
class Submissions:
    """The operations `submit` and `sbatch` of docs/design/coordinator.md."""

    home: Home
    driver: Driver
    open_reader: Callable[[], Reader | None]
    background: Background

    def submit(self, request: dict[str, Any], now: float) -> dict[str, Any] | Later:
        try:
            given = decode(Submission, request.get("submission"))
        except ValueError as error:
            raise UsageError(f"the submission can't be read: {error}") from None
        env = request.get("env", [])
        if not isinstance(env, list) or not all(isinstance(pair, str) and "\0" not in pair for pair in env):
            raise UsageError("the submission's environment can't be read")
        number, submission = self._numbered(self._checked(given))
        if not needs_outputs(submission.flow.jobs) and not _is_for_cluster_here(submission):
            return self._take(submission, env, number, now)
        return Later(
            submission.origin.folder,
            lambda: self._prepare(submission, number),
            lambda refused, then: self._take_prepared(submission, env, number, refused, then),
            lambda: self.take_back(number, submission),
        )

    def sbatch(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        try:
            call = batch_submission.read_call(request, now)
            if request.get("script") is None:
                return {}  # only its options were to be checked
            submission = self._checked(batch_submission.submission_of(call, request, now))
            env = batch_submission.environment(call, request)
            if call.has("test-only"):
                number = self.driver.next_id
                reply = {"run": number, "first_job": number, "jobs": FlowIndex(submission.flow).count}
            else:  # its outputs have names: nothing is to be prepared for them
                number, submission = self._numbered(submission)
                reply = self._take(submission, env, number, now)
        except UsageError as error:
            raise batch_submission.refused(error) from None
        return batch_submission.answer(call, submission, reply)

    def _checked(self, submission: Submission) -> Submission:
        """The submission as it can run here; UsageError says why it can't."""
        submission = self._fit_cpus(submission)
        check_text(submission.origin)
        self.check(submission)
        self._check_afters(submission.flow)
        return submission

    def _numbered(self, submission: Submission) -> tuple[int, Submission]:
        """The number of the run, and the submission with its copy of stdin under that number."""
        number = self.driver.reserve(submission.flow)
        try:
            return number, replace(submission, flow=adopt_stdin(self.home, number, submission.flow))
        except AverError:
            self.driver.give_back(number, submission.flow)
            raise

    def _prepare(self, submission: Submission, number: int) -> AverError | None:
        """Blocks: for a thread of the background. What is in the way of the run's folders."""
        try:
            if _is_for_cluster_here(submission):
                from aver.engines.slurm.cluster import check_shared_folder  # most homes never need it

                check_shared_folder(self.home)
            prepare_outputs(submission, number, submission.flow.jobs)
        except AverError as error:
            return error
        return None

    def _take_prepared(
        self, submission: Submission, env: list[str], number: int, refused: AverError | Failed | None, now: float
    ) -> dict[str, Any]:
        if refused is None:
            return self._take(submission, env, number, now)
        self.take_back(number, submission)
        if isinstance(refused, AverError):
            raise refused
        raise CantWriteError(f"can't prepare the job's output in {submission.origin.folder}: {refused.text}")

    def _take(self, submission: Submission, env: list[str], number: int, now: float) -> dict[str, Any]:
        """Write the run's files, and hold the run under this number."""
        try:
            secrets = vault.secret_values(submission.flow, submission.origin.secrets)
            sealed, values = vault.seal(self.home, submission.flow)
            submission = replace(submission, flow=sealed)
            write_env(self.home, number, env)
            vault.store(self.home, number, values)
            keep_values(os.fspath(self.home.path), number, secrets)
            write_scripts(self.home, number, submission.flow)
            if _clustered(submission):
                from aver.engines.slurm.cluster import note_site

                note_site(self.home, env)
            reached("submit-files-written")
            run = self.driver.submit(submission, now, number)
        except ValueError as error:
            self.take_back(number, submission)
            raise UsageError(f"the flow {submission.flow.name!r} is wrong: {error}") from None
        except AverError:
            self.take_back(number, submission)
            raise
        return {"run": run.number, "first_job": run.job_number(0), "jobs": run.job_count}

    def take_back(self, number: int, submission: Submission) -> None:
        """Remove all that a submission wrote that is not accepted, and give its number back."""
        remove_run_files(self.home, number)
        if needs_outputs(submission.flow.jobs):
            lane = submission.origin.folder
            self.background.run(lane, lambda: remove_outputs(submission, number), lambda done: None)
        self.driver.give_back(number, submission.flow)

    def _fit_cpus(self, submission: Submission) -> Submission:
        """What jobs of Slurm's commands take of this machine."""
        total = self.driver.packer.total.cpus
        jobs = tuple(
            replace(spec, request=batch_submission.taken(spec.request, spec.slurm, total))
            if spec.slurm is not None and (spec.engine or submission.engine) == LOCAL
            else spec
            for spec in submission.flow.jobs
        )
        return replace(submission, flow=replace(submission.flow, jobs=jobs))

    def check(self, submission: Submission) -> None:
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
        check_text(flow)
        check_fits(flow, submission.engine, self.driver.packer.total)
        check_allocation(submission)

    def _check_afters(self, flow: FlowSpec) -> None:
        """Refuse jobs that are to run after one that there never was."""
        if all(spec.after is None for spec in flow.jobs):
            return
        reader = self.open_reader()
        try:
            if self.driver.dependencies.learn(flow.jobs, past_jobs(reader)):
                raise UsageError(PROBLEM)
        finally:
            if reader is not None:
                reader.close()


def _clustered(submission: Submission) -> list[JobSpec]:
    return [spec for spec in submission.flow.jobs if (spec.engine or submission.engine) != LOCAL]


def _is_for_cluster_here(submission: Submission) -> bool:
    """Whether a job is for a cluster with whose nodes this machine shares a folder."""
    return any(not (submission.host if spec.host is None else spec.host) for spec in _clustered(submission))
