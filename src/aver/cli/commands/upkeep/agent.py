"""`aver agent`: what a coding agent needs to know, in one page. A test executes its command lines."""

from __future__ import annotations

import os
from typing import NamedTuple

import click

from aver.cli.output.text import Output
from aver.durable_files import naming_failures, write_file
from aver.errors import CantWriteError, UsageError
from aver.version import __version__

GUIDE = """\
# Aver for agents

Aver runs batch jobs, alone or as a flow, and says truthfully how each ended. A run has a number (here 1), which submit
prints; a job is 1/train. stdout is the answer, stderr words about it. --json gives one document with stable keys;
null is unknown. Or use the tools of the MCP server:

    aver mcp

Look for mistakes, then submit. With --key it can be repeated: the same key is the same run.

    aver check flow.yaml
    aver submit --preview flow.yaml
    aver submit --key sweep-1 flow.yaml
    aver submit --time 10m --mem 2G --key once -- python3 -c pass

Wait; do not poll. Exit status 124: not settled yet, wait again. With --any: whichever is settled next.

    aver watch 1 --timeout 50s --json
    aver watch --any 1 --timeout 50s --json

Everything that happened after event number 0, as JSON lines; remember the last `seq`.

    aver events --since 0

Believe the state, not the log. COMPLETED is exit 0 that somebody saw. UNVERIFIED: nobody saw how it ended.
When a run is not COMPLETED, read why in few bytes; each cause names the next command.

    aver failures 1 --max-bytes 4000
    aver why 1/train
    aver log 1/train -n 20

OUT_OF_MEMORY and TIMEOUT: see what more memory or time would do, then do it. It edits the flow's file.

    aver recover 1 --dry-run
    aver recover 1 --yes

After you fixed something else: rerun what changed, or what failed. Finished work is not repeated.

    aver watch 1 --json
    aver reinit 1 --dry-run
    aver retry 1
    aver watch 1 --exit-status

Compare requests with use, and cancel what is not needed.

    aver usage 1
    aver cancel 1
"""


MARK = "Written by `aver agent install`"
DESCRIPTION = (
    "Run batch jobs and flows of jobs with aver, on this machine or on Slurm, and find out truthfully how each ended. "
    "Use it for commands that take long, that need limits of memory or time, or that must survive this session."
)


class Place(NamedTuple):
    """Where an agent looks for skills or rules: its folder, the file in it, and the file's head."""

    folder: str
    file: str
    head: str


SKILL = f"name: aver\ndescription: {DESCRIPTION}"
PLACES = {
    "claude": Place(".claude", "skills/aver/SKILL.md", SKILL),
    "agents": Place(".agents", "skills/aver/SKILL.md", SKILL),
    "cursor": Place(".cursor", "rules/aver.mdc", f"description: {DESCRIPTION}\nalwaysApply: false"),
    "copilot": Place(".github", "instructions/aver.instructions.md", f'description: {DESCRIPTION}\napplyTo: "**"'),
}


@click.command("agent")
@click.argument("what", type=click.Choice(["guide", "install"]))
@click.option(
    "--for",
    "names",
    multiple=True,
    type=click.Choice(list(PLACES)),
    help="Install for this agent (default: those whose folder is here, else agents).",
)
def command(what: str, names: tuple[str, ...]) -> None:
    """Print a short guide for coding agents, or install it as a skill in this folder.

    `install` writes the guide to where agents look for it: claude (.claude/skills), agents (.agents/skills, of Codex
    and others), cursor (.cursor/rules), copilot (.github/instructions). Files that something else wrote are left alone.

    \b
    Examples:
      aver agent guide
      aver agent install
      aver agent install --for claude --for cursor
    """
    output = Output.standard()
    if what == "guide":
        if names:
            raise UsageError("--for is for `aver agent install`")
        for line in GUIDE.splitlines():
            output.line(line)
        return
    chosen = names or [name for name, place in PLACES.items() if os.path.isdir(place.folder)] or ["agents"]
    for name in dict.fromkeys(chosen):
        output.line(_install(PLACES[name]))


def _install(place: Place) -> str:
    """Write the skill, and return its path."""
    path = os.path.join(place.folder, place.file)
    if os.path.lexists(path):
        with naming_failures(path), open(path, encoding="utf-8", errors="replace") as file:
            if MARK not in file.read():
                raise CantWriteError(f"{path} was not written by `aver agent install`: move it, or remove it")
    text = f"---\n{place.head}\n---\n{MARK}, version {__version__}; `aver agent guide` prints it anew.\n\n{GUIDE}"
    with naming_failures(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_file(path, text.encode(), 0o644)
    return path
