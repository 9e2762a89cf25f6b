"""Attempts on this machine, each under a witness.

The engine keeps a slot per running attempt and reuses slots whose attempt has ended. It
packs nothing and decides nothing: the caller gives an order only when there is room, and
gets back what the witnesses say. A witness that is gone is told as such only after its journal was read
to the end and the job's processes were ended.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aver.engines.api import (
    Control,
    Heard,
    NotListed,
    ObserveReply,
    Order,
    Rejected,
    Seen,
    SubmitReply,
    Submitted,
    Totals,
)
from aver.engines.local.capabilities import CgroupBase
from aver.engines.local.census import living_witnesses, runs_elsewhere
from aver.engines.local.cpu_sets import cpu_sets
from aver.engines.local.devices import Devices
from aver.engines.local.job_cgroup import job_of_task, oomd_kills
from aver.engines.local.orders import REFUSALS, Bounds, companion_frame, control_frame, heard_of_earlier, run_frame
from aver.engines.local.process import advice_on, reap, take_orphans
from aver.engines.local.slot import Ahead, Launch, Slot, restore_folder, take_behind, take_idle, without_tail, words_of
from aver.engines.local.sweep import Swept, heard_of_loss, is_same_process, sweep
from aver.engines.local.watchdog import LOOK_S, notice, tend
from aver.engines.local.witness_cgroups import WitnessCgroups
from aver.judge.witness_record import MOMENTS, parse_due, parse_moment, parse_record, parse_start
from aver.model.evidence import LimitMoved, MemoryWatch, NotTaken, Refused, RoomTaken, WitnessStart
from aver.model.record import replace

IDLE_SLOT_S = 5.0
WARM_SLOT_S = 60.0  # of one with a server, whose imports may have taken long
PROTOCOL = 11  # of a witness that knows every order of ours
HELLO_WAIT_S = 2.0
REMOVE_WAIT_S = 0.5  # a cgroup that a process has just left may be busy for a moment
WITNESS = "witness"


class LocalEngine:
    """See `aver.engines.api.Engine`."""

    name = "local"

    def __init__(
        self,
        folder: Path,
        binary: Path,
        totals: Totals,
        cgroup: CgroupBase | None,
        hides_gpus: bool = True,
        launch: Launch = Launch(),
        bounds: Bounds = Bounds(),
    ) -> None:
        self.totals = totals
        self._devices = Devices(cpu_sets(totals.cpus), hides_gpus)
        self._folder = folder
        self._cgroups = WitnessCgroups(cgroup, folder.parent)
        self._binary = os.fspath(binary)
        self._cgroup = cgroup
        self._launch = launch
        self._bounds = bounds
        self._folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._poller = select.epoll()
        self._slots: dict[int, Slot] = {}  # by descriptor
        self._by_key: dict[str, Slot] = {}
        self._idle: list[Slot] = []
        self._gone: list[Slot] = []  # witness gone, ends not all durable yet
        self._ends: dict[str, tuple[Slot, int]] = {}
        self._children: set[int] = set()  # witnesses that we started and that live
        self._dead: set[int] = set()  # those that have ended, to be reaped
        self._next_number = 1
        self._heard: list[Heard] = []
        take_orphans(1)

    def fileno(self) -> int:
        return self._poller.fileno()

    def attach(self) -> None:
        """Find the witnesses and journals that are there; the caller then hears what they say.

        A witness says hello only after it has read to its end what the last coordinator sent it: then its journal
        has the beginning of every attempt that it took. One that is stopped may say nothing for long; it takes no
        order of a coordinator that is gone.
        """
        living = living_witnesses(self._folder)
        numbers = sorted({int(path.stem) for path in self._folder.iterdir() if path.stem.isdecimal()} | {*living})
        for number in numbers:
            slot = Slot(self._folder, number)
            slot.attach(self._folder_fd, living.get(number))
            is_alive = slot.fileno() >= 0
            if is_alive:
                self._add(slot)
            self._catch_up(slot)
            if not is_alive:
                self._bury(slot, was_connected=False)
        used = self._cgroups.find_left({*living, *(slot.number for slot in self._slots.values())})
        self._next_number = max([*numbers, *used], default=0) + 1  # in whose cgroup nobody is
        deadline = time.monotonic() + HELLO_WAIT_S
        while any(not slot.has_said_hello for slot in self._slots.values()) and time.monotonic() < deadline:
            self._listen(0.1)

    def submit(self, orders: Sequence[Order]) -> list[SubmitReply]:
        replies = [self._submit(order) for order in orders]
        for slot in {self._by_key[order.key] for order in orders if order.key in self._by_key}:
            slot.flush(self._poller)
        return replies

    def _submit(self, order: Order) -> SubmitReply:
        if order.is_behind:
            return self._put_behind(order)
        try:
            slot = take_idle(self._idle, order) or self._open_slot()
        except OSError as error:
            return Rejected(order.key, f"can't start a witness: {error.strerror}{advice_on(error)}")
        try:
            of_witness = self._cgroups.name(order.key, slot.number)
            fields = self._devices.take(order)
            of_job = self._by_key.get(job_of_task(order.key) or "")
            outer = (of_job and of_job.job_cgroup) or ""
            frame = run_frame(order, self._cgroup, of_witness, slot.durable_offset, fields, self._bounds, outer)
            slot.gather(frame, order.streams)
        except (ValueError, OverflowError, OSError) as error:
            self._idle.append(slot)
            self._devices.release(order.key)
            return Rejected(order.key, str(error))
        if slot.durable_offset == slot.read_offset:  # the witness truncates its journal
            slot.durable_offset = slot.read_offset = slot.untruncated = 0
            slot.cut_off |= slot.ended
            slot.ended.clear()
        slot.take(order, of_witness)
        self._by_key[order.key] = slot
        return Submitted(order.key)

    def _put_behind(self, order: Order) -> SubmitReply:
        """Give the order to the witness of one of its lane; without one it is not taken."""
        slot = take_behind(self._slots.values(), order)
        if slot is None or slot.key is None:
            self._tell_not_taken(order.key)
            return Submitted(order.key)
        cpus = self._devices.of(slot.key)
        try:
            of_witness = self._cgroups.name(order.key, slot.number)
            fields = self._devices.fields(order, cpus)
            slot.gather(run_frame(order, self._cgroup, of_witness, slot.durable_offset, fields, self._bounds))
        except (ValueError, OverflowError, OSError) as error:
            return Rejected(order.key, str(error))
        slot.ahead.append(Ahead(order, of_witness, cpus))
        self._by_key[order.key] = slot
        return Submitted(order.key)

    def _go_on(self, slot: Slot) -> None:
        """The attempt of the slot has ended: its witness begins with the next one, or has nothing to do."""
        if slot.connection is None or not slot.has_said_hello:  # its journal may go on
            return
        if not slot.ahead:
            self._rest(slot)
            return
        order, of_witness, cpus = slot.ahead.popleft()
        self._devices.hold(order.key, cpus)
        slot.take(order, of_witness)
        slot.has_room_untold = True

    def _take_dropped(self, slot: Slot, key: str) -> None:
        """An order that waited in the witness, which did not begin with it and never will."""
        kept = deque(one for one in slot.ahead if one.order.key != key)
        if len(kept) < len(slot.ahead):
            slot.ahead = kept
        elif slot.key == key and not slot.has_begun:
            slot.key = None
            self._devices.release(key)
            self._go_on(slot)
        else:
            return
        self._by_key.pop(key, None)
        self._tell_not_taken(key)

    def _tell_not_taken(self, key: str) -> None:
        self._heard.append(Heard(key, "engine", "the job before it takes long", NotTaken(time.time())))

    def _open_slot(self) -> Slot:
        if os.fstat(self._folder_fd).st_nlink == 0:
            restore_folder(self._folder, self._folder_fd)
        slot = Slot(self._folder, self._next_number)
        self._next_number += 1
        try:
            slot.start(self._binary, self._folder_fd, self._launch)
        except OSError:
            slot.remove_files()
            raise
        self._children.add(slot.witness_pid or 0)
        self._add(slot)
        return slot

    def _add(self, slot: Slot) -> None:
        self._slots[slot.fileno()] = slot
        self._poller.register(slot, select.EPOLLIN)

    def observe(self, keys: Sequence[str]) -> list[ObserveReply]:
        return [Seen(key) if key in self._by_key or key in self._ends else NotListed(key) for key in keys]

    def control(self, controls: Sequence[Control]) -> None:
        for control in controls:
            slot = self._by_key.get(control.key)
            if slot is not None and slot.connection is not None:
                slot.send(control_frame(control), self._poller)
                if slot.key == control.key and control.verb in ("cancel", "time_out") and slot.cancelled_at is None:
                    slot.cancelled_at = time.monotonic()
                if slot.is_of_earlier_version and (said := heard_of_earlier(control)) is not None:
                    self._heard.append(said)

    def adopt(self, before: str, key: str) -> None:
        """Never: this engine starts nothing by itself."""

    def heard(self) -> list[Heard]:
        self._listen(0)
        heard, self._heard = self._heard, []
        return heard

    def _listen(self, timeout_s: float) -> None:
        for fd, events in self._poller.poll(timeout_s):
            slot = self._slots.get(fd)
            if slot is None:
                continue
            if events & select.EPOLLOUT:
                slot.flush(self._poller)
            lines, is_alive = slot.receive()
            self._take_all(slot, lines)
            if not is_alive:
                was_connected = slot.connection is not None
                self._forget(slot)
                self._catch_up(slot)
                self._bury(slot, was_connected)

    def _take_all(self, slot: Slot, lines: Sequence[bytes]) -> None:
        """Take lines of a witness, from its connection or its journal. An end says what the start before it said."""
        for at, line in enumerate(lines, 1):
            if at == len(lines) or not slot.is_over(line, lines[at]):
                self._take(slot, line)
        if slot.has_room_untold:
            slot.has_room_untold = False
            if slot.key is not None:
                self._heard.append(Heard(slot.key, "engine", "", RoomTaken(time.time())))

    def _take(self, slot: Slot, line: bytes) -> None:
        """Take one line. One that no witness writes is no evidence: of an end it says that there was one, not which."""
        try:
            self._take_words(slot, words_of(line), line.decode("ascii"))
        except (ValueError, KeyError, TypeError):
            slot.note_damage(line)
            if slot.is_end(line):
                self._tell_vanished(slot, None)
                self._go_on(slot)

    def _take_words(self, slot: Slot, words: dict[str, Any], text: str) -> None:
        event = words["ev"]
        if event == "end":
            self._take_end(slot, words, text)
        elif event == "start":
            start = parse_start(words)
            if start.key == slot.key:
                slot.note_start(start, words.get("in", ""))
                self._add_companion(start.key, start.witness_pid)
                self._heard.append(Heard(start.key, WITNESS, text, start))
        elif event == "hello":
            slot.witness_pid = words["witness"]
            slot.has_said_hello = True
            slot.note_cgroup(words.get("in", ""))
            slot.is_of_earlier_version = words.get("protocol") != PROTOCOL
            if slot.ended:  # it may have taken an order, and cut its journal, since we read it: read it again
                slot.cut_off |= slot.ended
                slot.ended.clear()
                slot.read_offset = 0
            is_known = (slot.key is not None and words["journal"] == slot.read_offset) or self._catch_up(slot)
            if is_known and words["key"] is None and slot.key is not None and slot.has_begun:
                self._tell_vanished(slot, None)
            elif words["key"] not in (None, slot.key, *slot.ended, *slot.cut_off):  # its beginning can't be read
                self._begin(slot, words["key"], "")
            slot.job_pid = words["pid"]
            slot.kill_wait_s = float(words.get("wait", slot.kill_wait_s))
            if slot.key is None:
                self._rest(slot)
            elif words["key"] == slot.key:
                due_s = slot.due_s = parse_due(words)
                start = WitnessStart(slot.key, words["pid"], words["witness"], words["start"], due_s=due_s)
                self._heard.append(Heard(slot.key, WITNESS, text, start))
        elif event == "begin" and words["key"] not in slot.cut_off:
            self._begin(slot, words["key"], words.get("cpus", ""))
        elif event == "due" and words["key"] == slot.key:
            slot.due_s = parse_due(words)
            self._heard.append(Heard(words["key"], WITNESS, text, LimitMoved(slot.due_s)))
        elif event in MOMENTS and words["key"] == slot.key:
            if event == "limit":
                slot.cancelled_at = slot.cancelled_at or time.monotonic()
            self._heard.append(Heard(words["key"], WITNESS, text, parse_moment(words)))
        elif event == "dropped":
            self._take_dropped(slot, words["key"])
        elif event == "error" and words["text"] in REFUSALS:
            self._take_refusal(slot, words["text"])

    def _begin(self, slot: Slot, key: str, cpus: str) -> None:
        """The witness runs this attempt: the one before it has ended."""
        if slot.key not in (None, key) and slot.has_begun:
            self._tell_vanished(slot, None)
        slot.key = key
        slot.has_begun = True
        slot.ahead = deque(one for one in slot.ahead if one.order.key != key)
        self._by_key[key] = slot
        if not self._devices.of(key) and job_of_task(key) is None:
            self._devices.hold(key, cpus)
        if slot in self._idle:
            self._idle.remove(slot)

    def _add_companion(self, key: str, witness_pid: int) -> None:
        """Tell the witness of a job whose memory is sampled of this witness of a task of it."""
        of_job = job_of_task(key) or ""
        if (slot := self._by_key.get(of_job)) is not None and slot.watch is MemoryWatch.SAMPLED:
            slot.send(companion_frame(of_job, witness_pid), self._poller)

    def _take_end(self, slot: Slot, words: dict[str, object], text: str) -> None:
        record = parse_record(words)
        if record.key in slot.cut_off:
            return  # the witness did not live to cut its journal
        if record.key != slot.key and record.key not in slot.ended:
            raise ValueError("the end of an attempt that this witness was not given")
        size = words["size"]
        if isinstance(size, int):
            slot.read_offset = max(slot.read_offset, size)
        if record.key in self._ends:
            return
        self._ends[record.key] = (slot, slot.read_offset)
        slot.ended.add(record.key)
        slot.unsettled.add(record.key)
        age_s = 0.0 if record.over_s is None else max(0.0, time.monotonic() - record.over_s)
        self._heard.append(Heard(record.key, WITNESS, without_tail(text), record, age_s))
        self._by_key.pop(record.key, None)
        self._devices.release(record.key)
        if slot.key == record.key:
            slot.key = None
            slot.job_pid = None
            self._go_on(slot)

    def _take_refusal(self, slot: Slot, text: str) -> None:
        """The witness did not take the order: it never began."""
        if slot.key is None or slot.has_begun:
            return
        said = f"its witness refused the order: {text}"
        self._heard.append(Heard(slot.key, WITNESS, text, Refused(time.time(), said)))
        self._by_key.pop(slot.key, None)
        self._devices.release(slot.key)
        slot.key = None
        self._go_on(slot)

    def _rest(self, slot: Slot) -> None:
        if slot.is_of_earlier_version:  # it does not know all that an order may say: it leaves
            self._forget(slot)
            self._bury(slot, was_connected=True)
        elif slot not in self._idle:
            slot.idle_since = time.monotonic()
            self._idle.append(slot)

    def _catch_up(self, slot: Slot) -> bool:
        """Take what the journal has; False if it can't be read now."""
        lines = slot.read_journal()
        self._take_all(slot, lines or ())
        return lines is not None

    def _forget(self, slot: Slot) -> None:
        """Let go of the connection."""
        if slot.fileno() >= 0:
            self._slots.pop(slot.fileno(), None)
            with contextlib.suppress(OSError):
                self._poller.unregister(slot)
        slot.disconnect()
        if slot in self._idle:
            self._idle.remove(slot)

    def _bury(self, slot: Slot, was_connected: bool) -> None:
        """The witness is gone and its journal is read: tell what is left to tell."""
        if slot.is_ours and slot.witness_pid is not None:
            self._children.discard(slot.witness_pid)
            self._dead.add(slot.witness_pid)
            reap(self._dead)
        self._cgroups.leave(slot.cgroup_name, slot.kept_cgroup)
        for one in slot.ahead:
            self._by_key.pop(one.order.key, None)
            self._tell_not_taken(one.order.key)
        slot.ahead.clear()
        unread = slot.order if slot.key is not None and not slot.has_begun else None
        if unread is not None:  # its journal has no beginning of it: it never ran
            self._by_key.pop(unread.key, None)
            self._devices.release(unread.key)
            slot.key = None
        if slot.key is not None:
            session = slot.job_pid
            if session is not None and not was_connected and not is_same_process(session, slot.job_started_at):
                session = None
            if runs_elsewhere(slot.key, self._folder):
                swept = Swept(0, 0)
            else:
                folders = self._cgroups.of(slot.key, slot.number, slot.job_cgroup)
                swept = sweep(slot.key, session, folders, adopted=slot.is_ours, spared=self._children)
                swept = replace(swept, oomd_kills=oomd_kills(folders))
                self._cgroups.remove(folders, REMOVE_WAIT_S)
            self._tell_vanished(slot, swept)
        if slot.unsettled:
            self._gone.append(slot)
        else:
            slot.remove_files()
        if unread is not None and slot.cancelled_at is not None and job_of_task(unread.key) is None:
            self._tell_not_taken(unread.key)  # the cancellation went with its witness
        elif unread is not None:
            self._give_again(unread)

    def _tell_vanished(self, slot: Slot, swept: Swept | None) -> None:
        """Nobody will ever say how the slot's attempt ended. None: what its witness said of that can't be read."""
        assert slot.key is not None
        if swept is None:
            slot.note_loss()
        key, slot.key = slot.key, None
        self._heard.append(heard_of_loss(key, slot.witness_pid, swept))
        self._by_key.pop(key, None)
        self._devices.release(key)
        self._ends[key] = (slot, slot.read_offset)
        slot.unsettled.add(key)

    def _give_again(self, order: Order) -> None:
        """Its witness is gone and never took it. Its descriptors may be closed by now, their numbers other files."""
        if order.streams:
            text = "its witness ended before it took the order"
        elif isinstance(reply := self.submit([replace(order, is_behind=False)])[0], Rejected):  # it has its room
            text = reply.text
        else:
            return
        self._heard.append(Heard(order.key, "engine", text, Refused(time.time(), text)))

    def settle(self, keys: Sequence[str]) -> None:
        for key in keys:
            known = self._ends.pop(key, None)
            if known is None:
                continue
            slot, offset = known
            slot.unsettled.discard(key)
            if not slot.unsettled:  # else the journal has an end that must not be cut off yet
                slot.durable_offset = max(slot.durable_offset, offset)
            if not slot.unsettled and slot.connection is None and slot in self._gone:
                self._gone.remove(slot)
                slot.remove_files()

    def tidy(self) -> float | None:
        """Look after the witnesses, and let those go that have been idle for a while.

        Return in how many seconds to call again, None: never.
        """
        busy = [slot for slot in self._slots.values() if slot.key is not None]
        for slot in busy:
            self._tend(slot)
        now = time.monotonic()
        for slot in [slot for slot in self._idle if not slot.unsettled]:
            if now - slot.idle_since < (WARM_SLOT_S if slot.warm else IDLE_SLOT_S):
                continue
            self._forget(slot)  # the witness sees the end of its connection and leaves
            self._bury(slot, was_connected=True)
        reap(self._dead)
        self._cgroups.remove_left(0.0)
        is_needed = self._idle or self._dead or self._cgroups.left
        return LOOK_S if busy else IDLE_SLOT_S if is_needed else None

    def _tend(self, slot: Slot) -> None:
        assert slot.key is not None
        if (held := notice(slot)) is not None:
            self._heard.append(Heard(slot.key, "engine", held.text, held))
        tend(slot, self._cgroups.of(slot.key, slot.number, slot.job_cgroup))

    def close(self) -> None:
        for slot in list(self._slots.values()):
            is_idle = slot in self._idle and not slot.unsettled
            self._forget(slot)
            if is_idle:
                slot.remove_files()
                self._cgroups.leave(slot.cgroup_name, slot.kept_cgroup)
        self._cgroups.remove_left(REMOVE_WAIT_S)
        self._poller.close()
        os.close(self._folder_fd)
        take_orphans(0)
