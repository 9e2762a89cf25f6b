"""Words that two runs can compare: ids, node names, folders and times become placeholders."""

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


class Names:
    """What to call the things whose names change from run to run."""

    def __init__(self, nodes: frozenset[str], folder: Path, token: str) -> None:
        self._nodes = sorted(nodes, key=len, reverse=True)
        self._known: dict[str, str] = {str(folder): "DIR", token: "TOKEN"}

    def learn(self, word: str, name: str) -> None:
        """From now on `word` is called `name`."""
        self._known[word] = name

    def plain(self, text: str) -> str:
        """The text with placeholders."""
        for word in sorted(self._known, key=len, reverse=True):
            text = re.sub(rf"(?<![\w.-])(?<!exit code )(?<!srun=){re.escape(word)}(?!\w)", self._known[word], text)
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
        text = re.sub(rf"\bslurmstepd-(?:{'|'.join(map(re.escape, self._nodes))}):", "slurmstepd:", text)
        text = re.sub(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, self._nodes))})(?![\w.])", "NODE", text)
        text = re.sub(r"\b(StepId=|JobId=|[Jj]ob )\d+", r"\1ID", text)
        return re.sub(r"Waiting up to \d+ seconds", "Waiting up to N seconds", text)


def echoes(text: str, names: Names) -> list[str]:
    """The lines `word=value` that a script printed about itself."""
    return [names.plain(line.strip()) for line in text.splitlines() if re.match(r"[a-z]+=", line)]


def messages(text: str, names: Names) -> list[str]:
    """The lines that Slurm's programs printed, each once, in the order of the alphabet: their own order is chance.

    Left out are those that say that srun had to wait, or found a node gone that was just leaving: that is chance too.
    """
    ranks = re.compile(r"^\d+: ")
    lines = (ranks.sub("", line) for line in plain_lines(text, names))
    chance = ("queued and waiting for resources", "has been allocated resources", "you told me node 0 was down!")
    return sorted({line for line in lines if line.startswith(PROGRAMS) and not line.endswith(chance)})


def plain_lines(text: str, names: Names) -> list[str]:
    """All lines in their order, with programs named without their folder, and without the note that Aver gives once."""
    lines = (re.sub(rf"^/\S*/(?=(?:{'|'.join(PROGRAMS)}))", "", line.rstrip()) for line in text.splitlines())
    return [names.plain(line) for line in lines if line and ": aver: accepted, and without meaning" not in line]
