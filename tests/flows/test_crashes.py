"""`kill -9` of the coordinator in the middle of flows gives the same final result as no crash."""

from __future__ import annotations

import json
import os
import random
import signal
import time

import pytest
from flow_lab import Lab

import aver
from live_home import is_alive

BATCH = json.dumps({"late": {"run": "echo late >> order; sleep 0.05"}, "later": {"needs": "late", "run": "sleep 0.05"}})
FLOWS = {
    "chain": "jobs:\n"
    + "".join(
        f"  j{n}: {{run: 'echo j{n} >> order; sleep 0.05'{f', needs: j{n - 1}' if n else ''}}}\n" for n in range(12)
    ),
    "cascade": """
jobs:
  a: {matrix: {n: 1..6}, run: "echo a{n} >> order; sleep 0.0{n}; test {n} != 4"}
  b: {needs: a, run: echo never >> order}
  c: {needs: b, run: echo never >> order}
  d: {needs: {a: any}, run: echo d >> order}
  z: {needs: [b, c], if: always, run: echo z >> order; sleep 0.1}
  f: {needs: a, if: failure, run: echo f >> order}
""",
    "retries": """
jobs:
  r:
    run: "echo r >> order; sleep 0.1; test $AVER_ATTEMPT -ge 3"
    retry: {max: 5, on: [FAILED], backoff: {first: 1s, factor: 1}}
  after: {needs: r, run: sleep 0.1}
""",
    "generated": f"""
jobs:
  gen: {{run: 'echo gen >> order; sleep 0.1; echo ''{BATCH}'' > more.json', generates: more.json}}
  after: {{needs: gen, run: echo after >> order; sleep 0.1}}
""",
    "lanes": """
axes: {s: [a, b, c, d]}
jobs:
  prep: {matrix: [s], run: "echo prep-{s} >> order; sleep 0.05; test {s} != c"}
  train: {matrix: {s, n: 1..2}, needs: {prep: same}, run: "echo train-{s}-{n} >> order; sleep 0.05"}
  merge: {matrix: [s], needs: ["train[s={s}]"], run: "echo merge-{s}-$AVER_PARAM_s >> order; sleep 0.05"}
  mend: {matrix: [s], needs: {"prep[s={s}]": failure}, run: "echo mend-{s} >> order"}
  all: {needs: {merge: any}, run: echo all >> order}
""",
    "matrix": "jobs:\n  m: {matrix: {n: 1..40, max_parallel: 3}, run: 'echo {n} >> order; sleep 0.02'}\n",
}


def outcome(run: aver.Run) -> dict[str, tuple[str, str, list[str]]]:
    """All that must not depend on crashes: states, reasons, and how each attempt ended."""
    return {job.name: (str(job.state), job.reason, [f"{one.state} {one.exit}" for one in job.attempts]) for job in run}


@pytest.mark.parametrize("name", FLOWS)
def test_killed_at_random_times(lab: Lab, name: str) -> None:
    """States, reasons, attempts and their exits are the same, and no job ran once more or once less."""
    undisturbed = lab.run(FLOWS[name])
    order = sorted(lab.lines("order"))
    (lab.folder / "order").unlink()
    seed = time.time_ns() % 10_000
    chance = random.Random(seed)
    run = lab.submit(FLOWS[name])
    kills = 0
    while not run.state.is_settled and kills < 12:
        time.sleep(chance.uniform(0.0, 0.25))  # the instant of the kill is the random input of this test
        lab.kill()
        kills += 1
        ping()
    run.wait(60)
    assert kills > 0
    assert outcome(run) == outcome(undisturbed), f"seed {seed}, {kills} kills"
    assert run.state == undisturbed.state
    assert sorted(lab.lines("order")) == order, f"seed {seed}, {kills} kills"


def ping() -> None:
    """Any command: it starts the coordinator again."""
    from aver.errors import UnreachableError
    from aver.home import Home
    from aver.protocol.client import Client

    try:
        Client.connect(Home.find()).close()
    except UnreachableError:
        pass  # killed while it started


@pytest.mark.parametrize(
    "point", ["submit-files-written", "before-commit:3", "committed:4", "acted:3", "heard:4", "told:3"]
)
def test_killed_at_the_worst_instants(lab: Lab, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """At each named point of the turn: a submission is whole or was never made, and what runs ends as it should."""
    monkeypatch.setenv("AVER_CRASH_AT", point)
    try:
        run = lab.submit(FLOWS["cascade"])
    except aver.errors.UnreachableError:
        monkeypatch.delenv("AVER_CRASH_AT")
        ping()
        assert lab("runs", "--json").document["runs"] == []
        run = lab.submit(FLOWS["cascade"])
    lab.until(lambda: _is_gone(lab) or run.state.is_settled, "neither crashed nor settled")
    monkeypatch.delenv("AVER_CRASH_AT", raising=False)
    run.wait(60)
    found = {name: state for name, (state, _, _) in outcome(run).items()}
    assert found["a[n=4]"] == "FAILED"
    assert found["b"] == found["c"] == "SKIPPED"
    assert found["d"] == found["z"] == found["f"] == "COMPLETED"
    assert sorted(lab.lines("order")) == sorted([f"a{n}" for n in range(1, 7)] + ["d", "z", "f"])


def _is_gone(lab: Lab) -> bool:
    from aver.errors import UnreachableError
    from aver.home import Home
    from aver.protocol.client import Client

    try:
        Client.connect(Home(lab.home), start=False).close()
    except UnreachableError:
        return True
    return False


def test_the_budget_survives_kill_9(lab: Lab) -> None:
    """A retry that was due when the coordinator was killed is counted: two retries for the run, not three."""
    run = lab.submit(
        "retry_budget: 2\njobs:\n  a: {run: exit 1, retry: {max: 9, on: [FAILED], backoff: {first: 1s, factor: 1}}}\n"
    )
    lab.until(lambda: run["a"].reason == "Retry", "no retry is due")
    lab.kill()
    run.wait(60)
    assert len(run["a"].attempts) == 3


def test_rounds_survive_kill_9(lab: Lab) -> None:
    """A retry while others run is a new round, and stays one."""
    run = lab.submit("jobs:\n  a: {run: 'until test -e go; do sleep 0.02; done'}\n  b: {run: test -e go}\n")
    run["b"].wait(60)
    run.retry("b")
    assert run.round == 2
    lab.kill()
    lab.let_go("go")
    run.wait(60)
    assert run.round == 2


@pytest.mark.parametrize("point", ["before-commit", "committed", "acted"])
def test_a_cancel_survives_kill_9(lab: Lab, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Killed while it takes a cancellation: either nobody was told and nothing happened, or all of it happens."""
    lab.write("jobs:\n  a: {run: touch begun; sleep 100}\n  b: {needs: a, run: 'true'}\n")
    run = aver.Flow.from_file(lab.folder / "flow.yaml", folder=lab.folder).submit()
    lab.wait_for("begun")
    lab.until(lambda: run["a"].state == "RUNNING", "it does not run")
    lab.kill()
    lab.until(lambda: _is_gone(lab), "the coordinator lives")
    monkeypatch.setenv("AVER_CRASH_AT", point)
    try:
        run.cancel()
        was_told = True
    except aver.errors.UnreachableError:
        was_told = False
    lab.until(lambda: _is_gone(lab), "the coordinator did not crash")
    monkeypatch.delenv("AVER_CRASH_AT")
    ping()
    if point == "before-commit":
        assert not was_told
        assert run["a"].state == "RUNNING"
        run.cancel()
    assert run.wait(60) == "CANCELLED"
    assert [str(job.state) for job in run] == ["CANCELLED", "CANCELLED"]


def test_witness_and_coordinator_both_killed(lab: Lab) -> None:
    """Nobody saw the end: UNVERIFIED with no exit, its processes ended, its dependents skipped. Never a guess."""
    run = lab.submit(
        "jobs:\n  a: {run: 'echo $$ > pid; echo $PPID > witness; touch begun; sleep 100'}\n"
        "  b: {needs: a, run: 'true'}\n"
    )
    lab.wait_for("begun")
    lab.until(lambda: run["a"].state == "RUNNING", "it does not run")
    lab.kill()
    lab.until(lambda: _is_gone(lab), "the coordinator lives")
    os.kill(int((lab.folder / "witness").read_text()), signal.SIGKILL)
    assert run.wait(60) == "UNVERIFIED"
    assert run["a"].exit is None
    assert run["b"].reason == "NeedUnverified:a(UNVERIFIED)"
    pid = int((lab.folder / "pid").read_text())
    lab.until(lambda: not is_alive(pid), "its process is left behind")


def test_what_has_grown_survives_kill_9(lab: Lab) -> None:
    """A retry that waits behind many other jobs keeps its grown limit, though its next attempt is not planned yet."""
    run = lab.submit(
        """
max_parallel: 1
jobs:
  a:
    run: "test $AVER_ATTEMPT -ge 2 || sleep 100"
    time: 1s
    retry: {max: 1, on: [TIMEOUT], grow: {time: 2x}}
  blocker: {run: 'until test -e go; do sleep 0.02; done'}
  fill: {matrix: {n: 1..60}, run: ": {n}"}
"""
    )
    lab.until(lambda: run["blocker"].state == "RUNNING", "the blocker does not run")
    assert len(run["a"].attempts) == 1
    lab.kill()
    lab.let_go("go")
    assert run.wait(60) == "COMPLETED"
    assert [attempt.request.time_s for attempt in run["a"].attempts] == [1, 2]
