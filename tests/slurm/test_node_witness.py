"""The witness on the nodes of a real Slurm: what it records, and that a job ends as it would without it."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_desk import Desk, Lab, ended

from aver.engines.slurm.submit import shim
from aver.engines.slurm.submit.script import Member, Program, Text

KEY = "7-1"
RECORD = "7-1.r0"
numbers = itertools.count(1)
EAT = "python3 -c 'x = bytearray(200 << 20)'"
COUNT = (
    "import signal, sys, time\ncount = 0\n"
    "def add(*_):\n    global count\n    count += 1\n"
    "signal.signal(signal.SIGUSR2, add)\nprint('ready', flush=True)\n"
    "end = time.monotonic() + 60\nwhile not count and time.monotonic() < end: time.sleep(0.01)\n"
    "time.sleep(0.5)\nprint('count', count, flush=True)\n"
)


@pytest.fixture
def desk(slurm_lab: Lab, witness_binary: Path) -> Iterator[Desk]:
    """A desk in the user's home, which all nodes share."""
    folder = slurm_lab.folder / "home" / slurm_lab.user / f"desk-{os.getpid()}-{next(numbers)}"
    yield Desk(slurm_lab, folder, witness_binary)
    shutil.rmtree(folder, ignore_errors=True)


def bash(text: str, **options: object) -> Member:
    return Member(KEY, Text(text, ("/bin/bash",)), name="train", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("script", "exit"),
    [("exit 0", "0:0"), ("exit 200", "200:0"), ("kill -KILL $$", "0:9"), ("kill -TERM $$", "0:15"),
     ("ulimit -c unlimited; kill -SEGV $$", "0:11")],
)  # fmt: skip
def test_exit_is_whole(desk: Desk, script: str, exit: str) -> None:  # noqa: A002
    """Slurm and the record have the same wait status, and codes above 127 are no signals."""
    seen = desk.run(bash(script))
    assert (seen.exit, ended(desk.record(RECORD))) == (exit, exit)
    assert seen.state == ("COMPLETED" if exit == "0:0" else "FAILED")
    assert desk.names() == [RECORD]
    cores = [path for path in desk.folder.iterdir() if path.name.startswith("core")]
    assert len(cores) == (1 if desk.record(RECORD)["raw"] & 0x80 and cores else 0)


def test_failing_task_that_slurm_loses(desk: Desk) -> None:
    """Task 0 exits 3 and the others 0: srun exits 3, and the records say which one it was. From 23.11 on Slurm too."""
    seen = desk.run(bash("srun -n4 sh -c 'exit $((SLURM_PROCID ? 0 : 3))'; echo srun $?"), options=("-n4",))
    derived = "3:0" if desk.release >= (23, 11) else "0:0"
    assert (seen.state, seen.exit, seen.derived) == ("COMPLETED", "0:0", derived)
    assert "srun 3\n" in desk.output()
    assert [ended(desk.record(f"{RECORD}.s0.t{rank}")) for rank in range(4)] == ["3:0", "0:0", "0:0", "0:0"]


def test_first_failure_of_a_step_that_is_ended_for_it(desk: Desk) -> None:
    """With -K srun exits 143; the record of task 1 still says 3, and the others were sent TERM."""
    text = "srun -n4 -K sh -c '[ $SLURM_PROCID != 1 ] || exit 3; sleep 60'; echo srun $?"
    desk.run(bash(text), options=("-n4",))
    assert "srun 143\n" in desk.output()
    tasks = [desk.record(f"{RECORD}.s0.t{rank}") for rank in range(4)]
    assert [ended(task) for task in tasks] == ["0:15", "3:0", "0:15", "0:15"]
    assert all(task["got"] == [15] for task in (tasks[0], tasks[2], tasks[3]))


def test_steps_are_named_after_their_commands(desk: Desk) -> None:
    """sacct shows the command's name, or the one that was given; tasks see the job's name; variables reach them."""
    text = (
        "module() { echo module; }; export -f module\n"
        "srun -n1 hostname; srun -n1 -J mine true; srun -n1 bash -c 'module; echo name $SLURM_JOB_NAME'\n"
        "srun --version; echo last\n"
    )
    number = desk.submit(bash(text))
    desk.wait(number)
    out = desk.output()
    assert out.splitlines()[1:3] == ["module", "name train"]
    assert out.splitlines()[3].startswith("slurm")
    steps: list[str] = []
    deadline = time.monotonic() + 20
    while len(steps) < 3 and time.monotonic() < deadline:
        rows = desk.call("sacct", "-nPj", number, "-o", "JobID,JobName,End").splitlines()
        steps = [row.split("|")[1] for row in rows if row.split("|")[0].split(".")[-1].isdigit() and "." in row]
    assert steps == ["hostname", "mine", "bash"]
    assert desk.names() == [RECORD, *(f"{RECORD}.s{step}.t0" for step in range(3))]


def test_launch_failures_of_tasks(desk: Desk) -> None:
    """srun exits with the errno, as without a witness, and the record has it with the path."""
    desk.run(bash("srun /no/such/command; echo $?; srun /etc/passwd; echo $?; srun no-such-command; echo $?"))
    assert [line for line in desk.output().splitlines() if line.isdigit()] == ["2", "13", "2"]
    launches = [desk.record(f"{RECORD}.s{step}.t0")["launch"] for step in range(3)]
    assert [(one["op"], one["errno"]) for one in launches] == [("exec", 2), ("exec", 13), ("exec", 2)]
    assert launches[0]["path"] == "/no/such/command"


def test_memory_of_the_script(desk: Desk) -> None:
    """The kernel kills in the script's cgroup: the record counts it, though the script exits 0."""
    seen = desk.run(bash(f"{EAT}; exit 0"), options=("--mem=60M",))
    record = desk.record(RECORD)
    if record["mem"] == "none":
        pytest.skip("this Slurm has no memory cgroups")
    assert (seen.state, ended(record), record["mem"]) == ("OUT_OF_MEMORY", "0:0", "cgroup1")
    assert record["oom"] >= 1
    assert record["peak"] > 40 << 20


def test_memory_of_a_step(desk: Desk) -> None:
    """The kernel kills in a step: the task's record has it, and the script's own has none."""
    seen = desk.run(bash(f"srun --mem=60M {EAT}; echo srun $?; exit 0"), options=("--mem=300M",))
    script, task = desk.record(RECORD), desk.record(f"{RECORD}.s0.t0")
    if script["mem"] == "none":
        pytest.skip("this Slurm has no memory cgroups")
    assert (seen.state, seen.derived, script["oom"], task["oom"]) == ("COMPLETED", "0:125", 0, 1)
    assert ended(task) == "0:9"
    assert "srun 1\n" in desk.output()


def test_cancelled(desk: Desk) -> None:
    """scancel: the record says that TERM came from outside, and how the script then ended."""
    number = desk.submit(bash("trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"))
    desk.until("ready")
    desk.call("scancel", number)
    assert desk.wait(number).state == "CANCELLED"
    record = desk.record(RECORD)
    assert (record["got"], ended(record), record["acts"]) == ([15], "0:0", [])


@pytest.mark.parametrize("whom", ["--batch", "--full"])
def test_signals_come_once(desk: Desk, whom: str) -> None:
    """A signal to the script alone, and one to all processes of the job, reach the program once."""
    number = desk.submit(Member(KEY, Program(("python3", "-c", COUNT))))
    desk.until("ready")
    desk.call("scancel", whom, "--signal=USR2", number)
    assert desk.wait(number).state == "COMPLETED"
    assert "count 1\n" in desk.output()
    assert desk.record(RECORD)["got"] == [12]


def test_time_limit_and_warning_are_the_witnesss(desk: Desk) -> None:
    """The witness warns and ends the job in time, to the millisecond and not to the minute."""
    text = "trap 'echo warned' USR1; echo ready; while :; do sleep 0.05; done"
    seen = desk.run(bash(text, time_ms=1500, warn="10 700 b", kill_wait_ms=1000))
    record = desk.record(RECORD)
    assert [act["act"] for act in record["acts"]] == ["warn", "time"]
    assert (seen.exit, ended(record)) == ("0:15", "0:15")
    assert "warned" in desk.output()


def test_process_management_reaches_the_tasks(desk: Desk) -> None:
    """Descriptors and variables of PMI are inherited by the program, and it can speak through them."""
    text = "srun --mpi=pmi2 -n2 bash -c 'echo rank $PMI_RANK; [ -S /proc/self/fd/$PMI_FD ] && echo open'; echo srun $?"
    desk.run(bash(text), options=("-n2",))
    assert sorted(desk.output().splitlines()) == ["open", "open", "rank 0", "rank 1", "srun 0"]
    assert [ended(desk.record(f"{RECORD}.s0.t{rank}")) for rank in range(2)] == ["0:0", "0:0"]


def test_array_members_have_files_of_their_own(desk: Desk) -> None:
    """Each member has its output and its record; one whose output can't be opened could not start."""
    members = [
        Member(f"7-{index}", Text("echo member $1; exit $1", ("/bin/sh",), (str(index),)), stdout=place)
        for index, place in enumerate([f"{desk.folder}/a", "/proc/none/b", f"{desk.folder}/c"])
    ]
    number = desk.submit(*members, options=("--array=0-2", "--output=/dev/null"))
    for index in range(3):
        desk.wait(f"{number}_{index}")
    assert (desk.output("a"), desk.output("c")) == ("member 0\n", "member 2\n")
    assert [ended(desk.record(f"7-{index}.r0")) for index in range(3)] == ["0:0", "errno 2", "2:0"]
    launch = desk.record("7-1.r0")["launch"]
    assert (launch["op"], launch["path"]) == ("stdout", "/proc/none/b")


def test_restarts_have_records_of_their_own(desk: Desk) -> None:
    """A job that Slurm starts again leaves a second record beside the first."""
    text = 'echo start ${SLURM_RESTART_COUNT:-0}; [ -n "$SLURM_RESTART_COUNT" ] && exit 4; while :; do sleep 0.05; done'
    number = desk.submit(bash(text), options=("--requeue", "--open-mode=append"))
    desk.until("start 0")
    desk.call("scontrol", "requeue", number)
    release(desk, number)
    assert desk.wait(number).exit == "4:0"
    assert "start 1\n" in desk.output()
    assert (ended(desk.record("7-1.r0")), ended(desk.record("7-1.r1"))) == ("0:15", "4:0")


def release(desk: Desk, number: str) -> None:
    """Slurm lets a requeued job wait two minutes; root says that it need not, once its first start is cleaned up."""
    began = time.monotonic()
    deadline = began + 60
    while "start 1" not in desk.output():
        if time.monotonic() < began + 3:  # sooner, its node still has the first start's credential as revoked
            time.sleep(0.2)
            continue
        assert time.monotonic() < deadline, desk.call("scontrol", "show", "job", number)
        words = ["scontrol", "update", f"jobid={number}", "StartTime=now"]
        subprocess.run(words, env=desk.lab.environment, capture_output=True, check=False)
        time.sleep(0.2)


def test_several_nodes(desk: Desk) -> None:
    """Tasks on several nodes leave their records; where the witness is gone they run all the same."""
    text = (
        "srun -N2 -n2 sh -c 'exit $SLURM_PROCID'; echo srun $?\n"
        f"mv {desk.witness} {desk.witness}.away; srun -N2 -n2 sh -c 'exit $((SLURM_PROCID * 5))'; echo srun $?\n"
    )
    desk.run(bash(text), options=("-N2", "-n2"))
    assert [line for line in desk.output().splitlines() if line.startswith("srun ")] == ["srun 1", "srun 5"]
    assert [ended(desk.record(f"{RECORD}.s0.t{rank}")) for rank in range(2)] == ["0:0", "1:0"]


def test_without_a_witness_the_job_runs_all_the_same(desk: Desk) -> None:
    """No shared folder: the end is the job's own, and there is no record."""
    desk.witness.unlink()
    seen = desk.run(bash("srun -n1 sh -c 'exit 9'; exit 200"))
    assert (seen.exit, seen.derived, desk.names()) == ("200:0", "9:0", [])


def test_options_are_those_of_the_real_srun(slurm_lab: Lab) -> None:
    """An option that the real srun knows takes a value there exactly if our srun thinks so."""

    def says(*words: str) -> str:
        done = subprocess.run(["srun", *words], env=slurm_lab.environment, capture_output=True, text=True, check=False)
        return done.stderr

    wrong = []
    for words, kind in ((shim.FLAGS, "flag"), (shim.VALUES, "value"), (shim.MAYBE, "maybe")):
        for name, _, letter in (word.partition(":") for word in words.split()):
            alone = says(f"--{name}")
            if "unrecognized option" in alone or "ambiguous" in alone:
                continue
            needs = "requires an argument" in alone
            refuses = "doesn't allow an argument" in says(f"--{name}=@", "--version")
            found = "value" if needs else "flag" if refuses else "maybe"
            if letter and (kind == "value") != ("requires an argument" in says(f"-{letter}")):
                found = f"-{letter} otherwise"
            if found != kind:
                wrong.append(f"--{name}: {found}, not {kind}")
    assert wrong == []


TAKES = "import signal, sys, time; signal.signal(10, lambda *_: sys.exit(0)); time.sleep(9)"
IGNORES = "import signal, time; signal.signal(10, signal.SIG_IGN); time.sleep(6)"


@pytest.mark.parametrize(("text", "taken"), [(TAKES, 1), (IGNORES, 0)])
def test_a_warning_that_srun_passes_on_counts_where_a_task_takes_it(desk: Desk, text: str, taken: int) -> None:
    """Slurm's srun is none of the user's processes: the witness of each task says whether its program took it."""
    script = f"trap '' USR1; srun -n2 env --default-signal=USR1 python3 -c '{text}'; exit 0"
    desk.run(bash(script, time_ms=120_000, warn="10 116000 p"), options=("-n2",))
    names = [RECORD, *(f"{RECORD}.s0.t{rank}" for rank in range(2))]
    warnings = [[(act["act"], act["to"]) for act in desk.record(name)["acts"]] for name in names]
    assert warnings == [[("warn", 0)], [("warn", taken)], [("warn", taken)]]


def test_a_warning_of_tasks_without_a_witness_is_not_known_to_be_taken(desk: Desk) -> None:
    """Several programs in one step: our srun puts no witness before them, and the record does not count them."""
    script = "trap '' USR1; echo '* sleep 9' >programs; srun -n2 --multi-prog programs; exit 0"
    desk.run(bash(script, time_ms=120_000, warn="10 116000 p"), options=("-n2",))
    (warning,) = desk.record(RECORD)["acts"]
    assert (warning["act"], warning["to"], warning["unseen"] > 0) == ("warn", 0, True)  # srun has a helper process


def test_a_signal_by_request_is_no_warning_of_a_task(desk: Desk) -> None:
    """Without a warning of its job a task has no such act, whatever signal it gets."""
    text = "signal, sys, time; signal.signal(10, lambda *_: sys.exit(0)); time.sleep(30)"
    script = f"srun python3 -c 'import {text}' & sleep 3; scancel --signal=USR1 $SLURM_JOB_ID.0; wait"
    desk.run(bash(script))
    task = desk.record(f"{RECORD}.s0.t0")
    assert (ended(task), task["acts"], task["got"]) == ("0:0", [], [10])
