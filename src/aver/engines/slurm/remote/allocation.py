"""Allocations on a host behind ssh: each run's folder is here, as everywhere, and executors see a copy of it there.

Orders go there and what executors write comes back, in one call for all runs. What always holds:

- An order is put there once. A call whose answer was lost may still be at work, so the same order is put again only
  when nothing of that call can run any more, and only where the host has no trace of it.
- An order is cancelled there, where executors take orders, unless it was never sent. One that never arrived leaves its
  name among the cancelled ones, so that nothing that is late can put it there.
- Files of here are changed only to what the host says. A host that does not answer changes nothing.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import re
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from aver.engines.api import AllocationAsk, Order
from aver.engines.slurm.allocation.executor import executor_script
from aver.engines.slurm.allocation.folder import CLOSE, LONGEST_SAID, SUBFOLDERS, RunFolder
from aver.engines.slurm.allocation.mirror import HostAway
from aver.engines.slurm.allocation.request import sbatch_options, step_script
from aver.engines.slurm.commands.call import Call, Commands, Trouble
from aver.engines.slurm.remote.folder_removal import FolderRemovals
from aver.engines.slurm.remote.host import Host, Layout
from aver.engines.slurm.remote.sbatch_call import copies_of, moved
from aver.engines.slurm.submit.sbatch_answer import Answer, Refusal, Unreachable, read_submission
from aver.model.record import Record

LOOK_S = 1.0
MOST_ORDERS = 200  # in one call
MOST_BYTES = 4 << 20
LATE_S = 20  # an order that is not in its place this long after its call began is not put there any more
CLOSED_THERE = "closed-there"
T = TypeVar("T")
_LINE = re.compile(r"(?P<kind>in|started|cancelled|done|allocs) (?P<rest>.+)")
_STARTED = re.compile(r"(?P<at>[0-9]{1,12}(?:\.[0-9]+)?) (?P<name>[^ ]+)")
_KEY = re.compile(r"[0-9]+_[0-9xe]+_[0-9]+_[0-9]+_[0-9]+_(?P<key>[^@/ ]+)")


class RemoteTaker(Record):
    """As `allocation.request.Taker`, for a host: environment and commands are those of a login shell there."""

    host: Host
    commands: Commands
    home: str
    timeout_s: float

    def take(self, ask: AllocationAsk, name: str, after: int | None, folder: RunFolder) -> Answer:
        """Call sbatch there."""
        layout = self.host.layout()
        if isinstance(layout, Trouble):
            return Unreachable(layout.reason, layout.text)
        there = _folder(layout, folder.run)
        try:
            script = executor_script(there, ask.headroom_s)
            words = (*self.commands.words("sbatch"), *sbatch_options(ask, name, after, f"{there}/log", there))
        except ValueError as error:
            return Refusal(f"its allocation can't be asked for: {error}")
        ready = f"{_made(there)} && rm -f -- {shlex.quote(f'{there}/{CLOSE}')} || return 1"
        reply = self.host.ssh.run_after(ready, Call(words, {}, self.timeout_s, script, umask=ask.umask))
        return read_submission(reply)

    def script(self, order: Order) -> bytes:
        layout = self.host.layout()
        if isinstance(layout, Trouble):
            raise HostAway(layout.reason, layout.text)
        there = moved(order, layout)
        script = step_script(there, layout.witness, layout.records, layout.shim)
        if copies := copies_of([there], layout.folder):
            first, _, rest = script.partition(b"\n")
            script = first + os.fsencode(f"\nmkdir -p -- {shlex.join(copies)}\n") + rest
        return script


class HostFolders:
    """A `Mirror`. `now` is a monotonic clock."""

    look_s = LOOK_S

    def __init__(self, host: Host, timeout_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._timeout_s = timeout_s
        self._now = now
        self._sent: dict[str, float] = {}  # by an order's name: until then a call may be at work that puts it there
        self._there: set[str] = set()  # names of orders that the host has, or had
        self._started_at: dict[str, float] = {}
        self._to_forget: dict[int, set[str]] = {}
        self._closing: dict[int, RunFolder] = {}
        self._late: dict[int, float] = {}  # by run: until then a call may be at work that puts orders there
        self._removals = FolderRemovals(host, timeout_s, now)

    # ---- the engine's questions ---------------------------------------------------------------------

    @property
    def is_behind(self) -> bool:
        return bool(self._closing) or self._removals.is_pending

    def attach(self, folder: RunFolder) -> None:
        """A coordinator before us may have a call under way for what is waiting."""
        with contextlib.suppress(OSError):
            for name in os.listdir(folder.path / "in"):
                self._sent[name] = self._now() + self._longest_s
        age_s = 0.0
        with contextlib.suppress(OSError):  # no order was put there after it was closed
            age_s = max(0.0, time.time() - (folder.path / CLOSE).stat().st_mtime)
        self._late[folder.run] = self._now() + self._longest_s - age_s
        if folder.is_closed and not (folder.path / CLOSED_THERE).exists():
            self._closing[folder.run] = folder

    def started_at(self, key: str) -> float | None:
        return self._started_at.get(key)

    def close(self, folder: RunFolder) -> None:
        self._removals.withdraw(folder)
        with contextlib.suppress(OSError):
            (folder.path / CLOSED_THERE).unlink(missing_ok=True)
        self._closing[folder.run] = folder

    def drop(self, folder: RunFolder) -> None:
        self._removals.add(folder, self._late.get(folder.run, 0.0))

    def forget(self, folder: RunFolder, keys: Collection[str]) -> None:
        self._to_forget.setdefault(folder.run, set()).update(keys)
        for key in keys:
            self._started_at.pop(key, None)

    def take_back(self, folder: RunFolder, names: Sequence[str]) -> set[str]:
        unsent = {name for name in names if name not in self._sent and name not in self._there}
        sent = [name for name in names if name not in unsent]
        back = {name for name in unsent if folder.take_back(name)}
        layout = self._host.layout() if sent else None
        for some in _parts(sent, MOST_ORDERS):
            if not isinstance(layout, Layout):
                break
            words = shlex.join(some)
            text = f"cd -- {shlex.quote(_folder(layout, folder.run))} || return 1\n" + _TAKE_BACK.format(names=words)
            reply = self._host.ssh.run_text(text, self._timeout_s)
            if isinstance(reply, Trouble) or reply.status != 0:
                break
            said = set(reply.out.splitlines())
            back |= {name for name in some if name in said and folder.take_back(name)}
        return back

    # ---- both ways ----------------------------------------------------------------------------------

    def sync(self, folders: Sequence[RunFolder]) -> str:
        """Orders go there after the host has said what it has."""
        self._closing = {run: folder for run, folder in self._closing.items() if folder.is_closed}
        mine = {folder.run: folder for folder in (*folders, *self._closing.values())}
        trouble = self._sync_all(mine) if mine or self._removals.is_due else ""
        if trouble:
            self._removals.put_off()
        return trouble

    def _sync_all(self, mine: dict[int, RunFolder]) -> str:
        layout = self._host.layout()
        if isinstance(layout, Trouble):
            return layout.text
        for some in _parts(sorted(mine), MOST_ORDERS):
            trouble = self._pull({run: mine[run] for run in some}, layout) or self._push(
                [mine[run] for run in some], layout
            )
            if trouble:
                return trouble
        return self._removals.go_on(layout, self._to_forget, self._closing)

    def _pull(self, folders: dict[int, RunFolder], layout: Layout) -> str:
        lines = [f"base={shlex.quote(layout.folder)}/alloc", _LIST]
        for run, folder in folders.items():
            lines.append(f"_aver_list {run} {shlex.join(sorted(self._to_forget.get(run, ())))}")
            if run in self._closing and folder.is_closed:
                lines.append(f'{_made(_folder(layout, run))} && : >"$base/{run}/{CLOSE}" && echo "closed {run}"')
        reply = self._host.ssh.run_text("\n".join([*lines, "return 0"]), self._timeout_s)
        if isinstance(reply, Trouble):
            return reply.text
        by_run: dict[int, list[str]] = {}
        found: list[str] = []
        for line in reply.out.splitlines():
            word, _, number = line.partition(" ")
            if word == "run" and number.isdecimal():
                found = by_run.setdefault(int(number), [])
            elif word == "closed" and number.isdecimal() and int(number) in folders:
                self._note_closed(folders[int(number)])
            else:
                found.append(line)
        for run, listed in by_run.items():
            if run in folders:
                self._to_forget.pop(run, None)
                trouble = self._take_in(folders[run], listed, layout)
                if trouble:
                    return trouble
        return ""

    def _note_closed(self, folder: RunFolder) -> None:
        self._closing.pop(folder.run, None)
        with contextlib.suppress(OSError):
            if folder.is_closed:
                (folder.path / CLOSED_THERE).touch()

    def _take_in(self, folder: RunFolder, lines: Iterable[str], layout: Layout) -> str:
        """Make the folder of here say what the host's says, in the order in which orders move."""
        done: dict[str, str] = {}
        nodes: dict[str, list[str]] = {}
        for line in lines:
            match = _LINE.fullmatch(line)
            if match is None:
                continue
            kind, rest = match["kind"], match["rest"]
            if kind == "in":
                self._note_there(rest)
            elif kind == "started":
                if started := _STARTED.fullmatch(rest):
                    self._take_in_start(folder, started["name"], float(started["at"]) - layout.skew_s)
            elif kind == "cancelled":
                self._note_there(rest)
                folder.take_back(rest)
            elif kind == "done":
                key, _, status = rest.partition(":")
                done[key] = status
            else:
                job, _, node = rest.partition(":")
                nodes.setdefault(job, []).append(node)
        try:
            for job, found in nodes.items():
                if job.isdecimal():
                    _write_new(folder.path / "allocs" / job, "".join(f"{one}\n" for one in found).encode())
            return self._take_in_ends(folder, done, layout)
        except OSError as error:
            return f"{folder.path}: {error.strerror}"

    def _note_there(self, name: str) -> None:
        self._there.add(name)
        self._sent.pop(name, None)

    def _take_in_start(self, folder: RunFolder, started: str, at: float) -> None:
        name = started.partition("@")[0]
        self._note_there(name)
        order = _KEY.fullmatch(name)
        if order is None:
            return
        self._started_at[order["key"]] = at
        with contextlib.suppress(OSError):
            (folder.path / "in" / name).rename(folder.path / "started" / started)

    def _take_in_ends(self, folder: RunFolder, done: dict[str, str], layout: Layout) -> str:
        new = {key: status for key, status in done.items() if not (folder.path / "done" / key).exists()}
        failed = [key for key, status in new.items() if status != "0"]
        for some in _parts(failed, MOST_ORDERS):  # what srun said is here before its end is
            text = _SAID.format(
                folder=shlex.quote(_folder(layout, folder.run)), keys=shlex.join(some), most=LONGEST_SAID
            )
            reply = self._host.ssh.run_text(text, self._timeout_s)
            if isinstance(reply, Trouble):
                return reply.text
            for line in reply.out.splitlines():
                key, _, words = line.partition(" ")
                with contextlib.suppress(binascii.Error):
                    if key in some:
                        _write_new(folder.path / "said" / key, base64.b64decode(words, validate=True))
        for key, status in new.items():
            if "/" not in key and status.isdecimal():
                _write_new(folder.path / "done" / key, f"{status}\n".encode())
        return ""

    def _push(self, folders: Sequence[RunFolder], layout: Layout) -> str:
        """Put orders there that the host has not got, and that no call may be putting there."""
        due: list[tuple[RunFolder, str]] = []
        for folder in folders:
            with contextlib.suppress(OSError):
                names = sorted(os.listdir(folder.path / "in"))
                due += [(folder, name) for name in names if name not in self._there and self._is_due(name)]
        while due:
            parts: list[tuple[int, str, str, bytes, bytes]] = []
            size = 0
            while due and len(parts) < MOST_ORDERS and size < MOST_BYTES:
                folder, name = due.pop(0)
                order = _KEY.fullmatch(name)
                try:
                    lines = (folder.path / "in" / name).read_bytes()
                    script = b"" if order is None else (folder.path / "orders" / f"{order['key']}.sh").read_bytes()
                except OSError:
                    continue  # it was taken back
                if order is not None:
                    parts.append((folder.run, order["key"], name, lines, script))
                    size += len(lines) + len(script)
            if trouble := self._put(parts, layout):
                return trouble
        return ""

    def _put(self, parts: Sequence[tuple[int, str, str, bytes, bytes]], layout: Layout) -> str:
        if not parts:
            return ""
        lines = [f"base={shlex.quote(layout.folder)}/alloc", _PUT.format(late=LATE_S)]
        lines += [f"{_made(_folder(layout, run))} || return 1" for run in dict.fromkeys(one[0] for one in parts)]
        for run, key, name, order, script in parts:
            lines.append(
                f"_aver_put {run} {shlex.quote(key)} {shlex.quote(name)} {len(order)} {len(script)} || return 1"
            )
        until = self._now() + self._longest_s
        self._sent.update((name, until) for _, _, name, _, _ in parts)
        stdin = b"".join(order + script for *_, order, script in parts)
        reply = self._host.ssh.run_text("\n".join(lines), self._timeout_s, stdin)
        if isinstance(reply, Trouble):
            for run, _, name, _, _ in parts:
                if reply.began:
                    self._late[run] = until
                else:
                    del self._sent[name]
            return reply.text
        for name in reply.out.splitlines():
            self._note_there(name)
        return "" if reply.status == 0 else f"{self._host.ssh.host}: orders could not be put there: {reply.err[-200:]}"

    def _is_due(self, name: str) -> bool:
        return self._now() >= self._sent.get(name, 0.0)

    @property
    def _longest_s(self) -> float:
        return self._host.ssh.longest_s(self._timeout_s) + LATE_S


def _folder(layout: Layout, run: int) -> str:
    return f"{layout.folder}/alloc/{run}"


def _made(folder: str) -> str:
    """A command that makes the run's folder there."""
    return "mkdir -p -m 700 -- " + " ".join(shlex.quote(f"{folder}/{name}") for name in (*SUBFOLDERS, "gone"))


def _parts(some: Sequence[T], most: int) -> Iterable[Sequence[T]]:
    return (some[first : first + most] for first in range(0, len(some), most))


def _write_new(path: Path, data: bytes) -> None:
    """Whole or not at all; what is there stays."""
    if not path.exists():
        half = path.with_name(f".{path.name}")
        half.write_bytes(data)
        half.rename(path)


_LIST = """\
_aver_list() { # RUN KEY...: forget the keys, of which the verdicts are durable, and say what there is
    cd -- "$base/$1" 2>/dev/null || return 0
    echo "run $1"
    shift
    local key one
    for key do
        for one in started/*_"$key"@* cancelled/*_"$key"; do
            [ ! -e "$one" ] || { one=${one#*/} && : >"gone/${one%%@*}"; }
        done
        rm -f -- "done/$key" "said/$key" "orders/$key.sh" started/*_"$key"@* cancelled/*_"$key"
    done
    find in -type f -printf 'in %f\\n'
    find started -type f -printf 'started %C@ %f\\n'
    find cancelled -type f -printf 'cancelled %f\\n'
    grep -r '' done | sed 's/^done./done /'
    grep -r --exclude='.*' '' allocs | sed 's/^allocs./allocs /'
}
"""

_TAKE_BACK = """\
for name in {names}; do
    if mv -- "in/$name" "cancelled/$name" 2>/dev/null || [ -e "cancelled/$name" ]; then
        echo "$name"
    else
        is_taken=
        for one in "started/$name@"* "gone/$name"; do [ ! -e "$one" ] || is_taken=1; done
        [ -n "$is_taken" ] || {{ : >"cancelled/$name" && echo "$name"; }}
    fi
done
"""

_SAID = """\
cd -- {folder} || return 1
for key in {keys}; do printf '%s ' "$key"; head -c {most} "said/$key" | base64 -w0; echo; done
"""

_PUT = """\
umask 077
_aver_since=$SECONDS
_aver_put() {{ # RUN KEY NAME SIZE SIZE: of the order's lines and of its script, which come through stdin
    local half=$base/$1/orders/.$2.$$ one
    head -c "$4" >"$half.in" && head -c "$5" >"$half.sh" || return 1
    [ "$(stat -c %s "$half.in" "$half.sh" | tr '\\n' ' ')" = "$4 $5 " ] || return 1 # the connection was cut
    for one in "$base/$1/in/$3" "$base/$1/cancelled/$3" "$base/$1/gone/$3" "$base/$1/started/$3@"*; do
        [ ! -e "$one" ] || {{ rm -f "$half.in" "$half.sh"; echo "$3"; return; }}
    done
    [ $((SECONDS - _aver_since)) -le {late} ] || return 1
    mv -f -- "$half.sh" "$base/$1/orders/$2.sh" && mv -- "$half.in" "$base/$1/in/$3" && echo "$3"
}}
"""
