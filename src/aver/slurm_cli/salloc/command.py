"""salloc: an allocation of this machine, held while a shell or a command runs, in which srun makes steps.

The allocation is a job whose program only waits, under a witness as every job; the command runs here, as with Slurm,
and the job ends as the command ended. When we are killed, so that nobody can give the allocation back, it is cancelled.
"""

from __future__ import annotations

import os
import time

from aver.errors import UsageError
from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli.output import say, show
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.salloc.options import USAGE_STATUS, Asked
from aver.slurm_cli.settings import defined_options, node_name, refuses_unknown_names, verbosity, version_line
from aver.spec.getopt import BadOption, Parsed, parse
from aver.spec.sbatch.call import BatchCall, BatchRefused, check_names
from aver.spec.sbatch.call import idle_options as of_sbatch
from aver.spec.sbatch.table import VARIABLES as SBATCH_VARIABLES
from aver.spec.sbatch.table import from_environment, memory_conflict, salloc_table, without_lesser_memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPTIONS = salloc_table()
_OWN_VARIABLES = {"IMMEDIATE": "immediate", "KILL_CMD": "kill-command"}
VARIABLES = {
    f"SALLOC_{word}": _OWN_VARIABLES.get(word) or SBATCH_VARIABLES[f"SBATCH_{word}"]
    for word in (
        "ACCOUNT CONSTRAINT CONTAINER CPUS_PER_GPU DEBUG EXCLUSIVE GPUS GPUS_PER_NODE GPUS_PER_TASK GRES IMMEDIATE "
        "KILL_CMD MEM_PER_CPU MEM_PER_NODE OVERCOMMIT PARTITION QOS RESERVATION SIGNAL TIMELIMIT WCKEY"
    ).split()
}
_OWN = ("bell", "no-bell", "no-shell", "immediate", "kill-command", "x11", "version", "help", "usage")
NOT_SERVED = ("container", "uid", "gid")
_UNUSED = ("mail-type", "mail-user", "bbf")
SHOWN = "account constraint exclude licenses nice nodelist partition qos reservation wckey".split()


def main(argv: Sequence[str]) -> int:
    return guarded("salloc", _salloc, argv)


def _salloc(argv: Sequence[str]) -> int:
    try:
        parsed = parse(OPTIONS, argv, stops_at_operand=True)
    except BadOption as error:
        raise Refusal(f'salloc: {error}\nTry "salloc --help" for more information', USAGE_STATUS) from None
    if parsed.has("version"):
        show(f"{version_line()}\n")
        return 0
    if parsed.has("help") or parsed.has("usage"):
        show(_help() if parsed.has("help") else _usage())
        return 0
    given = _in_order(parsed, os.environ)
    for name, _ in given:
        if name in NOT_SERVED:
            raise Refusal(f"salloc: error: --{name} is not supported by aver")
    asked = Asked(parsed, given)
    if verbosity(given):
        say(*defined_options("salloc", given))
    try:
        call = _call(given)
        if refuses_unknown_names():
            check_names(call.values.said, node_name())
        from aver.slurm_cli.salloc.hold import Allocation

        return Allocation(asked, call, ["salloc", *argv]).run()
    except BatchRefused as refused:
        text = str(refused).replace("sbatch: ", "salloc: ")
        text = text.replace("Batch job submission failed", "Job submit/allocate failed")
        raise Refusal(text, refused.exit_status) from None
    except UsageError as error:
        raise Refusal(f"salloc: error: Job submit/allocate failed: {error}") from None


def idle_options() -> tuple[str, ...]:
    """The options that mean nothing on one machine."""
    unused = [name for name in OPTIONS.takes if name in _UNUSED]
    served = {*SHOWN, "immediate", "kill-command", "no-shell"}
    return tuple(name for name in [*of_sbatch(OPTIONS), *unused] if name not in served)


def _help() -> str:
    from aver.slurm_cli.help import page

    what = "Takes an allocation of this machine, runs a shell or the command in it, and gives it back at its end."
    return page(OPTIONS, "salloc [OPTIONS(0)...] [command(0) [args(0)...]]", idle_options(), what)


def _usage() -> str:
    from aver.slurm_cli.help import usage

    return usage(OPTIONS, "salloc", "[command [args...]]")


def _in_order(parsed: Parsed, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Variables, then flags: the later one counts."""
    said = {variable: text for variable, text in environ.items() if text}
    typed = [name for name, _ in parsed.given]
    of_variables = from_environment(VARIABLES, said, OPTIONS)
    conflict = memory_conflict(typed, [name for name, _ in of_variables])
    if conflict is not None:
        raise Refusal(f"salloc: {conflict}")
    return [(name, text or "") for name, text in [*without_lesser_memory(of_variables, typed), *parsed.given]]


def _call(given: list[tuple[str, str]]) -> BatchCall:
    call = BatchCall(time.time())
    for name, text in given:
        if name not in _OWN:
            call.take(name, text)
    call.check_together()
    return call
