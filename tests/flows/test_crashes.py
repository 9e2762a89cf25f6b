"""`kill -9` of the coordinator in the middle of flows gives the same final result as no crash."""

from __future__ import annotations

import json
import random
import time

import pytest
from flow_lab import Lab

import aver

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
  r: {run: "echo r >> order; sleep 0.1; test $AVER_ATTEMPT -ge 3", retry: {max: 5, backoff: 1s, on: [FAILED]}}
  after: {needs: r, run: sleep 0.1}
""",
    "generated": f"""
jobs:
  gen: {{run: 'echo gen >> order; sleep 0.1; echo ''{BATCH}'' > more.json', generates: more.json}}
  after: {{needs: gen, run: echo after >> order; sleep 0.1}}
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
        _ping()
    run.wait(60)
    assert kills > 0
    assert outcome(run) == outcome(undisturbed), f"seed {seed}, {kills} kills"
    assert run.state == undisturbed.state
    assert sorted(lab.lines("order")) == order, f"seed {seed}, {kills} kills"


def _ping() -> None:
    """Any command: it starts the coordinator again."""
    from aver.coordinator.client import Client
    from aver.errors import UnreachableError
    from aver.home import Home

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
        _ping()
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
    from aver.coordinator.client import Client
    from aver.errors import UnreachableError
    from aver.home import Home

    try:
        Client.connect(Home(lab.home), start=False).close()
    except UnreachableError:
        return True
    return False
