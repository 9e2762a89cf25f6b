"""The run that a key stands for: a client that asks again, and one that gives its own key, gets the same run."""

from __future__ import annotations

import contextlib
import hmac
import os
from collections.abc import Iterator, Sequence

from aver.coordinator.state.machine import Machine
from aver.errors import CantWriteError, UsageError
from aver.home import Home
from aver.model.codec import dumps
from aver.model.job import Request, Submission
from aver.model.record import Record, replace
from aver.protocol.messages import Sbatch, Submitted
from aver.store.read.reader import Reader
from aver.store.secrets import home_key

DIGEST_HEX = 32
MOST_SHOWN = 5  # differences that are named


def with_content(home: Home, submission: Submission) -> Submission:
    """The submission with a digest of what it asks for."""
    asked = [submission.flow, submission.engine, submission.host, submission.allocation, submission.origin.folder]
    return _with_digest(home, submission, asked)


def with_call(home: Home, submission: Submission, request: Sbatch) -> Submission:
    """The same of a call of sbatch, as it was typed: times in it may be relative."""
    asked = [request.options, request.script, request.name, request.path, request.args, submission.origin.folder]
    return _with_digest(home, replace(submission, key=request.key), asked)


def _with_digest(home: Home, submission: Submission, asked: Sequence[object]) -> Submission:
    """Keyed: there may be secrets in what was asked. Empty, and equal to nothing, if the home's key is damaged."""
    content = ""
    if submission.key:
        with contextlib.suppress(CantWriteError):
            text = f"[{','.join(map(dumps, asked))}]"  # one by one: a flow without null is written in one go
            digest = hmac.digest(home_key(os.fspath(home.path)), text.encode(), "sha256")
            content = digest.hex()[:DIGEST_HEX]
    return replace(submission, content=content)


def find_known(machine: Machine, reader: Reader | None, submission: Submission) -> Submitted | None:
    """The run that was submitted with this key, durable or about to be; UsageError if it was something else."""
    for run in machine.runs.values():
        if run.submission.key == submission.key:
            _check_same(run.number, run.submission, submission)
            return Submitted(run.number, run.job_number(0), run.job_count, lower_limits=())
    if reader is None:
        return None
    with reader:
        row = reader.run_by_key(submission.key)
        stored = None if row is None else reader.submission(row.id)
    if row is None or stored is None:
        return None
    _check_same(row.id, stored, submission)
    return Submitted(row.id, row.first_job, row.jobs, lower_limits=())


def _check_same(number: int, known: Submission, asked: Submission) -> None:
    if not (known.content and asked.content):
        raise UsageError(
            f"the key {asked.key!r} is that of run {number}; whether that is the same can't be compared, since the "
            "home's file env/key is or was damaged: look at the run, or choose another key"
        )
    if known.content != asked.content:
        raise UsageError(
            f"the key {asked.key!r} is that of run {number}, which is not the same ({_difference(known, asked)}): "
            "choose another key, or submit the same again"
        )


def _difference(known: Submission, asked: Submission) -> str:
    """What of the two is not the same, by name: values may be secret."""
    found = []
    if known.origin.folder != asked.origin.folder:
        found.append(f"it was submitted in {known.origin.folder}")
    if (known.engine, known.host, known.allocation) != (asked.engine, asked.host, asked.allocation):
        found.append("another engine")
    before, now = ({spec.name: spec for spec in one.flow.jobs} for one in (known, asked))
    found += [f"{name} is new" for name in now if name not in before]
    found += [f"{name} is gone" for name in before if name not in now]
    for name in before.keys() & now.keys():
        if names := [*_fields(before[name], now[name])]:
            found.append(f"{name}: {', '.join(names)}")
    rest = [one for one in _fields(known.flow, asked.flow) if one not in ("jobs", "is single", "defaults")]
    found += [", ".join(rest)] if rest else []
    more = f" and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
    return "; ".join(sorted(found)[:MOST_SHOWN]) + more or "its script or options"


def _fields(one: Record, other: Record) -> Iterator[str]:
    """The names of the fields in which the two differ; of a request, those of its own."""
    for name in one.__struct_fields__:
        before, now = getattr(one, name), getattr(other, name)
        if isinstance(before, Request) and isinstance(now, Request):
            yield from _fields(before, now)
        elif before != now:
            yield name.removesuffix("_bytes").removesuffix("_s").removesuffix("_at").replace("_", " ")
