"""Background jobs: the foreground returns when it is settled, and the rest goes on."""

from __future__ import annotations

from flow_lab import DEADLINE_S, Lab, states, wait_for_file

import aver
from aver.home import Home
from aver.protocol.client import Client


def test_the_foreground_returns_before_background_jobs(lab: Lab) -> None:
    """`aver run` exits 0 when the foreground is settled; the background goes on, and its end counts for `watch`."""
    lab.write(
        f"""
jobs:
  front: {{run: "true"}}
  back: {{background: true, run: "{wait_for_file("go")}; exit 3"}}
  back2: {{needs: back, background: true, if: always, run: touch finished}}
"""
    )
    answer = lab("run", "flow.yaml")
    assert answer.status == 0, answer
    run = aver.Run(1)
    assert run.state == "RUNNING"
    assert states(run)["back"] == "RUNNING"
    lab.let_go("go")
    assert lab("watch", "1", "--exit-status").status == 1
    assert states(run) == {"front": "COMPLETED", "back": "FAILED", "back2": "COMPLETED"}


def test_a_background_job_that_a_foreground_job_needs_is_promoted_and_said(lab: Lab) -> None:
    """The run waits for it, its failure counts, and the user is told that it was promoted."""
    lab.write(
        """
jobs:
  back: {background: true, run: exit 3}
  front: {needs: {back: any}, run: "true"}
"""
    )
    answer = lab("run", "flow.yaml")
    assert answer.status == 1, answer
    assert "promoted" in answer.err, answer
    assert "back" in answer.err


def test_needs_between_background_and_foreground(lab: Lab) -> None:
    """Background to background, and background after foreground, are honoured: each starts after its need's end."""
    run = lab.run(
        """
jobs:
  front: {run: echo front >> order}
  back: {needs: front, background: true, run: echo back >> order}
  last: {needs: back, background: true, run: echo last >> order}
"""
    )
    assert lab.lines("order") == ["front", "back", "last"]
    assert run.state == "COMPLETED"


def test_a_flow_of_background_jobs_only_returns_at_once(lab: Lab) -> None:
    """There is no foreground to wait for: `aver run` exits 0 while they run."""
    lab.write(f"jobs:\n  back: {{background: true, run: '{wait_for_file('go')}'}}\n")
    assert lab("run", "flow.yaml").status == 0
    assert aver.Run(1).state in ("PENDING", "RUNNING")
    lab.let_go("go")
    assert aver.Run(1).wait(60) == "COMPLETED"


def test_the_foreground_is_called_settled_when_that_is_durable(lab: Lab) -> None:
    """Whoever is told so reads it in the store at once, however quick the jobs are."""
    for _ in range(10):
        run = lab.submit("jobs:\n  a: {run: 'true'}\n  b: {run: 'true'}\n  c: {background: true, run: sleep 1}\n")
        client = Client.connect(Home(lab.home))
        try:
            told = [change.settled for change in client.watch([run.number], DEADLINE_S, foreground=True)]
        finally:
            client.close()
        assert told[-1] == (run.number,)
        assert [str(run[name].state) for name in ("a", "b")] == ["COMPLETED"] * 2
        run.cancel(now=True)
