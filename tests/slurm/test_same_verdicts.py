"""The same flows and scripts on this machine and on a real Slurm: verdict by verdict equal, down to each task.

Each row of OUTCOMES 7 that makes sense in a test. DIFFERENCES are the ones that can't be equal, each with its reason;
docs/en/guides/slurm-cluster.md has the same table.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from both_engines import Answer, Place, Shown, last_run, make_place, on_both, run_flow, write_flow

EAT = "python3 -c 'import time; x = bytearray(300 << 20); time.sleep(20)'"
TRAP_0, TRAP_3 = "trap 'exit 0' TERM; sleep 60 & wait", "trap 'exit 3' TERM; sleep 60 & wait"
FOUR = {"tasks": 4}
RANK = "'sleep 0.$((2 * SLURM_PROCID)); exit $SLURM_PROCID'"
ME = "ME=${SLURM_JOB_ID:-$AVER_JOB}; "  # whom scancel knows it by
SAID = "echo srun=$?"


class Lab(Protocol):
    @property
    def environment(self) -> dict[str, str]: ...


def job(text: str, **keys: object) -> dict[str, object]:
    return {"run": text, **keys}


def ranks(*codes: str) -> str:
    """A command whose tasks end each as it says, one after the other."""
    cases = " ".join(f"{rank}) {code};;" for rank, code in enumerate(codes))
    return shlex.quote(f"sleep 0.$((2 * SLURM_PROCID)); case $SLURM_PROCID in {cases} esac")


# name: the job, and its state, exit and DerivedExitCode
ROWS: dict[str, tuple[dict[str, object], tuple[str, str, str]]] = {
    "exit-0": (job("exit 0"), ("COMPLETED", "0:0", "0:0")),
    "exit-1": (job("exit 1"), ("FAILED", "1:0", "0:0")),
    "exit-128": (job("exit 128"), ("FAILED", "128:0", "0:0")),
    "exit-137": (job("exit 137"), ("FAILED", "137:0", "0:0")),
    "exit-200": (job("exit 200"), ("FAILED", "200:0", "0:0")),
    "term": (job("kill -TERM $$"), ("FAILED", "0:15", "0:0")),
    "hup": (job("kill -HUP $$"), ("FAILED", "0:1", "0:0")),
    "segv": (job("ulimit -c 0; kill -SEGV $$"), ("FAILED", "0:11", "0:0")),
    "kill": (job("kill -KILL $$"), ("FAILED", "0:9", "0:0")),
    "segv-of-a-child": (job("ulimit -c 0; bash -c 'kill -SEGV $$' || exit $?"), ("FAILED", "139:0", "0:0")),
    "steps-7-3-2": (
        job("srun sh -c 'exit 7' || true; srun sh -c 'exit 3' || true; srun sh -c 'exit 2'"), ("FAILED", "2:0", "7:0"),
    ),
    "steps-2-3-7": (
        job("srun sh -c 'exit 2' || true; srun sh -c 'exit 3' || true; srun sh -c 'exit 7'"), ("FAILED", "7:0", "7:0"),
    ),
    "step-7-then-true": (job(f"srun sh -c 'exit 7' || {SAID}; true"), ("COMPLETED", "0:0", "7:0")),
    "step-200": (job(f"srun sh -c 'exit 200' || {SAID}"), ("COMPLETED", "0:0", "200:0")),
    "step-term-then-0": (job(f"srun sh -c 'kill -TERM $$' || {SAID}; exit 0"), ("COMPLETED", "0:0", "0:15")),
    "step-kill-last": (job("srun sh -c 'kill -KILL $$'"), ("FAILED", "137:0", "0:9")),
    "step-7-and-segv": (
        job("ulimit -c 0; srun sh -c 'exit 7' || true; srun sh -c 'kill -SEGV $$' || true"),
        ("COMPLETED", "0:0", "7:0"),
    ),
    "tasks-0-1-2-3": (
        job(f"srun -n4 sh -c {ranks('exit 0', 'exit 1', 'exit 2', 'exit 3')} || {SAID}", **FOUR),
        ("COMPLETED", "0:0", "3:0"),
    ),
    "lost-task": (
        job(f"srun -n4 sh -c {ranks('exit 3', 'exit 0', 'exit 0', 'exit 0')} || {SAID}", **FOUR),
        ("COMPLETED", "0:0", "3:0"),
    ),
    "tasks-5-0-9-1": (
        job(f"srun -n4 sh -c {ranks('exit 5', 'exit 0', 'exit 9', 'exit 1')} || {SAID}", **FOUR),
        ("COMPLETED", "0:0", "9:0"),
    ),
    "segv-and-9": (
        job(f"ulimit -c 0; srun -n4 sh -c {ranks('exit 0', 'kill -SEGV $$', 'exit 9', 'exit 0')} || {SAID}", **FOUR),
        ("COMPLETED", "0:0", "0:11"),
    ),
    "as-many-as-tasks": (
        job(f"srun sh -c {RANK}", **FOUR), ("FAILED", "3:0", "3:0"),
    ),
    "kill-on-bad-exit": (
        job(f"srun -n4 -K sh -c {ranks('sleep 60', 'sleep 1; exit 3', 'sleep 60', 'sleep 60')} || {SAID}", **FOUR),
        ("COMPLETED", "0:0", "3:0"),
    ),
    "no-such-command": (job(f"srun /no/such/command || {SAID}"), ("COMPLETED", "0:0", "2:0")),
    "not-executable": (job(f"srun /etc/passwd || {SAID}"), ("COMPLETED", "0:0", "13:0")),
    "no-such-program": ({"run": ["/no/such/program", "x"]}, ("FAILED", "?", "0:0")),
    "no-such-folder": (job("exit 0", folder="/no/such/folder"), ("FAILED", "?", "0:0")),
    "no-output": (job("exit 0", output="/proc/none/out"), ("FAILED", "?", "0:0")),
    "left-step": (
        job("srun sh -c 'touch left; exec sleep 300' & until [ -e left ]; do sleep 0.1; done; exit 0"),
        ("COMPLETED", "0:0", "0:15"),
    ),
    "time": (job("sleep 60", time="1s"), ("TIMEOUT", "0:15", "0:0")),
    "time-trapped-0": (job(TRAP_0, time="1s"), ("TIMEOUT", "0:0", "0:0")),
    "time-trapped-3": (job(TRAP_3, time="1s"), ("TIMEOUT", "3:0", "0:0")),
    "time-ignored": (job("trap '' TERM; sleep 60", time="1s"), ("TIMEOUT", "0:9", "0:0")),
    "warned": (
        job("trap 'exit 0' TERM; sleep 60 & wait", time="600s", signal="B:TERM@599"), ("COMPLETED", "0:0", "0:0"),
    ),
    "warned-program": (job("sleep 60", time="600s", signal="USR1@599"), ("FAILED", "0:10", "0:0")),
    "mem": (job(f"exec {EAT}", mem="64M"), ("OUT_OF_MEMORY", "0:9", "0:0")),
    "mem-then-0": (job(f"{EAT} || true", mem="64M"), ("OUT_OF_MEMORY", "0:0", "0:0")),
    "mem-forgiven": (job(f"{EAT} || true", mem="64M", oom="warn"), ("COMPLETED", "0:0", "0:0")),
    "step-mem-then-0": (job(f"srun {EAT} || {SAID}; exit 0", mem="64M"), ("COMPLETED", "0:0", "0:125")),
    "cancels-itself": (job(ME + "scancel $ME; sleep 60"), ("CANCELLED", "0:15", "0:0")),
    "cancels-itself-trapped": (
        job(ME + "trap 'exit 0' TERM; scancel $ME; sleep 60 & wait"), ("CANCELLED", "0:0", "0:0"),
    ),
    "cancels-its-step": (
        job(f"{ME}srun sh -c 'touch began; sleep 60' & until [ -e began ]; do sleep 0.1; done; "
            f"scancel $ME.0; wait $! || {SAID}; exit 0"),
        ("COMPLETED", "0:0", "0:9"),
    ),
    "signals-its-script": (job(ME + "scancel --batch -s USR1 $ME; sleep 60 & wait"), ("FAILED", "0:10", "0:0")),
    "its-own-path": (job("exit 4", env={"PATH": "/usr/bin:/bin"}), ("FAILED", "4:0", "0:0")),
    "its-input": (job("read word; [ $word = hello ] && exit 6", stdin="input"), ("FAILED", "6:0", "0:0")),
}  # fmt: skip

DIFFERENCES = {
    "`--signal` without `B:`, for steps": "Slurm sends it, and its limits are whole minutes and checked every 30 s",
    "`srun --time`": "the same: Slurm counts whole minutes",
    "a step that is killed together with its witnesses (`scancel JOB.0`)": "its exit comes from the controller; its "
    "command and number of tasks are unknown",
    "`aver suspend`, `resume`, and a new time limit of a running job": "on a cluster only operators can do this",
    "`SLURM_*` variables of a flow's job": "on this machine only batch scripts have all of them",
}

SRUN_SAYS = {
    "step-7-then-true": 7, "step-200": 200, "step-term-then-0": 143, "tasks-0-1-2-3": 3, "lost-task": 3,
    "tasks-5-0-9-1": 9, "segv-and-9": 139, "kill-on-bad-exit": 143, "no-such-command": 2, "not-executable": 13,
    "step-mem-then-0": 1, "cancels-its-step": 137,
}  # fmt: skip


@pytest.fixture(scope="module")
def places(slurm_lab: Lab, witness_binary: Path) -> Iterator[dict[str, Place]]:
    """A home for each engine, under a short path."""
    base = Path(tempfile.mkdtemp(prefix="aver-", dir="/tmp"))
    environment = slurm_lab.environment
    found = {engine: make_place(engine, base, environment) for engine in ("local", "slurm")}
    yield found
    for place in found.values():
        place.leave()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def rows(places: dict[str, Place]) -> dict[str, tuple[Answer, dict[str, Shown]]]:
    """All rows as one flow, on both engines at once."""

    def run(place: Place) -> tuple[Answer, dict[str, Shown]]:
        place.write("input", "hello\n")
        return run_flow(place, "rows", {name: spec for name, (spec, _) in ROWS.items()})

    return on_both(places, run)


@pytest.mark.parametrize("name", ROWS)
def test_row(places: dict[str, Place], rows: dict[str, tuple[Answer, dict[str, Shown]]], name: str) -> None:
    """State, exit, DerivedExitCode, reason, return code, each step and each task are equal, and are the truth."""
    local, slurm = rows["local"][1][name], rows["slurm"][1][name]
    assert local.short == ROWS[name][1]
    assert slurm == local, places["slurm"]("timeline", f"1/{name}").out


@pytest.mark.parametrize("name", SRUN_SAYS)
def test_exit_status_of_srun(places: dict[str, Place], rows: dict[str, Any], name: str) -> None:
    """The script sees the same number from `srun`."""
    for place in places.values():
        outputs = [path.read_text() for path in place.folder.glob(f"aver-*/{name}.out")]
        assert re.findall(r"srun=(\d+)", "".join(outputs)) == [str(SRUN_SAYS[name])], (place.engine, outputs)


def test_run_as_a_whole(rows: dict[str, tuple[Answer, dict[str, Shown]]]) -> None:
    """The worst of all: OUT_OF_MEMORY, and `aver run` says so."""
    assert {name: answer.status for name, (answer, _) in rows.items()} == {"local": 4, "slurm": 4}


# ---- graphs, arrays, retries, rounds ------------------------------------------------------------------------

MORE = {"more": {"run": "cat written && exit 0", "needs": ["writes"]}, "bad": {"run": "exit 9"}}
GRAPH: dict[str, dict[str, object]] = {
    "m": {"run": "exit $(({i} % 5 * 50))", "matrix": {"i": "0..19", "max_parallel": 8}},
    "good": job("exit 0"),
    "fails": job("exit 3"),
    "after-good": job("exit 0", needs=["good"]),
    "skipped": job("exit 0", needs=["fails"]),
    "skipped-too": job("exit 0", needs=["skipped"]),
    "after-failure": job("exit 0", needs={"fails": "failure"}),
    "always": job("exit 0", needs=["fails"], **{"if": "always"}),
    "after-members": job("exit 0", needs={"m": "any"}),
    "writes": job(f"touch written; sleep 1; echo {shlex.quote(json.dumps(MORE))} > more.json", generates="more.json"),
    "writes-nonsense": job("echo '{a: {run: 1, wrong: 2}}' > wrong.json", generates="wrong.json"),
    "grows": {
        "run": "python3 -c 'x = bytearray(150 << 20)'", "mem": "64M",
        "retry": {"max": 2, "on": ["OUT_OF_MEMORY"], "grow": {"mem": "6x"}},
    },
    "gives-up": {"run": "exit 75", "retry": {"max": 2, "on": ["exit:75"]}},
    "rounds": {
        "run": "echo x >> rounds; [ $(wc -l < rounds) -lt 3 ] || exit 0; trap 'exit 85' USR1; sleep 60 & wait",
        "time": "600s", "signal": "B:USR1@599", "checkpoint": {"codes": [85], "rounds": 5},
    },
    "rounds-used-up": {
        "run": "trap 'exit 0' USR1; sleep 60 & wait", "time": "600s", "signal": "B:USR1@599",
        "checkpoint": {"codes": [0], "rounds": 1},
    },
    "behind": job("sleep 2; exit 8", background=True),
}  # fmt: skip


@pytest.fixture(scope="module")
def graph(places: dict[str, Place]) -> dict[str, tuple[Answer, dict[str, Shown]]]:
    """A flow with all that a flow can do, on both engines at once."""

    def run(place: Place) -> tuple[Answer, dict[str, Shown]]:
        answer, _ = run_flow(place, "graph", GRAPH)
        number = last_run(place)
        watched = place("watch", str(number), "--exit-status")
        assert watched.status == 1, watched
        return answer, place.shown(number)

    return on_both(places, run)


def test_flow_with_all_that_a_flow_can_do(graph: dict[str, tuple[Answer, dict[str, Shown]]]) -> None:
    """Members, needs, skips, generated jobs, retries and rounds: each job and each attempt equal."""
    (local_answer, local), (slurm_answer, slurm) = graph["local"], graph["slurm"]
    assert slurm == local
    assert (slurm_answer.status, local_answer.status) == (1, 1)
    assert {name: one.exit for name, one in local.items() if name.startswith("m[")} == {
        f"m[i={number}]": f"{number % 5 * 50}:0" for number in range(20)
    }
    states = {name: one.state for name, one in local.items() if not name.startswith("m[")}
    assert states == {
        "good": "COMPLETED", "fails": "FAILED", "after-good": "COMPLETED", "skipped": "SKIPPED",
        "skipped-too": "SKIPPED", "after-failure": "COMPLETED", "always": "COMPLETED", "after-members": "COMPLETED",
        "writes": "COMPLETED", "writes-nonsense": "FAILED", "more": "COMPLETED", "bad": "FAILED",
        "grows": "COMPLETED", "gives-up": "FAILED", "rounds": "COMPLETED", "rounds-used-up": "CHECKPOINTED",
        "behind": "FAILED",
    }  # fmt: skip
    assert local["grows"].attempts == (("OUT_OF_MEMORY", "0:9"), ("COMPLETED", "0:0"))
    assert [exit_text for _, exit_text in local["gives-up"].attempts] == ["75:0"] * 3
    assert [state for state, _ in local["rounds"].attempts] == ["CHECKPOINTED", "CHECKPOINTED", "COMPLETED"]


def warned(handler: str) -> dict[str, object]:
    """A script that ignores its warning, around a step that does this with it and ends with 0."""
    task = f"import signal, sys, time; signal.signal(10, {handler}); time.sleep(9)"
    run = f"trap '' USR1; srun env --default-signal=USR1 python3 -c '{task}'"
    return {"run": run, "time": "600s", "signal": "USR1@595", "checkpoint": {"codes": [0], "rounds": 1}}


def test_a_warning_counts_where_a_task_takes_it(places: dict[str, Place]) -> None:
    """A step whose task takes the warning has a checkpoint; where all ignore it, exit 0 is the end. srun is nobody."""
    jobs = {"takes": warned("lambda *_: sys.exit(0)"), "ignores": warned("signal.SIG_IGN")}
    ends = on_both(places, lambda place: {name: one.short[:2] for name, one in run_flow(place, "w", jobs)[1].items()})
    assert ends["slurm"] == ends["local"] == {"takes": ("CHECKPOINTED", "0:0"), "ignores": ("COMPLETED", "0:0")}


def graph_run(place: Place) -> int:
    runs = json.loads(place("runs", "--json").out)["runs"]
    return next(int(run["id"]) for run in runs if run["name"] == "graph")


def test_members_are_handed_over_together(places: dict[str, Place], graph: dict[str, Any]) -> None:
    """Those of a matrix that may run are members of an array: not twenty calls of sbatch."""
    place = places["slurm"]
    events = place("export", str(graph_run(place)), "--jsonl").out
    taken = re.findall(r"Submitted batch job (\d+)_\d+", events)
    assert len(taken) >= 10, "a member that goes alone is a plain job"
    assert len(set(taken)) < len(taken) / 2


def test_generated_jobs_come_after_the_verdict(places: dict[str, Place], graph: dict[str, Any]) -> None:
    """On Slurm a generated job is handed over when its generator's completion is confirmed, not when it looks gone."""
    place = places["slurm"]
    jobs = json.loads(place("show", str(graph_run(place)), "--json").out)["jobs"]
    numbers = {one["name"]: one["id"] for one in jobs}
    generator, generated = (
        json.loads(place("show", str(numbers[name]), "--json").out)["attempts"][0] for name in ("writes", "more")
    )
    assert generated["planned_at"] > generator["ended_at"]


# ---- single batch scripts, and what `aver run` exits with -----------------------------------------------------

LONG = "n" * 1000
SCRIPTS: dict[str, tuple[str, int]] = {
    "ok": ("#!/bin/bash\n#SBATCH -J ok -t 2\nexit 0\n", 0),
    "fails": ("#!/bin/bash\nexit 7\n", 1),
    "steps": (f"#!/bin/bash\n#SBATCH -n 4 --time=5\nsrun sh -c {RANK}\nexit 0\n", 0),
    "late": ("#!/bin/bash\n#SBATCH --time=0:01\nsleep 60\n", 3),
    "fat": (f"#!/bin/bash\n#SBATCH --mem=64M\n{EAT}\n", 4),
    "cancelled": ("#!/bin/bash\nscancel $SLURM_JOB_ID; sleep 60\n", 5),
    "warned": ("#!/bin/bash\n#SBATCH --time=10 --signal=B:TERM@599\ntrap 'exit 0' TERM; sleep 60 & wait\n", 0),
    "no-interpreter": ("#!/no/such/interpreter\nexit 0\n", 1),
    "python": ("#!/usr/bin/python3\nimport sys; sys.exit(200)\n", 1),
    "long-name": (f"#!/bin/bash\n#SBATCH -J {LONG}\nexit 5\n", 1),
    "odd-name": ("#!/bin/bash\n#SBATCH --job-name='a|b \"c\" d;e ü'\nexit 6\n", 1),
    "no-newline": ("#!/bin/sh\nexit 9", 1),
    "here": ("#!/bin/bash\ncat <<'E'\nAVER_END\n$HOME `x` \\ '\nE\nexit 11\n", 1),
}


def test_batch_scripts(places: dict[str, Place]) -> None:
    """Each script has the same verdict, and `aver run` the same exit status."""

    def run(place: Place) -> dict[str, Any]:
        processes = {}
        for name, (text, _) in SCRIPTS.items():
            (place.folder / name).mkdir()
            place.write(f"{name}/job.sh", text)
            words = ("run", "--engine", place.engine, "--output", f"{name}/out", f"{name}/job.sh")
            processes[name] = place.start(*words)
        said = {name: (process.communicate(timeout=100)[1], process.returncode) for name, process in processes.items()}
        numbers = {name: int(re.findall(rb"aver: job (\d+)", err)[0]) for name, (err, _) in said.items()}
        return {name: (said[name][1], *place.shown(number).values()) for name, number in numbers.items()}

    found = on_both(places, run)
    assert {name: one[0] for name, one in found["local"].items()} == {name: code for name, (_, code) in SCRIPTS.items()}
    assert found["slurm"] == found["local"]


# ---- cancelling -------------------------------------------------------------------------------------------------

CANCELLED = {
    "plain": "touch began-$AVER_JOB_NAME; sleep 60 & wait",
    "trapped": "trap 'exit 0' TERM; touch began-$AVER_JOB_NAME; sleep 60 & wait",
    "ignored": "trap '' TERM; touch began-$AVER_JOB_NAME; sleep 60",
    "with-steps": "srun sh -c 'touch began-with-steps; sleep 60'",
}


def test_cancelling(places: dict[str, Place]) -> None:
    """Running, trapped, ignored, with steps; and pending, in Slurm's own queue there: the same verdicts."""

    def run(place: Place) -> tuple[int, dict[str, Shown]]:
        pending: dict[str, object] = {"run": "exit 0", "hold": True}
        if place.engine == "slurm":
            pending = {"run": "exit 0", "nodes": 4, "slurm_options": ["--exclusive"]}  # while the others run
        jobs = {name: job(text) for name, text in CANCELLED.items()} | {"pending": pending}
        answer = place("submit", "--engine", place.engine, write_flow(place, "cancels", jobs))
        assert answer.status == 0, answer.err
        number = int(answer.out)
        for name in CANCELLED:
            place.wait_for(f"began-{name}")
        assert place("cancel", str(number)).status == 0
        watched = place("watch", str(number), "--exit-status")
        return watched.status, place.shown(number)

    found = on_both(places, run)
    steps = {name: shown.pop("with-steps") for name, (_, shown) in found.items()}
    assert {one.state for one in steps.values()} == {"CANCELLED"}
    assert {one.exit for one in steps.values()} <= {"0:15", "143:0"}, "whichever end comes first: its own, or srun's"
    assert found["slurm"] == found["local"]
    status, shown = found["local"]
    assert status == 5
    assert {name: one.short[:2] for name, one in shown.items()} == {
        "plain": ("CANCELLED", "0:15"), "trapped": ("CANCELLED", "0:0"), "ignored": ("CANCELLED", "0:9"),
        "pending": ("CANCELLED", "?"),
    }  # fmt: skip


# ---- odd names, secrets -----------------------------------------------------------------------------------------

ODD = "a|b 'c' \"d\" $e %j ü"


def test_odd_names(places: dict[str, Place]) -> None:
    """`|`, quotes, spaces, percent signs and letters beyond ASCII in names, commands, folders and files."""
    member = {"run": "printf %s {v} > out-of-{v}; exit 3", "matrix": {"v": ["x y", "p|q", "it's"]}}
    jobs: dict[str, dict[str, object]] = {
        "folder": {"run": ["/bin/sh", "-c", 'test "$1" = "$WORD" && pwd && exit 4', "sh", ODD], "folder": ODD,
                   "env": {"WORD": ODD}, "output": "out %% put"},
        "_.x-1": job("echo hällo > 'h ä'; exit 2"),
        "long." + "n" * 200: job("exit 12"),
        "m": member,
    }  # fmt: skip

    def run(place: Place) -> tuple[int, dict[str, Shown]]:
        (place.folder / ODD).mkdir()
        answer, shown = run_flow(place, ODD, jobs)
        assert answer.status == 1, answer.err
        written = (place.folder / ODD / "out % put").read_text()
        assert written.strip() == str(place.folder / ODD)
        assert (place.folder / "out-of-p|q").read_text() == "p|q"
        return answer.status, shown

    found = on_both(places, run)
    assert found["slurm"] == found["local"]
    assert sorted(one.exit for one in found["local"][1].values()) == ["12:0", "2:0", "3:0", "3:0", "3:0", "4:0"]


def test_secrets_are_not_in_slurms_script(places: dict[str, Place]) -> None:
    """Values of the environment, the flow's and the submitter's, are in the job and not in what Slurm keeps of it."""
    place = places["slurm"]
    text = 'test "$TOKEN-$OTHER" = tok-9f2-oth-7c1 && touch has-secrets; until [ -e let-go ]; do sleep 0.1; done'
    jobs = {"s": {"run": text.replace("tok-9f2", "tok-$X"), "env": {"TOKEN": "tok-9f2", "X": "9f2"}}}
    number = int(place("submit", "--engine", "slurm", write_flow(place, "secrets", jobs), OTHER="oth-7c1").out)
    place.wait_for("has-secrets")
    events = place("export", str(number), "--jsonl").out
    (slurm_id,) = set(re.findall(r"Submitted batch job (\d+)", events))
    kept = subprocess.run(
        ["scontrol", "write", "batch_script", slurm_id, "-"], env=dict(place.environment), capture_output=True,
        text=True, check=True,
    ).stdout  # fmt: skip
    (place.folder / "let-go").touch()
    assert "has-secrets" in kept
    assert "tok-9f2" not in kept
    assert "=9f2" not in kept
    assert "X=" not in kept
    assert place("watch", str(number), "--exit-status").status == 0


def test_steps_are_told_once(places: dict[str, Place]) -> None:
    """The coordinator is killed while a job with steps runs: the next one reads their records, and tells none again."""
    text = "srun sh -c 'exit 7' || true; srun true; touch stepped; until [ -e go ]; do sleep 0.1; done; exit 3"

    def run(place: Place) -> tuple[Shown, int]:
        number = int(place("submit", "--engine", place.engine, write_flow(place, "killed", {"k": job(text)})).out)
        place.wait_for("stepped")
        place.until(lambda: place("export", str(number), "--jsonl").out.count("StepEnded") == 2, "both steps ended")
        os.kill(json.loads((place.home / "lock").read_bytes())["pid"], signal.SIGKILL)
        place("jobs")
        (place.folder / "go").touch()
        place("watch", str(number))
        return place.shown(number)["k"], place("export", str(number), "--jsonl").out.count("StepEnded")

    found = on_both(places, run)
    assert found["slurm"] == found["local"]
    shown, told = found["local"]
    assert (shown.short, told) == (("FAILED", "3:0", "7:0"), 2)


def test_the_page_has_the_differences() -> None:
    """docs/en/guides/slurm-cluster.md says the same of each."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "en" / "guides" / "slurm-cluster.md").read_text(
        encoding="utf-8"
    )
    assert [f"| {what} | {why} |" for what, why in DIFFERENCES.items() if f"| {what} | {why} |" not in page] == []
