"""Ready-made receivers of notifications: the desktop, mail, Slack and webhooks, each with a real program or server."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from aver.cli import main
from aver.client.delivery import read_told
from aver.model.job import NotifyOn, NotifyRule
from live_home import LiveHome, shell_job, wait_for

Settings = Callable[[str], None]
TOKEN = "T0PSECRET"


class Hook:
    """A web server on the loopback that keeps what was posted; the first `failures` posts are refused."""

    def __init__(self, failures: int) -> None:
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.refused = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                is_refused = outer.refused < failures
                outer.refused += is_refused
                if not is_refused:
                    outer.posts.append((self.path, json.loads(data)))
                self.send_response(503 if is_refused else 200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hooks/{TOKEN}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hook(request: pytest.FixtureRequest) -> Iterator[Hook]:
    made = Hook(getattr(request, "param", 0))
    yield made
    made.close()


@pytest.fixture
def live(aver_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveHome:
    """A home whose coordinator finds programs of `tmp_path/bin` first."""
    (tmp_path / "config.toml").write_text("kill_wait = 1\nidle_exit = 1\n")
    monkeypatch.setenv("AVER_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return LiveHome(aver_home, tmp_path / "work")


def program(tmp_path: Path, name: str) -> Path:
    """A program on PATH that keeps its arguments and its stdin in a file."""
    told = tmp_path / f"{name}.told"
    path = tmp_path / "bin" / name
    path.write_text(f'#!/bin/sh\n{{ printf "<%s> " "$@"; echo; cat; }} > "{told}.part"; mv "{told}.part" "{told}"\n')
    path.chmod(0o755)
    return told


def settled(live: LiveHome, text: str, *targets: str, on: NotifyOn = NotifyOn.SETTLED) -> int:
    rules = tuple(NotifyRule(on, (), to=target) for target in targets)
    number = live.submit(shell_job("train", text), name="train", notify=rules)
    live.settle([number])
    return number


def test_the_desktop_is_told_by_notify_send(live: LiveHome, tmp_path: Path) -> None:
    """A title with the verdict, and its sentence."""
    told = program(tmp_path, "notify-send")
    number = settled(live, "exit 3", "desktop")
    wait_for(told.exists, "notify-send")
    said = told.read_text()
    assert f"<aver: run {number} (train) FAILED>" in said
    assert "1 FAILED" in said


def test_a_mail_goes_to_sendmail(live: LiveHome, tmp_path: Path) -> None:
    """With its receiver and subject in the head, and what to type next in the body."""
    told = program(tmp_path, "sendmail")
    number = settled(live, "exit 3", "mail:ann@example.org", on=NotifyOn.FAILED)
    wait_for(told.exists, "sendmail")
    said = told.read_text()
    assert said.startswith("<-i> <-t> \n")
    assert "To: ann@example.org\n" in said
    assert f"Subject: aver: job {number} (train) FAILED\n" in said
    assert f"aver why {number}" in said


@pytest.mark.parametrize("hook", [2], indirect=True)
def test_a_webhook_is_told_at_least_once(live: LiveHome, hook: Hook) -> None:
    """A server that refuses is asked again; the whole document arrives."""
    number = settled(live, "true", f"webhook:{hook.url}")
    (post,) = wait_for(lambda: hook.posts, "the post")
    assert (post[0], hook.refused) == (f"/hooks/{TOKEN}", 2)
    assert (post[1]["kind"], post[1]["run"]["id"], post[1]["run"]["state"]) == ("notification", number, "COMPLETED")


def test_slack_is_told_in_words(live: LiveHome, hook: Hook) -> None:
    """The text is what Slack shows."""
    number = settled(live, "exit 3", f"slack:{hook.url}")
    (post,) = wait_for(lambda: hook.posts, "the post")
    assert post[1]["text"].startswith(f"*aver: run {number} (train) FAILED*\n")


def test_an_address_may_be_in_a_variable_of_the_run(live: LiveHome, hook: Hook) -> None:
    """Then it is in the run's environment alone."""
    rule = NotifyRule(NotifyOn.SETTLED, (), to="slack:$HOOK")
    number = live.submit(shell_job("train", "true"), notify=(rule,), env={"HOOK": hook.url})
    live.settle([number])
    wait_for(lambda: hook.posts, "the post")
    assert TOKEN.encode() not in live.home.database.read_bytes()


def test_what_can_not_be_delivered_is_said_without_the_address(live: LiveHome, hook: Hook) -> None:
    """Nothing that is written has it, the log neither."""
    hook.close()
    rule = NotifyRule(NotifyOn.SETTLED, (), attempts=1, to=f"webhook:{hook.url}")
    live.settle([live.submit(shell_job("train", "true"), notify=(rule,))])
    told = wait_for(lambda: (state := read_told(live.home)) is not None and state.given_up and state, "the end of it")
    assert "can't be reached" in told.problem
    assert TOKEN not in told.problem + live.home.log.read_text()


def test_a_start_and_a_failed_run_are_told(live: LiveHome, hook: Hook) -> None:
    """Each once."""
    rules = tuple(NotifyRule(on, (), to=f"webhook:{hook.url}") for on in (NotifyOn.STARTED, NotifyOn.RUN_FAILED))
    number = live.submit(shell_job("train", "exit 3"), notify=rules)
    live.settle([number])
    wait_for(lambda: len(hook.posts) == 2, "both")
    start, end = (post for _, post in hook.posts)
    assert (start["on"], start["job"]["state"], start["job"]["exit"]) == ("started", "RUNNING", None)
    assert (end["on"], end["run"]["state"]) == ("run-failed", "FAILED")


def test_jobs_that_are_over_at_once_have_started_first(live: LiveHome, hook: Hook) -> None:
    """Also where their end was the first that anybody heard of them."""
    rules = tuple(NotifyRule(on, (), to=f"webhook:{hook.url}") for on in (NotifyOn.EVERY, NotifyOn.STARTED))
    jobs = [shell_job(f"j{number}", "true") for number in range(5)]
    live.settle([live.submit(*jobs, notify=rules)])
    wait_for(lambda: len(hook.posts) == 10, "both of each")
    told = [(post["job"]["name"], post["on"], post["job"]["state"]) for _, post in hook.posts]
    for job in jobs:
        mine = [one[1:] for one in told if one[0] == job.name]
        assert mine == [("started", "RUNNING"), ("every", "COMPLETED")]


def test_notify_on_the_command_line(live: LiveHome, hook: Hook, capfd: pytest.CaptureFixture[str]) -> None:
    """The address is not in what is shown of the job."""
    assert main.invoke(["run", "-q", "--notify", f"webhook:{hook.url}", "--", "true"]) == 0
    wait_for(lambda: hook.posts, "the post")
    capfd.readouterr()
    assert main.invoke(["show", "1"]) == 0
    shown = capfd.readouterr().out
    assert "webhook:***" in shown
    assert TOKEN not in shown
    assert main.invoke(["submit", "--notify", "pigeon:home", "--", "true"]) == 2
    assert "'pigeon' is not a receiver" in capfd.readouterr().err


def test_mail_of_a_batch_script(live: LiveHome, tmp_path: Path) -> None:
    """#SBATCH --mail-type=END is a mail to --mail-user."""
    told = program(tmp_path, "sendmail")
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH --mail-type=END,FAIL --mail-user=bob@example.org\ntrue\n")
    assert main.invoke(["run", "-q", str(script)]) == 0
    wait_for(told.exists, "sendmail")
    assert "To: bob@example.org\n" in told.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "desktop",
        "{desktop: true, on: failed}",
        "{mail: me@example.org}",
        "{slack: $URL, on: [failed, started]}",
        "[desktop, 'mail:me@example.org', {run: ./tell, on: every}]",
    ],
)
def test_receivers_in_a_flow(tmp_path: Path, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A word, a map or a list of these."""
    flow = tmp_path / "flow.yaml"
    flow.write_text(f"notify: {text}\njobs: {{a: {{run: 'true'}}}}\n")
    assert main.invoke(["check", str(flow)]) == 0, capfd.readouterr().err


@pytest.mark.parametrize(
    "text", ["pigeon", "{mail: 'not an address'}", "{slack: ftp://x}", "{on: failed}", "{mail: a, run: b}"]
)
def test_wrong_receivers_in_a_flow(tmp_path: Path, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A mistake with its line."""
    flow = tmp_path / "flow.yaml"
    flow.write_text(f"notify: {text}\njobs: {{a: {{run: 'true'}}}}\n")
    assert main.invoke(["check", str(flow)]) != 0
    assert "notify" in capfd.readouterr().out
