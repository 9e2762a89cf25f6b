"""`aver watch`, end to end."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from product import Product, end, wait_for_file

WAITS = "touch started; while [ ! -e go ]; do sleep 0.05; done; exit 3"


def test_without_exit_status_settled_is_success(aver: Product) -> None:
    """`watch` exits 0 once settled; with --exit-status as the job ended."""
    number = str(aver.submit("--", "sh", "-c", "exit 3"))
    assert aver("watch", number).status == 0
    assert aver("watch", number, "--exit-status").status == 1


def test_changes_are_plain_lines_and_the_end_is_one_line(aver: Product) -> None:
    """Elsewhere than on a terminal: time, job, name, state."""
    number = aver.submit("-J", "train", "--", "sh", "-c", WAITS)
    process = aver.start("watch", str(number), "--exit-status")
    wait_for_file(aver.folder / "started")
    (aver.folder / "go").touch()
    answer = end(process)
    assert answer.status == 1
    last = answer.out.splitlines()[-1]
    assert last.split(" ", 1)[1] == f"job {number} train FAILED 3:0 NonZeroExitCode"
    assert answer.err.startswith(f"aver: job {number} FAILED 3:0 NonZeroExitCode in ")
    assert "\x1b" not in answer.out + answer.err


def test_timeout_exits_124_and_cancels_nothing(aver: Product) -> None:
    """The job goes on."""
    number = aver.submit("--", "sh", "-c", WAITS)
    answer = aver("watch", str(number), "--timeout", "1s", "--exit-status")
    assert answer.status == 124
    assert "nothing was cancelled" in answer.err
    assert aver.state(number) == "RUNNING"
    (aver.folder / "go").touch()


def test_json_is_one_document_with_the_exit_status(aver: Product) -> None:
    """stdout has nothing else."""
    number = aver.submit("--", "false")
    answer = aver("watch", str(number), "--exit-status", "--json")
    assert (answer.status, answer.document["exit_status"], answer.document["is_settled"]) == (1, 1, True)


def test_of_many_the_worst_counts(aver: Product) -> None:
    """FAILED is worse than CANCELLED."""
    first = aver.submit("--hold", "--", "true")
    second = aver.submit("--", "false")
    assert aver("cancel", str(first)).status == 0
    assert aver("watch", str(first), "-e").status == 5
    assert aver("watch", str(first), str(second), "-e").status == 1


def test_any_stops_at_the_first_that_settles(aver: Product) -> None:
    """It answers with that one, and names the others; a second call goes on with them."""
    slow = aver.submit("--", "sh", "-c", WAITS)
    quick = aver.submit("--", "sh", "-c", "exit 4")
    answer = aver("watch", "--any", str(slow), str(quick), "--json", "--exit-status")
    assert (answer.status, [job["id"] for job in answer.document["jobs"]]) == (1, [quick])
    assert (answer.document["is_settled"], answer.document["waiting"]) == (True, [slow])
    (aver.folder / "go").touch()
    rest = aver("watch", "--any", *map(str, answer.document["waiting"]), "--json").document
    assert ([job["id"] for job in rest["jobs"]], rest["waiting"]) == ([slow], [])


def test_any_without_a_number_means_all_unsettled_runs(aver: Product) -> None:
    """And says so when there are none."""
    assert "nothing was submitted yet" in aver("watch", "--any").err
    number = aver.submit("--", "sh", "-c", WAITS)
    wait_for_file(aver.folder / "started")
    late = aver("watch", "--any", "--json", "--timeout", "1s")
    assert (late.status, late.document["waiting"], late.document["is_settled"]) == (124, [number], False)
    process = aver.start("watch", "--any")
    assert process.stdout is not None
    process.stdout.readline()  # it has begun to wait
    (aver.folder / "go").touch()
    answer = end(process)
    assert answer.err.startswith(f"aver: job {number} FAILED 3:0")
    assert aver("watch", "--any").status == 2
    assert aver("watch").status == 2


def test_a_skipped_job_alone_exits_9(aver: Product) -> None:
    """It never ran, and its need decides only for the run."""
    (aver.folder / "flow.yaml").write_text("jobs:\n  a: {run: exit 3}\n  b: {needs: [a], run: 'true'}\n")
    run = aver.submit("flow.yaml")
    assert aver("watch", f"{run}/b", "-e").status == 9
    assert aver("watch", str(run), "-e").status == 1


def test_a_killed_coordinator_is_said_at_once(aver: Product, aver_home: Path) -> None:
    """Exit 69, and the next command starts another, which finds the job."""
    number = aver.submit("--", "sh", "-c", WAITS)
    wait_for_file(aver.folder / "started")
    process = aver.start("watch", str(number), "--exit-status")
    assert process.stdout is not None
    process.stdout.readline()  # it has begun to wait
    os.kill(json.loads((aver_home / "lock").read_text())["pid"], signal.SIGKILL)
    answer = end(process)
    assert answer.status == 69
    assert answer.err.startswith("aver: the coordinator ended while this waited")
    (aver.folder / "go").touch()
    assert aver("watch", str(number), "--exit-status").status == 1
