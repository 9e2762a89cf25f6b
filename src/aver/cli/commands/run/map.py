"""`aver map`: run a command for each input; the jobs' output on stdout, as each ends or in the order of the inputs."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import click

from aver.cli.attach.signals import SignalReceived, heard, held_back, listen
from aver.cli.attach.wait import ChangeLines
from aver.cli.commands.run.run import SIGNALS, Attached
from aver.cli.commands.run.submit import report
from aver.cli.facts import files_of, jobs_facts
from aver.cli.group import Invocation
from aver.cli.options import EngineChoice, json_option
from aver.cli.output.progress import LiveLine, bar, change_line
from aver.cli.output.views import answer
from aver.cli.session import Session
from aver.cli.submission import Accepted, environment_of, on_engine, redacted, submit
from aver.client.documents import run_facts
from aver.client.origin import origin_of
from aver.config import load_config
from aver.errors import UsageError
from aver.model.job import FlowSpec, Shell, Submission
from aver.model.states import State
from aver.plan.matrix import members
from aver.plan.shell_text import fill_shell
from aver.store.read.rows import JobRow

READ_SIZE = 1 << 15  # a larger buffer would be mapped anew for each file


@click.command("map", context_settings={"allow_interspersed_args": True})
@click.argument("text", metavar="COMMAND")
@click.argument("inputs", metavar="[INPUT]...", nargs=-1)
@click.option("--param", "-p", "params", multiple=True, metavar="NAME=VALUES", help="Values of {NAME}: a,b or 1..3.")
@click.option(
    "--jobs", "-j", "max_parallel", metavar="N", help="Run at most N jobs at once (default: as the CPUs allow)."
)
@click.option("--retry", metavar="N", help="Further attempts of a job that failed (default: 0).")
@click.option("--time", "-t", metavar="TIME", help="Time limit of each job: 10 (minutes), 90s, 2h.")
@click.option("--mem", metavar="SIZE", help="Memory limit of each job: 512 (MiB), 2G.")
@click.option("--cpus", "-c", metavar="N", help="CPUs of each job (default: 1).")
@click.option("--name", "-J", metavar="NAME", help="The job's name (default: the program's).")
@click.option("--engine", type=EngineChoice(), help="Where to run: local (this machine) or slurm.")
@click.option("--keep-order", "-k", is_flag=True, help="Print output in the order of the inputs.")
@click.option("--dry-run", "-n", is_flag=True, help="Print the commands and run nothing.")
@click.option("--submit", "detach", is_flag=True, help="Run in the background and print the run's number.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the jobs' output.")
@json_option
@click.pass_obj
def command(
    invocation: Invocation,
    /,
    text: str,
    inputs: tuple[str, ...],
    params: tuple[str, ...],
    engine: str | None,
    keep_order: bool,
    dry_run: bool,
    detach: bool,
    quiet: bool,
    as_json: bool,
    **keys: Any,
) -> int:
    """Run a command for each input, with a verdict for each.

    COMMAND is text for bash. {} is the input, {.} the input without its extension, {/} its last part, {//} its folder,
    {/.} its last part without extension, {#} its number. If COMMAND has none of these, {} is appended. Inputs
    come after the command or on stdin, one on each line. Exits as `aver run` does.

    \b
    Examples:
      aver map './fit {} > {.}.out' data/*.csv
      ls data | aver map -j 4 --retry 2 './fit data/{}'
      aver map './fit {lr} {seed}' --param lr=0.1,0.01 --param seed=1..3
    """
    session = Session()
    words = [*inputs, *(invocation.command or ())]
    flow = flow_of(text, words, params, keys)
    if dry_run:
        show_commands(session, flow)
        return 0
    config = load_config()
    origin = origin_of(redacted(invocation.typed), tuple(config.secrets))
    submission = Submission(flow, origin, engine=config.engine, host=config.slurm.host)
    submission, environment = on_engine(submission, engine), environment_of(())
    if detach:
        report(session, submit(session, submission, environment), quiet, as_json)
        return 0
    session.connect().close()  # a coordinator is started before signals are held back, and inherits none of that
    try:
        with listen(*SIGNALS), held_back(*SIGNALS) as release:
            accepted = submit(session, submission, environment)
            return _Mapped(session, accepted, quiet, as_json, keep_order).wait(release, False)
    except SignalReceived as late:  # while we were leaving anyway
        heard()
        return 128 + late.number


def flow_of(text: str, words: list[str], params: tuple[str, ...], keys: dict[str, Any]) -> FlowSpec:
    """The flow of what was typed; inputs are read from stdin if none are given, unless parameters alone are used."""
    from aver.spec.map import flow_of_map, wants_inputs  # YAML is paid for only here

    inputs: list[str] | None = words
    if not words and params and not wants_inputs(text):
        inputs = None
    elif not words:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("there are no inputs: give them after the command, or on stdin, one on each line")
        try:
            lines = sys.stdin.buffer.read().decode("utf-8").split("\n")
        except UnicodeDecodeError:
            raise UsageError("the inputs on stdin are not UTF-8") from None
        inputs = [line.removesuffix("\r") for line in lines if line.strip()]
    return flow_of_map(text, inputs, params, keys, now=time.time())


def show_commands(session: Session, flow: FlowSpec) -> None:
    """Print each command as a shell would get it."""
    (spec,) = flow.jobs
    command = spec.command
    assert isinstance(command, Shell)
    for member in members(spec):
        session.output.line(fill_shell(command.text, dict(member.values), command.shell))


class _Mapped(Attached):
    """Prints what each job wrote when the job is settled."""

    def __init__(self, session: Session, accepted: Accepted, quiet: bool, as_json: bool, keep_order: bool) -> None:
        super().__init__(session, accepted, 0, quiet, as_json)
        self._keep_order = keep_order
        self._settled: dict[int, JobRow] = {}  # not printed yet
        self._printed: set[int] = set()
        self._next = accepted.first_job
        self._live = LiveLine(session.output)
        self._shown = ChangeLines(self._watched)  # of which nothing is shown: stdout has the jobs' output alone

    def _seen(self, changed: tuple[int, ...]) -> None:
        if self._as_json:
            return
        reader = self._session.found_reader("")
        rows = reader.jobs_by_id(changed).values() if changed else reader.jobs(self._accepted.run)
        for row in rows:
            if row.state.is_settled and row.id not in self._printed:
                self._settled[row.id] = row
        if not self._keep_order:
            for number in list(self._settled):
                self._print(self._settled.pop(number))
        while self._next in self._settled:
            self._print(self._settled.pop(self._next))
            self._next += 1
        if self._live.is_due and not self._quiet:
            run = self._session.run_row(self._accepted.run)
            self._live.draw(bar(run_facts(run, reader.counts(run.id))))

    def _print(self, job: JobRow) -> None:
        self._printed.add(job.id)
        self._live.clear()
        if job.state is not State.COMPLETED:
            self._note(change_line(self._session.output, jobs_facts(self._session, [job])[0]))
        if not job.attempt:
            return
        try:
            written = _read(files_of(self._session, job, job.attempt).stdout)
            if written:
                self._session.output.raw(self._session.output.masking.whole(written))
        except OSError as error:
            self._note(f"can't read what job {job.id} wrote: {error.strerror}")

    def _report(self, status: int) -> None:
        self._live.clear()
        if self._as_json:
            answer(self._session.output, self._watched.ended(status), True)
        for text in self._watched.summaries():
            self._note(text)


def _read(path: str) -> bytes:
    """The whole file: there are many, and most are small."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, READ_SIZE), b""))
    finally:
        os.close(fd)
