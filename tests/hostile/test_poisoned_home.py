"""Every file of a home, with content that nobody expects: the coordinator starts all the same."""

from __future__ import annotations

import json
import os
import signal
import zlib
from pathlib import Path

import pytest

from aver.model.job import NotifyOn, NotifyRule
from aver.model.states import State
from live_home import LiveHome, shell_job, wait_for

WAIT = 'echo $AVER_KEY >> "$RAN"; while [ ! -e go ]; do sleep 0.05; done'
STORE = ("aver.db", "aver.db-wal", "aver.db-shm")  # its damage is said by tests/store
POISON = {
    "deep": b"[" * 200_000,
    "bytes": b"\xff\xfe\x00\xd8{]" * 100,
    "surrogate": b'{"pid": "\\ud800", "keys": ["\\ud800"], "id": {}}',
    "number": b'{"pid": 1e999, "keys": 5, "id": -1, "seq": 99999999999999999999999999}',
    "empty": b"",
}


def line(body: bytes) -> bytes:
    return b"%08x %08x %s\n" % (len(body), zlib.crc32(body), body)


LINES = {
    "deep": line(b'{"ev":"begin","key":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "key": line(b'{"ev":"begin","key":7,"at":1.0,"boot":"b"}'),
    "list": line(b'{"ev":"begin","key":["a"],"at":1.0,"boot":"b"}'),
    "surrogate": line(b'{"ev":"begin","key":"a\\ud800","at":1.0,"boot":"b"}'),
    "path": line(b'{"ev":"begin","key":"../../x y","at":1.0,"boot":"b"}'),
    "event": line(b'{"ev":["end"],"key":"x"}'),
    "numbers": line(b'{"ev":"start","key":"x","pid":1e400,"witness":-1,"at":NaN,"mem":"none","due":null}'),
    "null": line(b"null"),
}


def files(live: LiveHome) -> list[Path]:
    found = [Path(folder) / name for folder, _, names in os.walk(live.home.path) for name in names]
    return sorted(path for path in found if path.is_file() and path.name not in STORE)


@pytest.mark.parametrize("poison", POISON)
def test_every_file_of_a_home(live: LiveHome, poison: str) -> None:
    """Whatever is in them, the coordinator starts; what ran goes on, and a new job runs."""
    rule = NotifyRule(NotifyOn.EVERY, ("true",))
    flow = live.submit(shell_job("a", "true", env=(("A", "secret"),)), shell_job("b", WAIT), notify=(rule,))
    live.wait_running(flow + 2)
    wait_for(lambda: (live.home.path / "notified").exists(), "a notification")
    live.kill_coordinator()
    slurm = live.home.path / "slurm"
    made = ["site.json", "batches/0123abcd.1.1.bbbbbbbb.json", "hosts/h/host.json", "hosts/h/batches/x.json"]
    kept = [path for path in files(live) if path.parent != live.home.witnesses]
    assert {"lock", "notified", "key", "coordinator.log"} <= {path.name for path in kept}
    for path in [*kept, *[slurm / name for name in made]]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(POISON[poison])
    number = live.submit(shell_job("new", "true"))
    live.settle([number], 30)
    assert live.job(number).state is State.COMPLETED
    (live.folder / "go").touch()
    live.settle([flow], 30)
    assert live.job(flow + 2).state is State.COMPLETED


@pytest.mark.parametrize("poison", LINES)
def test_journal_with_a_line_that_is_none(live: LiveHome, poison: str) -> None:
    """The attempt whose journal was damaged is UNVERIFIED, and the journal is set aside."""
    run = live.run_text(WAIT)
    live.wait_running(run)
    witness = live.witness_of(run)
    live.kill_coordinator()
    os.kill(witness, signal.SIGKILL)
    journal = live.of_witness("log")
    with journal.open("ab") as file:
        file.write(LINES[poison])
    live.settle([run], 20)
    assert live.job(run).state is State.UNVERIFIED
    live.kill_coordinator(signal.SIGTERM)
    live.wait_until_gone()
    assert [path.name for path in live.home.witnesses.iterdir()] == [f"{journal.name}.damaged"]
    assert f"{journal.name}.damaged" in live.home.log.read_text()


def test_record_of_a_key_that_the_slot_was_not_given(live: LiveHome) -> None:
    """A forged end of another job in a job's journal is not believed."""
    first, second = live.run_text(WAIT), live.run_text(WAIT)
    for run in (first, second):
        live.wait_running(run)
    keys = [live.attempt(run).key for run in (first, second)]
    live.kill_coordinator()
    end = {
        "ev": "end", "key": keys[1], "witness": 9, "pid": 8, "boot": "b", "raw": 0, "start": 1.0, "elapsed": 1.0,
        "suspended": 0.0, "user": 0.0, "sys": 0.0, "maxrss": 1, "peak": None, "mem": "none", "limit": None, "oom": 0,
        "hostoom": 0, "acts": [], "got": [], "left": 0, "launch": None, "size": 0,
    }  # fmt: skip
    journal = next(path for path in live.home.witnesses.glob("*.log") if keys[0] in path.read_text())
    with journal.open("ab") as file:
        file.write(line(json.dumps(end).encode()))
    live.connect_again()
    other = live.run_text("true")
    live.settle([other])
    assert live.job(second).state is State.RUNNING
    (live.folder / "go").touch()
    live.settle([first, second])
    assert [live.job(run).state for run in (first, second)] == [State.COMPLETED, State.COMPLETED]
