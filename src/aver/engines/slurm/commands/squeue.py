"""Ask squeue: the exact words of the call, and what its answer says.

One call asks for many jobs. `-O` with a suffix and no width prints every field whole and has the exit statuses, as raw
wait statuses; `-o` has none. The name comes last, since it may hold anything, also a newline. An id that slurmctld does
not know is left out of the answer; asked alone it is exit status 1 with a sentence of its own, which is an answer too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aver.engines.slurm.commands.call import Reply, Trouble
from aver.engines.slurm.commands.fields import (
    SEPARATOR,
    exit_from_raw,
    parse_count,
    parse_moment,
)
from aver.engines.slurm.commands.ids import parse_id
from aver.engines.slurm.commands.lines import error_text, last_line, split_records, trouble_in
from aver.engines.slurm.commands.rows import NoAnswer, Queue, QueueRow
from aver.engines.slurm.states import has_ended, has_started

FIELDS = (
    "JobArrayID", "JobID", "State", "Reason", "exit_code", "DerivedEC", "RestartCnt", "SubmitTime", "StartTime",
    "EndTime", "NodeList", "Name",
)  # fmt: skip
LONGEST_LIST = 60_000  # letters; one argument of a program has at most 128 KiB, also through ssh
UNKNOWN_ID = "Invalid job id specified"


def by_ids(ids: Sequence[str], cluster: str = "") -> list[str]:
    """The call that asks for these jobs. An array's id asks for all its members."""
    return [*_call(cluster), f"--jobs={','.join(ids)}"]


def by_names(names: Sequence[str], cluster: str = "") -> list[str]:
    """The call that asks for the jobs with exactly these names. A name with a comma can't be asked for."""
    return [*_call(cluster), f"--name={','.join(names)}"]


def chunks(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Parts of the list, each short enough for one call; none for an empty list."""
    start = length = 0
    for place, word in enumerate(words):
        if place > start and length + len(word) + 1 > LONGEST_LIST:
            yield words[start:place]
            start, length = place, 0
        length += len(word) + 1
    if start < len(words):
        yield words[start:]


def read_queue(reply: Reply | Trouble, asked: int) -> Queue | NoAnswer:
    """What squeue said when asked for a number of ids (0: for names)."""
    if isinstance(reply, Trouble):
        return NoAnswer(reply.text)
    if reply.status != 0:
        if asked == 1 and last_line(reply.err).endswith(f"error: {UNKNOWN_ID}"):
            return Queue(())
        return NoAnswer(error_text(reply.err) or last_line(reply.out) or f"squeue: exit status {reply.status}")
    if trouble := trouble_in(reply.err):
        return NoAnswer(trouble)
    records, strays = split_records(reply.out, len(FIELDS), end=SEPARATOR)
    rows = tuple(row for record in records if (row := _row(record)))
    if not rows and (records or strays):
        return NoAnswer(trouble_in(reply.out) or f"squeue's answer can't be read: {reply.out.strip()[:200]!r}")
    return Queue(rows, len(rows) == len(records) and not any(SEPARATOR in line for line in strays))


def _call(cluster: str) -> list[str]:
    format_ = ",".join(f"{name}:{SEPARATOR}" for name in FIELDS)
    where = f"--clusters={cluster}" if cluster else "--local"
    return ["squeue", "--all", "--array", "--noheader", "--states=all", where, f"--Format={format_}"]


def _row(record: Sequence[str]) -> QueueRow | None:
    id_, _, word, reason, exit_, derived, restarts, submitted, started, ended, nodes, name = record
    known = parse_id(id_)
    if known is None or known.step or not word:
        return None
    is_over, is_begun = has_ended(word), has_started(word)
    return QueueRow(
        job=known.job,
        index=known.index,
        word=word,
        reason=reason,
        exit=exit_from_raw(exit_) if is_over else "",
        derived=exit_from_raw(derived) if is_begun else "",
        restarts=parse_count(restarts),
        submitted_at=parse_moment(submitted),
        started_at=parse_moment(started) if is_begun else None,
        ended_at=parse_moment(ended) if is_over else None,
        nodes=nodes,
        name=name,
        members=known.members,
        het=known.het,
        said="|".join(record),
    )
