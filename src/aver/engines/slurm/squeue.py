"""Ask squeue: the exact words of the call, and what its answer says.

One call asks for many jobs. `-O` with a suffix and no width prints every field whole and has the exit statuses, as raw
wait statuses; `-o` has none. The name comes last, since it may hold anything, also a newline. An id that slurmctld does
not know is left out of the answer; asked alone it is exit status 1 with a sentence of its own, which is an answer too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aver.engines.slurm.commands import Commands, Reply, Trouble
from aver.engines.slurm.fields import (
    ENDED,
    SEPARATOR,
    STARTED,
    exit_from_raw,
    first_word,
    parse_count,
    parse_moment,
)
from aver.engines.slurm.ids import parse_id
from aver.engines.slurm.records import last_line, split_records, trouble_in
from aver.engines.slurm.rows import QueueRow

FIELDS = (
    "JobArrayID", "JobID", "State", "Reason", "exit_code", "DerivedEC", "RestartCnt", "SubmitTime", "StartTime",
    "EndTime", "NodeList", "Name",
)  # fmt: skip
LONGEST_LIST = 60_000  # letters; one argument of a program has at most 128 KiB, also through ssh
UNKNOWN_ID = "Invalid job id specified"


@dataclass(frozen=True, slots=True)
class CouldNot:
    """The question was not answered. Moves nothing and ages nothing."""

    text: str


def ask_queue(
    commands: Commands, ids: Sequence[int], names: Sequence[str], timeout_s: float, cluster: str = ""
) -> list[QueueRow] | CouldNot:
    """All rows of these jobs (an array's id: all its members) and of those with exactly these names.

    What is not among them is not in the queue. A name with a comma can't be asked for.
    """
    rows: list[QueueRow] = []
    questions = [("jobs", chunk) for chunk in chunks([str(one) for one in ids])]
    questions += [("name", chunk) for chunk in chunks(names)]
    for option, chunk in questions:
        args = [*arguments(cluster), f"--{option}={','.join(chunk)}"]
        answer = read_queue(commands.call("squeue", args, timeout_s=timeout_s), len(chunk) if option == "jobs" else 0)
        if isinstance(answer, CouldNot):
            return answer
        rows += answer
    return rows


def arguments(cluster: str = "") -> list[str]:
    """The options of every question, but for whom it asks."""
    format_ = ",".join(f"{name}:{SEPARATOR}" for name in FIELDS)
    where = f"--clusters={cluster}" if cluster else "--local"
    return ["--all", "--array", "--noheader", "--states=all", where, f"--Format={format_}"]


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


def read_queue(reply: Reply | Trouble, asked_ids: int) -> list[QueueRow] | CouldNot:
    """What squeue said when it was asked for so many ids (0: for names). A row that can't be read spoils the answer."""
    if isinstance(reply, Trouble):
        return CouldNot(reply.text)
    if reply.status != 0:
        if asked_ids == 1 and last_line(reply.err).endswith(f"error: {UNKNOWN_ID}"):
            return []
        return CouldNot(last_line(reply.err) or last_line(reply.out) or f"squeue: exit status {reply.status}")
    if trouble := trouble_in(reply.err):
        return CouldNot(trouble)
    records, strays = split_records(reply.out, len(FIELDS), end=SEPARATOR)
    if any(SEPARATOR in line for line in strays) or (strays and not records):
        return CouldNot(trouble_in(reply.out) or f"squeue's answer can't be read: {strays[0][:200]!r}")
    rows = []
    for record in records:
        row = _row(record)
        if row is None:
            return CouldNot(f"squeue's answer has a row that can't be read: {'|'.join(record)[:200]!r}")
        rows.append(row)
    return rows


def _row(record: Sequence[str]) -> QueueRow | None:
    id_, raw, word, reason, exit_, derived, restarts, submitted, started, ended, nodes, name = record
    known = parse_id(id_)
    if known is None or known.step or not word:
        return None
    has_ended = first_word(word) in ENDED
    has_started = has_ended or first_word(word) in STARTED
    return QueueRow(
        job=known.job,
        index=known.index,
        raw_job=parse_count(raw),
        word=word,
        reason=reason,
        exit=exit_from_raw(exit_) if has_ended else "",
        derived=exit_from_raw(derived) if has_started else "",
        restarts=parse_count(restarts),
        submitted_at=parse_moment(submitted),
        started_at=parse_moment(started) if has_started else None,
        ended_at=parse_moment(ended) if has_ended else None,
        nodes=nodes,
        name=name,
        members=known.members,
        het=known.het,
        said="|".join(record),
    )
