"""`#PBS` and `#BSUB` lines of a batch script as options of sbatch, as Slurm translates them.

What means nothing is left out.
"""

from __future__ import annotations

import re

from aver.spec.getopt import BadOption, Table, parse
from aver.spec.sbatch.lines import split_line

MAGIC, LSF = "#PBS", "#BSUB"
MOST_COMMANDS = 100  # Slurm looks no further
_TABLE = Table(
    flags="hold:h interactive:I all_env:V no_std:z",
    values=(
        "start_time:a account:A checkpoint:c working_dir:C error:e join:j job_array:J keep:k resource_list:l "
        "mail_options:m mail_user_list:M job_name:N out:o priority:p destination:q rerunable:r script_path:S array:t "
        "running_user:u variable_list:v attributes:W"
    ),
    maybe="",
)
_SAME = {
    "start_time": "begin", "account": "account", "error": "error", "out": "output", "job_array": "array",
    "array": "array", "mail_user_list": "mail-user", "job_name": "job-name", "priority": "nice",
    "destination": "partition", "variable_list": "export",
}  # fmt: skip
_LSF_TABLE = Table(
    flags="exclusive:x",
    values="cwd:c error_file:e job_name:J hostname:m memory_limit:M tasks:n output_file:o queue_name:q time:W",
    maybe="",
)
_LSF_SAME = {
    "cwd": "chdir", "error_file": "error", "job_name": "job-name", "output_file": "output", "queue_name": "partition",
    "time": "time",
}  # fmt: skip
_MAILS = (("b", "BEGIN"), ("e", "END"), ("a", "FAIL"))
_TIMES = ("cput", "pcput", "walltime")


def pbs_options(text: str) -> list[tuple[str, str | None]]:
    """What `#PBS` lines ask for, by sbatch's names; raise BadOption or OpenQuote."""
    words = _words(text, MAGIC)
    if not words:
        return []
    parsed = parse(_TABLE, words)
    if parsed.operands:
        raise BadOption(f"error: Invalid argument: {parsed.operands[0]}")
    found: list[tuple[str, str | None]] = []
    for name, value in parsed.given:
        found += _translated(name, value or "")
    return found


def lsf_options(text: str) -> list[tuple[str, str | None]]:
    """What `#BSUB` lines ask for, by sbatch's names, up to the first word that is none of its options, as in Slurm."""
    words = ["--cwd" if word == "-cwd" else word for word in _words(text, LSF)]
    return [_of_lsf(name, value or "") for name, value in parse(_LSF_TABLE, words, stops_at_operand=True).given]


def _words(text: str, magic: str) -> list[str]:
    words: list[str] = []
    commands = 0
    for line in text.split("\n"):
        if line.startswith(magic):
            words += split_line(line[len(magic) :])
        elif not line.startswith("#"):
            commands += 1
            if commands > MOST_COMMANDS:
                break
    return words


def _of_lsf(name: str, value: str) -> tuple[str, str | None]:
    match name:
        case "exclusive":
            return "exclusive", None
        case "hostname":
            return "nodelist", value.replace(" ", ",")
        case "memory_limit":
            return "mem-per-cpu", f"{value}K" if value[-1:].isdigit() else value
        case "tasks":
            return "ntasks", value.rpartition(",")[2]
        case _:
            return _LSF_SAME[name], value


def _translated(name: str, value: str) -> list[tuple[str, str | None]]:
    if name in _SAME:
        return [(_SAME[name], value)]
    if name == "hold":
        return [("hold", None)]
    if name == "resource_list":
        return _resources(value)
    if name == "mail_options":
        kinds = [word for letter, word in _MAILS if letter in value.lower()]
        shown = "NONE" if "n" in value.lower() else ",".join(kinds)
        return [("mail-type", shown)] if shown else []
    if name == "attributes" and value.lower().startswith("depend="):
        return [("dependency", value[len("depend=") :])]
    return []


def _resources(text: str) -> list[tuple[str, str | None]]:
    """Torque's list (`nodes=2:ppn=4,walltime=1:00:00`), and PBS Pro's (`select=1:ncpus=4:mpiprocs=2:mem=4gb`)."""
    found: list[tuple[str, str | None]] = []
    gpus = 0
    is_select = False
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name == "nodes":
            found += _nodes(value)
        elif name == "select":
            is_select = True
            count, _, chunk = value.partition(":")
            found.append(("nodes", count))
            for one in chunk.split(":") if chunk else ():
                found += _resource(*one.partition("=")[::2])
        elif name == "accelerator" and value.lower().startswith("true"):
            gpus = max(gpus, 1)
        elif name == "naccelerators" and value.isdigit():
            gpus = int(value)
        else:
            found += _resource(name, value)
    if gpus:
        found.append(("gres", f"gpu:{gpus}"))
    said = dict(found)
    cpus, tasks = said.get("mincpus") or "", said.get("ntasks-per-node") or ""
    if is_select and cpus.isdigit() and tasks.isdigit() and int(cpus) > int(tasks) > 0:
        found.append(("cpus-per-task", str(int(cpus) // int(tasks))))
    return found


def _resource(name: str, value: str) -> list[tuple[str, str | None]]:
    if name in _TIMES:
        return [("time", value)]
    if name in ("mem", "file"):
        return [("mem" if name == "mem" else "tmp", re.sub("[bB]$", "", value))]
    names = {"ncpus": "mincpus", "mpiprocs": "ntasks-per-node", "nice": "nice", "proc": "constraint"}
    return [(names[name], value)] if name in names and value else []


def _nodes(text: str) -> list[tuple[str, str | None]]:
    """`2:ppn=4`, `n1+n2:ppn=2`, `1:gpus=2`."""
    found: list[tuple[str, str | None]] = []
    count, per_node, named = 0, 0, []
    for part in re.split("[:+]", text):
        name, equals, value = part.partition("=")
        if name == "ppn" and value.isdigit():
            per_node += int(value)
        elif name == "gpus" and equals:
            found.append(("gpus-per-node", value))
        elif part.isascii() and part.isdigit():
            count += int(part)
        elif part[:1].isalpha():
            named.append(part)
    if count:
        found.append(("nodes", str(count)))
    if per_node:
        found.append(("ntasks", str(per_node * (count or 1))))
    if named:
        found.append(("nodelist", ",".join(named)))
    return found
