"""Needs, conditions and the cascade, on the local engine."""

from __future__ import annotations

import pytest
from flow_lab import Lab, reasons, states, wait_for_file

OUTCOMES = """
jobs:
  good: {run: "true"}
  bad: {run: exit 3}
  after_good: {needs: good, run: "true"}
  after_bad: {needs: bad, run: "true"}
  any_bad: {needs: {bad: any}, run: "true"}
  if_bad: {needs: {bad: failure}, run: "true"}
  if_good_fails: {needs: {good: failure}, run: "true"}
  by_state: {needs: {bad: [FAILED, TIMEOUT]}, run: "true"}
  by_other_state: {needs: {bad: [TIMEOUT]}, run: "true"}
  always: {needs: [bad, good], if: always, run: "true"}
  failure: {needs: [bad, good], if: failure, run: "true"}
  no_failure: {needs: [good], if: failure, run: "true"}
  one_of: {needs: {any_of: [bad, good]}, run: "true"}
  none_of: {needs: {any_of: [bad, after_bad]}, run: "true"}
"""


def test_edges_by_outcome(lab: Lab) -> None:
    """Success by default; any, failure, a list of states; if: always and failure; any_of. One run has them all."""
    run = lab.run(OUTCOMES)
    assert states(run) == {
        "good": "COMPLETED",
        "bad": "FAILED",
        "after_good": "COMPLETED",
        "after_bad": "SKIPPED",
        "any_bad": "COMPLETED",
        "if_bad": "COMPLETED",
        "if_good_fails": "SKIPPED",
        "by_state": "COMPLETED",
        "by_other_state": "SKIPPED",
        "always": "COMPLETED",
        "failure": "COMPLETED",
        "no_failure": "SKIPPED",
        "one_of": "COMPLETED",
        "none_of": "SKIPPED",
    }
    assert reasons(run)["after_bad"] == "NeedFailed:bad(FAILED)"
    assert reasons(run)["if_good_fails"] == "NeedSucceeded:good(COMPLETED)"
    assert reasons(run)["no_failure"] == "ConditionNotMet"
    assert run.state == "FAILED"


def test_a_condition_that_did_not_apply_counts_as_success(lab: Lab) -> None:
    """`if: failure` and nothing failed: the run is COMPLETED, and `aver run` exits 0."""
    lab.write("jobs:\n  a: {run: 'true'}\n  b: {needs: a, if: failure, run: 'false'}\n")
    answer = lab("run", "flow.yaml")
    assert answer.status == 0, answer
    assert "SKIPPED" in answer.out


CHAIN = """
jobs:
  root: {run: "%s", time: 1h, mem: 200M}
  second: {needs: root, run: touch never}
  third: {needs: second, run: touch never}
  beside: {run: "true"}
"""


def test_every_listing_has_the_skipped_jobs_and_their_cause(lab: Lab) -> None:
    """A skipped job is in jobs, show, why and watch, on paper and in JSON, with the need and its verdict."""
    run = lab.run(CHAIN % "kill -SEGV $$")
    assert states(run) == {"root": "FAILED", "second": "SKIPPED", "third": "SKIPPED", "beside": "COMPLETED"}
    assert reasons(run)["second"] == "NeedFailed:root(FAILED)"
    assert reasons(run)["third"] == "NeedSkipped:second(SKIPPED)"
    assert not (lab.folder / "never").exists()
    number, second = str(run.number), str(run["second"].number)
    listed = lab("jobs", number).out
    assert listed.count(" SKIPPED ") == 2
    assert "NeedFailed:root(FAILED)" in listed
    document = lab("jobs", number, "--json").document
    by_name = {job["name"]: job for job in document["jobs"]}
    assert by_name["third"]["state"] == "SKIPPED"
    assert by_name["third"]["reason"] == "NeedSkipped:second(SKIPPED)"
    assert by_name["third"]["exit"] is None
    shown = lab("show", second).out
    assert "SKIPPED" in shown
    assert "root" in shown
    why = lab("why", second).out
    assert "root" in why
    assert "FAILED" in why
    watched = lab("watch", f"{number}/second", "--exit-status")
    assert watched.status == 9
    assert "SKIPPED" in watched.out + watched.err
    assert lab("watch", number, "--exit-status").status == 1


@pytest.mark.parametrize(
    ("command", "state"),
    [("exit 1", "FAILED"), ("kill -KILL $$", "FAILED"), ("kill -KILL $PPID; sleep 100", "UNVERIFIED")],
)
def test_the_cascade_names_how_the_need_ended(lab: Lab, command: str, state: str) -> None:
    """Whatever the need's end, its dependents are SKIPPED through the whole chain and never wait for ever."""
    run = lab.run(
        f"jobs:\n  root: {{run: '{command}'}}\n  b: {{needs: root, run: 'true'}}\n  c: {{needs: b, run: x}}\n"
    )
    assert states(run) == {"root": state, "b": "SKIPPED", "c": "SKIPPED"}
    assert reasons(run)["b"].endswith(f"root({state})")


def test_a_timeout_skips_its_dependents(lab: Lab) -> None:
    """A need that timed out counts as failed."""
    run = lab.run("jobs:\n  slow: {run: sleep 100, time: 1s}\n  b: {needs: slow, run: 'true'}\n")
    assert states(run) == {"slow": "TIMEOUT", "b": "SKIPPED"}
    assert reasons(run)["b"] == "NeedFailed:slow(TIMEOUT)"


OOM = "python3 -c 'x = bytearray(400 << 20); import time; time.sleep(5)'"


def test_an_out_of_memory_parent_counts(lab: Lab) -> None:
    """OUT_OF_MEMORY skips dependents and decides the run's state; with `oom: warn` under exit 0 it only warns."""
    run = lab.run(
        f"""
jobs:
  big: {{mem: 60M, run: {OOM}}}
  after: {{needs: big, run: "true"}}
  warned: {{mem: 60M, oom: warn, run: "{OOM.replace('"', "")} || true"}}
  after_warned: {{needs: warned, run: "true"}}
"""
    )
    assert states(run)["big"] == "OUT_OF_MEMORY"
    assert reasons(run)["after"] == "NeedFailed:big(OUT_OF_MEMORY)"
    assert run.state == "OUT_OF_MEMORY"
    if states(run)["warned"] == "COMPLETED":
        verdict = run["warned"].verdict
        assert verdict is not None
        assert verdict.warnings
        assert verdict.warnings[0] in lab("show", str(run["warned"].number)).out
        assert states(run)["after_warned"] == "COMPLETED"
    else:  # without cgroups the witness itself kills the whole job when a sample is over the limit
        assert states(run)["warned"] == "OUT_OF_MEMORY"


def test_a_fast_chain_does_not_wait_behind_a_slow_sibling(lab: Lab) -> None:
    """A job starts when its own needs are settled, never in waves: the chain ends while the sibling still runs."""
    run = lab.submit(
        f"""
jobs:
  slow: {{run: "{wait_for_file("go")}"}}
  a: {{run: "true"}}
  b: {{needs: a, run: "true"}}
  c: {{needs: b, run: touch done}}
"""
    )
    lab.wait_for("done")
    assert run["c"].wait(60).state == "COMPLETED"
    assert run["slow"].state == "RUNNING"
    lab.let_go("go")
    assert run.wait(60) == "COMPLETED"


def test_globs_and_addresses_in_needs(lab: Lab) -> None:
    """`shard-*` is every job of that name; `train[seed=2]` one member, whose siblings do not matter."""
    run = lab.run(
        """
jobs:
  shard-a: {run: "true"}
  shard-b: {run: "true"}
  train: {matrix: {seed: [1, 2]}, run: "test {seed} = 2"}
  all: {needs: "shard-*", run: "true"}
  two: {needs: "train[seed=2]", run: "true"}
  one: {needs: "train[seed=1]", run: "true"}
"""
    )
    assert {name: state for name, state in states(run).items() if name in ("all", "two", "one")} == {
        "all": "COMPLETED",
        "two": "COMPLETED",
        "one": "SKIPPED",
    }
    assert reasons(run)["one"] == "NeedFailed:train[seed=1](FAILED)"
