"""Cgroups: the job's above those of its steps and tasks, the witness's own, and what is found in them at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from witness_driver import Line, Slot, StartSlot, hog, is_running, sh, sig, until

from aver.judge.witness_record import parse_record

MIB = 1 << 20
KILL = signal.SIGKILL
PATH = f"EPATH={os.environ['PATH']}"
EAT = f"{sys.executable} -I -S -c 'x = bytearray(200 << 20)'"


def folders(base: Path) -> list[str]:
    return sorted(str(Path(path).relative_to(base)) for path, _, _ in os.walk(base) if Path(path) != base)


def test_the_limit_of_a_job_holds_for_its_tasks_together(cgroup1: Path, start_slot: StartSlot) -> None:
    """Two tasks of 70 MB under a job's limit of 100 MB: one is killed, and its own witness says so; the script is
    not. Nothing is left of the cgroups when the last of them has ended."""
    script, first, second = start_slot(), start_slot(), start_slot()
    of_job = (f"m{100 * MIB}", f"g1 {cgroup1}", f"L{100 * MIB} job")
    script.start("job", *of_job, "L0 script", PATH, *sh("sleep 60"))
    first.start("job.s0.t0", *of_job, "L0 s0", "L0 t0", *hog(70))
    second.start("job.s0.t1", *of_job, "L0 s0", "L0 t1", *hog(70, "time.sleep(5)"))
    assert folders(cgroup1) == ["job", "job/s0", "job/s0/t0", "job/s0/t1", "job/script"]
    killed, other = until(lambda: _ends(first, second))
    assert (sig(killed), killed["mem"], killed["oom"]) == ((0, KILL), "cgroup1", 1)
    assert (other["oom"], killed["limit"]) == (0, 100 * MIB)
    script.send("S", "kjob", "s15", "ca")
    assert script.expect("end")["oom"] == 0
    assert folders(cgroup1) == []


def _ends(*slots: Slot) -> list[Line]:
    """Both ends, the one with a kill first; the other task is ended when one was killed."""
    slots[0].send("S", "kjob.s0.t0", "s10", "cb") if any(line["ev"] == "end" for line in slots[1].lines()) else None
    ended = [line for slot in slots for line in slot.lines() if line["ev"] == "end"]
    return sorted(ended, key=lambda line: -line["oom"]) if len(ended) == len(slots) else []


def test_the_limit_of_a_step_holds_for_its_tasks_together(cgroup1: Path, start_slot: StartSlot) -> None:
    """A step's own limit is that of all its tasks, and not of each."""
    tasks = [start_slot(), start_slot()]
    for rank, task in enumerate(tasks):
        of_step = (f"m{80 * MIB}", f"g1 {cgroup1}", f"L{900 * MIB} job", f"L{80 * MIB} s0", f"L0 t{rank}")
        task.start(f"job.s0.t{rank}", *of_step, *hog(60, "time.sleep(3)"))
    assert sorted(task.expect("end")["oom"] for task in tasks) == [0, 1]
    assert folders(cgroup1) == []


INNER = "mkdir {own}/inner; echo $$ > {own}/inner/cgroup.procs; {limit}" + EAT + "; exit 0"


def test_a_kill_in_a_cgroup_that_the_job_made_is_the_jobs(cgroup1: Path, slot: Slot) -> None:
    """The job's limit is reached by a process in a cgroup inside the job's own: the kill counts, and both go."""
    script = INNER.format(own=cgroup1 / "job", limit="")
    end = slot.run("job", f"m{60 * MIB}", f"g1 {cgroup1}", PATH, *sh(script))
    assert (end["raw"], end["oom"], "inner" in end) == (0, 1, False)
    assert folders(cgroup1) == []


def test_a_kill_for_a_limit_that_the_job_set_itself_is_not_the_jobs(cgroup1: Path, slot: Slot) -> None:
    """A container inside the job has a limit of its own and reaches it: the record says so apart."""
    limit = f"echo {30 * MIB} > {cgroup1}/job/inner/memory.limit_in_bytes; "
    script = INNER.format(own=cgroup1 / "job", limit=limit)
    end = slot.run("job", f"m{600 * MIB}", f"g1 {cgroup1}", PATH, *sh(script))
    assert (end["raw"], end["oom"], end["inner"]) == (0, 0, 1)
    assert parse_record(end).inner_oom_kills == 1
    assert folders(cgroup1) == []


def test_a_kill_without_a_limit_of_the_job_is_counted(cgroup1: Path, slot: Slot) -> None:
    """In a container with a limit, a job without one: the witness's own cgroup counts the kill, for this job alone."""
    (cgroup1 / "memory.limit_in_bytes").write_text(str(60 * MIB))
    own = (f"g1 {cgroup1}", "Gslot")
    end = slot.run("first", *own, PATH, *sh(EAT + "; exit 0"))
    assert (end["raw"], end["oom"], end["mem"], end["limit"]) == (0, 1, "cgroup1", None)
    end = slot.run("second", *own, *hog(200))
    assert (sig(end), end["oom"]) == ((0, KILL), 1)
    end = slot.run("third", *own, "atrue")
    assert (end["raw"], end["oom"]) == (0, 0)
    assert folders(cgroup1) == ["slot"]
    slot.disconnect()
    assert slot.process.wait(20) == 0
    assert folders(cgroup1) == []


def test_who_is_no_descendant_is_found_by_the_cgroup(cgroup1: Path, slot: Slot) -> None:
    """A process in the cgroup that descends from nobody of the job (it joined another container's pid namespace, say)
    is ended with the job."""
    slot.run("before", f"g1 {cgroup1}", "Gslot", PATH, *sh("true"))  # what was in it a moment ago is no answer
    slot.start("job", f"g1 {cgroup1}", "Gslot", PATH, *sh("sleep 0.5"))
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    (cgroup1 / "slot" / "cgroup.procs").write_text(str(stranger.pid))
    assert slot.expect("end")["raw"] == 0
    assert stranger.wait(20) == -KILL


@pytest.mark.parametrize(("mark", "is_ended"), [(1 << 52 | 5, True), (1 << 53 | 5, False), (1 << 54 | 5, True)])
def test_who_carries_a_coordinators_mark_is_none_of_the_job(
    slot: Slot, tmp_path: Path, mark: int, is_ended: bool
) -> None:
    """A coordinator that is started inside a job, and its witnesses, have left the job's session and carry their mark:
    they are not ended, at any depth. No other process is spared."""
    script = (
        f"(setsid bash -c 'ulimit -S -x {mark}; echo $$ > {tmp_path}/part; mv {tmp_path}/part {tmp_path}/pid; "
        f"exec sleep 60' & wait) & until [ -e {tmp_path}/pid ]; do sleep 0.01; done; exit 0"
    )
    assert slot.run("job", PATH, *sh(script))["raw"] == 0
    pid = int((tmp_path / "pid").read_text())
    assert is_running(pid) is not is_ended
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, KILL)


def test_who_is_in_the_cgroup_is_the_jobs_whatever_its_mark(cgroup1: Path, slot: Slot, tmp_path: Path) -> None:
    """A coordinator leaves the job's cgroup: who stays there has only given itself such a mark."""
    script = (
        f"setsid bash -c 'ulimit -S -x {1 << 53}; echo $$ > {tmp_path}/part; mv {tmp_path}/part {tmp_path}/pid; "
        f"exec sleep 60' & until [ -e {tmp_path}/pid ]; do sleep 0.01; done; exit 0"
    )
    slot.run("job", f"g1 {cgroup1}", "Gslot", PATH, *sh(script))
    assert not is_running(int((tmp_path / "pid").read_text()))


PAIR = (f"m{100 * MIB}", f"L{100 * MIB} *", "L0 script", "Gslot", PATH)


def where(slot: Slot, key: str, *fields: str) -> str:
    """The outermost cgroup of a job, as its start line says; it has ended."""
    said = str(slot.start(key, *fields)["in"])
    slot.expect("end")
    return said


def test_a_short_job_leaves_its_cgroups_to_the_next(cgroup1: Path, slot: Slot) -> None:
    """The next one with the same limit is in the same cgroups, and its counters are its own."""
    of = (f"g1 {cgroup1}", *PAIR)
    assert where(slot, "one", *of, *sh("true")) == "slot-j0"
    assert folders(cgroup1) == ["slot", "slot-j0", "slot-j0/script"]
    assert where(slot, "two", *of, *sh("true")) == "slot-j0"
    end = slot.run("three", *of, *sh(EAT))
    assert (end["mem"], end["oom"], end["limit"], end["peak"]) == ("cgroup1", 1, 100 * MIB, 100 * MIB)
    assert folders(cgroup1) == ["slot"]
    assert (slot.run("four", *of, *sh("true"))["oom"], folders(cgroup1)[1]) == (0, "slot-j1")
    slot.disconnect()
    assert slot.process.wait(10) == 0
    assert folders(cgroup1) == []


LEFT = {
    "another limit": (f"m{90 * MIB}", f"L{90 * MIB} *", "L0 script", "Gslot", PATH, *sh("true")),
    "memory": (*PAIR, *sh("head -c 9000000 /dev/zero >/dev/shm/aver-left")),
    "a cgroup inside": (*PAIR, *sh("mkdir {base}/slot-j0/script/inner")),
    "a step": (*PAIR, *sh("mkdir -p {base}/slot-j0/s0/t0")),
    "a limit that it changed": (*PAIR, *sh(f"echo {50 * MIB} >{{base}}/slot-j0/memory.limit_in_bytes")),
    "a signal": (*PAIR, *sh("kill -9 $$")),
    "a process": (*PAIR, *sh("setsid sleep 60 & sleep 0.1")),
}


@pytest.mark.parametrize("what", LEFT)
def test_cgroups_with_something_left_in_them_are_not_used_again(cgroup1: Path, slot: Slot, what: str) -> None:
    of = (f"g1 {cgroup1}", *PAIR)
    assert where(slot, "one", *of, *sh("true")) == "slot-j0"
    slot.run("two", f"g1 {cgroup1}", *(field.replace("{base}", str(cgroup1)) for field in LEFT[what]))
    try:
        assert where(slot, "three", *of, *sh("true")) != "slot-j0"
        assert ("slot-j0" in folders(cgroup1)) == (what == "a step")
    finally:
        for path in ("slot-j0/s0/t0", "slot-j0/s0", "slot-j0"):
            with contextlib.suppress(OSError):
                (cgroup1 / path).rmdir()
        Path("/dev/shm/aver-left").unlink(missing_ok=True)


def test_a_job_that_ran_for_a_while_has_its_cgroups_alone(cgroup1: Path, slot: Slot) -> None:
    slot.run("one", f"g1 {cgroup1}", *PAIR, *sh("sleep 1.1"))
    assert folders(cgroup1) == ["slot"]


def test_who_can_not_be_ended_is_in_the_record(cgroup1: Path, start_slot: StartSlot) -> None:
    """A process that became another user's stays: the record says how many."""
    base = cgroup1 / "base"
    base.mkdir()
    os.chown(base, 65534, 65534)
    os.chown(base / "cgroup.procs", 65534, 65534)
    try:
        slot = start_slot(lambda: os.setuid(65534))
    except PermissionError:
        pytest.skip("the witness is in a folder that is closed to other users")
    slot.start("job", f"g1 {base}", "Gslot", "asleep", "a1")
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    (base / "slot" / "cgroup.procs").write_text(str(stranger.pid))
    try:
        end = slot.expect("end")
        assert (end["raw"], end["stays"]) == (0, 1)
        assert parse_record(end).stays == 1
    finally:
        stranger.kill()
        stranger.wait()
    assert slot.process.wait(20) == 0


def test_kills_around_a_job_without_a_cgroup_of_its_own(cgroup1: Path, start_slot: StartSlot) -> None:
    """A container with a limit, in which no cgroup can be made: a kill in the cgroup that the job shares is said, for
    each job that it may have hit, and for no later one."""
    (cgroup1 / "memory.limit_in_bytes").write_text(str(80 * MIB))
    slot, beside = start_slot(), start_slot()
    for one in (slot, beside):
        (cgroup1 / "cgroup.procs").write_text(str(one.process.pid))
    beside.start("beside", PATH, *sh("sleep 60"))
    end = slot.run("job", PATH, *sh(f"{EAT}; exit 0"))
    assert (end["raw"], end["oom"], end["around"]) == (0, 0, 1)
    assert parse_record(end).around_oom_kills == 1
    beside.send("S", "kbeside", "s15", "ca")
    assert beside.expect("end")["around"] == 1
    assert "around" not in slot.run("later", PATH, *sh("exit 0"))


# ---- cgroup v2 as a folder of plain files: what is written and read can be seen, not that the kernel acts on it ----


def plain_cgroup(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    texts = {
        "cgroup.procs": "", "cgroup.kill": "", "cgroup.subtree_control": "", "memory.max": "max", "pids.max": "max",
        "memory.swap.max": "max", "memory.stat": "anon 7000000\nshmem 1000000\n", "memory.peak": "9000000\n",
        "memory.events": "low 0\noom 0\noom_kill 0\n", "memory.events.local": "low 0\noom 0\noom_kill 0\n",
    }  # fmt: skip
    for name, text in {**texts, **files}.items():
        (folder / name).write_text(text)
    return folder


def run_v2(slot: Slot, base: Path, leaf: Path, *fields: str, **after: str) -> Line:
    """The end of a job in these plain files, which change while it runs."""
    slot.start("job", f"g2 {base}", *fields, "asleep", "a60")
    for name, text in after.items():
        (leaf / name.replace("_", ".", 1)).write_text(text)
    slot.send("S", "kjob", "s9", "ca")
    return slot.expect("end")


def test_v2_levels(slot: Slot, tmp_path: Path) -> None:
    """The outer level has the limit and hands its controllers down; the inner one has the process."""
    outer = plain_cgroup(tmp_path / "job")
    leaf = plain_cgroup(outer / "script")
    end = run_v2(slot, tmp_path, leaf, f"m{60 * MIB}", f"L{60 * MIB} job", "L0 script", "n500")
    assert ((outer / "memory.max").read_text(), (outer / "memory.swap.max").read_text()) == (str(60 * MIB), "0ax")
    assert (outer / "cgroup.subtree_control").read_text() in ("+memory", "+pidsry")
    assert ((leaf / "memory.max").read_text(), (leaf / "cgroup.procs").read_text()) == ("max", "0")
    assert (leaf / "pids.max").read_text() == "500"
    assert (end["mem"], end["oom"]) == ("cgroup2", 0)
    assert ((leaf / "cgroup.kill").read_text(), (outer / "cgroup.kill").read_text()) == ("1", "")


def test_v2_kill_in_an_inner_cgroup(slot: Slot, tmp_path: Path) -> None:
    """memory.events counts inner cgroups, memory.events.local does not; the limit that was reached says whose it is."""
    leaf = plain_cgroup(tmp_path / "job")
    theirs = "low 0\noom 3\noom_kill 2\n"
    end = run_v2(slot, tmp_path, leaf, f"m{60 * MIB}", memory_events=theirs)
    assert (end["oom"], end["inner"]) == (0, 2)
    shutil.rmtree(leaf)
    plain_cgroup(leaf)
    (leaf / "memory.events.local").unlink()
    end = run_v2(slot, tmp_path, leaf, f"m{60 * MIB}", memory_events=theirs)
    assert (end["oom"], "inner" in end) == (2, False)


def test_v2_kill_by_oomd(slot: Slot, tmp_path: Path) -> None:
    """systemd-oomd moves no counter of the kernel's: its mark on the cgroup or on one above it is the evidence."""
    outer = plain_cgroup(tmp_path / "job")
    leaf = plain_cgroup(outer / "script")
    try:
        os.setxattr(outer, "user.oomd_kill", b"3")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")
    end = run_v2(slot, tmp_path, leaf, f"m{60 * MIB}", f"L{60 * MIB} job", "L0 script")
    assert (end["oom"], end["oomd"], parse_record(end).oomd_kills) == (0, 3, 3)


def test_v2_cpu_time_is_that_of_all_processes(slot: Slot, tmp_path: Path) -> None:
    """The cgroup counts processes that nobody waited for."""
    leaf = plain_cgroup(
        tmp_path / "job", **{"cpu.stat": "usage_usec 9000000\nuser_usec 8000000\nsystem_usec 1000000\n"}
    )
    end = run_v2(slot, tmp_path, leaf, f"m{60 * MIB}")
    assert (end["user"], end["sys"]) == (8.0, 1.0)


@pytest.mark.parametrize(("user", "sys"), [(4_900_000, 3_000_000), (7_000_000, 900_000)])
def test_v2_cpu_time_is_never_negative(slot: Slot, tmp_path: Path, user: int, sys: int) -> None:
    """Of the cgroup that it is in itself the witness takes its own time off. The kernel divides the two into user and
    system time apart, so that one of the differences may be below zero; their sum is right."""
    leaf = plain_cgroup(tmp_path / "slot", **{"cpu.stat": "usage_usec 6\nuser_usec 5000000\nsystem_usec 1000000\n"})
    slot.run("first", f"g2 {tmp_path}", "Gslot", "atrue")
    (leaf / "cpu.stat").write_text(f"usage_usec 7\nuser_usec {user}\nsystem_usec {sys}\n")
    end = slot.run("second", f"g2 {tmp_path}", "Gslot", "atrue")
    spent = (user + sys - 6_000_000) / 1e6
    assert min(end["user"], end["sys"]) == 0
    assert spent - 0.5 < end["user"] + end["sys"] <= spent


def test_cpu_time_that_is_at_least_so_much(slot: Slot) -> None:
    """A process that does not wait for its children has their CPU time counted by nobody: the record says so."""
    text = (
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n    end = time.process_time() + 0.2\n    while time.process_time() < end: pass\n"
        "    os._exit(0)\ntime.sleep(1)"
    )
    end = slot.run("burn", "a" + sys.executable, "a-I", "a-S", "a-c", "a" + text)
    assert (end["raw"], end["cpu"]) == (0, "least")
    assert "cpu" not in slot.run("plain", "asleep", "a0.2")


@pytest.mark.parametrize("handler", ["SIG_DFL", "SIG_IGN"])
def test_cpu_time_of_children_that_the_kernel_reaped(slot: Slot, handler: str) -> None:
    """SA_NOCLDWAIT is in no file of the kernel: the time that a look found, and nobody was told of, gives it away."""
    text = (
        "import ctypes, os, signal, time\n"
        "libc = ctypes.CDLL(None)\n"
        "class Act(ctypes.Structure):\n"
        "    _fields_ = [('handler', ctypes.c_void_p), ('mask', ctypes.c_ulong * 16), ('flags', ctypes.c_int),\n"
        "                ('restorer', ctypes.c_void_p)]\n"
        f"libc.sigaction(17, ctypes.byref(Act(int(signal.{handler}), (ctypes.c_ulong * 16)(), 2, None)), None)\n"
        "reading, writing = os.pipe()\n"
        "if os.fork() == 0:\n    end = time.process_time() + 0.7\n    while time.process_time() < end: pass\n"
        "    time.sleep(4)\n    os._exit(0)\n"
        "os.close(writing)\nos.read(reading, 1)  # until the child has ended\n"
    )
    end = slot.run("burn", "a" + sys.executable, "a-I", "a-S", "a-c", "a" + text)
    assert (end["raw"], end["cpu"]) == (0, "least")
    assert 0.6 < end["user"] + end["sys"] < 1.2


def test_cpu_time_of_a_family_is_counted_once(slot: Slot) -> None:
    """Many children that are waited for while somebody looks: no look makes more of them than there was."""
    text = (
        "import os, time\nstart = time.monotonic()\nwhile time.monotonic() - start < 1.5:\n    child = os.fork()\n"
        "    if child == 0:\n        end = time.process_time() + 0.03\n        while time.process_time() < end: pass\n"
        "        os._exit(0)\n    os.waitpid(child, 0)"
    )
    end = slot.run("family", "a" + sys.executable, "a-I", "a-S", "a-c", "a" + text)
    assert end["raw"] == 0
    assert "cpu" not in end
    assert end["user"] + end["sys"] < 1.8


def test_highest_resident_size_of_who_was_not_waited_for(slot: Slot) -> None:
    """`maxrss` has also those that nobody waited for, as they were seen."""
    text = (
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n    x = bytearray(90 << 20)\n    time.sleep(0.5)\n    os._exit(0)\ntime.sleep(1)"
    )
    end = slot.run("burn", "a" + sys.executable, "a-I", "a-S", "a-c", "a" + text)
    assert end["maxrss"] > 90 * MIB


def test_memory_of_the_tasks_counts_where_it_is_sampled(start_slot: StartSlot) -> None:
    """Script and task together are over the limit, neither is alone: the script's witness, which has the limit, ends
    the job."""
    script, task = start_slot(), start_slot()
    script.start("job", f"m{100 * MIB}", *hog(60))
    task.start("job.s0.t0", f"m{100 * MIB}", *hog(60))
    script.send("N", "kjob", f"p{task.process.pid}")
    end = script.expect("end")
    assert ([act["act"] for act in end["acts"]], end["peak"] > 100 * MIB) == (["memory"], True)
    task.send("S", "kjob.s0.t0", "s9", "ca")
    assert task.expect("end")["acts"][0]["act"] == "signal"


def test_v2_kill_beyond_the_limits_of_the_job(slot: Slot, tmp_path: Path) -> None:
    """The machine's own memory was used up: the kernel killed, and no limit of the job was reached."""
    outer = plain_cgroup(tmp_path / "job")
    leaf = plain_cgroup(outer / "script")
    killed = "low 0\noom 0\noom_kill 1\n"
    levels = (f"m{60 * MIB}", f"L{60 * MIB} job", "L0 script")
    end = run_v2(slot, tmp_path, leaf, *levels, memory_events=killed)
    assert (end["oom"], end["beyond"], parse_record(end).beyond_oom_kills) == (1, 1, 1)
    shutil.rmtree(outer)
    plain_cgroup(outer, **{"memory.events.local": "low 0\noom 1\noom_kill 0\n"})
    end = run_v2(slot, tmp_path, plain_cgroup(leaf), *levels, memory_events=killed)
    assert (end["oom"], "beyond" in end) == (1, False)


def test_v2_kill_by_oomd_that_is_not_done(slot: Slot, tmp_path: Path) -> None:
    """systemd-oomd writes how often it killed before it does, and how many processes that were only afterwards."""
    leaf = plain_cgroup(tmp_path / "job")
    try:
        os.setxattr(leaf, "user.oomd_ooms", b"1")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")
    assert run_v2(slot, tmp_path, leaf, f"m{60 * MIB}")["oomd"] == 1


def test_v2_processes_that_could_not_be_started(slot: Slot, tmp_path: Path) -> None:
    """The limit is on every level, and the record says how often it was reached."""
    outer = plain_cgroup(tmp_path / "job")
    leaf = plain_cgroup(outer / "script", **{"pids.events": "max 0\n"})
    end = run_v2(slot, tmp_path, leaf, "L0 job", "L0 script", "n500", pids_events="max 7\n")
    assert ((outer / "pids.max").read_text(), (leaf / "pids.max").read_text()) == ("500", "500")
    assert (end["forks"], parse_record(end).refused_forks, end["mem"]) == (7, 7, "cgroup2")
