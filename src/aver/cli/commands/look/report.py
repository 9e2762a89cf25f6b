"""`aver report`: a run as one page for a browser, paper or a phone."""

from __future__ import annotations

import click

from aver.cli.options import ADDRESS, json_option
from aver.cli.output.documents import Written
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.cli.story import collect, find_run
from aver.errors import UsageError
from aver.report.export_file import write_whole
from aver.report.html.document import page


@click.command("report")
@click.argument("run", metavar="RUN", type=ADDRESS)
@click.option(
    "--output",
    "-o",
    "target",
    type=click.Path(),
    metavar="FILE",
    help="File to write (default: report-RUN.html); - is stdout.",
)
@json_option
def command(run: str, target: str | None, as_json: bool) -> None:
    """Write a report of a run as one HTML page.

    The page is self-contained and opens offline: summary, failures with their evidence and
    the end of their logs, graph, timeline, memory and cpu against what was asked for, all jobs. Large
    runs are grouped. Secrets are masked as everywhere.

    \b
    Examples:
      aver report 3
      aver report 3 -o report.html
    """
    session = Session()
    session.refresh()
    found = find_run(session, run)
    if not found.state.is_settled:
        session.output.note(f"run {found.id} is {found.state}: the page shows it as it is now")
    data = page(collect(session, found)).encode("utf-8", "backslashreplace")
    if target == "-":
        if as_json:
            raise UsageError("--json answers with a document about the file: it needs --output FILE")
        session.output.raw(data)
        return
    path = target or f"report-{found.id}.html"
    size = write_whole(path, [data])
    answer(session.output, Written(found.id, "html", path, size, found.jobs, found.state.is_settled), as_json)
