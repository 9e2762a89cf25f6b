"""The executor of an allocation: its arithmetic of time, and how it packs, with programs that stand for Slurm's."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from aver.engines.slurm.allocation.executor import TIMES, executor_script

PLAIN = "0\n0\n0\np"  # neither limit nor warning nor deadline
SUBFOLDERS = ("in", "orders", "started", "done", "said", "allocs")


def bash(text: str) -> str:
    done = subprocess.run(["bash", "-c", TIMES + text], capture_output=True, text=True, timeout=20, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("left", "headroom", "minutes"),
    [
        (59, 0, 0), (60, 0, 1), (119, 0, 1), (120, 0, 2), (0, 0, 0),
        (120, 120, 0), (179, 120, 0), (180, 120, 1), (239, 120, 1), (240, 120, 2), (14400, 120, 238),
        (60, 120, 0), (-5, 120, 0),
    ],
)  # fmt: skip
def test_a_step_has_the_whole_minutes_that_are_left(left: int, headroom: int, minutes: int) -> None:
    """What is left less the headroom, rounded down; with less than one minute nothing starts."""
    assert bash(f"_aver_minutes {left} {headroom}; echo $_aver_reply") == str(minutes)


@pytest.mark.parametrize(
    ("text", "seconds"), [("9:59", 599), ("0:00", 0), ("1:08:09", 4089), ("2-03:04:05", 183845), ("08:09", 489)]
)
def test_time_left_as_squeue_prints_it(text: str, seconds: int) -> None:
    """Leading zeros are not octal."""
    assert bash(f"_aver_seconds {text} && echo $_aver_reply") == str(seconds)


@pytest.mark.parametrize("text", ["UNLIMITED", "INVALID", "", "NOT_SET", "5"])
def test_what_is_no_time_is_none(text: str) -> None:
    """Nothing is guessed."""
    assert bash(f"_aver_seconds '{text}' || echo no") == "no"


@pytest.mark.parametrize(
    ("given", "time", "own", "warn"),
    [
        ("10 0 0 0 p", "10", "", ""),  # neither limit nor warning of its own
        ("10 90 0 0 p", "2", "90000", ""),  # its own limit, by its witness to the second
        ("10 3600 0 0 p", "10", "", ""),  # its own is later than the step's
        ("10 0 15 300 a", "10", "690000", "15 390000 a"),  # 300 s before the step's end; ours would be 90 s after it
        ("10 120 15 30 b", "2", "120000", "15 30000 b"),  # 30 s before its own limit
        ("1 0 10 300 p", "1", "150000", "10 390000 p"),  # longer than the step: at once
    ],
)
def test_limit_and_warning_of_a_step(given: str, time: str, own: str, warn: str) -> None:
    """MINUTES OWN_S SIGNAL LEAD_S SCOPE to what srun and the witness get."""
    said = bash(f'_aver_slack=90; _aver_limits {given}; echo "$_aver_time|$AVER_STEP_TIME|$AVER_STEP_WARN"')
    assert said == f"{time}|{own}|{warn}"


def stand_in(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def run_executor(
    folder: Path, orders: list[str], nodes: str, gres: str, left: str = "1:00:50", work: str = "sleep 0.2",
    lines: Mapping[str, str] = {},
) -> list[str]:  # fmt: skip
    """Run it to its end with these orders; the words of each srun, in the order in which they began."""
    run, tools = folder / "run", folder / "tools"
    tools.mkdir()
    for name in SUBFOLDERS:
        (run / name).mkdir(parents=True)
    for order in orders:
        (run / "in" / order).write_text(f"step-{order.rpartition('_')[2]}\n{lines.get(order, PLAIN)}\n")
    (run / "close").touch()
    stand_in(tools, "srun", f'echo "$*" >>{folder}/calls; {work}; [[ $* != *step-bad* ]]')
    stand_in(tools, "squeue", f"case $* in *%L*) echo {left} ;; *) echo RUNNING ;; esac")
    shown = "".join(f" Nodes={node} CPU_IDs=0-3 Mem=1000 GRES={gres}" for node in nodes.split(","))
    hosts = '*hostnames*) shift 2; tr , \'\\n\' <<<"$1" ;; *hostlistsorted*) echo "$3" ;;'
    stand_in(tools, "scontrol", f'case $* in {hosts} *) echo "JobId=7{shown} X=" ;; esac')
    script = folder / "executor"
    script.write_bytes(executor_script(str(run), 120))
    environment = {
        "PATH": f"{tools}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": nodes, "SLURM_NTASKS": "99",
        "SLURM_JOB_CPUS_PER_NODE": "4(x2)",
    }  # fmt: skip
    done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    calls = folder / "calls"
    return calls.read_text().splitlines() if calls.exists() else []


def steps_in_order(calls: list[str]) -> list[str]:
    return [call.partition("--job-name=step-")[2].split()[0] for call in calls]


def test_small_steps_do_not_hold_up_a_large_one(tmp_path: Path) -> None:
    """A node is held for the oldest that does not fit; what leaves its room free goes on there meanwhile."""
    smalls = [f"{number:02d}_1_0_0_0_s{number}" for number in range(20, 60)]
    orders = ["01_2_0_0_0_first", "02_4_900_0_0_large", "03_3_0_0_0_wide", *smalls]
    order = steps_in_order(run_executor(tmp_path, orders, "n1", ""))
    assert len(order) == len(orders)
    assert order[:2] == ["first", "large"]  # it needs every cpu of the node
    assert order.index("wide") < 10


def test_what_leaves_the_room_free_goes_past(tmp_path: Path) -> None:
    """Of 4 cpus 3 are in use until a small step has begun, and 2 are waited for: it may begin on the last one."""
    orders = ["01_3_0_0_0_first", "02_2_0_0_0_large", "03_1_0_0_0_small"]
    until = f"for _ in {{1..200}}; do grep -q step-small {tmp_path}/calls && break; sleep 0.05; done"
    order = steps_in_order(run_executor(tmp_path, orders, "n1", "", work=f"[[ $* != *step-first* ]] || {until}"))
    assert sorted(order[:2]) == ["first", "small"]  # two processes at once: either writes its line first
    assert order[2:] == ["large"]


def test_steps_are_packed_by_node(tmp_path: Path) -> None:
    """Cpus, memory and gpus of each node; what does not fit now comes later, what never fits stays."""
    orders = [
        "01_3_600_0_0_a",
        "02_2_500_1_0_b",
        "03_1_0_0_0_c",
        "04_4_100_2_0_d",
        "05_1_100_0_0_bad",
        "06_9_1_0_0_big",
    ]
    calls = run_executor(tmp_path, orders, "n1,n2", "gpu:tesla:2(IDX:0-1)")
    by_step = {call.partition("--job-name=step-")[2].split()[0]: call for call in calls}
    assert set(by_step) == {"a", "b", "c", "d", "bad"}
    assert "-c3 --mem=600M -wn1" in by_step["a"]
    assert "--gres=none" in by_step["a"]
    assert "-c2 --mem=500M -wn2" in by_step["b"]
    assert "--gres=gpu:1" in by_step["b"]
    assert "--mem=0 -wn1" in by_step["c"]
    assert "-c4 --mem=100M" in by_step["d"]
    assert "--gres=gpu:2" in by_step["d"]
    assert calls.index(by_step["d"]) > calls.index(by_step["c"])
    assert all("--time=58" in call for call in calls)
    run = tmp_path / "run"
    assert [path.name for path in (run / "in").iterdir()] == ["06_9_1_0_0_big"]
    assert {path.name: path.read_text() for path in (run / "done").iterdir()} == {
        "a": "0\n", "b": "0\n", "c": "0\n", "d": "0\n", "bad": "1\n",
    }  # fmt: skip
    assert (run / "allocs" / "7").read_text() == "n1 4 1000 2\nn2 4 1000 2\n"


def test_a_job_on_several_nodes_has_room_on_each(tmp_path: Path) -> None:
    """It begins on the first of them, overlaps the steps that it makes, and its claim names all its nodes."""
    orders = ["01_3x2_600_0_0_ab", "02_1_300_0_0_one", "03_2x2_0_0_0_later", "04_1x3_0_0_0_never"]
    calls = run_executor(tmp_path, orders, "n1,n2", "", work=f"env | grep ^AVER_STEP >>{tmp_path}/known; sleep 0.2")
    order = steps_in_order(calls)
    assert sorted(order[:2]) == ["ab", "one"]
    assert order[2:] == ["later"]
    by_step = dict(zip(order, calls, strict=True))
    assert "-N1 -n1 -c3 --mem=600M -wn1" in by_step["ab"]
    assert "--overlap" in by_step["ab"]
    assert "--overlap" not in by_step["one"]
    run = tmp_path / "run"
    assert [path.name for path in (run / "in").iterdir()] == ["04_1x3_0_0_0_never"]
    assert (run / "started" / "01_3x2_600_0_0_ab@7@n1,n2").exists()
    known = (tmp_path / "known").read_text()
    assert "AVER_STEP_NODES=n1,n2\n" in known
    assert "AVER_STEP_CPUS=3\n" in known
    assert list((run / "steps").iterdir()) == []


def test_the_steps_of_a_job_on_one_node_have_its_room(tmp_path: Path) -> None:
    """A job that has tasks overlaps the steps that it makes, and is told what they may take."""
    calls = run_executor(
        tmp_path, ["01_3x1_600_0_0_tasks"], "n1,n2", "", work=f"env | grep ^AVER_STEP >>{tmp_path}/known; sleep 0.2"
    )
    (call,) = calls
    assert "-N1 -n1 -c3 --mem=600M -wn1" in call
    assert "--overlap" in call
    known = (tmp_path / "known").read_text()
    assert "AVER_STEP_NODES=n1\n" in known
    assert "AVER_STEP_OTHERS=n2\n" in known


def test_nodes_that_an_order_leaves_out(tmp_path: Path) -> None:
    """It waits for another node, or for ever; others are not held up, and no node is held that it can't have."""
    lines = {"02_2e_0_0_0_second": f"{PLAIN}\n0\nn1", "03_1x2e_0_0_0_never": f"{PLAIN}\n0\nn2 n9",
             "04_4e_0_0_0_large": f"{PLAIN}\n0\nn1"}  # fmt: skip
    orders = ["01_4_0_0_0_first", *lines, "05_4_0_0_0_last"]
    calls = run_executor(tmp_path, orders, "n1,n2", "", lines=lines)
    by_step = {call.partition("--job-name=step-")[2].split()[0]: call for call in calls}
    assert set(by_step) == {"first", "second", "large", "last"}
    assert "-wn1" in by_step["first"]
    assert "-wn2" in by_step["second"]
    assert "-wn2" in by_step["large"]
    assert "-wn1" in by_step["last"]
    assert [path.name for path in (tmp_path / "run" / "in").iterdir()] == ["03_1x2e_0_0_0_never"]


def test_nodes_are_held_for_a_job_on_several(tmp_path: Path) -> None:
    """Small steps do not hold up a job that needs two whole nodes, and fill what it leaves free."""
    smalls = [f"{number:02d}_1_0_0_0_s{number}" for number in range(20, 60)]
    order = steps_in_order(run_executor(tmp_path, ["01_1_0_0_0_first", "02_4x2_0_0_0_both", *smalls], "n1,n2", ""))
    assert order[:2] == ["first", "both"]
    assert len(order) == 42


def test_an_executor_whose_folder_is_gone_leaves(tmp_path: Path) -> None:
    """It was removed since the run is over: nobody can say so in it any more."""
    calls = run_executor(tmp_path, ["01_1_0_0_0_a"], "n1", "", work=f"rm -rf {tmp_path}/run")
    assert steps_in_order(calls) == ["a"]
    assert not (tmp_path / "run").exists()


def test_an_executor_says_that_it_leaves(tmp_path: Path) -> None:
    """Then its folder may be removed."""
    run_executor(tmp_path, ["01_1_0_0_0_a"], "n1", "")
    assert (tmp_path / "run" / "allocs" / ".left-7").exists()


def test_nothing_starts_in_the_headroom(tmp_path: Path) -> None:
    """With less than a minute before the headroom the executor leaves, and the next one finds all orders."""
    assert run_executor(tmp_path, ["01_1_0_0_0_a"], "n1,n2", "", left="2:59") == []
    assert len(list((tmp_path / "run" / "in").iterdir())) == 1


def test_a_deadline_bounds_a_step(tmp_path: Path) -> None:
    """It ends a step that runs, unless its own limit is earlier, and nothing is started after it."""
    now = int(time.time())
    lines = {"01_1_0_0_0_soon": f"0\n0\n0\np\n{now + 600}", "02_1_0_0_0_own": f"90\n0\n0\np\n{now + 600}",
             "03_1_0_0_0_past": f"0\n0\n0\np\n{now - 1}"}  # fmt: skip
    note = f'echo "$AVER_STEP_TIME" >{tmp_path}/limit-$(sed "s/.*name=step-//; s/ .*//" <<<"$*")'
    calls = run_executor(tmp_path, list(lines), "n1,n2", "", work=note, lines=lines)
    assert sorted(steps_in_order(calls)) == ["own", "soon"]
    assert 400_000 < int((tmp_path / "limit-soon").read_text()) <= 600_000
    assert (tmp_path / "limit-own").read_text() == "90000\n"
    assert [path.name for path in (tmp_path / "run" / "in").iterdir()] == ["03_1_0_0_0_past"]


def test_a_job_that_needs_more_time_waits_for_another_allocation(tmp_path: Path) -> None:
    """An order says how much time it must have; shorter ones pass it."""
    calls = run_executor(tmp_path, ["01_1_0_0_1200_a", "02_1_0_0_0_b"], "n1,n2", "", left="10:00")
    assert [call.partition("--job-name=")[2].split()[0] for call in calls] == ["step-b"]
