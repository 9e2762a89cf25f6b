"""Removing the folders of runs from a host behind ssh, when the runs are over.

A folder goes when the host has no order and no end in it that was not read here. What is left there counts as read if
the order is no longer among ours: it goes from there when its verdict is durable. An executor that is still there
leaves when it finds its folder gone, but it is given time to leave by itself. Nothing is removed while a call may be at
work that puts orders there: it would lose the traces by which that call knows what was taken or cancelled.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Collection

from aver.engines.slurm.allocation.folder import RunFolder
from aver.engines.slurm.commands.call import Trouble
from aver.engines.slurm.remote.host import Host, Layout
from aver.model.record import Mutable

REMOVED_THERE = "removed-there"
LEAVE_S = 60  # an executor that does not say within this time that it has left was killed
AWAY_S = 60  # until the next attempt where the host does not answer
MOST_FOLDERS = 200  # in one call
_LINE = re.compile(r"(?P<kind>removed|kept|left) (?P<run>[0-9]{1,18})(?: (?P<name>.+))?")
_LEFT = re.compile(r"(?:[0-9]+_[0-9xe]+_[0-9]+_[0-9]+_[0-9]+_)?(?P<key>[^@/ ]+)(?:@.*)?")


class Removal(Mutable):
    folder: RunFolder
    due: float
    patient_until: float
    is_away: bool = False  # the host did not answer: no coordinator stays for it


class FolderRemovals:
    """`now` is a monotonic clock."""

    def __init__(self, host: Host, timeout_s: float, now: Callable[[], float]) -> None:
        self._host = host
        self._timeout_s = timeout_s
        self._now = now
        self._removals: dict[int, Removal] = {}

    @property
    def is_due(self) -> bool:
        return bool(self._due())

    @property
    def is_pending(self) -> bool:
        """Whether the coordinator should stay for one of them. Also asked for by the loop's thread."""
        return any(not one.is_away for one in list(self._removals.values()))

    def add(self, folder: RunFolder, not_before: float) -> None:
        """Nothing of the folder is read any more."""
        if not (folder.path / REMOVED_THERE).exists():
            now = self._now()
            self._removals[folder.run] = Removal(folder, max(now, not_before), now + LEAVE_S)

    def withdraw(self, folder: RunFolder) -> None:
        """The folder was in use again."""
        self._removals.pop(folder.run, None)
        with contextlib.suppress(OSError):
            (folder.path / REMOVED_THERE).unlink(missing_ok=True)

    def put_off(self) -> None:
        for one in self._due():
            one.due, one.is_away = self._now() + AWAY_S, True

    def go_on(self, layout: Layout, to_forget: dict[int, set[str]], others: Collection[int]) -> str:
        """Remove what is due, but for the folders of these other runs; why the host could not be asked, or nothing.

        `to_forget`: keys of each run that were read, which the host may not know yet. What is unread there keeps a
        folder; the next coordinator looks at it again.
        """
        self._removals = {run: one for run, one in self._removals.items() if one.folder.is_closed}
        due = [one for one in self._due() if one.folder.run not in others]
        for first in range(0, len(due), MOST_FOLDERS):
            some = {one.folder.run: one for one in due[first : first + MOST_FOLDERS]}
            lines = [f"base={shlex.quote(layout.folder)}/alloc", _REMOVE]
            for run, one in some.items():
                patience = "patient" if self._now() < one.patient_until else ""
                lines.append(f"_aver_remove {run} {shlex.join([patience, *sorted(to_forget.get(run, ()))])}")
            reply = self._host.ssh.run_text("\n".join([*lines, "return 0"]), self._timeout_s)
            if isinstance(reply, Trouble):
                return reply.text
            self._hear(reply.out.splitlines(), some, to_forget)
        return ""

    def _hear(self, lines: Collection[str], some: dict[int, Removal], to_forget: dict[int, set[str]]) -> None:
        left: dict[int, set[str]] = {}
        for line in lines:
            match = _LINE.fullmatch(line)
            run = -1 if match is None else int(match["run"])
            if match is None or run not in some:
                continue
            if match["kind"] == "left":
                left.setdefault(run, set()).add(match["name"] or "")
                continue
            self._removals.pop(run, None)
            to_forget.pop(run, None)
            if match["kind"] == "removed":
                with contextlib.suppress(OSError):
                    (some[run].folder.path / REMOVED_THERE).touch()
        for run, names in left.items():
            keys = _read_keys(some[run].folder, names)
            if keys - to_forget.get(run, set()):
                to_forget.setdefault(run, set()).update(keys)
            else:
                self._removals.pop(run, None)

    def _due(self) -> list[Removal]:
        now = self._now()
        return [one for one in self._removals.values() if one.due <= now]


def _read_keys(folder: RunFolder, names: Collection[str]) -> set[str]:
    """Keys of these files of the host; none if one of them is of an order that was not read to its end."""
    keys = {found["key"] for name in names if (found := _LEFT.fullmatch(name)) is not None}
    try:
        ours = folder.handed_over()
    except OSError:
        return set()
    return set() if keys & ours else keys


_REMOVE = """\
_aver_remove() { # RUN PATIENT KEY...: remove the folder, unless it has something of other keys; say what became of it
    local run=$1 patience=$2 key one left=
    shift 2
    rm -rf -- "$base/.$run".*
    if ! cd -- "$base/$run" 2>/dev/null; then
        [ -e "$base/$run" ] || echo "removed $run"
        return 0
    fi
    [ -e close ] || { echo "kept $run"; return 0; }
    for key do rm -f -- in/*_"$key" started/*_"$key"@* "done/$key"; done
    for one in in/* started/* done/*; do
        [ ! -e "$one" ] || { left=1; echo "left $run ${one#*/}"; }
    done
    [ -z "$left" ] || return 0
    for one in allocs/*; do
        [ -n "$patience" ] && [ -e "$one" ] && [ ! -e "allocs/.left-${one#*/}" ] && return 0 # its executor is there
    done
    cd / && mv -- "$base/$run" "$base/.$run.$$" && rm -rf -- "$base/.$run.$$" && echo "removed $run"
}
"""
