"""`aver run`: submit, show what the job writes, wait for its verdict, exit as it ended.

Ctrl-C and TERM cancel the job and wait for its verdict; a second one stops the waiting. HUP
detaches: the job goes on.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing
from typing import Any

import click

from aver.cli.attach.attempts import AttemptStreams
from aver.cli.attach.signals import SignalReceived, heard, held_back, listen
from aver.cli.attach.step_news import StepNews
from aver.cli.attach.stream import Write
from aver.cli.attach.tails import show_tails
from aver.cli.attach.wait import Shown, Watched, shown_for, wait
from aver.cli.commands.run.submit import note_ignored, report
from aver.cli.group import Invocation
from aver.cli.options import json_option
from aver.cli.output.views import answer
from aver.cli.session import Session, user_name
from aver.cli.submission import Accepted, FileCommand, build, submission_options, submit
from aver.client.output_paths import JobFiles, Which, job_files
from aver.client.submit import waiting_for
from aver.errors import CantWriteError, UsageError
from aver.judge.run import exit_status_of, return_code
from aver.model.job import Submission
from aver.model.reasons import NONE, PRIORITY
from aver.model.states import State
from aver.protocol.messages import Cancel, Results
from aver.render import verdict as render

LEAVING_S = 1.0  # for the output's rest when nobody reads it, or nobody waits for the verdict any more
PATIENCE_S = 0.8  # within a second it is said why a job does not start
AT_ONCE = ("", NONE, PRIORITY)  # a job that waits for nothing passes through these
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("run", cls=FileCommand)
@click.argument("file", required=False, type=click.Path())
@click.argument("args", nargs=-1)
@submission_options
@click.option("--detach", "-d", is_flag=True, help="Run in the background, as `aver submit` does.")
@click.option("--dry-run", "-n", is_flag=True, help="Show what would run, why and as what; run nothing.")
@click.option("--forward-exit", is_flag=True, help="Exit with the job's own return code.")
@click.option("--logs", is_flag=True, help="Show what the jobs of a flow write, each line with its job's name.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the job's output.")
@json_option
@click.pass_obj
def command(
    invocation: Invocation,
    /,
    file: str | None,
    args: tuple[str, ...],
    logs: bool,
    detach: bool,
    dry_run: bool,
    forward_exit: bool,
    quiet: bool,
    as_json: bool,
    resume: bool,
    since: str | None,
    **options: Any,
) -> int:
    """Run a script, a flow or a command, show its output and exit as it ended.

    FILE is a flow (.yaml, .json) or a batch script, whose #SBATCH lines are read, or - for stdin; what follows a
    script goes to the script. A command comes after --. With --json the output is only in its file, and
    the answer is one document. Ctrl-C cancels the job. While a job is held back, stderr says why.

    \b
    Examples:
      aver run --time 10m --mem 2G -- python train.py
      aver run train.sh
      aver run flow.yaml
      aver run flow.yaml --logs
      ./make-flow | aver run -
      aver run flow.yaml --resume
      aver run flow.yaml --since 12 --dry-run
    """
    session = Session()
    has_pty = options["pty"]
    submission, environment = build(session, invocation, file, args, options)
    if forward_exit and not submission.flow.is_single:
        raise UsageError("--forward-exit is for a script or a command: a flow has no return code of its own")
    if dry_run or resume or since is not None:
        from aver.cli.commands.run.resumption import planned, resumed, takeover_of  # most runs need none of it

        takeover = takeover_of(session, submission, environment, resume, since)
        if dry_run:
            answer(session.output, planned(session, submission, environment, takeover), as_json)
            return 0
        submission = resumed(session, submission, takeover, quiet or as_json)
    if detach:
        report(session, submit(session, submission, environment), quiet, as_json)
        return 0
    if has_pty and session.output.can_draw and os.isatty(0):
        from aver.cli.commands.run.attach import attach_and_wait  # only here

        run = submit(session, submission, environment).run
        with waiting_for("job", run):
            return attach_and_wait(session, run)
    session.connect().close()  # a coordinator is started before signals are held back, and inherits none of that
    offset = _appended(submission)
    try:
        with listen(*SIGNALS), held_back(*SIGNALS) as release:
            accepted = submit(session, submission, environment)
            attached = Attached(session, accepted, offset, quiet, as_json, logs)
            with waiting_for(attached.what, accepted.run):
                return attached.wait(release, forward_exit)
    except SignalReceived as late:  # while we were leaving anyway
        heard()
        return 128 + late.number


class Attached:
    """Somebody who waits in the foreground for what they started."""

    def __init__(
        self, session: Session, accepted: Accepted, offset: int, quiet: bool, as_json: bool, logs: bool = False
    ) -> None:
        self._session = session
        self._accepted = accepted
        self._quiet = quiet
        self._as_json = as_json
        self._is_single = accepted.submission.flow.is_single
        self._watched = Watched(session, [accepted.run], foreground_only=True)
        self._stream = AttemptStreams(session, self._sinks, self._note, offset=offset)
        self._waits = ""  # the reason that was told
        self._logs = logs and not self._is_single
        self._shown: Shown = shown_for(self._watched)
        if self._logs:
            from aver.cli.attach.run_output import RunOutput  # only here

            session.mask([accepted.run])
            self._shown = RunOutput(session, accepted.run, is_new=True)
        self._news = StepNews(session)

    @property
    def what(self) -> str:
        return "job" if self._is_single else "run"

    def wait(self, release: Callable[[], None], forward_exit: bool) -> int:
        """Wait for the verdict, report it, and return the exit status; `release` lets signals come."""
        note_ignored(self._session, self._accepted, self._quiet)
        try:
            release()
            status = exit_status_of(self._wait())
        except SignalReceived as received:
            heard()
            return self._interrupted(received.number)
        finally:
            self._stream.finish(LEAVING_S)
        self._report(status)
        if self._stream.failure is not None:
            raise CantWriteError(f"{self._stream.failure}; all of it is in its file: aver log {self._accepted.run}")
        if forward_exit:
            verdict = self._watched.jobs()[0].verdict
            code = None if verdict is None else return_code(verdict.state, verdict.exit)
            return code or status  # 0 only where it is COMPLETED, whatever its script exits with
        return status

    def _wait(self, stalled_s: float | None = None) -> State:
        """Wait for the verdict and return it, after the output's rest, unless nobody reads that for `stalled_s`."""
        client = self._session.connect()
        try:
            state = self._settled_soon() or wait(self._watched, client, self._seen, foreground_only=True)
            self._seen(())
        except BaseException:
            self._shown.clear()
            raise
        finally:
            client.close()
        self._shown.end()
        self._stream.finish(stalled_s=stalled_s)
        return state

    def _settled_soon(self) -> State | None:
        """The verdict of what has it soon; None for all else, after saying why nothing has started."""
        if self._quiet or self._as_json or self._shown.says_waits:
            return None
        with closing(self._session.connect()) as client:
            try:
                return wait(self._watched, client, self._seen, PATIENCE_S, foreground_only=True)
            except TimeoutError:
                pass
        if not self._waits and not self._stream.attempt:
            from aver.cli.explanation import first_waiting  # few jobs wait

            if (waits := first_waiting(self._session, self._accepted.run)) is not None:
                self._waits = waits.reason
                self._shown.clear()
                self._note(waits.sentence)
        return None

    def _seen(self, changed: tuple[int, ...]) -> None:
        if self._as_json:
            return
        if not self._is_single:
            if self._logs or not self._quiet:
                self._shown(changed)
            return
        job = self._watched.jobs()[0]
        for text in self._news.of([job]):
            self._note(text)
        if job.state is State.PENDING and not self._stream.attempt and job.reason not in (self._waits, *AT_ONCE):
            self._waits = job.reason
            self._note(f"job {job.id} {render.moved_words(job.state, job.reason)}")
        self._stream.look(job)

    def _sinks(self, files: JobFiles) -> list[tuple[str, Write]]:
        """Both streams, each to our own."""
        output = self._session.output
        both: list[tuple[str, Write]] = [(files.stdout, output.raw)]
        if files.stderr is not None and files.stderr != files.stdout:
            both.append((files.stderr, output.error_raw))
        return both

    def _interrupted(self, number: int) -> int:
        """Cancel, and wait for the verdict; a second signal stops the waiting."""
        run = self._accepted.run
        status = 128 + number
        if number == signal.SIGHUP:
            return status
        try:
            self._session.ask(Cancel((run,), user_name()), Results)
            if self._session.output.err_is_terminal:
                self._note(f"cancelling {self.what} {run}; Ctrl-C again stops waiting for its end")
            self._wait(stalled_s=LEAVING_S)
        except SignalReceived:
            heard()
            self._note(f"no longer waiting; {self.what} {run} is being cancelled; aver watch {run}")
            return status
        self._report(status)
        return status

    def _report(self, status: int) -> None:
        if self._as_json:
            answer(self._session.output, self._watched.ended(status), True)
        elif not self._is_single and not self._quiet and not self._logs:
            show_tails(self._session, self._accepted.run)
        for text in self._watched.summaries():
            self._note(text)

    def _note(self, text: str) -> None:
        if not self._quiet and not self._as_json:
            self._session.output.note(text)


def _appended(submission: Submission) -> int:
    """The size of the output file before the job, where the job appends to it."""
    spec = submission.flow.jobs[0]
    if not submission.flow.is_single or not spec.streams.append:
        return 0
    first, second = (
        job_files(submission, spec, Which(run=number, job=number, name=spec.name, attempt=1), is_single=True).stdout
        for number in (1, 2)
    )
    if first != second:
        return 0  # the number is in its name: nobody has written to it before
    try:
        return os.stat(first).st_size
    except OSError:
        return 0
