"""`aver check`: every mistake of a flow or a script at once; nothing is run."""

from __future__ import annotations

import json

import click

from aver.cli.options import json_option
from aver.cli.output.text import Output
from aver.config import load_config
from aver.engines.registry import capabilities_of
from aver.errors import UsageError
from aver.model.job import FlowSpec
from aver.plan.matrix import FlowIndex
from aver.spec.load import load
from aver.spec.mistakes import Mistake, SpecError

WRONG_STATUS = UsageError.exit_status


@click.command("check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@json_option
def command(files: tuple[str, ...], as_json: bool) -> None:
    """Check a flow or a script without running it.

    Shows every mistake with its place and a hint. Exits 0 without mistakes, and 2 with any.

    \b
    Examples:
      aver check flow.yaml
      aver check flow.yaml train.sbatch --json
    """
    output = Output.standard()
    reports = [_check(file) for file in files]
    if as_json:
        output.line(json.dumps({"kind": "check", "files": [_plain(*report) for report in reports]}, indent=2))
    else:
        for report in reports:
            _show(output, *report)
    if any(mistakes for _, _, mistakes in reports):
        raise click.exceptions.Exit(WRONG_STATUS)


def _check(file: str) -> tuple[str, FlowSpec | None, tuple[Mistake, ...]]:
    try:
        return file, load(file), ()
    except SpecError as error:
        return file, None, error.mistakes
    except UsageError as error:
        return file, None, (Mistake(file, 0, 0, str(error)),)


def _plain(file: str, flow: FlowSpec | None, mistakes: tuple[Mistake, ...]) -> dict[str, object]:
    return {
        "file": file,
        "is_right": flow is not None,
        "name": flow.name if flow else None,
        "jobs": FlowIndex(flow).count if flow else None,
        "ignored": [{"job": job, "text": text} for job, text in _ignored(flow)] if flow else [],
        "mistakes": [
            {
                "line": mistake.line or None,
                "column": mistake.column or None,
                "text": mistake.text,
                "hint": mistake.hint or None,
            }
            for mistake in mistakes
        ],
    }


def _show(output: Output, file: str, flow: FlowSpec | None, mistakes: tuple[Mistake, ...]) -> None:
    for mistake in mistakes:
        output.line(mistake.text if not mistake.line and file in mistake.text else str(mistake))
    if flow is None:
        return
    for job, text in _ignored(flow):
        output.line(f"{file}: note: job {job}: {text}")
    count = FlowIndex(flow).count
    output.line(f"{file}: no mistakes; {count} {'job' if count == 1 else 'jobs'}")


def _ignored(flow: FlowSpec) -> list[tuple[str, str]]:
    """What means nothing on this machine, of the jobs that are to run here."""
    if not any(job.ignored for job in flow.jobs):
        return []
    usual = load_config().engine
    here = [job for job in flow.jobs if not capabilities_of(job.engine or usual).outlives_machine]
    return [(job.name, text) for job in here for text in job.ignored]
