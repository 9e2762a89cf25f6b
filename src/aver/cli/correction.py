"""What `usage --correct` and `recover` share: the options of the rules, and a run's correction.

Reads the store and the flow's file; writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from aver.cli.options import no_limit_is_no_amount
from aver.cli.output.report_documents import ChangeFacts
from aver.cli.session import Session
from aver.errors import UsageError
from aver.model.job import FlowSpec
from aver.model.record import dataclass
from aver.model.units import parse_size, parse_time
from aver.report.correction.rules import Change, value_text
from aver.report.correction.run import Correction, LeftAlone, Proposal, correct_file, is_flow_file, propose
from aver.report.measure import Resource, Rules
from aver.store.read.outcomes import Outcome
from aver.store.read.step_warnings import step_warnings_of_run

Function = TypeVar("Function", bound=Callable[..., Any])
_DEFAULT = Rules()


class Factor(click.ParamType[float]):
    """A multiplier that makes larger: `1.5`."""

    name = "factor"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(str(value))
        except ValueError:
            number = 0.0
        if not 1.0 <= number <= 100.0:
            raise UsageError(f"{value!r} is no factor: give a number from 1 to 100, such as 1.5")
        return number


class Amount(click.ParamType[int]):
    """A size or a time as a flow has it; 0 is 0."""

    name = "amount"

    def __init__(self, read: Callable[[str], int | None]) -> None:
        self._read = read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            text = str(value)
            return 0 if text.strip() == "0" else self._read(text) or no_limit_is_no_amount(text)
        except ValueError as error:
            raise UsageError(str(error)) from None


SIZE, TIME = Amount(parse_size), Amount(parse_time)


def growth_options(function: Function) -> Function:
    """The options of what grows."""
    return _with(
        function,
        click.option("--mem-factor", type=Factor(), metavar="X", help="Memory from the highest peak (1.2)."),
        click.option("--limit-factor", type=Factor(), metavar="X", help="Memory from a limit that was reached (1.5)."),
        click.option("--time-factor", type=Factor(), metavar="X", help="Time from a limit that passed (1.4)."),
        click.option("--max-mem", type=SIZE, metavar="SIZE", help="Never ask for more memory than this."),
        click.option("--max-time", type=TIME, metavar="TIME", help="Never ask for more time than this."),
    )


def correction_options(function: Function) -> Function:
    """All options of the rules."""
    return growth_options(
        _with(
            function,
            click.option("--cpu-factor", type=Factor(), metavar="X", help="Over-use begins at this (1.1)."),
            click.option("--mem-saving", type=SIZE, metavar="SIZE", help="Save memory only if more than this (1G)."),
            click.option("--time-saving", type=TIME, metavar="TIME", help="Save time only if more than this (30m)."),
            click.option("--cpu-saving", type=click.IntRange(0), metavar="N", help="Save cpus only if more (1)."),
            click.option("--mem-floor", type=SIZE, metavar="SIZE", help="Never make memory less than this (512M)."),
            click.option("--time-floor", type=TIME, metavar="TIME", help="Never make time less than this (10m)."),
            click.option("--cpu-floor", type=click.IntRange(1), metavar="N", help="Never make cpus less (1)."),
        )
    )


def _with(function: Function, *options: Callable[[Function], Function]) -> Function:
    for option in reversed(options):
        function = option(function)
    return function


_FIELDS = {
    "mem_saving": "mem_saving_bytes",
    "time_saving": "time_saving_s",
    "mem_floor": "mem_floor_bytes",
    "time_floor": "time_floor_s",
    "max_mem": "mem_ceiling_bytes",
    "max_time": "time_ceiling_s",
}


def rules_of(options: dict[str, Any]) -> Rules:
    """The rules with what was given."""
    return Rules(**{_FIELDS.get(name, name): value for name, value in options.items() if value is not None})


@dataclass(frozen=True, slots=True)
class RunCorrection:
    """What should change, and the flow's file with it; without a file to edit `no_file` says why there is none."""

    rows: list[Outcome]
    flows: dict[int, FlowSpec]
    proposals: list[Proposal]
    correction: Correction | None
    no_file: str

    @property
    def left(self) -> tuple[LeftAlone, ...]:
        blocked = tuple(LeftAlone(one.job, block.why) for one in self.proposals for block in one.blocked)
        return blocked + (() if self.correction is None else self.correction.left)

    @property
    def changes(self) -> tuple[tuple[str, Change], ...]:
        """What is changed in the file; without a file, what should be."""
        if self.correction is not None:
            return self.correction.applied
        return tuple((one.job, change) for one in self.proposals for change in one.changes)


def correct_run(session: Session, run: int, rules: Rules, now: float, only_growth: bool = False) -> RunCorrection:
    """Work out better requests for a run, and edit its flow's text; nothing is written."""
    reader = session.found_reader(str(run))
    rows = reader.outcomes(run)
    generated = {batch.first_job: batch.flow for batch in reader.generated(run)}
    flows = {session.run_row(run).first_job: session.submission(run).flow, **generated}
    warned = step_warnings_of_run(reader, run)
    proposals = propose(rows, flows, reader.request, rules, only_growth, warned)
    file = session.submission(run).origin.file
    no_file = _no_file(run, file)
    if no_file or not any(one.changes for one in proposals):
        return RunCorrection(rows, flows, proposals, None, no_file)
    assert file is not None
    return RunCorrection(rows, flows, proposals, correct_file(file, flows[min(flows)], proposals, now), "")


def change_facts(found: RunCorrection) -> tuple[ChangeFacts, ...]:
    return tuple(
        ChangeFacts(job, str(one.resource), _text(one.resource, one.old), value_text(one.resource, one.new), one.why)
        for job, one in found.changes
    )


def _text(resource: Resource, value: int | None) -> str | None:
    return None if value is None else value_text(resource, value)


def _no_file(run: int, file: str | None) -> str:
    if file is None:
        return f"run {run} did not come from a flow's file; give the new requests when you submit it again"
    if not is_flow_file(file):
        return f"{file} is no flow; give the new requests in its #SBATCH lines, or when you submit it again"
    if not os.path.exists(file):
        return f"{file}, from which run {run} was submitted, is gone"
    return ""
