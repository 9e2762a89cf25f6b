"""Reinitialise a settled run: compare it with its files, then ask the coordinator. For the command and for Python.

Reads the store, the run's environment and the files; the coordinator alone changes them. Values of the environment
are compared here and sent over the socket; they are never in a cause, an event or an answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from aver.client import vault
from aver.client.changes import Changes, find_changes
from aver.client.job_files import read_env
from aver.client.slurm_bin import with_commands
from aver.errors import UsageError
from aver.home import Home
from aver.model.job import FlowSpec, Submission
from aver.model.record import Record
from aver.protocol import messages
from aver.store.read.reader import Reader


class Reinit(Record):
    """The jobs that would rerun and why, with what the coordinator needs for that."""

    run: int
    changes: Changes
    values: Mapping[str, str]  # of the flow's own environment, by their digests
    inherit: tuple[str, ...]  # NAME=VALUE, or NAME for a variable that is gone

    def request(self, by: str) -> messages.Reinit:
        """Build the request to the coordinator."""
        causes = tuple((cause.job, cause.why) for cause in self.changes.causes)
        values = tuple(self.values.items())
        return messages.Reinit(self.run, causes, self.changes.flow, values, self.inherit, by)


def compare(
    home: Home, reader: Reader, run: int, flow: FlowSpec | None, inherit: Sequence[str], environment: Mapping[str, str]
) -> Reinit:
    """Compare the run with the files, with the flow as it is now, and with these variables as they are now.

    Raise UsageError if the run is not settled, if the flow has other jobs now, or if a name is not that of a variable.
    """
    sealed, values = (None, {}) if flow is None else vault.seal(home, flow)
    taken = _taken(home, run, inherit, environment)
    names = tuple(pair.partition("=")[0] for pair in taken)
    return Reinit(run, find_changes(reader, run, sealed, names), values, taken)


def flow_now(
    submission: Submission, file: str | None = None, params: Mapping[str, str] | None = None
) -> FlowSpec | None:
    """The run's part of its flow as the file has it now: the run's folder and params, but for those given here.

    `file` replaces the file that the run was submitted from. None: it came from none, or that is gone.
    Raise UsageError if the file can't be read or has mistakes.
    """
    from aver.plan.selection import without
    from aver.spec.flow.params import ParamValues  # YAML is paid for only here
    from aver.spec.load import load

    origin, flow = submission.origin, submission.flow
    path = origin.file if file is None else file
    if path is None or (file is None and not os.path.exists(path)):
        return None
    values = ParamValues(dict(params or {}), dict(flow.params))
    return without(load(path, folder=origin.folder, params=values), flow.unselected)


def _taken(home: Home, run: int, inherit: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables whose values differ from those that the run inherited."""
    for name in inherit:
        if not name or "=" in name or "\0" in name:
            raise UsageError(f"{name!r} is not a variable's name; give names only: --inherit NAME")
    if not inherit:
        return ()
    pairs = [f"{name}={value}" for name, value in environment.items()]
    now = dict(pair.partition("=")[::2] for pair in with_commands(home, pairs))
    then = read_env(home, run)
    changed = [name for name in dict.fromkeys(inherit) if now.get(name) != then.get(name)]
    return tuple(f"{name}={now[name]}" if name in now else name for name in changed)
