"""Environment values of a flow's jobs: given to the jobs, and in no file but the run's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aver.client import vault
from aver.errors import CantWriteError
from aver.home import Home
from aver.model.codec import encode
from aver.model.job import FlowSpec
from aver.model.record import replace
from aver.model.states import State
from aver.store.secrets import load_masking
from live_home import LiveHome, shell_job, wait_for

SECRET = "correct horse battery staple"


def test_values_reach_the_job_and_no_other_file(aver_home: Path, tmp_path: Path) -> None:
    """The job sees the value; database, log and scripts do not have it; the run's file has mode 0600."""
    live = LiveHome(aver_home, tmp_path)
    run = live.submit(shell_job("one", 'printf %s "$PASSWORD" > seen', env=(("PASSWORD", SECRET),)))
    live.settle([run])
    assert (tmp_path / "seen").read_text() == SECRET
    for path in aver_home.rglob("*"):
        if path.is_file() and path.parent.name != "env":
            assert SECRET.encode() not in path.read_bytes(), path
    kept = aver_home / "env" / f"{run}.values.env"
    assert SECRET.encode() in kept.read_bytes()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert (aver_home / "env" / "key").stat().st_mode & 0o777 == 0o600


def test_equal_values_are_sealed_alike_and_twice_is_harmless(tmp_path: Path) -> None:
    """So a changed value is seen as changed, and a sealed flow stays as it is."""
    home = Home(tmp_path / "home")
    home.prepare()
    flow = FlowSpec("flow", (shell_job("one", "true", env=(("A", "x"), ("B", "x"), ("C", "y"))),))
    sealed, values = vault.seal(home, flow)
    a, b, c = (value for _, value in sealed.jobs[0].env)
    assert a == b != c
    assert sorted(values.values()) == ["x", "y"]
    assert vault.seal(home, sealed) == (sealed, {})
    vault.store(home, 7, values)
    assert vault.load(home, 7) == values


def test_homes_do_not_share_digests(tmp_path: Path) -> None:
    """A digest of one home says nothing in another."""
    flow = FlowSpec("flow", (shell_job("one", "true", env=(("A", "x"),)),))
    digests = []
    for name in ("one", "two"):
        home = Home(tmp_path / name)
        home.prepare()
        digests.append(vault.seal(home, flow)[0].jobs[0].env)
    assert digests[0] != digests[1]


def test_a_submission_that_fails_leaves_nothing(aver_home: Path, tmp_path: Path) -> None:
    """Its environment can't be written: the folder for its output and all else that was made is gone again."""
    live = LiveHome(aver_home, tmp_path / "work")
    live.folder.mkdir()
    (aver_home / "env").mkdir(parents=True)
    in_the_way = aver_home / "env" / "1.env"
    in_the_way.mkdir()
    with pytest.raises(CantWriteError):
        live.submit(shell_job("one", "true", env=(("PASSWORD", SECRET),)), shell_job("two", "true"))
    wait_for(lambda: list(live.folder.iterdir()) == [], "the folder for its output is removed")
    assert [path.name for path in (aver_home / "env").iterdir() if path != in_the_way] == ["key"]
    in_the_way.rmdir()
    run = live.submit(shell_job("one", "true"), shell_job("two", "true"))
    live.settle([run])
    assert live.job(run + 1).state is State.COMPLETED


def test_values_of_a_generated_job_are_secrets_too(aver_home: Path, tmp_path: Path) -> None:
    """A job that another one made has the run's secret names."""
    live = LiveHome(aver_home, tmp_path)
    text = json.dumps({"jobs": [{"name": "made", "run": "true", "env": {"PASSWORD": SECRET}}]})
    (tmp_path / "made.json").write_text(text)
    flow = FlowSpec("flow", (shell_job("maker", "true", generates="made.json"),))
    submission = live.submission(flow)
    submission = replace(submission, origin=replace(submission.origin, secrets=("PASSWORD",)))
    with live.client() as client:
        run = int(client.call("submit", submission=encode(submission), env=live.environment())["run"])
    live.settle([run])
    assert load_masking(str(aver_home), run, ["PASSWORD"]).whole(f"say {SECRET}") == "say ***"
