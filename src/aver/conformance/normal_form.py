"""Output that two runs can compare: ids, node names, folders and times are replaced by placeholders."""

from __future__ import annotations

import re
from pathlib import Path

PROGRAMS = (
    "srun:",
    "sbatch:",
    "slurmstepd:",
    "scancel:",
    "scontrol:",
    "squeue:",
    "sacct:",
    "salloc:",
    "sstat:",
    "sacctmgr:",
    "sinfo:",
)


ID = re.compile(r"\b(JOB |STEP |StepId=|JobId=|[Jj]ob (?:step )?(?:id )?)(\d+)\b")
"""A job's id in what Slurm's programs print."""


class Names:
    """Placeholders for names that change from run to run."""

    def __init__(self, nodes: frozenset[str], folder: Path, token: str) -> None:
        self._nodes = sorted(nodes, key=len, reverse=True)
        self._known: dict[str, str] = {str(folder): "DIR", token: "TOKEN"}
        self._ids: dict[str, str] = {}

    def learn(self, word: str, name: str) -> None:
        """Replace `word` by `name` from now on."""
        self._known[word] = name

    def learn_id(self, key: str, name: str) -> None:
        """Replace a job's id by `name` from now on, where Slurm prints an id: the number alone may mean anything."""
        self._ids[key] = name

    def plain(self, text: str) -> str:
        """A line with placeholders. slurmstepd's own lines begin with the time since 25.05, with its name before."""
        for word in sorted(self._known, key=len, reverse=True):
            text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?!\w)", self._known[word], text)
        text = ID.sub(lambda found: found[1] + self._ids.get(found[2], found[2]), text)
        text = re.sub(r"^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\] error: ", "slurmstepd: error: ", text)
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
        text = re.sub(rf"\bslurmstepd-(?:{'|'.join(map(re.escape, self._nodes))}):", "slurmstepd:", text)
        text = re.sub(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, self._nodes))})(?![\w.])", "NODE", text)
        text = re.sub(r"\b(StepId=|JobId=|[Jj]ob )\d+", r"\1ID", text)
        return re.sub(r"Waiting up to \d+ seconds", "Waiting up to N seconds", text)


def echoes(text: str, names: Names) -> list[str]:
    """The lines `word=value` of a script's output."""
    return [names.plain(line.strip()) for line in text.splitlines() if re.match(r"[a-z]+=", line)]


def messages(text: str, names: Names) -> list[str]:
    """The lines that Slurm's programs printed, without duplicates, sorted, since their order varies from run to run.

    Lines that depend on the moment are left out: srun had to wait, or found a node down that was just leaving.
    """
    ranks = re.compile(r"^\d+: ")
    lines = (ranks.sub("", line) for line in plain_lines(text, names))
    of_the_moment = ("queued and waiting for resources", "has been allocated resources", "you told me node 0 was down!")
    return sorted({line for line in lines if line.startswith(PROGRAMS) and not line.endswith(of_the_moment)})


def plain_lines(text: str, names: Names) -> list[str]:
    """All lines in order, programs without their folder, without Aver's note about options that it ignores."""
    lines = (re.sub(rf"^/\S*/(?=(?:{'|'.join(PROGRAMS)}))", "", line.rstrip()) for line in text.splitlines())
    return [names.plain(line) for line in lines if line and ": aver: accepted, and without meaning" not in line]
