"""`aver submit`: run in the background; stdout has the number and nothing else."""

from __future__ import annotations

from typing import Any

import click

from aver.cli.group import Invocation
from aver.cli.options import json_option
from aver.cli.session import Session
from aver.cli.submission import Accepted, FileCommand, build, ignored_options, submission_options, submit
from aver.client.logout import logout_notice


@click.command("submit", cls=FileCommand)
@click.argument("file", required=False, type=click.Path())
@click.argument("args", nargs=-1)
@submission_options
@click.option("--preview", "for_preview", is_flag=True, help="Show what would run, and submit nothing.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the number.")
@json_option
@click.pass_obj
def command(
    invocation: Invocation,
    /,
    file: str | None,
    args: tuple[str, ...],
    for_preview: bool,
    quiet: bool,
    as_json: bool,
    resume: bool,
    since: str | None,
    **options: Any,
) -> None:
    """Submit a script, a flow or a command, and print its number.

    FILE is a flow (.yaml, .json) or a batch script, whose #SBATCH lines are read, or - for stdin; what follows a
    script goes to the script. A command comes after --.

    \b
    Examples:
      aver submit train.sh
      aver submit flow.yaml
      aver submit --preview flow.yaml
      ./make-flow | aver submit -
      job=$(aver submit --time 10m --mem 2G -- python train.py)
    """
    session = Session()
    submission, environment = build(session, invocation, file, args, options)
    if resume or since is not None:
        from aver.cli.commands.run.resumption import resumed, takeover_of  # most runs need none of it

        submission = resumed(session, submission, takeover_of(session, submission, environment, resume, since), quiet)
    if for_preview:
        from aver.cli.output.views import answer
        from aver.report.preview import preview, secret_values  # few need it

        session.output.masking |= secret_values(submission, environment)
        answer(session.output, preview(submission), as_json)
        return
    accepted = submit(session, submission, environment)
    report(session, accepted, quiet, as_json)
    notice = None if quiet else logout_notice(session.home, submission.engine)
    if notice is not None:
        session.output.note(notice)


def report(session: Session, accepted: Accepted, quiet: bool, as_json: bool) -> None:
    """Answer with the number; words go to stderr, on a terminal."""
    if as_json:
        from aver.cli.output.documents import SubmittedFacts  # a number needs no document
        from aver.cli.output.views import answer

        answer(session.output, SubmittedFacts(accepted.run, accepted.first_job, accepted.jobs), True)
    else:
        session.output.line(str(accepted.run))
    note_ignored(session, accepted, quiet)
    if not quiet and session.output.err_is_terminal:
        flow = accepted.submission.flow
        what = "job" if flow.is_single else "run"
        jobs = "" if flow.is_single else f", {accepted.jobs} job{'s' if accepted.jobs != 1 else ''}"
        session.output.note(f"submitted {what} {accepted.run} ({flow.name}{jobs}); aver watch {accepted.run}")


def note_ignored(session: Session, accepted: Accepted, quiet: bool) -> None:
    """Say what was asked for and is not done as it was written."""
    if quiet:
        return
    flow = accepted.submission.flow
    if any(spec.background for spec in flow.jobs):
        from aver.cli.attach.promotion import promoted_jobs  # planning is paid for only here

        promoted = sorted(promoted_jobs(flow))
        if promoted:
            session.output.note(f"promoted to the foreground, since foreground jobs need them: {', '.join(promoted)}")
    if flow.unselected:
        session.output.note(f"not selected: {', '.join(flow.unselected)}")
    ignored = ignored_options(flow)
    if ignored:
        session.output.note(f"ignored: {', '.join(ignored)}")
