"""`aver failures`: why jobs of a run failed, in as few bytes as one likes."""

from __future__ import annotations

import click

from aver.cli.logs import RunLogs
from aver.cli.options import json_option
from aver.cli.output.digest_view import digest_text
from aver.cli.output.json import encode_line
from aver.cli.selection import find_run
from aver.cli.session import Session
from aver.render.masking import to_bytes
from aver.report.causes import diagnose
from aver.report.digest import LEAST_BYTES, Digest, digest
from aver.spec.flow.file import collector_paused


@click.command("failures")
@click.argument("run", metavar="[RUN]", required=False)
@click.option(
    "--max-bytes",
    type=click.IntRange(min=LEAST_BYTES),
    default=4000,
    metavar="N",
    help="Answer with at most N bytes (default: 4000).",
)
@json_option
def command(run: str | None, max_bytes: int, as_json: bool) -> None:
    """Sum up why jobs of a run failed, within a budget of bytes.

    Failures grouped by cause, worst first, with well-known lines of the jobs' output as hints, the end of one log
    for each cause as far as there is room, and the next commands. Says what was left out. A hint is not evidence.
    Without RUN: the newest run.

    \b
    Examples:
      aver failures 3
      aver failures 3 --max-bytes 16000 --json
    """
    session = Session()
    session.refresh()
    chosen = find_run(session, run)
    found = chosen.run
    masking = session.mask([found.id])

    def text_of(made: Digest) -> bytes:
        return to_bytes(f"{encode_line(made)}\n" if as_json else digest_text(made))

    with collector_paused():
        reader = session.found_reader(str(found.id))
        rows = [row for row in reader.outcomes(found.id) if chosen.jobs is None or row.job in chosen.jobs]
        paths = RunLogs(session, found.id, rows).paths
        causes = diagnose(found.id, rows, reader.request, paths, masking)
        made = digest(
            found.id, found.name, found.state.value, causes, paths, masking, max_bytes, lambda one: len(text_of(one))
        )
    session.output.raw(text_of(made))
