"""salloc: an allocation of this machine, held while a shell or a command runs, in which srun makes steps.

The allocation is a job whose program only waits, under a witness as every job; the command runs here, as with Slurm,
and the job ends as the command ended. When we are killed, so that nobody can give the allocation back, it is cancelled.
"""

from __future__ import annotations

import os
import sys
import time

from aver.errors import UsageError
from aver.model.slurm_names import VERSION
from aver.slurm_cli.options import BadOption, Parsed, Table, parse
from aver.slurm_cli.refusal import Refusal, guarded
from aver.slurm_cli.salloc.asked import USAGE_STATUS, Asked
from aver.spec.sbatch.call import BatchCall, BatchRefused

TYPE_CHECKING = False  # `typing` costs as much as the rest of the start
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPTIONS = Table(
    flags="bell contiguous help:h hold:H no-bell no-shell overcommit:O oversubscribe:s quiet:Q reboot spread-job usage "
    "use-min-nodes verbose:v version:V",
    values="account:A acctg-freq bb bbf begin:b chdir:D cluster-constraint clusters:M comment constraint:C container "
    "core-spec:S cores-per-socket cpu-freq cpus-per-gpu cpus-per-task:c deadline delay-boot dependency:d "
    "distribution:m exclude:x extra-node-info:B gid gpu-bind gpu-freq gpus:G gpus-per-node gpus-per-socket "
    "gpus-per-task gres gres-flags hint job-name:J licenses:L mail-type mail-user mcs-label mem mem-bind mem-per-cpu "
    "mem-per-gpu mincpus network nodefile:F nodelist:w nodes:N ntasks:n ntasks-per-core ntasks-per-gpu ntasks-per-node "
    "ntasks-per-socket partition:p power prefer priority profile qos:q reservation signal sockets-per-node switches "
    "thread-spec threads-per-core time:t time-min tmp uid wait-all-nodes wckey",
    maybe="exclusive get-user-env immediate:I kill-command:K nice no-kill:k x11",
    aliases="cluster=clusters share=oversubscribe workdir=chdir",
)
VARIABLES = {
    "SALLOC_ACCOUNT": "account", "SALLOC_CONSTRAINT": "constraint", "SALLOC_CONTAINER": "container",
    "SALLOC_CPUS_PER_GPU": "cpus-per-gpu", "SALLOC_DEBUG": "verbose", "SALLOC_EXCLUSIVE": "exclusive",
    "SALLOC_GPUS": "gpus", "SALLOC_GPUS_PER_NODE": "gpus-per-node", "SALLOC_GPUS_PER_TASK": "gpus-per-task",
    "SALLOC_GRES": "gres", "SALLOC_IMMEDIATE": "immediate", "SALLOC_KILL_CMD": "kill-command",
    "SALLOC_MEM_PER_CPU": "mem-per-cpu", "SALLOC_MEM_PER_NODE": "mem", "SALLOC_OVERCOMMIT": "overcommit",
    "SALLOC_PARTITION": "partition", "SALLOC_QOS": "qos", "SALLOC_RESERVATION": "reservation",
    "SALLOC_SIGNAL": "signal", "SALLOC_TIMELIMIT": "time", "SALLOC_WCKEY": "wckey",
}  # fmt: skip
_OWN = ("bell", "no-bell", "no-shell", "immediate", "kill-command", "x11", "version", "help", "usage")
NOT_SERVED = ("container", "uid", "gid")
WITHOUT_MEANING = tuple(
    (
        "acctg-freq bb bbf bell cluster-constraint clusters contiguous core-spec cores-per-socket cpu-freq "
        "cpus-per-gpu delay-boot distribution extra-node-info get-user-env gpu-bind gpu-freq gpus-per-socket "
        "gres-flags hint mail-type mail-user mcs-label mem-bind mem-per-gpu mincpus network no-bell no-kill nodefile "
        "ntasks-per-core ntasks-per-gpu ntasks-per-socket overcommit oversubscribe power prefer profile reboot "
        "sockets-per-node spread-job switches thread-spec threads-per-core time-min tmp use-min-nodes verbose "
        "wait-all-nodes x11"
    ).split()
)
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
            sys.stdout.write(text)
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
    found = [(name, environ[variable]) for variable, name in VARIABLES.items() if environ.get(variable)]
    return [*found, *((name, text or "") for name, text in parsed.given)]


def _call(given: list[tuple[str, str]]) -> BatchCall:
    call = BatchCall(time.time())
    for name, text in given:
        if name not in _OWN and not (name == "verbose" and text):
            call.take(name, text)
    return call
