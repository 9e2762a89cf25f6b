"""Memory: watched by a cgroup or by looking, and the peak is no lie."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from witness_driver import Line, Slot, acts, hog, read_lines, sh, sig

MIB = 1 << 20
KILL = signal.SIGKILL
PATH = f"EPATH={os.environ['PATH']}"


def test_sampling_kills_above_the_limit(slot: Slot) -> None:
    """Without a cgroup the witness looks, kills, and says `memory`; the peak is above the limit."""
    end = slot.run("hog", f"m{60 * MIB}", *hog(120))
    assert (sig(end), acts(end), end["mem"]) == ((0, KILL), [("memory", KILL)], "sampled")
    assert end["peak"] > end["limit"] == 60 * MIB
    assert end["oom"] == 0


def test_sampling_spares_below_the_limit(slot: Slot) -> None:
    """Below the limit nothing happens, and the peak is the memory that was taken."""
    end = slot.run("fine", f"m{300 * MIB}", *hog(100, "time.sleep(1)"))
    assert (end["raw"], end["acts"], end["mem"]) == (0, [], "sampled")
    assert 95 * MIB < end["peak"] < 130 * MIB


def test_shared_pages_count_once(slot: Slot) -> None:
    """Forked processes that share pages are not counted twice, and not killed for it."""
    text = (
        "import os, time\nx = bytearray(80 << 20)\n"
        "pids = [os.fork() for _ in range(1)]\n"
        "if 0 in pids: time.sleep(0.7); os._exit(0)\n"
        "pid = os.fork()\nif pid == 0: time.sleep(0.7); os._exit(0)\n"
        "time.sleep(0.7); os.wait(); os.wait()\n"
    )
    end = slot.run("share", f"m{160 * MIB}", "a" + sys.executable, "a-I", "a-S", "a-c", "a" + text)
    assert (end["raw"], end["acts"]) == (0, [])
    assert 75 * MIB < end["peak"] < 160 * MIB


def test_memory_of_several_processes_is_added(slot: Slot) -> None:
    """The sum counts: two processes of 50 MB are above a limit of 80 MB."""
    text = "import os, time\nos.fork()\nx = bytearray(50 << 20)\ntime.sleep(60)"
    end = slot.run("sum", f"m{80 * MIB}", "a" + sys.executable, "a-I", "a-S", "a-c", "a" + text)
    assert (acts(end), end["peak"] > 80 * MIB) == ([("memory", KILL)], True)


def test_cgroup_that_cannot_be_made(slot: Slot, tmp_path: Path) -> None:
    """No cgroup: the record says sampled, and the limit holds."""
    end = slot.run("hog", f"m{60 * MIB}", f"g1 {tmp_path}/none", *hog(120))
    assert (acts(end), end["mem"]) == ([("memory", KILL)], "sampled")
    end = slot.run("plain", f"m{60 * MIB}", f"g2 {tmp_path}", "atrue")
    assert (end["raw"], end["mem"]) == (0, "sampled")
    assert not (tmp_path / "plain").exists()


def test_cgroup1_kill(slot: Slot, cgroup1: Path) -> None:
    """The kernel kills above the limit: `oom` counts it, the peak is the limit at most and not less than nearly it."""
    end = slot.run("hog", f"m{60 * MIB}", f"g1 {cgroup1}", *hog(200))
    assert (sig(end), end["mem"], end["acts"]) == ((0, KILL), "cgroup1", [])
    assert end["oom"] >= 1
    assert 50 * MIB < end["peak"] <= 60 * MIB
    assert not (cgroup1 / "hog").exists()


def test_cgroup1_kill_under_a_script_that_exits_0(slot: Slot, cgroup1: Path) -> None:
    """A process under the script is killed for memory, the script exits 0: both facts are in the record."""
    hungry = f"{sys.executable} -I -S -c 'x = bytearray(200 << 20)'; exit 0"
    end = slot.run("under", f"m{60 * MIB}", f"g1 {cgroup1}", PATH, *sh(hungry))
    assert (end["raw"], end["oom"]) == (0, 1)


def test_cgroup1_is_fresh_for_each_job(slot: Slot, cgroup1: Path) -> None:
    """The next job's counters start at 0, and left-over processes do not keep the cgroup."""
    slot.run("one", f"m{60 * MIB}", f"g1 {cgroup1}", *hog(200))
    end = slot.run("two", f"m{60 * MIB}", f"g1 {cgroup1}", PATH, *sh("setsid sleep 60 & exit 2"))
    assert (end["raw"], end["oom"], end["left"], end["mem"]) == (2 << 8, 0, 1, "cgroup1")
    assert [path.name for path in cgroup1.iterdir() if path.is_dir()] == []


def test_cgroup1_peak_leaves_page_cache_out(slot: Slot, cgroup1: Path, tmp_path: Path) -> None:
    """Written files are not the job's memory."""
    write = f"head -c 60000000 /dev/zero >{tmp_path}/big; sleep 0.3; rm {tmp_path}/big"
    end = slot.run("cache", f"m{300 * MIB}", f"g1 {cgroup1}", PATH, *sh(write))
    assert end["raw"] == 0
    assert end["peak"] < 30 * MIB


def test_cgroup2_files(slot: Slot, tmp_path: Path) -> None:
    """The v2 code path against a folder of plain files: NOT a real cgroup, which this test does not need.

    What is written and what is read can be seen; that the kernel acts on it can't.
    """
    group = tmp_path / "job"
    group.mkdir()
    for name, text in {
        "cgroup.procs": "", "cgroup.kill": "", "memory.max": "max", "memory.swap.max": "max",
        "memory.stat": "anon 7000000\nfile 99000000\nshmem 1000000\n", "memory.peak": "99000000\n",
        "memory.events": "low 0\noom 9\noom_kill 2\n",
    }.items():  # fmt: skip
        (group / name).write_text(text)
    slot.start("job", f"m{60 * MIB}", f"g2 {tmp_path}", "asleep", "a60")
    assert (group / "memory.max").read_text() == str(60 * MIB)
    assert (group / "memory.swap.max").read_text().startswith("0")
    assert (group / "cgroup.procs").read_text() == "0"
    (group / "memory.events").write_text("low 0\noom 9\noom_kill 3\n")
    slot.send("S", "kjob", "s9", "ca")
    end = slot.expect("end")
    assert (end["mem"], end["oom"]) == ("cgroup2", 1)
    assert end["peak"] == 60 * MIB
    assert (group / "cgroup.kill").read_text() == "1"


@pytest.fixture
def of_scheduler(cgroup1: Path) -> Iterator[Path]:
    """A cgroup such as a scheduler makes for job 77, with a limit."""
    folder = cgroup1 / "job_77" / "step_batch"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text(str(64 * MIB))
    yield folder
    folder.rmdir()


def run_in(folder: Path, witness: Path, record: Path, script: str, job: str = "77") -> Line:
    """The record of a script whose witness was put in this cgroup by somebody else."""
    command = [str(witness), "once", "--record", str(record), "--", "bash", "-c", script]
    enter = f'echo $$ >"{folder}/cgroup.procs" && exec "$@"'
    subprocess.run(
        ["sh", "-c", enter, "sh", *command], env={**os.environ, "SLURM_JOB_ID": job}, check=False, timeout=60
    )
    (line,) = read_lines(record)
    return line


def test_kernel_kills_in_the_cgroup_of_a_scheduler(of_scheduler: Path, witness_binary: Path, tmp_path: Path) -> None:
    """A kill for memory in the cgroup that the scheduler made is counted once, and not again for the next."""
    eat = f"{sys.executable} -I -S -c 'x = bytearray(128 << 20)'; exit 0"
    line = run_in(of_scheduler, witness_binary, tmp_path / "first", eat)
    assert (line["raw"], line["mem"], line["oom"], line["limit"]) == (0, "cgroup1", 1, None)
    assert line["peak"] > 60 * MIB
    line = run_in(of_scheduler, witness_binary, tmp_path / "second", "exit 0")
    assert (line["mem"], line["oom"]) == ("cgroup1", 0)


def test_cgroup_of_others_is_not_the_jobs(of_scheduler: Path, witness_binary: Path, tmp_path: Path) -> None:
    """A cgroup that is not that of this job may count kills of others: nothing is said about it."""
    line = run_in(of_scheduler, witness_binary, tmp_path / "record", "exit 0", job="7")
    assert (line["mem"], line["oom"]) == ("none", 0)
