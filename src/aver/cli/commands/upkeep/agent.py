"""`aver agent guide`: what a coding agent needs to know, in one page. A test executes its command lines."""

from __future__ import annotations

import click

from aver.cli.output.text import Output

GUIDE = """\
# Aver for agents

Aver runs batch jobs, alone or as a flow, and says truthfully how each ended. A run has a number (here 1), which submit
prints; a job is 1/train. stdout is the answer, stderr words about it. --json gives one document with stable keys;
null is unknown. Or use the tools of the MCP server:

    aver mcp

Look for mistakes, then submit. With --key it can be repeated: the same key is the same run.

    aver check flow.yaml
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


@click.command("agent")
@click.argument("what", type=click.Choice(["guide"]))
def command(what: str) -> None:
    """Print a short guide for coding agents.

    \b
    Examples:
      aver agent guide
    """
    output = Output.standard()
    for line in GUIDE.splitlines():
        output.line(line)
