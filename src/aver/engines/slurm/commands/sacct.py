"""Ask sacct: the exact words of the call, and what its answer says.

Explicit fields, the name last. All rows of a requeued job, from a start time that the caller names, since the usual
window begins at midnight and hides what ended before. Sizes in bytes. A row that is not there may still come, and a row
without an end says nothing of how the job ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from aver.engines.slurm.commands.call import Reply, Trouble
from aver.engines.slurm.commands.fields import SEPARATOR, exit_text, parse_bytes, parse_count, parse_moment, parse_span
from aver.engines.slurm.commands.ids import parse_id
from aver.engines.slurm.commands.lines import error_text, last_line, split_records, trouble_in
from aver.engines.slurm.commands.rows import AccountRow, Accounts, Disabled, NoAnswer

FIELDS = (
    "JobID", "JobIDRaw", "State", "ExitCode", "DerivedExitCode", "Partition", "Submit", "Start", "End", "ElapsedRaw",
    "UserCPU", "SystemCPU", "MaxRSS", "NodeList", "JobName",
)  # fmt: skip
_DISABLED = "accounting storage is disabled"
_NO_NODES = ("None assigned", "(null)", "N/A", "Unknown")


def by_ids(ids: Sequence[str], since: float, cluster: str = "") -> list[str]:
    """The call that asks for these jobs, of which there must be one at least, and their steps.

    `since` is Unix time, not later than the cluster's own clock: sacct refuses a start time that is still to come.
    """
    if not ids:
        raise ValueError("sacct without ids asks for every job that there is")
    return [*_call(since, cluster), f"--jobs={','.join(ids)}"]


def by_names(names: Sequence[str], since: float, cluster: str = "") -> list[str]:
    """The same for the jobs with exactly these names. A name with a comma can't be asked for."""
    if not names:
        raise ValueError("sacct without names asks for every job that there is")
    return [*_call(since, cluster), f"--name={','.join(names)}"]


def read_accounts(reply: Reply | Trouble) -> Accounts | Disabled | NoAnswer:
    """What sacct said."""
    if isinstance(reply, Trouble):
        return NoAnswer(reply.text)
    for line in (*reply.err.splitlines(), *reply.out.splitlines()[:1]):
        if _DISABLED in line.lower() and SEPARATOR not in line:
            return Disabled(line.strip()[:500])
    if reply.status != 0:
        return NoAnswer(error_text(reply.err) or last_line(reply.out) or f"sacct: exit status {reply.status}")
    if trouble := trouble_in(reply.err):
        return NoAnswer(trouble)
    records, strays = split_records(reply.out, len(FIELDS))
    rows = tuple(row for record in records if (row := _row(record)))
    if not rows and (records or strays):
        return NoAnswer(trouble_in(reply.out) or f"sacct's answer can't be read: {reply.out.strip()[:200]!r}")
    return Accounts(rows, len(rows) == len(records) and not any(SEPARATOR in line for line in strays))


def _call(since: float, cluster: str) -> list[str]:
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(max(0.0, since)))
    return [
        "sacct", "--duplicates", "--noheader", "--parsable2", "--noconvert", f"--delimiter={SEPARATOR}",
        f"--format={','.join(FIELDS)}", f"--starttime={start}", f"--clusters={cluster}" if cluster else "--local",
    ]  # fmt: skip


def _row(record: Sequence[str]) -> AccountRow | None:
    (
        id_, _, word, exit_, derived, partition, submitted, started, ended, elapsed, user, system, maxrss, nodes, name
    ) = record  # fmt: skip
    known = parse_id(id_)
    if known is None or not word:
        return None
    return AccountRow(
        job=known.job,
        index=known.index,
        step=known.step,
        word=word,
        exit=exit_text(exit_),
        derived=exit_text(derived),
        submitted_at=parse_moment(submitted),
        started_at=parse_moment(started),
        ended_at=parse_moment(ended),
        elapsed_s=_elapsed(elapsed),
        user_s=parse_span(user),
        sys_s=parse_span(system),
        maxrss_bytes=parse_bytes(maxrss),
        nodes="" if nodes in _NO_NODES else nodes,
        name=name,
        partition=partition,
        members=known.members,
        het=known.het,
        said="|".join(record),
    )


def _elapsed(text: str) -> float | None:
    seconds = parse_count(text)
    return parse_span(text) if seconds is None else float(seconds)
