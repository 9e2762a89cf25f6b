"""Memory of whole jobs: kills and peaks, under a real coordinator and a real witness."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.engines.api import Order, Totals
from aver.engines.local.capabilities import CgroupBase
from aver.engines.local.census import living_witnesses
from aver.engines.local.engine import LocalEngine
from aver.engines.local.job_cgroup import place_of
from aver.engines.local.orders import RLIMITS, SRUN_BYTES, Bounds, run_frame
from aver.judge.local import judge
from aver.model.evidence import MemoryWatch, Rules, WitnessRecord
from aver.model.job import Request
from aver.model.record import replace
from aver.model.states import State
from live_home import LiveHome, wait_for

MIB = 1 << 20
MEMORY = Path("/sys/fs/cgroup/memory")
_numbers = itertools.count()


def eat(mib: int, then: str = "") -> str:
    return f"{sys.executable} -I -S -c 'x = bytearray({mib} << 20){then}'"


@pytest.fixture
def container() -> Iterator[Path]:
    """A cgroup with a limit of 400 MB, as a container has."""
    folder = MEMORY / f"aver-container-{os.getpid()}-{next(_numbers)}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(400 * MIB))
    except OSError as error:
        pytest.skip(f"no v1 memory cgroup can be made: {error}")
    yield folder
    for inner, _, _ in os.walk(folder, topdown=False):
        wait_for(lambda inner=inner: _is_removed(inner), f"{inner} is empty")  # type: ignore[misc]


def _is_removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True  # by the witness, which left since
    except OSError:
        return False
    return True


@pytest.mark.parametrize(("then", "state"), [("; exit 0", "OUT_OF_MEMORY"), ("", "OUT_OF_MEMORY")])
def test_a_kill_in_a_limited_container(container: Path, aver_home: Path, tmp_path: Path, then: str, state: str) -> None:
    """A job without --mem whose process the kernel kills for the container's limit is OUT_OF_MEMORY, also under
    exit 0; the next job in its slot is not."""
    for script, expected in ((eat(900) + then, state), ("exit 0", "COMPLETED")):
        done = subprocess.run(
            [sys.executable, "-m", "aver", "run", "--json", "--", "sh", "-c", script],
            env={**os.environ, "AVER_HOME": str(aver_home)}, cwd=tmp_path, capture_output=True, text=True,
            timeout=120, check=False, preexec_fn=lambda: (container / "cgroup.procs").write_text(str(os.getpid())),
        )  # fmt: skip
        assert f'"state": "{expected}"' in done.stdout.replace('":"', '": "'), done.stdout + done.stderr
    LiveHome(aver_home, tmp_path).end_everything()


def test_the_peak_is_the_highest_that_is_known(aver_home: Path, tmp_path: Path) -> None:
    """Memory that was there for a moment is not shown as a few MB."""
    live = LiveHome(aver_home, tmp_path)
    number = live.run_text(eat(300))
    live.settle([number])
    peak = live.attempt(number).peak_bytes
    assert peak is not None
    assert 290 * MIB < peak < 400 * MIB


class Desk:
    """The engine of a machine that gives no cgroup, unless it is given one."""

    def __init__(
        self, folder: Path, witness: Path, bounds: Bounds = Bounds(), cgroup: CgroupBase | None = None
    ) -> None:
        self.engine = LocalEngine(folder, witness, Totals(4, 0, 1 << 40), cgroup, bounds=bounds)
        self.engine.attach()
        self.records: dict[str, WitnessRecord] = {}
        self.started: set[str] = set()

    def submit(self, key: str, script: str, mem_bytes: int | None) -> None:
        order = Order(
            key=key, args=("/bin/sh", "-c", script), folder="/", env_file=None, env=(f"PATH={os.environ['PATH']}",),
            umask=0o22, limits=(), request=Request(mem_bytes=mem_bytes), stdin=None, stdout=None, stderr=None,
            append=False, warning=None, kill_wait_s=1.0,
        )  # fmt: skip
        self.engine.submit([order])

    def listen(self) -> None:
        select.select([self.engine], [], [], 0.1)
        for one in self.engine.heard():
            words = json.loads(one.said)
            self.started |= {one.key} if words.get("ev") == "start" else set()
            if isinstance(one.evidence, WitnessRecord):
                self.records[one.key] = one.evidence

    def record(self, key: str) -> WitnessRecord:
        wait_for(lambda: self.listen() or key in self.records, f"the record of {key}")  # type: ignore[func-returns-value]
        return self.records[key]


@pytest.fixture
def desk(tmp_path: Path, witness_binary: Path) -> Iterator[Desk]:
    folder = tmp_path / "witness"
    folder.mkdir()
    desk = Desk(folder, witness_binary)
    yield desk
    desk.engine.close()


def test_no_job_gets_a_cgroup_in_which_another_left_a_process(
    container: Path, tmp_path: Path, witness_binary: Path
) -> None:
    """Its witness and its coordinator have gone, who could not end it: the next job has nothing to do with it."""
    folder = tmp_path / "witness"
    folder.mkdir()
    left = container / f"0123abcd.w1-{place_of(tmp_path)}"
    left.mkdir()
    with subprocess.Popen(["sleep", "100"], start_new_session=True) as stays:
        (left / "cgroup.procs").write_text(str(stays.pid))
        desk = Desk(folder, witness_binary, cgroup=CgroupBase(1, str(container)))
        desk.submit("0123abcd.1.1.00000000", "exit 0", None)
        record = desk.record("0123abcd.1.1.00000000")
        assert (record.left_over, record.stays, stays.poll()) == (0, 0, None)
        stays.kill()
    wait_for(lambda: desk.engine.tidy() is None or not left.exists(), "the cgroup that was left is removed")
    desk.engine.close()
    assert not left.exists()


def test_the_cgroup_of_a_witness_that_was_killed_between_two_jobs_is_removed(
    container: Path, tmp_path: Path, witness_binary: Path
) -> None:
    """Its journal is still there, and names no attempt."""
    folder = tmp_path / "witness"
    folder.mkdir()
    (folder / "7.log").touch()
    left = container / f"0123abcd.w7-{place_of(tmp_path)}"
    left.mkdir()
    desk = Desk(folder, witness_binary, cgroup=CgroupBase(1, str(container)))
    desk.engine.tidy()
    desk.engine.close()
    assert not left.exists()


@pytest.mark.parametrize("is_idle", [True, False])
def test_nothing_is_left_of_a_killed_witness_that_keeps_cgroups(
    container: Path, tmp_path: Path, witness_binary: Path, is_idle: bool
) -> None:
    """Killed with a job in the cgroups that it kept, or with none: what was in them is ended, and they are removed."""
    folder = tmp_path / "witness"
    folder.mkdir()
    desk = Desk(folder, witness_binary, cgroup=CgroupBase(1, str(container)))
    desk.submit("0123abcd.1.1.00000000", "exit 0", 100 * MIB)
    assert desk.record("0123abcd.1.1.00000000").watch is MemoryWatch.CGROUP1
    kept = container / f"0123abcd.w1-{place_of(tmp_path)}-j0"
    assert (kept / "script").is_dir()
    if not is_idle:
        desk.submit("0123abcd.2.1.00000000", "setsid sleep 100", 100 * MIB)
        wait_for(lambda: (kept / "script" / "cgroup.procs").read_text().count("\n") > 1, "the job is in them")
    os.kill(next(iter(living_witnesses(folder).values())), signal.SIGKILL)

    def is_over() -> bool:
        desk.listen()
        desk.engine.tidy()
        return not kept.exists()

    wait_for(is_over, "its cgroups are removed")
    desk.engine.close()


def test_sampling_does_not_lie(desk: Desk) -> None:
    """A burst over the limit is killed, or said: never a plain completion, and never a peak of a few KB."""
    for number in range(5):
        desk.submit(f"burst{number}", eat(96), 60 * MIB)
        record = desk.record(f"burst{number}")
        verdict = judge([record], Rules())
        assert verdict is not None
        assert verdict.state is State.OUT_OF_MEMORY or "exceeded its memory limit: peak" in verdict.warnings[0]
        assert record.highest is not None
        assert verdict.state is State.OUT_OF_MEMORY or record.highest[0] > 90 * MIB


def test_where_memory_is_only_sampled_each_process_may_have_a_limit(tmp_path: Path, witness_binary: Path) -> None:
    """`memory_rlimit = "data"`: what a process asks for beyond the job's limit it does not get."""
    folder = tmp_path / "witness"
    folder.mkdir()
    desk = Desk(folder, witness_binary, Bounds(rlimit=RLIMITS["data"]))
    desk.submit("burst", eat(300), 100 * MIB)
    desk.submit("small", eat(30), 100 * MIB)
    codes = [record.exit and record.exit.code for record in (desk.record("burst"), desk.record("small"))]
    desk.engine.close()
    assert codes == [1, 0]


def test_the_bounds_of_the_settings_are_in_the_order() -> None:
    """Processes are counted where there is cgroup v2, also of jobs without `mem`; a lower limit of the user's stays."""
    order = Order(
        key="k", args=("true",), folder="/", env_file=None, env=(), umask=0o22, limits=((2, 50 * MIB, -1),),
        request=Request(), stdin=None, stdout=None, stderr=None, append=False, warning=None, kill_wait_s=1.0,
    )  # fmt: skip
    bounds = Bounds(processes=500, rlimit=2)
    v2 = run_frame(order, CgroupBase(2, "/c"), "w", 0, bounds=bounds).split(b"\0")
    assert {b"n500", b"L0 *", b"L0 script"} <= {*v2}
    v1 = run_frame(order, CgroupBase(1, "/c"), "w", 0, bounds=bounds).split(b"\0")
    assert not [field for field in v1 if field[:1] in (b"n", b"L")]
    limited = replace(order, request=Request(mem_bytes=60 * MIB))
    assert f"l2 {50 * MIB} {60 * MIB}".encode() in run_frame(limited, None, "w", 0, bounds=bounds).split(b"\0")


def test_an_srun_alone_does_not_count_against_its_own_limit() -> None:
    """Where memory is sampled the limit is for srun and its tasks together, so srun's own part is added to it."""
    order = Order(
        key="k", args=("true",), folder="/", env_file=None, env=(), umask=0o22, limits=(),
        request=Request(mem_bytes=60 * MIB), stdin=None, stdout=None, stderr=None, append=False, warning=None,
        kill_wait_s=1.0, is_srun=True,
    )  # fmt: skip
    assert f"m{60 * MIB + SRUN_BYTES}".encode() in run_frame(order, None, "w", 0).split(b"\0")
    in_cgroup = run_frame(order, CgroupBase(1, "/c"), "w", 0).split(b"\0")
    assert not [field for field in in_cgroup if field[:1] == b"m"]


def test_sampling_adds_the_tasks_to_their_job(desk: Desk) -> None:
    """Script and task are over the job's limit together: the job is ended for memory, though neither is alone."""
    desk.submit("job", eat(60, '; __import__("time").sleep(60)'), 100 * MIB)
    wait_for(lambda: desk.listen() or "job" in desk.started, "the job's start")  # type: ignore[func-returns-value]
    desk.submit("job.s0.t0", eat(60, '; __import__("time").sleep(60)'), 100 * MIB)
    verdict = judge([desk.record("job")], Rules())
    assert verdict is not None
    assert verdict.state is State.OUT_OF_MEMORY
    assert "job.s0.t0" not in desk.records


def test_sampling_counts_a_task_once(desk: Desk) -> None:
    """The peak of the script is its own: that of the task is in the task's record."""
    nap = '; __import__("time").sleep(4)'
    desk.submit("job", eat(20, nap), 400 * MIB)
    wait_for(lambda: desk.listen() or "job" in desk.started, "the job's start")  # type: ignore[func-returns-value]
    desk.submit("job.s0.t0", eat(80, nap), 400 * MIB)
    peaks = [desk.record(key).peak_bytes or 0 for key in ("job", "job.s0.t0")]
    assert 20 * MIB <= peaks[0] < 60 * MIB
    assert 80 * MIB <= peaks[1] < 120 * MIB


def test_script_and_steps_had_no_more_than_their_limit(aver_home: Path, tmp_path: Path) -> None:
    """Their peaks add up to more than the limit that the job never exceeded; the sum is said to be one."""
    live = LiveHome(aver_home, tmp_path)
    script = f'{eat(50)}; "$AVER_HOME/bin/srun" {eat(80)}'
    number = live.run_text(script, mem_bytes=120 * MIB)
    live.settle([number])
    assert live.job(number).state is State.COMPLETED
    assert live.attempt(number).peak_bytes == 120 * MIB
    done = subprocess.run(
        [sys.executable, "-m", "aver", "show", str(number)],
        env={**os.environ, "AVER_HOME": str(aver_home)}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "peak memory 120.0 MiB (at most: script and steps, each at its own peak)" in done.stdout


@pytest.mark.skipif(not os.access(MEMORY, os.W_OK), reason="needs a v1 memory cgroup that can be made")
def test_a_warning_of_a_step_that_exits_0_is_its_jobs_too(aver_home: Path, tmp_path: Path) -> None:
    """The kernel killed in a cgroup that the task made: step and job are COMPLETED, and each surface warns."""
    live = LiveHome(aver_home, tmp_path)
    (tmp_path / "inner.sh").write_text(
        "inner=/sys/fs/cgroup/memory$(sed -n 's/.*:memory://p' /proc/self/cgroup)/in; mkdir $inner\n"
        f"echo {50 * MIB} > $inner/memory.limit_in_bytes\n"
        f'sh -c "echo \\$\\$ > $inner/cgroup.procs; exec {eat(120)}"\nexit 0\n'
    )
    number = live.run_text('"$AVER_HOME/bin/srun" sh inner.sh', mem_bytes=300 * MIB)
    live.settle([number])
    row = live.job(number)
    said = "the kernel killed 1 process for the memory limit of a cgroup that the job itself made"
    assert (row.state, row.derived) == (State.COMPLETED, 0)
    assert row.warnings == (f"step {number}.0 (sh): task 0: {said}",)
    for words in (("jobs",), ("show", str(number)), ("why", str(number)), ("results", str(number)), ("jobs", "--json")):
        done = subprocess.run(
            [sys.executable, "-m", "aver", *words],
            env={**os.environ, "AVER_HOME": str(aver_home)}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert said in " ".join((done.stdout + done.stderr).split()), words
    for command in ("sacct", "squeue -t all", "scontrol show job"):
        done = subprocess.run(
            ["/bin/sh", "-c", f'"$AVER_HOME/bin/"{command} {"" if "show" in command else "-j"} {number}'],
            env={**os.environ, "AVER_HOME": str(aver_home)}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert said in done.stdout + done.stderr, command


def test_show_says_whose_the_peak_is(aver_home: Path, tmp_path: Path) -> None:
    """`aver show` names the source of the peak, and CPU time that is only known in part."""
    live = LiveHome(aver_home, tmp_path)
    text = "import os, signal, time; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.fork() or os._exit(0)"
    number = live.run_text(f"{sys.executable} -I -S -c '{text}; x = bytearray(300 << 20); time.sleep(1)'")
    live.settle([number])
    done = subprocess.run(
        [sys.executable, "-m", "aver", "show", str(number)],
        env={**os.environ, "AVER_HOME": str(aver_home)}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "user at least" in done.stdout
    assert "(its largest process)" in done.stdout or "(all processes)" in done.stdout
