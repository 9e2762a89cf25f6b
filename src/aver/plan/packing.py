"""Which job may start next: packing by cpus, memory and gpus, fair between runs.

Pure. Jobs that ask for the same and share their caps wait in one lane, first come first served
within a priority; so the cost of a choice grows with the lanes, not with the jobs. Lanes take
turns: the one whose run has least running goes first. The first job that does not fit
is reserved for: what starts past it must leave its room free, so nothing big waits for ever
behind what has no higher priority.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, takewhile

from aver.model.job import PoolShares, Request
from aver.model.reasons import JOB_ARRAY_TASK_LIMIT, LICENSES, MAX_JOBS, RESOURCES
from aver.model.record import Mutable, Record, field


class Room(Record):
    """An amount of each resource. CPUs are counted in thousandths, so that sums of fractions are exact."""

    millicpus: int
    gpus: int
    mem_bytes: int

    @classmethod
    def of(cls, cpus: int, gpus: int, mem_bytes: int) -> Room:
        return cls(cpus * 1000, gpus, mem_bytes)

    @property
    def cpus(self) -> int:
        """Whole CPUs."""
        return self.millicpus // 1000

    def __add__(self, other: Room) -> Room:
        return Room(self.millicpus + other.millicpus, self.gpus + other.gpus, self.mem_bytes + other.mem_bytes)

    def __sub__(self, other: Room) -> Room:
        return Room(self.millicpus - other.millicpus, self.gpus - other.gpus, self.mem_bytes - other.mem_bytes)

    def holds(self, other: Room) -> bool:
        return self.millicpus >= other.millicpus and self.gpus >= other.gpus and self.mem_bytes >= other.mem_bytes


NOTHING = Room(0, 0, 0)


def room_of(request: Request) -> Room:
    return Room(round(request.cpus * 1000), request.gpus, request.mem_bytes or 0)


class Pools:
    """Named amounts that jobs of all runs share, such as licences: their sizes, and what running jobs have of them."""

    def __init__(self, sizes: Mapping[str, int] = {}) -> None:
        self._settings = dict(sizes)
        self.sizes = dict(sizes)
        self._used: Counter[str] = Counter()

    def resize(self, name: str, size: int | None) -> None:
        """None: as the settings have it. Who runs goes on, also where that is more than the new size."""
        if size is not None:
            self.sizes[name] = size
        elif name in self._settings:
            self.sizes[name] = self._settings[name]
        else:
            self.sizes.pop(name, None)

    def have(self, wanted: PoolShares) -> bool:
        return all(self._used[name] + amount <= self.sizes.get(name, 0) for name, amount in wanted)

    def take(self, wanted: PoolShares) -> None:
        for name, amount in wanted:
            self._used[name] += amount

    def give_back(self, wanted: PoolShares) -> None:
        for name, amount in wanted:
            self._used[name] -= amount


class Cap(Record):
    """At most `most` of the jobs that share `name` at one time."""

    name: tuple[str, int, int]
    most: int


class LaneKey(Record):
    """Jobs of one lane are alike in all that matters here. `owner` is whose turn it uses up."""

    owner: int
    room: Room
    caps: tuple[Cap, ...] = ()
    pools: PoolShares = ()


JOB_BITS = 64  # of a place: a ticket and a job in one number, which takes a third of what a tuple takes
JOB_MASK = (1 << JOB_BITS) - 1


class Lane(Mutable):
    key: LaneKey
    queues: dict[int, deque[int]] = field(default_factory=dict)  # priority -> places

    def first(self) -> tuple[int, deque[int]] | None:
        """The highest priority that has somebody waiting, and its queue."""
        for priority in sorted(self.queues, reverse=True) if len(self.queues) > 1 else list(self.queues):
            if self.queues[priority]:
                return priority, self.queues[priority]
            del self.queues[priority]
        return None


class Packer:
    """The waiting jobs, the running ones, and the room that is left."""

    def __init__(self, total: Room, most_running: int | None = None, pools: Pools | None = None) -> None:
        self.total = total
        self.pools = Pools() if pools is None else pools
        self.free = total
        self._caps: Counter[tuple[str, int, int]] = Counter()
        self._most_running = most_running
        self._running: dict[
            int, tuple[LaneKey, bool]
        ] = {}  # job -> its lane, and whether it went past the reserved one
        self._owners: Counter[int] = Counter()
        self._lanes: dict[LaneKey, Lane] = {}
        self._cpuless = 0  # lanes whose jobs take no cpus, and so may start where none is free
        self._where: dict[int, int] = {}  # waiting job -> its place
        self._behind: dict[int, LaneKey] = {}
        self._ticket = 0
        self._ahead_ticket = -(1 << 62)
        self._reserved: int | None = None
        self._reserved_priority = 0
        self._reserved_room = NOTHING
        self._beside = NOTHING  # room of running jobs that went past the reserved one

    def __len__(self) -> int:
        return len(self._where)

    @property
    def running_count(self) -> int:
        return len(self._running)

    def add(self, job: int, key: LaneKey, priority: int = 0) -> None:
        """The job waits from now on, behind those of its lane and priority."""
        self._ticket += 1
        place = self._ticket << JOB_BITS | job
        self._lane(key).queues.setdefault(priority, deque()).append(place)
        self._came(job, place, priority)

    def add_ahead(self, job: int, key: LaneKey, priority: int = 0) -> None:
        """The job was next before a restart: it waits before all that came by `add`, behind those that came so."""
        lane = self._lane(key)
        if self._reserved is not None:
            self._release_reservation()
        self._ahead_ticket += 1
        queue = lane.queues.setdefault(priority, deque())
        place = self._ahead_ticket << JOB_BITS | job
        queue.insert(sum(1 for _ in takewhile(lambda one: one < 0, queue)), place)
        self._came(job, place, priority)

    def _lane(self, key: LaneKey) -> Lane:
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key)
            self._cpuless += not key.room.millicpus
        return lane

    def _came(self, job: int, place: int, priority: int) -> None:
        self._where[job] = place
        if self._reserved is not None and priority > self._reserved_priority:
            self._release_reservation()  # nobody is reserved for while another one, of its lane even, is before it

    def is_waiting(self, job: int) -> bool:
        return job in self._where

    def remove(self, job: int) -> None:
        """The job waits no longer: cancelled, held or skipped."""
        self._where.pop(job, None)
        if self._reserved == job:
            self._release_reservation()

    def remove_all(self, jobs: Iterable[int]) -> None:
        """The jobs wait no longer."""
        where = self._where
        for job in jobs if where else ():
            where.pop(job, None)
        if not where:  # else who left before their turn are dropped one by one
            self._lanes.clear()
            self._cpuless = 0
        if self._reserved is not None and self._reserved not in where:
            self._release_reservation()

    def occupy(self, job: int, key: LaneKey) -> None:
        """The job runs already (found after a restart)."""
        self._take(job, key, past=False)

    def finish(self, job: int) -> None:
        """Release everything that the job holds."""
        entry = self._running.pop(job, None)
        if entry is None:
            self._behind.pop(job, None)
            return
        key, past = entry
        self.free += key.room
        if key.pools:
            self.pools.give_back(key.pools)
        if past and self._reserved is not None:
            self._beside -= key.room
        self._owners[key.owner] -= 1
        if not self._owners[key.owner]:
            del self._owners[key.owner]
        for cap in key.caps:
            self._caps[cap.name] -= 1
            if not self._caps[cap.name]:
                del self._caps[cap.name]

    def start_next(self) -> int | None:
        """Choose the next job to start and take its room; None when nothing more can start now."""
        is_full = self.free.millicpus <= 0 and not self._cpuless
        if is_full and self._reserved is not None:
            return None
        if self._most_running is not None and len(self._running) >= self._most_running:
            return None
        short: set[str] = set()  # pools that an earlier lane waits for: nobody goes past it there
        for lane in self._in_turn():
            job = self._head(lane)
            if job is None:
                continue
            if any(self._caps[cap.name] >= cap.most for cap in lane.key.caps):
                continue
            if wanted := lane.key.pools:
                names = {name for name, _ in wanted}
                if not short.isdisjoint(names) or not self.pools.have(wanted):
                    short |= names
                    continue
            room = lane.key.room
            past = self._reserved is not None and job != self._reserved
            if not self.free.holds(room):
                if self._reserved is None and self.total.holds(room):  # the machine may have been larger
                    self._reserved, self._reserved_priority = job, self._priority(lane)
                    self._reserved_room = room
                if is_full:
                    return None
                continue
            if past and not self._fits_beside(room):
                continue
            del self._where[job]
            self._take(job, lane.key, past)
            return job
        return None

    def heads(self) -> Iterator[tuple[int, str]]:
        """The first of each lane and why it waits, for display; all others wait for `Priority`."""
        for lane in list(self._lanes.values()):
            job = self._head(lane)
            if job is not None:
                capped = any(self._caps[cap.name] >= cap.most for cap in lane.key.caps)
                full = self._most_running is not None and len(self._running) >= self._most_running
                short = not self.pools.have(lane.key.pools)
                yield job, JOB_ARRAY_TASK_LIMIT if capped else MAX_JOBS if full else LICENSES if short else RESOURCES

    def behind(self, count: int) -> list[int]:
        """The next jobs, at most `count`, where those that wait are all of one lane and no pool is in question."""
        lanes = self._in_turn()
        return self.upcoming(count) if len(lanes) == 1 and not lanes[0].key.pools else []

    def put_behind(self, job: int) -> None:
        """A job that `behind` named waits no longer: it begins when one of its lane ends, and takes nothing before."""
        del self._where[job]
        self._behind[job] = next(iter(self._lanes))  # the only one
        if self._reserved == job:
            self._release_reservation()

    def take_room(self, job: int) -> None:
        """One of its lane has ended, and the job that was behind it begins."""
        key = self._behind.pop(job, None)
        if key is not None:
            self._take(job, key, past=False)

    def upcoming(self, count: int) -> list[int]:
        """Jobs that are likely to start next, at most `count`. Takes nothing."""
        jobs: list[int] = []
        for lane in self._in_turn():
            first = lane.first()
            if first is not None:
                upcoming = islice(first[1], count - len(jobs))
                jobs += [job for place in upcoming if self._where.get(job := place & JOB_MASK) == place]
            if len(jobs) >= count:
                break
        return jobs

    def _take(self, job: int, key: LaneKey, past: bool) -> None:
        if self._reserved == job:
            self._release_reservation()
        self._running[job] = (key, past)
        self.free -= key.room
        if key.pools:
            self.pools.take(key.pools)
        if past:
            self._beside += key.room
        self._owners[key.owner] += 1
        for cap in key.caps:
            self._caps[cap.name] += 1

    def _release_reservation(self) -> None:
        self._reserved = None
        self._beside = NOTHING
        self._running = {job: (key, False) for job, (key, _) in self._running.items()}

    def _fits_beside(self, room: Room) -> bool:
        assert self._reserved is not None
        return (self.total - self._reserved_room - self._beside).holds(room)

    @staticmethod
    def _priority(lane: Lane) -> int:
        """Of the lane's next job."""
        first = lane.first()
        assert first is not None
        return first[0]

    def _in_turn(self) -> list[Lane]:
        if len(self._lanes) == 1:
            return list(self._lanes.values())
        lanes = [lane for lane in list(self._lanes.values()) if self._head(lane) is not None]
        if len(lanes) > 1:
            lanes.sort(key=self._turn)
        return lanes

    def _turn(self, lane: Lane) -> tuple[bool, int, int, int]:
        first = lane.first()
        assert first is not None
        priority, queue = first
        job = queue[0] & JOB_MASK
        return (job != self._reserved, -priority, self._owners[lane.key.owner], queue[0])

    def _head(self, lane: Lane) -> int | None:
        """The lane's next job; those that left it before their turn are dropped here."""
        while (first := lane.first()) is not None:
            queue = first[1]
            job = queue[0] & JOB_MASK
            if self._where.get(job) == queue[0]:
                return job
            queue.popleft()
        if self._lanes.pop(lane.key, None) is not None:
            self._cpuless -= not lane.key.room.millicpus
        return None
