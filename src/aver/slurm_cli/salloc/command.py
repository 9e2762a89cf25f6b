"""salloc: an allocation of this machine, held while a shell or a command runs, in which srun makes steps.

The allocation is a job whose program only waits, under a witness as every job; the command runs here, as with Slurm,
and the job ends as the command ended. When we are killed, so that nobody can give the allocation back, it is cancelled.
"""

from __future__ import annotations

import os
import time

from aver.errors import UsageError
from aver.fast_start import TYPE_CHECKING
from aver.model.slurm_names import VERSION
from aver.slurm_cli.output import show
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.salloc.options import USAGE_STATUS, Asked
from aver.spec.getopt import BadOption, Parsed, parse
from aver.spec.sbatch.call import BatchCall, BatchRefused
from aver.spec.sbatch.table import VARIABLES as SBATCH_VARIABLES
from aver.spec.sbatch.table import from_environment, salloc_table

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
SHOWN = "account constraint exclude licenses nice nodelist partition qos reservation wckey".split()
USAGE = """\
Usage: salloc [-N numnodes|[min nodes]-[max nodes]] [-n num-processors]
              [-c cpus-per-node] [-r n] [-p partition] [--hold] [-t minutes]
              [--immediate[=secs]] [--no-kill] [--overcommit] [-D path]
              [--oversubscribe] [-J jobname]
              [--verbose] [--gid=group] [--uid=user] [--licenses=names]
              [--clusters=cluster_names]
"""
HELP = """\
Usage: salloc [OPTIONS(0)...] [command(0) [args(0)...]]

Takes an allocation of this machine, runs a shell or the command in it, and gives it back at its end.

  -n, --ntasks=N              number of tasks for srun
  -c, --cpus-per-task=N       cpus of each task
      --mem=SIZE              memory of each step: 512 (MiB), 2G
  -G, --gpus=N, --gres=gpu:N  gpus
  -t, --time=TIME             how long it may be kept: 10 (minutes), 1:30:00, 1-12
  -J, --job-name=NAME         name of the job
  -D, --chdir=FOLDER          where the command runs
  -b, --begin=TIME  -d, --dependency=LIST  -H, --hold
  -I, --immediate[=SECONDS]   give up if it is not there by then
  -K, --kill-command[=SIGNAL] end the command when the allocation is gone
      --no-shell              only take it; scancel gives it back, srun --jobid=N uses it
  -p, -A, -q, -C, -w …        are shown, and mean nothing here
  -Q, --quiet  -v, --verbose  -V, --version  -h, --help

Example:
  salloc -n 4 -t 30 srun -l hostname
"""


def main(argv: Sequence[str]) -> int:
    return guarded("salloc", _salloc, argv)


def _salloc(argv: Sequence[str]) -> int:
    try:
        parsed = parse(OPTIONS, argv, stops_at_operand=True)
    except BadOption as error:
        raise Refusal(f'salloc: {error}\nTry "salloc --help" for more information', USAGE_STATUS) from None
    for name, text in (("version", f"{VERSION}\n"), ("help", HELP), ("usage", USAGE)):
        if parsed.has(name):
            show(text)
            return 0
    given = _in_order(parsed, os.environ)
    for name, _ in given:
        if name in NOT_SERVED:
            raise Refusal(f"salloc: error: --{name} is not served by aver")
    asked = Asked(parsed, given)
    try:
        call = _call(given)
        from aver.slurm_cli.salloc.hold import Allocation

        return Allocation(asked, call, ["salloc", *argv]).run()
    except BatchRefused as refused:
        text = str(refused).replace("sbatch: ", "salloc: ")
        text = text.replace("Batch job submission failed", "Job submit/allocate failed")
        raise Refusal(text, refused.exit_status) from None
    except UsageError as error:
        raise Refusal(f"salloc: error: Job submit/allocate failed: {error}") from None


def _in_order(parsed: Parsed, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Variables, then flags: the later one counts."""
    said = {variable: text for variable, text in environ.items() if text}
    return [(name, text or "") for name, text in [*from_environment(VARIABLES, said, OPTIONS), *parsed.given]]


def _call(given: list[tuple[str, str]]) -> BatchCall:
    call = BatchCall(time.time())
    for name, text in given:
        if name not in _OWN:
            call.take(name, text)
    return call
