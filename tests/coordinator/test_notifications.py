"""Commands of the user are told of verdicts: which, with what, again after a crash, and never in anybody's way."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from aver.cli import main
from aver.cli.output.documents import JobFacts, RunFacts
from aver.client.delivery import read_told, told_path
from aver.coordinator.notify.document import Notice
from aver.coordinator.notify.sender import call
from aver.model.codec import encode
from aver.model.job import FlowSpec, Need, Needs, NotifyOn, NotifyRule, Origin
from aver.model.record import replace
from aver.model.states import State
from live_home import LiveHome, shell_job, wait_for

SECRET = "hunter2-token"
Settings = Callable[[str], None]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Write the settings that the next coordinator reads."""

    def write(text: str) -> None:
        (tmp_path / "config.toml").write_text(f"kill_wait = 1\nidle_exit = 1\n{text}")
        monkeypatch.setenv("AVER_CONFIG", str(tmp_path / "config.toml"))

    monkeypatch.delenv("AVER_CRASH_AT", raising=False)
    write("")
    return write


@pytest.fixture
def live(aver_home: Path, tmp_path: Path, settings: Settings) -> LiveHome:
    folder = tmp_path / "work"
    folder.mkdir()
    return LiveHome(aver_home, folder)


def teller(folder: Path, on: NotifyOn, name: str = "told", then: str = "", **more: Any) -> NotifyRule:
    """A rule that appends what it is given to a file."""
    return NotifyRule(on, ("/bin/sh", "-c", f'cat >> "{folder}/{name}"; {then}'), **more)


def told(folder: Path, name: str = "told") -> list[dict[str, Any]]:
    path = folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def is_quiet(live: LiveHome, delivered: int) -> bool:
    state = read_told(live.home)
    return state is not None and state.delivered + state.given_up >= delivered


def test_each_rule_is_told_what_it_asked_for(live: LiveHome, tmp_path: Path) -> None:
    """settled: the run once; failed: the job that failed, not the one skipped after it; every: each job."""
    rules = tuple(teller(tmp_path, on, on.value) for on in NotifyOn)
    run = live.submit(
        shell_job("good", "true"),
        shell_job("bad", "exit 3"),
        shell_job("after", "true", needs=Needs((Need("bad"),))),
        notify=rules,
    )
    live.settle([run])
    wait_for(lambda: is_quiet(live, 8), "eight notifications")
    settled, failed, every, started, run_failed = (told(tmp_path, on.value) for on in NotifyOn)
    assert sorted(one["job"]["name"] for one in started) == ["bad", "good"]
    assert [one["run"]["state"] for one in run_failed] == ["FAILED"]
    assert [(one["run"]["state"], one["job"]) for one in settled] == [("FAILED", None)]
    assert settled[0]["run"]["counts"] == {"COMPLETED": 1, "FAILED": 1, "SKIPPED": 1}
    assert [(one["job"]["name"], one["job"]["exit"]["text"]) for one in failed] == [("bad", "3:0")]
    assert failed[0]["sentence"].startswith("Failed with exit code 3")
    assert sorted((one["job"]["name"], one["job"]["state"]) for one in every) == [
        ("after", "SKIPPED"), ("bad", "FAILED"), ("good", "COMPLETED"),
    ]  # fmt: skip


def test_the_document_has_the_keys_of_every_other_surface(live: LiveHome, tmp_path: Path) -> None:
    """A job and a run are described as `--json` describes them."""
    run = live.submit(shell_job("one", "true"), notify=(teller(tmp_path, NotifyOn.EVERY),))
    live.settle([run])
    wait_for(lambda: told(tmp_path), "a notification")
    document = told(tmp_path)[0]
    assert set(document) == {"kind", "on", "home", "host", "sentence", "run", "job"}
    assert set(document["job"]) == set(JobFacts.__struct_fields__)
    assert set(document["run"]) == set(RunFacts.__struct_fields__)


def test_a_retried_attempt_is_no_verdict(live: LiveHome, tmp_path: Path) -> None:
    """Only how the job ended in the end is told."""
    from aver.model.job import RetryRule

    text = 'test -e second || { touch second; exit 3; }'  # fmt: skip
    job = shell_job("again", text, retry=RetryRule(1, states=(State.FAILED,)))
    run = live.submit(job, notify=(teller(tmp_path, NotifyOn.EVERY),))
    live.settle([run])
    live.wait_until_gone()
    assert [one["job"]["state"] for one in told(tmp_path)] == ["COMPLETED"]


def test_settings_hold_for_every_run_but_not_for_the_past(live: LiveHome, tmp_path: Path, settings: Settings) -> None:
    """A rule that is new in the settings tells of what settles from then on, not of older runs."""
    live.settle([live.run_text("exit 3")])
    live.kill_coordinator()
    settings(f"[notify]\non = \"failed\"\nrun = 'cat >> {tmp_path}/told'\n")
    later = live.run_text("exit 4")
    live.settle([later])
    live.wait_until_gone()
    assert [one["job"]["id"] for one in told(tmp_path)] == [later]


def test_a_verdict_is_told_after_a_crash(live: LiveHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator dies after the commit and before the command: the next one tells, though all is settled."""
    monkeypatch.setenv("AVER_CRASH_AT", "notifying")
    run = live.submit(shell_job("one", "exit 3"), notify=(teller(tmp_path, NotifyOn.FAILED),))
    pid = live.coordinator()
    wait_for(lambda: live.coordinator() != pid, "the coordinator's crash")
    assert told(tmp_path) == []
    assert live.job(run).state is State.FAILED
    monkeypatch.delenv("AVER_CRASH_AT")
    live.connect_again()
    wait_for(lambda: told(tmp_path), "the notification of the next coordinator")
    assert told(tmp_path)[0]["job"]["id"] == run


def test_nobody_waits_for_a_command_that_hangs(live: LiveHome, tmp_path: Path) -> None:
    """While the command of one run sleeps, other jobs run and settle; it is ended when its time is over."""
    rule = teller(tmp_path, NotifyOn.EVERY, then=f"echo $$ > {tmp_path}/pid; exec sleep 600", timeout_s=2.0, attempts=1)
    first = live.submit(shell_job("one", "true"), notify=(rule,))
    live.settle([first])
    wait_for((tmp_path / "pid").exists, "the command")
    live.settle([live.run_text("true")])
    state = wait_for(lambda: read_told(live.home) if is_quiet(live, 1) else None, "the end of its time")
    assert state is not None
    assert (state.given_up, state.problem) == (1, f"job {first} COMPLETED, on every: it took longer than 2 s")
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the command's end")


def test_a_command_that_fails_is_tried_again_and_then_shown(
    live: LiveHome, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It works at the second try; one that never works is given up, logged, and `aver doctor` says so."""
    flaky = teller(tmp_path, NotifyOn.EVERY, "flaky", f"mkdir {tmp_path}/once 2>/dev/null && exit 9; exit 0")
    broken = NotifyRule(NotifyOn.EVERY, ("/bin/sh", "-c", "echo no route >&2; exit 7"), attempts=2)
    run = live.submit(shell_job("one", "true"), notify=(flaky, broken))
    live.settle([run])
    wait_for(lambda: is_quiet(live, 2), "both")
    assert len(told(tmp_path, "flaky")) == 2
    state = read_told(live.home)
    assert state is not None
    assert (state.delivered, state.given_up) == (1, 1)
    assert live.home.log.read_text().count("exit code 7: no route") == 3  # two tries, and that it was given up
    capfd.readouterr()
    main.invoke(["doctor", "--json"])
    checks = {check["name"]: check for check in json.loads(capfd.readouterr().out)["checks"]}
    assert checks["notifications"]["status"] == "limited"
    assert "exit code 7: no route" in checks["notifications"]["fact"]


def test_a_command_that_is_still_tried_is_due(
    live: LiveHome, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One that was killed is not delivered, and `aver doctor` does not say that none was due."""
    rule = teller(tmp_path, NotifyOn.EVERY, then=f"[ -e {tmp_path}/fine ] || kill -9 $$", attempts=9)
    live.settle([live.submit(shell_job("one", "true"), notify=(rule,))])
    wait_for(lambda: len(told(tmp_path)) >= 2, "two tries")
    main.invoke(["doctor", "--json"])
    checks = {check["name"]: check for check in json.loads(capfd.readouterr().out)["checks"]}
    assert checks["notifications"]["status"] == "limited"
    assert checks["notifications"]["fact"].startswith("0 delivered, 0 given up; tried and to be tried again: job 1")
    assert checks["notifications"]["fact"].endswith("signal 9")
    (tmp_path / "fine").touch()
    wait_for(lambda: is_quiet(live, 1), "it is delivered")
    state = read_told(live.home)
    assert state is not None
    assert (state.delivered, state.given_up, state.trying) == (1, 0, "")


def test_secrets_stay_out(live: LiveHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the document nor the command's environment has them; the environment is a short list."""
    monkeypatch.setenv("MY_PASSWORD", "not for you")
    rule = teller(tmp_path, NotifyOn.EVERY, then=f"env > {tmp_path}/env")

    def with_secret(flow: Any) -> Any:
        submission = plain(flow)
        origin: Origin = submission.origin
        changed = Origin(origin.user, origin.uid, origin.host, origin.folder, origin.umask, secrets=("TOKEN",))
        return type(submission)(submission.flow, changed)

    plain = live.submission
    monkeypatch.setattr(live, "submission", with_secret)
    job = shell_job(f"{SECRET}-job", "true", env=(("INNER", "sealed one"),))
    live.settle([live.submit(job, env={"TOKEN": SECRET}, notify=(rule,))])
    wait_for((tmp_path / "env").exists, "the command")
    wait_for(lambda: is_quiet(live, 1), "its end")
    assert told(tmp_path)[0]["job"]["name"] == "***-job"
    text = (tmp_path / "told").read_text() + (tmp_path / "env").read_text() + live.home.log.read_text()
    for word in (SECRET, "sealed one", "not for you", "MY_PASSWORD"):
        assert word not in text


def test_lines_of_a_secret_stay_out(live: LiveHome, tmp_path: Path) -> None:
    """A key of several lines is masked also where one line of it stands alone, whoever gave it."""
    key = "-----BEGIN KEY-----\nsecretlineone\nsecretlinetwo"
    rule = teller(tmp_path, NotifyOn.EVERY)
    jobs = (shell_job("secretlineone", "true", env=(("OWN", "of the flow"),)), shell_job("x-of the flow", "true"))
    submission = live.submission(FlowSpec("secretlinetwo", jobs, notify=(rule,)))
    submission = replace(submission, origin=replace(submission.origin, secrets=("KEY", "OWN")))
    with live.client() as client:
        reply = client.call("submit", submission=encode(submission), env=live.environment({"KEY": key}))
    live.settle([int(reply["run"])])
    wait_for(lambda: is_quiet(live, 2), "two notifications")
    assert sorted(one["job"]["name"] for one in told(tmp_path)) == ["***", "x-***"]
    assert {one["run"]["name"] for one in told(tmp_path)} == {"***"}


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"done": "x"}', b'{"done": 1, "more": 2}', b"\xff" * 100])
def test_a_damaged_file_of_how_far_it_came_is_no_bug(live: LiveHome, tmp_path: Path, data: bytes) -> None:
    """It begins anew: jobs run, and what settles from now on is told."""
    live.settle([live.run_text("true")])
    live.kill_coordinator()
    told_path(live.home).write_bytes(data)
    live.settle([live.submit(shell_job("one", "true"), notify=(teller(tmp_path, NotifyOn.EVERY),))])
    wait_for(lambda: told(tmp_path), "the notification")


def test_a_command_survives_the_sweep_of_a_job(live: LiveHome, tmp_path: Path) -> None:
    """A killed witness's orphans are ended; a command of ours that runs meanwhile is none of them."""
    release = tmp_path / "release"
    hold = f"echo begun > {tmp_path}/begun; while [ ! -e {release} ]; do sleep 0.05; done; touch {tmp_path}/done"
    rule = teller(tmp_path, NotifyOn.EVERY, then=hold, attempts=1)
    live.settle([live.submit(shell_job("a", "true"), notify=(rule,))])
    wait_for(lambda: (tmp_path / "begun").exists(), "the command runs")
    run = live.run_text("sleep 300")
    live.wait_running(run)
    os.kill(live.witness_of(run), signal.SIGKILL)
    live.settle([run])
    assert live.job(run).state is State.UNVERIFIED
    assert live.processes() == []
    release.touch()
    wait_for(lambda: is_quiet(live, delivered=1), "it is delivered")
    assert (tmp_path / "done").exists()


def test_a_command_whose_end_nobody_saw_was_not_delivered(tmp_path: Path) -> None:
    """Somebody else reaped it: unknown is not 0."""
    rule = NotifyRule(NotifyOn.EVERY, ("/bin/sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 300"))

    def kill_and_reap() -> None:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "it runs")
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # who waits for it may be quicker
            os.waitpid(pid, 0)

    thread = threading.Thread(target=kill_and_reap)
    thread.start()
    notice = cast(Notice, SimpleNamespace(text="{}"))
    assert call(rule, notice, {"PATH": os.environ["PATH"]}, "/") in ("nobody saw how it ended", "signal 9")
    thread.join()
