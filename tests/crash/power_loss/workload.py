"""What is recorded: jobs of every kind through a home that is made, left, killed and taken up again.

`python -m power_loss.workload` drives the home. It is recorded itself, since clients write in the home too. Beside it
`python -m power_loss.workload observe` notes, at standstills, each verdict that can be seen. `record` starts both.
"""

from __future__ import annotations

import os
import select
import sqlite3
import subprocess
import sys
import time
import zlib
from contextlib import closing
from pathlib import Path

import aver.store.open
from aver.errors import AverError
from aver.model.exit import ExitStatus
from aver.model.job import JobSpec, Matrix, Need, Needs, RetryRule, Script, Streams
from aver.model.record import replace
from aver.model.states import State
from aver.store.read.reader import Reader
from aver.store.read.rows import JobRow
from live_home import LiveHome, shell_job
from power_loss.recorder import ENVIRONMENT, Recorder

HOME = "state/home"  # below the root
LOOK_S = 0.005
DELAY_S = 4  # some jobs wait so long before they are planned: after a cut they must have all that they need
AGAIN = "$AVER_HOME/../../.."  # above the root: the folder of the recording, or that of a state
LEDGER = f'echo "$AVER_KEY" >> "{AGAIN}/ran"; '
ENDLESS = f'[ -e "{AGAIN}/recording" ] && exec sleep 600; '  # after the cut it ends at once, if it runs at all
LONG_TEXT = "".join(f"line {number} of a text that is longer than a few sectors\n" for number in range(200))
SECRET = LONG_TEXT.replace("\n", "; ")[:5000]
# The witness has no environment and is static: its variant has the recorder linked in, and is found in its place.
SITE = "import pathlib\nimport aver.witness\naver.witness.binary = lambda: pathlib.Path({witness!r})\n"
SITE_OF_NETWORK = "import aver.store.open\naver.store.open.is_on_network = lambda folder: True\n"


def _sum_check(words: str, text: str) -> str:
    """Shell text that exits with 9 unless what the words print is the text."""
    data = text.encode()
    sums = f"{zlib.crc32(data)} {len(data)}"
    return f'[ "$({words} | gzip -c | tail -c8 | od -An -tu4 | tr -s " ")" = " {sums}" ] || exit 9; '


_NULL = Streams(stdout="/dev/null")


def _job(name: str, text: str, **fields: object) -> JobSpec:
    return shell_job(name, LEDGER + text, streams=_NULL, **fields)


def _wide(size: int) -> JobSpec:
    return _job("wide", "exit $(( {n} % 3 ))", matrix=Matrix((("n", tuple(map(str, range(size)))),)))


_DEEP = (
    _job("first", "exit 0"),
    _job("again", '[ "$AVER_ATTEMPT" -ge 3 ] || exit 9', retry=RetryRule(max=3, codes=(9,))),
    _job("second", "exit 3", needs=Needs((Need("first"),))),
    _job("never", "exit 0", needs=Needs((Need("second"),))),
    _job("last", "exit 0", needs=Needs((Need("again"),))),
)
_SCRIPT = JobSpec("script", Script(f"#!/bin/sh\n{LEDGER}\n: <<'END'\n{LONG_TEXT}END\nexit 5\n"), streams=_NULL)
_VALUES = _job("values", _sum_check('printf %s "$SECRET"', SECRET) + "exit 4", env=(("SECRET", SECRET),))
_STDIN = LEDGER + _sum_check("cat", LONG_TEXT) + "exit 6"
_ENVIRONMENT = _job("environment", _sum_check('printf %s "$LONG"', LONG_TEXT) + "exit 7")
_HELD = _job("held", ENDLESS + "exit 8")
_CANCELLED = _job("cancelled", ENDLESS + "exit 8")

_CODES = {
    "first": 0,
    "again": 0,
    "second": 3,
    "last": 0,
    "script": 5,
    "values": 4,
    "stdin": 6,
    "environment": 7,
    "held": 8,
}


def expected(job: JobRow) -> set[tuple[State, ExitStatus | None]]:
    """How the job may end if it runs to its end."""
    name = job.name.partition("[")[0]
    if name == "never":
        return {(State.SKIPPED, None)}
    if name == "cancelled":
        return {(State.CANCELLED, None), (State.CANCELLED, ExitStatus(0, 15)), (State.FAILED, ExitStatus(8))}
    code = job.member % 3 if name == "wide" else _CODES[name]
    return {(State.FAILED if code else State.COMPLETED, ExitStatus(code))}


class Session:
    """The recorded process: a client of the home."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._live = LiveHome(recorder.root / HOME, recorder.folder / "jobs")

    def run(self) -> None:
        """The home is made, left, killed and taken up, with verdicts on the way; at the end the power goes."""
        self._settle(self._submit(_wide(6)), self._submit(*_DEEP))
        self._leave()
        stdin = self._submit_stdin()  # first, since the command takes a second to start
        later = [self._submit(replace(spec, begin_at=time.time() + DELAY_S)) for spec in (_SCRIPT, _VALUES)]
        later.append(self._submit(replace(_ENVIRONMENT, begin_at=time.time() + DELAY_S), LONG=LONG_TEXT))
        held = self._submit(_HELD)
        self._settle(self._submit(_wide(3)))
        self._kill()
        cancelled = self._submit(_CANCELLED)
        self._settle(self._submit(_wide(9)))
        self._settle(stdin, *later)
        self._live.wait_running(cancelled)
        self._live.wait_running(held)
        with self._live.client() as client:
            client.call("cancel", ids=[cancelled], by="tester", signal=None, now=False)
        self._settle(cancelled)
        self._leave()
        self._submit(_wide(12))
        self._settle(self._submit(*_DEEP))
        self._kill()

    def _submit(self, *jobs: JobSpec, **env: str) -> int:
        return self._accepted(self._live.submit(*jobs, env=env))

    def _submit_stdin(self) -> int:
        words = [
            "submit",
            "-q",
            "-J",
            "stdin",
            "-o",
            "/dev/null",
            "--stdin",
            "-",
            "--begin",
            f"now+{DELAY_S}",
            "--",
            "/bin/sh",
            "-c",
            _STDIN,
        ]
        done = subprocess.run(
            [sys.executable, "-m", "aver", *words], input=LONG_TEXT, text=True, capture_output=True, check=True
        )
        return self._accepted(int(done.stdout))

    def _accepted(self, run: int) -> int:
        with self._recorder.standstill():
            self._recorder.mark({"accepted": run})
        return run

    def _settle(self, *runs: int) -> None:
        self._live.settle(runs)

    def _leave(self) -> None:
        with self._live.client() as client:
            client.call("stop")
        self._live.wait_until_gone()

    def _kill(self) -> None:
        """Nobody is in the middle of a change: the trace knows of all that has happened."""
        with self._recorder.standstill():
            assert self._live.kill_coordinator()


class Observer:
    """A reader that reads at standstills, so that what it sees has a position in the trace."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._live = LiveHome(recorder.root / HOME, recorder.folder)
        self._database = self._live.home.database
        self._shown: dict[int, str] = {}
        self._seq = 0

    def look(self) -> None:
        """Note what can be seen and was not before. A store that is locked, or to be mended first, shows nothing."""
        if self._live.coordinator() is None:
            return  # nothing is new, and a reader without a writer makes and removes files of SQLite's each time
        with self._recorder.standstill():
            try:
                with closing(aver.store.open.connect(self._database, "ro")) as connection:
                    connection.execute("PRAGMA busy_timeout = 0")
                    self._note(Reader(self._database, connection))
            except (OSError, sqlite3.Error, AverError):
                return

    def _note(self, reader: Reader) -> None:
        seq = reader.last_seq()
        if seq == self._seq:
            return
        self._recorder.mark({"seq": seq})
        self._seq = seq
        for job in reader.jobs():
            if job.state.is_settled and self._shown.get(job.id) != repr(job):
                self._shown[job.id] = repr(job)
                self._recorder.mark({"shown": job.id, "row": repr(job)})


def record(folder: Path, base: dict[str, str], on_network: bool) -> Recorder:
    """Record the workload in an empty folder, with the store as it is on a network file system or on a disk."""
    recorder = Recorder(folder)
    recorder.prepare()
    recorder.set_site(SITE.format(witness=str(recorder.witness())) + (SITE_OF_NETWORK if on_network else ""))
    (recorder.folder / "jobs").mkdir()
    (recorder.folder / "recording").touch()
    config = recorder.folder / "config.toml"
    config.write_text("cpus = 4\nkill_wait = 1\nidle_exit = 60\n")
    environment = recorder.environment({**base, "AVER_HOME": str(recorder.root / HOME), "AVER_CONFIG": str(config)})
    command = [sys.executable, "-m", "power_loss.workload"]
    live = LiveHome(recorder.root / HOME, folder)
    observer = subprocess.Popen([*command, "observe"], env=environment, stdin=subprocess.PIPE)
    try:
        subprocess.run(command, env=environment, check=True)
        observer.communicate()  # it leaves at the end of its stdin
        assert observer.returncode == 0
    finally:
        observer.kill()
        observer.wait()
        live.end_everything()
    return recorder


def main() -> None:
    recorder = Recorder(Path(os.environ[ENVIRONMENT]))
    if sys.argv[1:] != ["observe"]:
        Session(recorder).run()
        return
    observer = Observer(recorder)
    while not select.select([sys.stdin], [], [], LOOK_S)[0]:
        observer.look()


if __name__ == "__main__":
    main()
