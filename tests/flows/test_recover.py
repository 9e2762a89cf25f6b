"""`aver recover` and `aver usage --correct`, end to end on this machine: the flow's file, the run, and the jobs."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

import pytest
from flow_lab import DEADLINE_S, Lab, states

import aver
from aver.errors import UsageError

HOLD = "python3 -c 'import time; x = bytes([1]) * (20 << 20); time.sleep(0.5)'"
TOUCH = "python3 -c 'import time; x = bytes([1]) * ({size} << 20); time.sleep(1)'"  # so long that a sample sees it
FLOW = f"""\
# a flow with comments
defaults: {{time: 1h, mem: 300M}}  # for all
jobs:
  prep: {{run: "echo prep >> order; {HOLD}"}}  # long and large enough to be measured
  train:  # members of one matrix
    needs: prep
    matrix: {{size: [10, 130]}}
    mem: 100M  # too little
    run: {TOUCH} && echo train{{size}} >> order
  slow: {{time: 2s, run: "test -e begun || {{ touch begun; sleep 60; }}"}}
  broken: {{run: "echo 'ModuleNotFoundError: foo' >&2; exit 3"}}
  eval: {{needs: train, run: echo eval >> order}}
"""


@pytest.fixture
def failed(lab: Lab) -> aver.Run:
    """A run in which one member ran out of memory, one job was too slow, one is broken and one was skipped."""
    run = lab.run(FLOW)
    assert states(run) == {
        "prep": "COMPLETED", "train[size=10]": "COMPLETED", "train[size=130]": "OUT_OF_MEMORY", "slow": "TIMEOUT",
        "broken": "FAILED", "eval": "SKIPPED",
    }  # fmt: skip
    return run


def test_what_ran_out_of_memory_completes_on_the_next_recover(lab: Lab, failed: aver.Run) -> None:
    """The whole evening: file corrected with its comments, mended jobs run again, the rest left alone."""
    answer = lab("recover", str(failed.number), "--yes", "--mem-factor", "2", "--limit-factor", "3")
    assert answer.status == 0, answer.err
    assert "left alone (broken), FAILED" in answer.out
    text = (lab.folder / "flow.yaml").read_text()
    assert text == FLOW.replace("100M  # too little", "300M  # too little").replace("time: 2s", "time: 1m")
    failed.wait(DEADLINE_S)
    assert states(failed) == {
        "prep": "COMPLETED", "train[size=10]": "COMPLETED", "train[size=130]": "COMPLETED", "slow": "COMPLETED",
        "broken": "FAILED", "eval": "COMPLETED",
    }  # fmt: skip
    assert sorted(lab.lines("order")) == ["eval", "prep", "train10", "train130"]
    assert [attempt.request.mem_bytes for attempt in failed["train[size=130]"].attempts] == [100 << 20, 300 << 20]
    assert len(failed["broken"].attempts) == len(failed["train[size=10]"].attempts) == 1
    assert failed.round == 2
    nothing = lab("recover", str(failed.number), "--yes")
    assert nothing.status == 1
    assert "nothing to recover" in nothing.err
    assert failed.round == 2


def test_python_has_the_same_figures(lab: Lab, failed: aver.Run) -> None:
    """`run.results()` and `run.usage()`; a run that there is not is said."""
    first = failed.results()[0]
    assert (first.name, first.attempt, first.state, first.return_code) == ("train[size=130]", 1, "OUT_OF_MEMORY", 137)
    train = next(one for one in failed.usage().groups if one.name == "train")
    assert (train.jobs, train.mem.asked, train.mem.mark) == (2, 100 << 20, "over")
    assert len(failed.usage().jobs()) == 5
    with pytest.raises(UsageError, match="run 77 does not exist"):
        aver.Run(77).results()


def test_why_of_a_job_names_the_next_command(lab: Lab, failed: aver.Run) -> None:
    """In a flow that is recover, not another run by hand."""
    answer = lab("why", str(failed["train[size=130]"].number))
    assert f"Next:\n  aver recover {failed.number}\n  aver log " in answer.out


def test_a_dry_run_changes_nothing(lab: Lab, failed: aver.Run) -> None:
    """Neither the file nor the run; it says what it would do."""
    before = (lab.folder / "flow.yaml").stat()
    document = lab("recover", str(failed.number), "--dry-run", "--json", "--mem-factor", "1").document
    assert [(one["job"], one["key"], one["old"], one["new"]) for one in document["changes"]] == [
        ("train", "mem", "100M", "150M"),
        ("slow", "time", "2s", "1m"),
    ]
    assert [one["name"] for one in document["jobs"]] == ["train[size=130]", "slow"]
    assert [one["name"] for one in document["hopeless"]] == ["broken"]
    assert document["waiting"] == 1
    assert document["round"] is None
    assert "+    mem: 150M  # too little" in document["diff"]
    assert lab("usage", str(failed.number), "--correct", "--dry-run").status == 0
    after = (lab.folder / "flow.yaml").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert failed.round == 1


def test_watching_goes_on_while_it_helps(lab: Lab) -> None:
    """Two rounds of × 1.5 are needed, and made; then all is well, and so is the exit status."""
    run = lab.run(f"jobs:\n  a:\n    mem: 100M\n    run: {TOUCH.replace('{size}', '180')}\n")
    answer = lab("recover", str(run.number), "--yes", "--watch", "--limit-factor", "1.5")
    assert answer.status == 0, answer.err
    assert run.state == "COMPLETED"
    assert "a COMPLETED attempt" in answer.out  # each change while it waited
    limits = [attempt.request.mem_bytes for attempt in run["a"].attempts]
    assert len(limits) >= 2
    assert f"mem: {limits[-1] // (1 << 20)}M" in (lab.folder / "flow.yaml").read_text()


def test_a_bound_on_rounds(lab: Lab) -> None:
    """A run that was continued often enough is left alone, and it is said how to go on."""
    grows = "import time; x = [time.sleep(0.02) or bytes([1]) * (4 << 20) for _ in range(10**6)]"  # never enough
    run = lab.run(f'jobs:\n  a: {{mem: 50M, run: [python3, -c, "{grows}"]}}\n')
    assert run.state == "OUT_OF_MEMORY"
    assert lab("recover", str(run.number), "--yes", "--max-rounds", "1", "--mem-factor", "1").status == 0
    assert run.wait(DEADLINE_S) == "OUT_OF_MEMORY"
    answer = lab("recover", str(run.number), "--yes", "--max-rounds", "1")
    assert answer.status == 2
    assert "--max-rounds 2" in answer.err
    assert run.round == 2


def test_more_than_may_be_asked_for_is_left_alone(lab: Lab, failed: aver.Run) -> None:
    """A ceiling, given or the machine's own, keeps a job from being tried in vain."""
    document = lab("recover", str(failed.number), "--dry-run", "--json", "--max-mem", "100M").document
    assert [one["name"] for one in document["jobs"]] == ["slow"]
    assert {one["name"]: one["why"] for one in document["hopeless"]}["train[size=130]"].endswith(
        "100M is the most that may be asked for"
    )


def test_a_request_that_somebody_raised_is_theirs(lab: Lab, failed: aver.Run) -> None:
    """The file is not touched there, and the job runs again as the file says."""
    lab.write(FLOW.replace("mem: 100M", "mem: 400M"))
    document = lab("recover", str(failed.number), "--yes", "--json").document
    assert [one["job"] for one in document["changes"]] == ["slow"]
    assert "was changed in the file since" in document["left"][0]["why"]
    failed.wait(DEADLINE_S)
    assert failed["train[size=130]"].state == "COMPLETED"
    assert failed["train[size=130]"].attempts[-1].request.mem_bytes == 400 << 20


def test_a_job_whose_command_was_mended_runs_again_too(lab: Lab, failed: aver.Run) -> None:
    """What `aver reinit` would run again is part of the evening."""
    lab.write(FLOW.replace("exit 3", "exit 0"))
    answer = lab("recover", str(failed.number), "--yes", "--limit-factor", "3")
    assert "(broken): its command changed" in answer.out
    assert failed.wait(DEADLINE_S) == "COMPLETED"


def test_a_flow_with_other_jobs_is_refused(lab: Lab, failed: aver.Run) -> None:
    """It is another flow; nothing changes, and it is said."""
    text = FLOW.replace("  eval:", "  evaluate:")
    lab.write(text)
    answer = lab("recover", str(failed.number), "--yes")
    assert answer.status == 2
    assert "gone: eval" in answer.err
    assert (lab.folder / "flow.yaml").read_text() == text
    assert failed.round == 1


def test_a_file_with_mistakes_is_left_alone(lab: Lab, failed: aver.Run) -> None:
    """Each mistake is shown, and nothing is written."""
    lab.write(FLOW.replace("mem: 100M", "mem: much"))
    answer = lab("usage", str(failed.number), "--correct")
    assert answer.status == 2
    assert "flow.yaml:8:10" in answer.err
    assert failed.round == 1


def test_a_single_command_is_recovered_without_a_file(lab: Lab) -> None:
    """The run has the larger request; there is nothing to edit."""
    words = ["python3", "-c", "import time; x = bytes([1]) * (130 << 20); time.sleep(1)"]
    assert lab("run", "--mem", "100M", "--", *words).status == 4
    answer = lab("recover", "1", "--yes", "--limit-factor", "3")
    assert answer.status == 0, answer.err
    assert lab("watch", "1", "--exit-status").status == 0


def test_usage_writes_the_file_and_says_so(lab: Lab, failed: aver.Run) -> None:
    """Savings too, where every member completed; the mode stays, and a link stays a link."""
    path = lab.folder / "flow.yaml"
    real = lab.folder / "real.yaml"
    path.rename(real)
    real.chmod(0o640)
    path.symlink_to("real.yaml")
    answer = lab(
        "usage", str(failed.number), "--correct", "--mem-saving", "100M", "--mem-floor", "64M", "--mem-factor", "1"
    )
    assert answer.status == 0, answer.err
    text = real.read_text()
    assert ", mem: 64M, time: 10m}  # long and large enough to be measured\n" in text
    assert "mem: 150M  # too little" in text
    assert "broken: {run" in text
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in lab.folder.iterdir() if entry.name.startswith(".")] == []
    assert "nothing to correct" not in answer.err
    again = lab("usage", str(failed.number), "--correct")
    assert "not corrected in the file" in again.out  # the file says more than the run had: that is somebody's wish now
    assert real.read_text() == text


def test_it_asks_on_a_terminal(lab: Lab, failed: aver.Run) -> None:
    """No changes nothing; yes goes on."""
    assert "Go on?" in answered(lab, failed.number, b"n\n")
    assert failed.round == 1
    assert (lab.folder / "flow.yaml").read_text() == FLOW
    answered(lab, failed.number, b"y\n")
    assert failed.round == 2
    assert "mem: 100M" not in (lab.folder / "flow.yaml").read_text()


def answered(lab: Lab, run: int, reply: bytes) -> str:
    """What `aver recover` shows on a terminal on which this is typed when it asks."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "aver", "recover", str(run)], cwd=lab.folder, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen, is_asked, end = b"", False, time.monotonic() + DEADLINE_S
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 0.1)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                data = os.read(ours, 4096)
            except OSError:
                break
            if not data:
                break
            seen += data
            if b"Go on?" in seen and not is_asked:
                is_asked = True
                os.write(ours, reply)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert is_asked, seen
    return seen.decode("utf-8", "replace")


def test_a_refusal_leaves_the_file_as_it_was(lab: Lab, failed: aver.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the coordinator refuses was not written: here, more memory than it was told that the machine has."""
    small, large = lab.folder / "small.toml", lab.folder / "large.toml"
    large.write_text("kill_wait = 1\ncpus = 4\n")
    small.write_text("kill_wait = 1\ncpus = 4\nmem = '320M'\n")
    lab("stop")
    lab.until(lambda: lab("status", "--json").document["is_running"] is False, "the coordinator does not leave")
    assert lab("run", "--", "true", env={"AVER_CONFIG": str(small)}).status == 0  # starts the one that has less
    monkeypatch.setenv("AVER_CONFIG", str(large))
    answer = lab("recover", str(failed.number), "--yes", "--limit-factor", "9")
    assert answer.status == 2, answer.out
    assert "and this machine has 320M" in answer.err
    assert (lab.folder / "flow.yaml").read_text() == FLOW
    assert failed.round == 1
