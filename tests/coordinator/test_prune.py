"""Retention: logs of old settled runs are cut and say so; verdicts stay; nothing else is touched."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from pathlib import Path

import pytest

from aver.cli import main
from aver.coordinator.prune import KEPT_BYTES, MARK, cut_log
from aver.model.job import Streams
from aver.model.states import State
from live_home import LiveHome, shell_job, wait_for

NOISE = "seq 1 5000"  # 23,893 bytes


@pytest.fixture
def live(aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveHome:
    (tmp_path / "work").mkdir()
    (tmp_path / "config.toml").write_text("kill_wait = 1\n")
    monkeypatch.setenv("AVER_CONFIG", str(tmp_path / "config.toml"))
    return LiveHome(aver_home, tmp_path / "work")


def call(capfd: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    capfd.readouterr()
    status = main.invoke(list(args))
    captured = capfd.readouterr()
    return status, captured.out, captured.err


def test_old_logs_are_cut_and_say_so(live: LiveHome, capfd: pytest.CaptureFixture[str]) -> None:
    """The end stays of what did not complete; verdicts stay; the newest runs are kept; twice changes nothing."""
    flow = live.submit(shell_job("good", NOISE), shell_job("bad", f"{NOISE}; exit 3"))
    live.settle([flow])
    last = live.run_text(NOISE)
    live.settle([last])
    status, out, _ = call(capfd, "prune", "--keep-last", "1", "--json")
    document = json.loads(out)
    assert status == 0
    assert [(run["run"], run["files"], run["why"]) for run in document["runs"]] == [
        (flow, 2, "not among the last 1 runs")
    ]
    good, bad = (live.folder / f"aver-{flow}" / f"{name}.out" for name in ("good", "bad"))
    assert good.read_bytes().startswith(MARK)
    assert len(good.read_text().splitlines()) == 1
    *lines, footer = bad.read_text().splitlines()
    assert lines == [str(number) for number in range(int(lines[0]), 5001)]
    assert len("\n".join(lines)) <= KEPT_BYTES
    assert footer.startswith("[aver: pruned ")
    assert footer.endswith("removed]")
    assert (live.folder / f"aver-{last}.out").stat().st_size == 23893
    assert [live.job(number).state for number in (flow + 1, flow + 2)] == [State.COMPLETED, State.FAILED]
    before = bad.read_bytes()
    assert json.loads(call(capfd, "prune", "--keep-last", "1", "--json")[1])["runs"] == []
    assert bad.read_bytes() == before
    live.assert_store_is_whole()
    assert "pruned" in call(capfd, "log", str(flow + 1))[1]
    assert "logs of the run were cut by" in call(capfd, "why", str(flow + 2))[1]
    good.unlink()
    status, _, err = call(capfd, "log", str(flow + 1))
    assert status == 1
    assert "were pruned on" in err
    assert "not among the last 1 runs" in err


def test_a_dry_run_changes_nothing(live: LiveHome, capfd: pytest.CaptureFixture[str]) -> None:
    """It says the same figures, and neither a file nor the store changes."""
    run = live.run_text(NOISE)
    live.settle([run])
    log = live.folder / f"aver-{run}.out"
    with live.reader() as reader:
        seq = reader.last_seq()
    would = json.loads(call(capfd, "prune", "--keep-last", "0", "--max-size", "1K", "--dry-run", "--json")[1])
    assert log.stat().st_size == 23893
    with live.reader() as reader:
        assert reader.last_seq() == seq
    did = json.loads(call(capfd, "prune", "--max-size", "1K", "--json")[1])
    assert would | {"is_dry_run": False} == did
    assert did["freed_bytes"] == 23893 - log.stat().st_size
    assert did["left_bytes"] == log.stat().st_size


def test_the_oldest_go_until_the_size_is_right(live: LiveHome, capfd: pytest.CaptureFixture[str]) -> None:
    """Three runs of 23 KiB and room for 50: one is cut, the oldest."""
    runs = [live.run_text(NOISE) for _ in range(3)]
    live.settle(runs)
    document = json.loads(call(capfd, "prune", "--max-size", "50K", "--json")[1])
    assert [run["run"] for run in document["runs"]] == runs[:1]


def test_what_is_not_old_enough_stays(live: LiveHome, capfd: pytest.CaptureFixture[str]) -> None:
    """An age of an hour keeps what ended just now."""
    live.settle([live.run_text(NOISE)])
    assert json.loads(call(capfd, "prune", "--older-than", "1h", "--json")[1])["runs"] == []


def test_neither_unsettled_runs_nor_files_of_the_user(live: LiveHome, capfd: pytest.CaptureFixture[str]) -> None:
    """A run of which one job still runs is left alone as a whole; so is a file that the user named, and a link."""
    flow = live.submit(shell_job("done", NOISE), shell_job("runs", f"{NOISE}; until test -e go; do sleep 0.05; done"))
    named = live.submit(shell_job("named", NOISE, streams=Streams(stdout="mine.txt")))
    linked = live.run_text(NOISE)
    live.settle([named, linked])
    wait_for(lambda: live.job(flow + 1).state.is_settled, "the first job's end")
    (live.folder / f"aver-{linked}.out").rename(live.folder / "elsewhere")
    (live.folder / f"aver-{linked}.out").symlink_to("elsewhere")
    pruned = json.loads(call(capfd, "prune", "--keep-last", "0", "--max-size", "1B", "--json")[1])["runs"]
    assert {run["run"]: run["files"] for run in pruned} == {named: 0, linked: 0}
    sizes = [os.stat(live.folder / name).st_size for name in (f"aver-{flow}/done.out", "mine.txt", "elsewhere")]
    assert sizes == [23893] * 3
    (live.folder / "go").touch()
    live.settle([flow])


def test_a_log_of_another_home_in_the_same_folder_stays(live: LiveHome, capfd: pytest.CaptureFixture[str]) -> None:
    """Its run has the same number, and writes to a file of the same name: what came after our run is not ours."""
    run = live.run_text(NOISE)
    live.settle([run])
    path = live.folder / f"aver-{run}.out"
    path.write_bytes(b"of another home\n" * 1000)
    later = time.time() + 600
    os.utime(path, (later, later))
    assert json.loads(call(capfd, "prune", "--keep-last", "0", "--json")[1])["freed_bytes"] == 0
    assert path.read_bytes() == b"of another home\n" * 1000


def test_a_pruned_run_is_not_run_again(live: LiveHome, capfd: pytest.CaptureFixture[str]) -> None:
    """Its environment and its scripts are gone, so a retry or a requeue is refused and its verdict stays."""
    run = live.run_text(f"{NOISE}; test -e good")
    live.settle([run])
    assert call(capfd, "prune", "--max-size", "1K")[0] == 0
    assert not [path for path in (live.home.path / "env").iterdir() if path.name.startswith(f"{run}.")]
    status, _, err = call(capfd, "retry", str(run))
    assert (status, len(err.splitlines())) == (2, 1)
    assert f"the environment of run {run} was removed" in err
    with live.client() as client:
        reply = client.call("requeue", ids=[run], by="tester")
    assert reply["results"] == [{"id": run, "did": "its environment was removed; submit it again", "code": "refused"}]
    assert live.job(run).state is State.FAILED


def age(live: LiveHome, run: int, seconds: float) -> None:
    """Let the run have ended so long ago. Nobody may have the store open meanwhile."""
    live.wait_until_gone()
    with contextlib.closing(sqlite3.connect(live.home.database)) as connection, connection:
        connection.execute("UPDATE runs SET ended_at = ended_at - ? WHERE id = ?", (seconds, run))
    (live.home.path / "pruned").unlink(missing_ok=True)


def test_environments_are_removed_by_their_age(live: LiveHome, tmp_path: Path) -> None:
    """30 days after a run's end, without any setting; a younger run and one that is not settled keep theirs."""
    (tmp_path / "config.toml").write_text("idle_exit = 0.2\nkill_wait = 1\n")
    old, young = live.run_text(NOISE), live.run_text(NOISE)
    live.settle([old, young])
    (live.home.stdin / "stdin-stray").write_text("of a submitter that died")
    os.utime(live.home.stdin / "stdin-stray", (1.0, 1.0))
    age(live, old, 31 * 86400)
    held = live.submit(shell_job("held", "true", hold=True))
    wait_for(lambda: not live.home.env(old).exists(), "the old environment is removed")
    assert live.home.env(young).exists()
    assert live.home.env(held).exists()
    assert list(live.home.stdin.iterdir()) == []
    assert (live.folder / f"aver-{old}.out").stat().st_size == 23893


def test_a_run_that_goes_on_keeps_its_environment(live: LiveHome, tmp_path: Path) -> None:
    """A retry of an old run comes before the removal: what runs is left alone."""
    (tmp_path / "config.toml").write_text("idle_exit = 0.2\nkill_wait = 1\n")
    run = live.run_text("test -e good && until test -e go; do sleep 0.05; done")
    live.settle([run])
    live.wait_until_gone()
    (tmp_path / "config.toml").write_text("kill_wait = 1\n")
    (live.folder / "good").touch()
    with live.client() as client:
        client.call("retry", ids=[run], by="tester")
    live.wait_running(run)
    with live.client() as client:
        reply = client.call("prune", older_than_s=None, keep_last=0, max_bytes=1, dry_run=False, by="tester")
    assert reply["runs"] == []
    assert live.home.env(run).exists()
    (live.folder / "go").touch()
    live.settle([run])
    assert live.job(run).state is State.COMPLETED


def test_it_happens_by_itself_when_configured(live: LiveHome, tmp_path: Path) -> None:
    """After a run has settled, by the settings, and the store says that it was their doing."""
    (tmp_path / "config.toml").write_text("idle_exit = 1\n[retention]\nkeep_last = 1\nevery = 0\n")
    first = live.run_text(NOISE)
    live.settle([first])
    live.settle([live.run_text("true")])
    log = live.folder / f"aver-{first}.out"
    wait_for(lambda: log.read_bytes().startswith(MARK), "the first run's log is cut")
    live.wait_until_gone()
    with live.reader() as reader:
        assert [(event.by, event.what) for event in reader.asked(first)] == [("retention", "prune")]


def test_wrong_requests_are_one_line(live: LiveHome, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing asked for, no age, no size."""
    for args in ((), ("--older-than", "0"), ("--older-than", "x"), ("--max-size", "x"), ("--keep-last", "-1")):
        status, _, err = call(capfd, "prune", *args)
        assert status == 2
        assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "data", [b"", b"short\n", b"x" * 5000, b"line\n" * 2000, b"\xff\x00" * 4000, b"\n" * 9000], ids=range(6)
)
def test_cutting_never_makes_a_log_larger(tmp_path: Path, data: bytes) -> None:
    """Whatever is in it: what is freed is what is gone, and a second time frees nothing."""
    path = tmp_path / "log"
    path.write_bytes(data)
    path.chmod(0o640)
    for kept in (KEPT_BYTES, 0):
        would = cut_log(str(path), "old", time.time(), kept, for_real=False)
        before = path.stat().st_size
        assert cut_log(str(path), "old", time.time(), kept, for_real=True) == would == before - path.stat().st_size
        assert would >= 0
        assert cut_log(str(path), "old", time.time(), kept, for_real=True) == 0
        assert path.stat().st_mode & 0o777 == 0o640
