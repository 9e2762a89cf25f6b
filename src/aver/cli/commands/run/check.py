"""`aver check`: every mistake of a flow or a script at once; nothing is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from aver.cli.options import json_option
from aver.cli.output.text import Output
from aver.cli.session import Session
from aver.cli.submission import selection_of, selection_options, set_option
from aver.config import load_config
from aver.engines.registry import capabilities_of
from aver.errors import UsageError
from aver.model.job import FlowSpec
from aver.plan.matrix import FlowIndex
from aver.plan.selection import Selection, select
from aver.report.preview import impossible
from aver.spec.document import Mapping, Scalar, Sequence, read_document
from aver.spec.flow.params import ParamValues, parse_settings
from aver.spec.load import load
from aver.spec.mistakes import Mistake, Mistakes, SpecError, shown

WRONG_STATUS = UsageError.exit_status


@click.command("check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@set_option
@selection_options
@json_option
def command(files: tuple[str, ...], settings: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Check a flow or a script without running it.

    Shows every mistake with its place and a hint. Exits 0 without mistakes, and 2 with any.

    \b
    Examples:
      aver check flow.yaml
      aver check flow.yaml train.sbatch --json
      aver check flow.yaml --set n=5
    """
    output = Output.standard()
    params = ParamValues(parse_settings(settings))
    selection = selection_of(options)
    reports = [_check(file, params, selection) for file in files]
    if as_json:
        output.line(json.dumps({"kind": "check", "files": [_plain(*report) for report in reports]}, indent=2))
    else:
        for report in reports:
            _show(output, *report)
    if any(mistakes for _, _, mistakes in reports):
        raise click.exceptions.Exit(WRONG_STATUS)


def _check(file: str, params: ParamValues, selection: Selection) -> tuple[str, FlowSpec | None, tuple[Mistake, ...]]:
    try:
        flow = select(load(file, params=params), selection)
        wrong = [*_missing_pools(flow), *impossible(flow)]
        places = _places(file) if wrong else {}
        never = tuple(Mistake(file, *places.get(job, (0, 0)), f"job {job}: {text}") for job, text in wrong)
        return file, None if never else flow, never
    except SpecError as error:
        return file, None, error.mistakes
    except UsageError as error:
        return file, None, (Mistake(file, 0, 0, str(error)),)


def _places(file: str) -> dict[str, tuple[int, int]]:
    """Line and column of the jobs that stand in a flow's own file."""
    try:
        root = read_document(Path(file).read_bytes(), Mistakes(file), is_json=file.endswith(".json"))
    except OSError:
        return {}
    jobs = root.entries.get("jobs") if isinstance(root, Mapping) else None
    if jobs is None:
        return {}
    if isinstance(jobs.value, Mapping):
        return {name: (entry.key.line, entry.key.column) for name, entry in jobs.value.entries.items()}
    listed = jobs.value.items if isinstance(jobs.value, Sequence) else ()
    names = [one.entries["name"].value for one in listed if isinstance(one, Mapping) and "name" in one.entries]
    return {name.text: (name.line, name.column) for name in names if isinstance(name, Scalar)}


def _plain(file: str, flow: FlowSpec | None, mistakes: tuple[Mistake, ...]) -> dict[str, object]:
    return {
        "file": file,
        "is_right": flow is not None,
        "name": flow.name if flow else None,
        "jobs": FlowIndex(flow).count if flow else None,
        "unselected": list(flow.unselected) if flow else [],
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
    if flow.unselected:
        output.line(f"{file}: note: not selected: {', '.join(flow.unselected)}")
    count = FlowIndex(flow).count
    output.line(f"{file}: no mistakes; {count} {'job' if count == 1 else 'jobs'}")


def _ignored(flow: FlowSpec) -> list[tuple[str, str]]:
    """What means nothing on this machine, of the jobs that are to run here."""
    if not any(job.ignored for job in flow.jobs):
        return []
    usual = load_config().engine
    here = [job for job in flow.jobs if not capabilities_of(job.engine or usual).outlives_machine]
    return [(job.name, text) for job in here for text in job.ignored]


def _missing_pools(flow: FlowSpec) -> list[tuple[str, str]]:
    if not any(job.pools for job in flow.jobs):
        return []
    from aver.report.pools import pool_sizes  # few flows have any

    pools = pool_sizes(load_config(), Session().reader)
    return [
        (job.name, f"there is no pool {shown(name)}; aver pool set {name} N")
        for job in flow.jobs
        for name, _ in job.pools
        if name not in pools
    ]
