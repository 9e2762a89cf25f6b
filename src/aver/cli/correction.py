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
from aver.model.record import Record
from aver.model.units import parse_size, parse_time
from aver.report.correction.rules import Change, value_text
from aver.report.correction.run import Correction, LeftAlone, Proposal, correct_file, is_flow_file, propose
from aver.report.measure import Resource, Rules
from aver.store.columns import Outcome
from aver.store.read.step_warnings import step_warnings_of_run

Function = TypeVar("Function", bound=Callable[..., Any])


class Factor(click.ParamType[float]):
    """A multiplier that makes larger: `1.5`."""

    name = "factor"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(str(value))
        except ValueError:
            number = 0.0
        if not 1.0 <= number <= 100.0:
            raise UsageError(f"{value!r} is not a factor: give a number from 1 to 100, such as 1.5")
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
    """The options of the rules that raise a request."""
    return _with(
        function,
        _option("--mem-factor", Factor(), "Multiply the highest peak of memory by this (default: 1.2)."),
        _option("--limit-factor", Factor(), "Multiply a memory limit that was reached by this (default: 1.5)."),
        _option("--time-factor", Factor(), "Multiply a time limit that passed by this (default: 1.4)."),
        _option("--max-mem", SIZE, "Never request more memory than this."),
        _option("--max-time", TIME, "Never request more time than this."),
    )


def correction_options(function: Function) -> Function:
    """The options of all rules."""
    return growth_options(
        _with(
            function,
            _option("--cpu-factor", Factor(), "CPU use above this share of the request is over-use (default: 1.1)."),
            _option("--mem-saving", SIZE, "Reduce memory only if it saves more than this (default: 1G)."),
            _option("--time-saving", TIME, "Reduce time only if it saves more than this (default: 30m)."),
            _option("--cpu-saving", click.IntRange(0), "Reduce CPUs only if it saves more than this (default: 1)."),
            _option("--mem-floor", SIZE, "Never reduce memory below this (default: 512M)."),
            _option("--time-floor", TIME, "Never reduce time below this (default: 10m)."),
            _option("--cpu-floor", click.IntRange(1), "Never reduce CPUs below this (default: 1)."),
        )
    )


def _option(name: str, kind: click.ParamType[Any], text: str) -> Callable[[Function], Function]:
    metavar = {id(SIZE): "SIZE", id(TIME): "TIME"}.get(id(kind), "X" if isinstance(kind, Factor) else "N")
    return click.option(name, type=kind, metavar=metavar, help=text)


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


class RunCorrection(Record):
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
    origin = session.submission(run).origin
    file = origin.file
    no_file = _no_file(run, file)
    if no_file or not any(one.changes for one in proposals):
        return RunCorrection(rows, flows, proposals, None, no_file)
    assert file is not None
    edited = correct_file(file, flows[min(flows)], proposals, now, origin.folder)
    return RunCorrection(rows, flows, proposals, edited, "")


def change_facts(found: RunCorrection) -> tuple[ChangeFacts, ...]:
    return tuple(
        ChangeFacts(job, str(one.resource), _text(one.resource, one.old), value_text(one.resource, one.new), one.why)
        for job, one in found.changes
    )


def _text(resource: Resource, value: int | float | None) -> str | None:
    return None if value is None else value_text(resource, value)


def _no_file(run: int, file: str | None) -> str:
    if file is None:
        return f"run {run} did not come from a flow's file; give the new requests when you submit it again"
    if not is_flow_file(file):
        return f"{file} is not a flow; give the new requests in its #SBATCH lines, or when you submit it again"
    if not os.path.exists(file):
        return f"{file}, from which run {run} was submitted, is gone"
    return ""
