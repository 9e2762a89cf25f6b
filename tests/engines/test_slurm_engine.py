"""What the Slurm engine does when answers are late, lost or come back, with commands that a test answers for."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from aver.engines.api import Control, CouldNotAsk, Heard, Order, Seen
from aver.engines.slurm.batches import Batch, Shelf
from aver.engines.slurm.commands.call import Commands
from aver.engines.slurm.commands.fields import SEPARATOR
from aver.engines.slurm.engine import SlurmEngine
from aver.engines.slurm.submit.sbatch_call import Hander
from aver.engines.slurm.track.evidence import Settle
from aver.engines.slurm.track.exit_records import Records
from aver.engines.slurm.track.pace import Pace
from aver.errors import UnreachableError
from aver.model.evidence import (
    AccountingSaid,
    CancelledBefore,
    CancelUnheard,
    DeadlinePassed,
    Evidence,
    HeldBack,
    LeftQueue,
    NeverSeen,
    NobodySaid,
    NotTaken,
    QueueSaid,
    Refused,
    StartedAgain,
    Taken,
    WitnessRecord,
)
from aver.model.exit import ExitStatus
from aver.model.job import Request
from aver.model.record import replace
from node_witness import witness_at

SAYS = """#!/bin/bash
name=$(basename "$0")
echo "$name $*" >>{folder}/calls
if [ -e {folder}/$name.does ]; then . {folder}/$name.does; fi
cat {folder}/$name.says 2>/dev/null
exit 0
"""
PACE = Pace(least_s=0.02, most_s=0.05, trouble_most_s=0.05, retry_least_s=0.05, retry_most_s=0.1, timeout_s=20.0)


class Site:
    """Commands that print what a file says, or do what another one does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("bin", "batches", "records"):
            (folder / name).mkdir(parents=True)
        for name in ("sbatch", "squeue", "sacct", "scontrol", "scancel"):
            path = folder / "bin" / name
            path.write_text(SAYS.format(folder=folder))
            path.chmod(0o755)
        self.says("sbatch", "7\n")
        self.engines: list[SlurmEngine] = []
        self.heard: list[Heard] = []

    def engine(
        self, settle: Settle, pace: Pace = PACE, timeout_s: float = 20.0, left: type[Records] = Records
    ) -> SlurmEngine:
        commands = Commands(path=f"{self.folder / 'bin'}:/usr/bin:/bin")
        records = self.folder / "records"
        hander = Hander(
            lambda: commands,
            witness=witness_at("/no"),
            records=str(records),
            shim="/no",
            own_folder="/no",
            timeout_s=timeout_s,
        )
        shelf = Shelf(self.folder / "batches")
        engine = SlurmEngine(shelf, commands, hander, left(records), settle, pace, lambda text: None)
        engine.attach()
        self.engines.append(engine)
        return engine

    def says(self, name: str, text: str) -> None:
        (self.folder / f"{name}.part").write_text(text)
        (self.folder / f"{name}.part").replace(self.folder / f"{name}.says")

    def does(self, name: str, text: str) -> None:
        (self.folder / f"{name}.part").write_text(text)
        (self.folder / f"{name}.part").replace(self.folder / f"{name}.does")

    def calls(self, name: str) -> list[str]:
        try:
            lines = (self.folder / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [line for line in lines if line.split(" ")[0] == name]

    def wait(self, is_there: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not is_there():
            for engine in self.engines:
                self.heard += engine.heard()
            assert time.monotonic() < end, (self.heard, self.calls("squeue")[-3:])
            time.sleep(0.01)

    def hear(self, kind: type[Evidence], key: str = "k1") -> None:
        self.wait(lambda: any(isinstance(one.evidence, kind) and one.key == key for one in self.heard))

    def polls(self, more: int) -> None:
        """Wait until so many questions more were asked and answered."""
        until = len(self.calls("squeue")) + more
        self.wait(lambda: len(self.calls("squeue")) > until)

    def has(self, kind: type[Evidence]) -> bool:
        return any(isinstance(one.evidence, kind) for one in self.heard)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path / "site")
    yield found
    for engine in found.engines:
        engine.close()


def order(key: str, group: str = "") -> Order:
    return Order(
        key=key, args=("true",), folder="/", env_file=None, env=(), umask=0o22, limits=(), request=Request(),
        stdin=None, stdout=None, stderr=None, append=False, warning=None, kill_wait_s=1.0, name="train", group=group,
    )  # fmt: skip


def queue_row(job: str, word: str, name: str, restarts: int = 0) -> str:
    number = job.partition("_")[0]
    fields = [job, number, word, "None", "0", "0", str(restarts), "N/A", "N/A", "N/A", "n1", name]
    return SEPARATOR.join(fields) + SEPARATOR + "\n"


def account_row(job: str, word: str, name: str, submit: float, end: str = "Unknown") -> str:
    submitted = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(submit))
    number = job.partition("_")[0]
    fields = [job, number, word, "0:0", "0:0", "main", submitted, submitted, end, "1", "00:00", "00:00", "", "n1", name]
    return SEPARATOR.join(fields) + "\n"


def test_an_answer_that_takes_long_to_be_lost_is_not_asked_for_in_the_past(site: Site) -> None:
    """sbatch hung and was killed: the time before that, in which nobody could list its job, proves nothing."""
    engine = site.engine(Settle(unsure_s=1.5), timeout_s=2.0)
    engine.submit([order("k0")])
    site.says("squeue", queue_row("7", "RUNNING", "train.k0"))
    site.hear(QueueSaid, "k0")
    site.does("sbatch", "exec sleep 30")
    engine.submit([order("k1")])
    site.wait(lambda: any(one.key == "k1" for one in site.heard))
    site.polls(4)
    assert not site.has(NotTaken), "Slurm may list it in a moment"
    site.says("squeue", queue_row("7", "RUNNING", "train.k0") + queue_row("8", "RUNNING", "train.k1"))
    site.hear(Taken, "k1")


def lose(site: Site, key: str, made_at: float) -> None:
    """A coordinator was killed between sbatch and its answer."""
    Shelf(site.folder / "batches").put(Batch(f"train.{key}", (key,), made_at))


def test_accounting_that_comes_back_is_believed_after_a_while(site: Site) -> None:
    """After a restart sacct answers with silence first: that is no proof, however long the queue has answered."""
    made_at = time.time() - 3600
    lose(site, "k1", made_at)
    site.does("sacct", 'echo "sacct: error: Problem talking to the database" >&2; exit 1')
    site.engine(Settle(unsure_s=1.0))
    end = time.monotonic() + 1.5
    site.wait(lambda: time.monotonic() > end)
    site.does("sacct", "")
    answers = len(site.calls("sacct"))
    site.wait(lambda: len(site.calls("sacct")) > answers + 3)
    assert not site.has(NotTaken)
    site.says("sacct", account_row("9", "COMPLETED", "train.k1", made_at, "2026-11-16T01:00:00"))
    site.hear(Taken)


def test_an_sbatch_that_is_at_it_is_waited_for(site: Site) -> None:
    """While an sbatch of a killed coordinator may hand the job over, the queue's silence says nothing."""
    lose(site, "k1", time.time())
    child = subprocess.Popen(["/bin/bash", "-c", "read line", "--job-name=train.k1"], stdin=subprocess.PIPE)
    with child:
        site.engine(Settle(unsure_s=0.5))
        end = time.monotonic() + 1.0
        site.wait(lambda: time.monotonic() > end)
        assert not site.has(NotTaken)
        child.communicate(b"\n")
    site.polls(3)
    assert not site.has(NotTaken), "it may have handed it over at its end"
    site.hear(NotTaken)


def test_the_loop_is_woken_by_what_comes_and_by_nothing_else(site: Site) -> None:
    """A wake-up that comes after its evidence was taken is taken too: the loop does not turn for nothing."""
    engine = site.engine(Settle())
    os.eventfd_write(engine.fileno(), 1)
    assert engine.heard() == []
    assert select.select([engine], [], [], 0)[0] == []


def test_a_thread_that_waits_for_sbatch_keeps_its_descriptor(site: Site) -> None:
    """The number is not given to another file while somebody may still write to it."""
    engine = site.engine(Settle())
    site.does("sbatch", "sleep 4")
    engine.submit([order("k1")])
    site.wait(lambda: bool(site.calls("sbatch")))
    engine.close()
    site.engines.remove(engine)
    assert os.readlink(f"/proc/self/fd/{engine.fileno()}") == "anon_inode:[eventfd]"


def test_a_cancellation_that_does_not_reach_slurm_is_passed_on_again(site: Site) -> None:
    """The controller was away when scancel asked: it is asked again until it has heard, and no longer."""
    engine = site.engine(Settle())
    engine.submit([order("k1")])
    site.says("squeue", queue_row("7", "RUNNING", "train.k1"))
    site.hear(QueueSaid)
    site.does("scancel", 'echo "scancel: error: Unable to contact slurm controller" >&2; exit 8')
    engine.control([Control("k1", "cancel")])
    site.wait(lambda: len(site.calls("scancel")) >= 3)
    site.does("scancel", "")
    site.polls(3)
    heard = len(site.calls("scancel"))
    site.polls(5)
    assert len(site.calls("scancel")) == heard
    assert {call.split()[-1] for call in site.calls("scancel")} == {"7"}


def test_a_scancel_that_hides_its_error_was_not_heard(site: Site) -> None:
    """An older scancel exits 0 though the controller does not understand it: sent again, and told once."""
    engine = site.engine(Settle())
    engine.submit([order("k1")])
    site.says("squeue", queue_row("7", "RUNNING", "train.k1"))
    site.hear(QueueSaid)
    site.does("scancel", 'echo "scancel: error: Kill job error on job id 7: Incompatible versions of client" >&2')
    engine.control([Control("k1", "cancel")])
    site.wait(lambda: len(site.calls("scancel")) >= 3)
    site.hear(CancelUnheard)
    site.does(
        "scancel", 'echo "scancel: error: Kill job error on job id 7: Job/step already completing or completed" >&2'
    )
    site.polls(3)
    heard = len(site.calls("scancel"))
    site.polls(5)
    assert len(site.calls("scancel")) == heard
    told = [one.said for one in site.heard if isinstance(one.evidence, CancelUnheard)]
    assert [text.partition(": ")[0] for text in told] == ["scancel did not reach Slurm"]
    assert "Incompatible versions" in told[0]


@pytest.mark.parametrize(("left_s", "kind"), [(30.0, DeadlinePassed), (600.0, Refused)])
def test_a_deadline_that_can_not_be_kept_is_refused_by_slurm(site: Site, left_s: float, kind: type[Evidence]) -> None:
    """In the words for a wrong time limit: whether it is the deadline follows from the job's own time limit."""
    why = "Requested time limit is invalid (missing or exceeds some limit)"
    site.does("sbatch", f'echo "sbatch: error: Batch job submission failed: {why}" >&2; exit 1')
    late = replace(order("k1"), request=Request(time_s=60), deadline_at=time.time() + left_s)
    site.engine(Settle()).submit([late])
    site.hear(kind)


def test_what_has_ended_is_not_cancelled_under_its_old_id(site: Site) -> None:
    """Gone from the queue, its id may be another's: nothing is sent."""
    engine = site.engine(Settle())
    engine.submit([order("k1")])
    site.says("squeue", queue_row("7", "RUNNING", "train.k1"))
    site.hear(QueueSaid)
    site.says("squeue", "")
    site.hear(LeftQueue)
    engine.control([Control("k1", "cancel")])
    site.polls(3)
    assert site.calls("scancel") == []


def test_a_damaged_shelf_does_not_say_that_nothing_was_handed_over(site: Site) -> None:
    """What may be in a file that is damaged is not known; a file that can't be read stops the start."""
    shelf = site.folder / "batches"
    (shelf / "k1.json").write_text('{"name": "train.k1", "keys"')
    lose(site, "k2", time.time())
    replies = site.engine(Settle()).observe(["k1", "k2", "k3"])
    assert [type(reply) for reply in replies] == [CouldNotAsk, Seen, CouldNotAsk]
    (shelf / "k1.json").unlink()
    (shelf / "k1.json").mkdir()
    with pytest.raises(UnreachableError, match=r"k1\.json: Is a directory"):
        site.engine(Settle())


def test_members_of_an_array_that_slurm_starts_again(site: Site) -> None:
    """Each keeps its own place and its own count of starts, also after a restart of ours."""
    name = "train.k1+3"
    engine = site.engine(Settle())
    engine.submit([order("k1", "g"), order("k2", "g"), order("k3", "g")])
    site.says("squeue", "".join(queue_row(f"7_{index}", "RUNNING", name) for index in range(3)))
    site.hear(QueueSaid, "k3")
    site.says("squeue", "".join(queue_row(f"7_{index}", "PENDING", name, min(index, 1)) for index in range(3)))
    site.hear(StartedAgain, "k2")
    site.hear(StartedAgain, "k3")
    engine.adopt("k2", "k2b")
    engine.adopt("k3", "k3b")
    site.hear(QueueSaid, "k2b")
    site.hear(QueueSaid, "k3b")
    engine.close()
    site.engines.clear()
    site.heard.clear()
    site.says("squeue", "".join(queue_row(f"7_{index}", "RUNNING", name, min(index, 1)) for index in range(3)))
    site.engine(Settle())
    for key, member in (("k1", "7_0"), ("k2b", "7_1"), ("k3b", "7_2")):
        site.hear(QueueSaid, key)
        assert [one.evidence.id for one in site.heard if isinstance(one.evidence, Taken) and one.key == key] == [member]


AWAY = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
FULL = "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: " + (
    "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
)
NO_ARRAY = "sbatch: error: Batch job submission failed: Invalid job array specification"


@pytest.mark.parametrize("said", [AWAY, FULL])
def test_a_slurm_that_takes_nothing_is_asked_once_for_all(site: Site, said: str) -> None:
    """Jobs that are alike wait together: one call finds out, and a cancellation does not wait for the others' calls."""
    pace = replace(PACE, retry_least_s=600.0, retry_most_s=600.0)
    engine = site.engine(Settle(), pace)
    site.does("sbatch", f"cat >&2 <<'END'\n{said}\nEND\nexit 1")
    keys = [f"k{number}" for number in range(20)]
    engine.submit([order(key) for key in keys])
    for key in keys:
        site.hear(HeldBack, key)
    assert len(site.calls("sbatch")) == 1
    engine.control([Control("k7", "cancel")])
    site.hear(CancelledBefore, "k7")
    assert len(site.calls("sbatch")) == 1


def test_what_waits_is_handed_over_when_slurm_is_back(site: Site) -> None:
    """All of it, one after the other; and that it waits for the same reason is said once."""
    engine = site.engine(Settle())
    site.does("sbatch", f"echo '{AWAY}' >&2; exit 1")
    keys = [f"k{number}" for number in range(5)]
    engine.submit([order(key) for key in keys])
    site.wait(lambda: len(site.calls("sbatch")) >= 5)
    site.does("sbatch", "")
    for key in keys:
        site.hear(Taken, key)
    held = Counter(one.key for one in site.heard if isinstance(one.evidence, HeldBack))
    assert held == Counter(keys)


def test_questions_do_not_wait_for_the_last_order(site: Site) -> None:
    """Many orders are handed over in turns: what runs is looked after in between."""
    engine = site.engine(Settle(), replace(PACE, at_once_s=0.1))
    site.does("sbatch", "sleep 0.1")
    engine.submit([order(f"k{number}") for number in range(30)])
    site.wait(lambda: len(site.calls("squeue")) >= 3)
    assert len(site.calls("sbatch")) < 30
    site.hear(Taken, "k29")


def test_a_limit_on_arrays_that_is_lower_than_it_was(site: Site) -> None:
    """MaxArraySize was changed: the members go in smaller arrays, and none of them fails."""
    engine = site.engine(Settle())
    refuse = f"echo '{NO_ARRAY}' >&2; exit 1"
    site.does("sbatch", f"for word; do case $word in --array=0-0|--array=0-1) ;; --array=*) {refuse} ;; esac; done")
    keys = [f"k{number}" for number in range(5)]
    engine.submit([order(key, "g") for key in keys])
    for key in keys:
        site.hear(Taken, key)
    assert not site.has(Refused)


def test_what_slurm_started_again_was_there(site: Site) -> None:
    """It left the queue before anybody asked for its second start: nobody says that Slurm never had it."""
    engine = site.engine(Settle(ask_accounting_s=0.0, never_seen_s=0.0, long_s=0.3))
    engine.submit([replace(order("k1"), requeues=True)])
    site.says("squeue", queue_row("7", "RUNNING", "train.k1"))
    site.hear(QueueSaid)
    site.says("squeue", queue_row("7", "PENDING", "train.k1", 1))
    site.hear(StartedAgain)
    site.says("squeue", "")
    engine.adopt("k1", "k1b")
    site.hear(NobodySaid, "k1b")
    assert not site.has(NeverSeen)


def test_late_evidence_on_a_job_of_last_month_is_waited_for(site: Site) -> None:
    """A week is counted from the time when nobody knew, not from its submission."""
    made_at = time.time() - 30 * 86400
    batch = Batch("train.k1", ("k1",), made_at, id=7)
    Shelf(site.folder / "batches").put(batch)
    site.engine(Settle(stable_s=0.1, long_s=0.2))
    site.hear(NobodySaid)
    site.polls(3)
    site.says("sacct", account_row("7", "COMPLETED", "train.k1", made_at, "2026-11-16T01:00:00"))
    site.hear(AccountingSaid)


def test_records_are_removed_by_their_attempts(tmp_path: Path) -> None:
    """All of an attempt, script, starts and tasks, and nothing of another one whose key begins alike."""
    names = ["k1.r0", "k1.r1", "k1.r1.s0.t3", "k10.r0", "k1.rx", "k2.r0", "other"]
    for name in names:
        (tmp_path / name).touch()
    Records(tmp_path).remove(["k1", "k2"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k1.rx", "k10.r0", "other"]


@pytest.mark.parametrize(("config", "said"), [("ClusterName = x\nMinJobAge = 300 sec\n", NeverSeen), ("", NobodySaid)])
def test_without_accounting_a_job_may_have_been_forgotten(site: Site, config: str, said: type[Evidence]) -> None:
    """Taken and never listed: that Slurm lost it is said only where the queue was asked before it could forget."""
    site.does("sacct", 'echo "Slurm accounting storage is disabled" >&2; exit 1')
    site.says("scontrol", config)
    engine = site.engine(Settle(ask_accounting_s=0.0, never_seen_s=0.2, long_s=0.5))
    engine.submit([order("k1")])
    site.hear(said)
    told = [type(one.evidence) for one in site.heard if isinstance(one.evidence, (NeverSeen, NobodySaid))]
    assert told == [said]


def test_late_evidence_is_asked_for_slowly(site: Site) -> None:
    """A job of which nobody knew costs no question to accounting in every poll of those that run."""
    engine = site.engine(Settle(stable_s=0.0, long_s=0.2), replace(PACE, trouble_most_s=600.0))
    site.says("squeue", queue_row("7", "RUNNING", "train.k1"))
    engine.submit([order("k1")])
    site.hear(QueueSaid)
    site.says("squeue", "")
    site.hear(NobodySaid)
    site.says("sbatch", "8\n")
    site.says("squeue", queue_row("8", "RUNNING", "train.k2"))
    engine.submit([order("k2")])
    site.hear(QueueSaid, "k2")
    asked = len(site.calls("sacct"))
    site.polls(10)
    assert len(site.calls("sacct")) <= asked + 1


class PassedOver(Records):
    """A folder whose first listing lacks the record of a task, which is older than its script's."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.listings = 0

    def new(self, names: Collection[str]) -> Iterator[tuple[str, str, str, WitnessRecord]]:
        self.listings += 1
        for name in names:
            if self.listings == 1:
                yield name, "", "script", WitnessRecord(name, 2, ExitStatus(), 10.0, 5.0)
            elif self.listings == 2:
                yield name, ".s0.t0", "task", WitnessRecord(f"{name}.s0.t0", 3, ExitStatus(7), 11.0, 1.0)


def test_a_task_is_heard_before_its_script(site: Site) -> None:
    """A listing that was under way may have the script's record and lack a task's: it is looked again first."""
    engine = site.engine(Settle(), left=PassedOver)
    engine.submit([order("k1")])
    site.wait(lambda: any(one.said == "script" for one in site.heard))
    said = [one.said for one in site.heard if one.source == "witness"]
    assert said == ["task", "script"]


def test_what_a_killed_coordinator_was_writing_is_removed(tmp_path: Path) -> None:
    """A file that never came to its place means nothing; it does not stay for ever."""
    half = tmp_path / "k1.sh.0123abcd.tmp"
    half.write_bytes(b"#!/bin")
    shelf = Shelf(tmp_path)
    shelf.put(Batch("train.k1", ("k1",), 1.0))
    assert [batch.keys for batch in shelf.load()] == [("k1",)]
    assert [path.name for path in tmp_path.iterdir()] == ["k1.json"]
