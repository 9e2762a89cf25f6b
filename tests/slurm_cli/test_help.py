"""Help pages and usage lines of Slurm's commands."""

from __future__ import annotations

import re

import pytest
from slurm_commands import Slurm

from aver.slurm_cli.coverage import Command, commands

BY_NAME = {command.name: command for command in commands()}
PAGES = {
    "srun": ("Parallel run options:", "Constraint options:", "  -N, --nodes=N ", "      --mincpus=n ", "-G, --gpus=n"),
    "sbatch": ("Parallel run options:", "Constraint options:", "  -b, --begin=time", "  -q, --qos=qos"),
    "salloc": ("Usage: salloc [OPTIONS(0)...] [command(0) [args(0)...]]", "Consumable resources related options:"),
    "squeue": ("Usage: squeue [OPTIONS]", "Help options:"),
    "sinfo": ("Usage: sinfo [OPTIONS]", "Help options:"),
    "scancel": ("Usage: scancel [OPTIONS]", "Help options:"),
    "sacct": ("sacct [<OPTION>]", "Valid <OPTION> values are:", "-A, --accounts:", "valid start/end time formats are"),
    "sstat": ("sstat [<OPTION>]", "Valid <OPTION> values are:", "-j, --jobs:"),
    "scontrol": ("Valid <COMMAND> values are:", "show <ENTITY> [<ID>]", "     reconfigure              not supported"),
    "sacctmgr": ("Valid <OPTION> values are:", "Valid <COMMAND> values are:", "<ENTITY> may be", "add cluster"),
}
USAGES = {
    "srun": r"Usage: srun (?:\[-{1,2}.*?\]\s+)+executable \[args\.\.\.\]\n",
    "sbatch": r"Usage: sbatch (?:\[-{1,2}.*?\]\s+)+executable \[args\.\.\.\]\n",
    "salloc": r"Usage: salloc(?:\s+\[-{1,2}.*?\](?=\s+\[))+\s+\[command \[args\.\.\.\]\]\n",
    "squeue": r"Usage: squeue(?:\s+\[-{1,2}[^\]]+\])+\n",
    "sinfo": r"Usage: sinfo(?:\s+\[-{1,2}[^\]]+\])+\n",
    "scancel": r"Usage: scancel(?:\s+\[-{1,2}[^\]]+\])+\s+\[job_id.+\]\n",
}


@pytest.mark.parametrize("name", PAGES)
def test_help_is_laid_out_as_slurms(slurm: Slurm, name: str) -> None:
    """Scripts and people look for Slurm's headings and flags."""
    shown = slurm(name, "--help")
    assert shown.status == 0
    assert [words for words in PAGES[name] if words not in shown.out] == []


@pytest.mark.parametrize("name", USAGES)
def test_usage_lists_options_in_brackets(slurm: Slurm, name: str) -> None:
    """--usage is one sentence of options and operands, and not the help page."""
    assert re.fullmatch(USAGES[name], slurm(name, "--usage").out)


@pytest.mark.parametrize("name", [name for name in USAGES if name != "scontrol"] + ["sacct", "sstat"])
def test_help_has_every_option(slurm: Slurm, name: str) -> None:
    """No option that a command takes is missing on its page, and those without meaning are marked."""
    command: Command = BY_NAME[name]
    lines = slurm(name, "--help").out.splitlines()
    for option in command.options.takes:
        if option in ("as-job",):
            continue
        found = [at for at, line in enumerate(lines) if re.search(rf"--{option}(?![\w-])", line)]
        assert found, option
        marked = any("no effect here" in " ".join(lines[at : at + 2]) for at in found)
        assert marked or option not in command.without_meaning, option
