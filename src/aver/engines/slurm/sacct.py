"""Ask sacct: the exact words of the call, and what its answer says.

Explicit fields, the name last. All rows of a requeued job, from a start time that the caller names, since the usual
window begins at midnight and hides what ended before. Sizes in bytes. A row that is not there may still come, and a row
without an end says nothing of how the job ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from aver.engines.slurm.commands import Commands, Reply, Trouble
from aver.engines.slurm.fields import SEPARATOR, exit_text, parse_bytes, parse_count, parse_moment, parse_span
from aver.engines.slurm.ids import parse_id
from aver.engines.slurm.records import last_line, split_records, trouble_in
from aver.engines.slurm.rows import AccountRow
from aver.engines.slurm.squeue import CouldNot, chunks

FIELDS = (
    "JobID", "JobIDRaw", "State", "ExitCode", "DerivedExitCode", "Partition", "Submit", "Start", "End", "ElapsedRaw",
    "UserCPU", "SystemCPU", "MaxRSS", "NodeList", "JobName",
)  # fmt: skip
_DISABLED = "accounting storage is disabled"
_NO_NODES = ("None assigned", "(null)", "N/A", "Unknown")


@dataclass(frozen=True, slots=True)
class Disabled:
    """This cluster keeps no accounts."""

    text: str


def ask_accounting(
    commands: Commands, ids: Sequence[int], names: Sequence[str], since: float, timeout_s: float, cluster: str = ""
) -> list[AccountRow] | Disabled | CouldNot:
    """All rows of these jobs (an array's id: all its members), of those with exactly these names, and of their steps.

    `since` is Unix time, not later than the cluster's own clock: sacct refuses a start time that is still to come.
    """
    rows: list[AccountRow] = []
    questions = [("jobs", chunk) for chunk in chunks([str(one) for one in ids])]
    questions += [("name", chunk) for chunk in chunks(names)]  # an empty list would ask for every job that there is
    for option, chunk in questions:
        args = [*arguments(since, cluster), f"--{option}={','.join(chunk)}"]
        answer = read_accounts(commands.call("sacct", args, timeout_s=timeout_s))
        if not isinstance(answer, list):
            return answer
        rows += answer
    return rows


def arguments(since: float, cluster: str = "") -> list[str]:
    """The options of every question, but for whom it asks."""
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(max(0.0, since)))
    return [
        "--duplicates", "--noheader", "--parsable2", "--noconvert", f"--delimiter={SEPARATOR}",
        f"--format={','.join(FIELDS)}", f"--starttime={start}", f"--clusters={cluster}" if cluster else "--local",
    ]  # fmt: skip


def read_accounts(reply: Reply | Trouble) -> list[AccountRow] | Disabled | CouldNot:
    """What sacct said. A row that can't be read spoils the answer."""
    if isinstance(reply, Trouble):
        return CouldNot(reply.text)
    for line in (*reply.err.splitlines(), *reply.out.splitlines()[:1]):
        if _DISABLED in line.lower() and SEPARATOR not in line:
            return Disabled(line.strip()[:500])
    if reply.status != 0:
        return CouldNot(last_line(reply.err) or last_line(reply.out) or f"sacct: exit status {reply.status}")
    if trouble := trouble_in(reply.err):
        return CouldNot(trouble)
    records, strays = split_records(reply.out, len(FIELDS))
    if any(SEPARATOR in line for line in strays) or (strays and not records):
        return CouldNot(trouble_in(reply.out) or f"sacct's answer can't be read: {strays[0][:200]!r}")
    rows = []
    for record in records:
        row = _row(record)
        if row is None:
            return CouldNot(f"sacct's answer has a row that can't be read: {'|'.join(record)[:200]!r}")
        rows.append(row)
    return rows


def _row(record: Sequence[str]) -> AccountRow | None:
    (
        id_, raw, word, exit_, derived, partition, submitted, started, ended, elapsed, user, system, maxrss, nodes, name
    ) = record  # fmt: skip
    known = parse_id(id_)
    if known is None or not word:
        return None
    own = parse_id(raw)
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
        raw_job=None if own is None else own.job,
        members=known.members,
        het=known.het,
        said="|".join(record),
    )


def _elapsed(text: str) -> float | None:
    seconds = parse_count(text)
    return parse_span(text) if seconds is None else float(seconds)
