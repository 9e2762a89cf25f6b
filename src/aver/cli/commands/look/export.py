"""`aver export`: a run as JUnit XML, JSON lines or CSV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from aver.cli.options import ADDRESS, json_option
from aver.cli.output.documents import Written
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.cli.story import collect, find_run
from aver.errors import UsageError
from aver.render.masking import to_bytes
from aver.report.export import csv_lines, json_lines
from aver.report.export_file import write_whole
from aver.report.junit import junit
from aver.store.read.rows import RunRow

BY_SUFFIX = {".xml": "junit", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}
CHUNK = 1 << 18


@click.command("export")
@click.argument("run", metavar="RUN", type=ADDRESS)
@click.option("--junit", "as_junit", is_flag=True, help="JUnit XML, for CI systems.")
@click.option("--jsonl", "as_jsonl", is_flag=True, help="All events of the run, one JSON object per line.")
@click.option("--csv", "as_csv", is_flag=True, help="CSV, one row per attempt.")
@click.option(
    "--output",
    "-o",
    "target",
    type=click.Path(),
    metavar="FILE",
    help="Write to FILE; its suffix (.xml, .jsonl, .csv) gives the format.",
)
@json_option
def command(run: str, as_junit: bool, as_jsonl: bool, as_csv: bool, target: str | None, as_json: bool) -> None:
    """Export a run as JUnit XML, JSON lines or CSV.

    Writes to stdout without FILE. A file is replaced in one step, so it is never half written.
    In JUnit failed jobs are failures, lost and cancelled jobs are errors, and only COMPLETED jobs pass.

    \b
    Examples:
      aver export 3 --junit -o results.xml
      aver export 3 --csv > results.csv
      aver export 3 --jsonl | jq -r .kind
    """
    session = Session()
    session.refresh()
    found = find_run(session, run)
    form = _form(as_junit, as_jsonl, as_csv, target)
    to_stdout = target is None or target == "-"
    if to_stdout and as_json:
        raise UsageError("--json answers with a document about the file: it needs --output FILE")
    if not found.state.is_settled:
        session.output.note(f"run {found.id} is {found.state}: this is what is known so far")
    chunks = _gathered(_pieces(session, found, form))
    if target is None or to_stdout:
        for chunk in chunks:
            session.output.raw(chunk)
        return
    size = write_whole(target, chunks)
    document = Written(found.id, form, target, size, found.jobs, found.state.is_settled)
    if as_json:
        answer(session.output, document, as_json)
    else:
        session.output.note(f"wrote {target}")


def _form(as_junit: bool, as_jsonl: bool, as_csv: bool, target: str | None) -> str:
    said = [name for name, is_said in (("junit", as_junit), ("jsonl", as_jsonl), ("csv", as_csv)) if is_said]
    if not said and target and (by_suffix := BY_SUFFIX.get(Path(target).suffix.lower())):
        return by_suffix
    if len(said) != 1:
        raise UsageError(f"give {'only one' if said else 'a'} format: --junit, --jsonl or --csv")
    return said[0]


def _pieces(session: Session, run: RunRow, form: str) -> Iterator[str]:
    if form == "jsonl":
        masking = session.mask([run.id])
        events = session.found_reader(str(run.id)).events(run=run.id)
        return json_lines(events, masking)
    story = collect(session, run)
    return junit(story) if form == "junit" else csv_lines(story)


def _gathered(pieces: Iterator[str]) -> Iterator[bytes]:
    """The pieces in few chunks."""
    held = bytearray()
    for piece in pieces:
        held += to_bytes(piece)
        if len(held) >= CHUNK:
            yield bytes(held)
            held.clear()
    yield bytes(held)
