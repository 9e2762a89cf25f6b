"""The names of sbatch's options, and its lines in a script. Text alone: sbatch starts with little more than this."""

from __future__ import annotations

MAGIC = "#SBATCH"

SHORT = {
    "J": "job-name", "o": "output", "e": "error", "i": "input", "D": "chdir", "n": "ntasks", "c": "cpus-per-task",
    "N": "nodes", "t": "time", "G": "gpus", "b": "begin", "H": "hold", "p": "partition", "A": "account", "q": "qos",
    "a": "array", "d": "dependency", "C": "constraint", "w": "nodelist", "x": "exclude", "L": "licenses",
    "Q": "quiet", "v": "verbose", "W": "wait", "k": "no-kill", "m": "distribution", "M": "clusters",
    "s": "oversubscribe", "O": "overcommit", "B": "extra-node-info", "S": "core-spec", "F": "nodefile",
}  # fmt: skip

VALUES = (
    "job-name output error input chdir ntasks ntasks-per-node nodes cpus-per-task time mem mem-per-cpu gpus "
    "gpus-per-node gpus-per-task gres signal open-mode begin deadline priority comment export array dependency wrap"
).split()
FLAGS = "hold requeue no-requeue".split()
VALUES_WITHOUT_MEANING = (
    "partition account qos constraint nodelist exclude licenses distribution clusters extra-node-info core-spec "
    "nodefile mail-type mail-user reservation tmp export-file hint threads-per-core cores-per-socket sockets-per-node "
    "ntasks-per-core ntasks-per-socket switches profile acctg-freq wckey cluster-constraint network power propagate "
    "time-min gpu-bind gpu-freq mem-bind thread-spec bb bbf delay-boot container mcs-label uid gid mincpus "
    "gpus-per-socket cpus-per-gpu mem-per-gpu ntasks-per-gpu kill-on-invalid-dep batch prefer cpu-freq gres-flags "
    "cluster ntasks-per-tres wait-all-nodes"
).split()
FLAGS_WITHOUT_MEANING = (
    "quiet verbose wait overcommit contiguous parsable spread-job use-min-nodes reboot test-only ignore-pbs"
).split()
MAYBE = ["exclusive"]
MAYBE_WITHOUT_MEANING = "oversubscribe no-kill get-user-env nice".split()


def takes_value(name: str) -> bool:
    return name in VALUES or name in VALUES_WITHOUT_MEANING


def magic_lines(text: str) -> list[tuple[int, str]]:
    """(line number, what follows #SBATCH), up to the first command."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        rest = line[len(MAGIC) :]
        if line.startswith(MAGIC) and (not rest or rest[0] in " \t-"):
            found.append((number, rest))
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return found
