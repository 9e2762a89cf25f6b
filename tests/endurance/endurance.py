"""A campaign: rounds of jobs with known outcomes, each under one kind of fault, and what was found.

A round is a home of its own, decided by the campaign's seed and the round's number alone (what the machine's load
makes of it aside). What was counted stands in `campaign.json`, by default the one beside this file, so that hours add
up over machines and days. A finding that was looked into moves from `findings` to `explained` by hand. A round with a
finding keeps its home and its ledger.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from fault_kinds import CONTROL, KINDS, NONE, Kind, Target, compile_shim, send
from known_jobs import Maker, Submission
from ledger_check import Findings, check, read_jobs

SETTLE_S = 300.0
COMMAND_S = 120.0
CONFIG = "cpus = 8\nkill_wait = 2\nidle_exit = 2\n"
TRIES = 20
COLUMNS = ("rounds", "jobs", "strikes", "kills", "lost", "doubled", "invented")


@dataclass(frozen=True)
class Result:
    kind: str
    jobs: int
    strikes: int
    findings: Findings
    folder: Path | None  # kept, where something was found


class Round:
    """One home, its jobs and its faults."""

    def __init__(
        self, kind: type[Kind], seed: str, submissions: int, strike_s: float, shim: Path | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="aver-campaign-", dir="/tmp"))
        self._home = self.folder / "home"
        self._home.mkdir(mode=0o700)
        (self.folder / "config.toml").write_text(CONFIG)
        control = self.folder / "faults"
        control.write_bytes(struct.pack(CONTROL, *NONE))
        self._chance = random.Random(seed)
        self._target = Target(self._home)
        self._kind = kind(self._target, self._chance, control)
        self._submissions = submissions
        self._strike_s = strike_s
        self._aver = os.path.join(os.path.dirname(sys.executable), "aver")
        self._maker = Maker(self.folder, self._home, self._aver, self._chance, kind.jobs_of_flow)
        self._made: list[Submission] = []
        self._strikes = 0
        self._jobs = 0  # that had a verdict at the end
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AVER_", "SLURM_"))}
        self._env = {**kept, "AVER_HOME": str(self._home), "AVER_CONFIG": str(self.folder / "config.toml")}
        if kind.needs_shim:
            shim = shim or compile_shim(self.folder)
            faults = {"LD_PRELOAD": str(shim), "AVER_FAULTS": str(control), "AVER_FAULT_ROOT": str(self._home)}
            self._env.update(faults)

    def run(self) -> Result:
        findings = Findings()
        try:
            self._kind.prepare()
            self._begin()
            if self._kind.types:
                self._submit_and_strike()
            else:
                self._strike_unattended()
            self._kind.heal()
            self._resubmit()
            self._settle()
            ledger = self._ledger()
            findings = check(self._run, self._aver, f"{self._home}/bin", ledger, self._made, self._kind.excuses)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            findings.lost.append(f"the round did not end: {error}")
        finally:
            self._end(findings)
        return Result(self._kind.name, self._jobs, self._strikes, findings, self.folder if len(findings) else None)

    # ---- submitting ------------------------------------------------------------------------------

    def _run(self, words: list[str], **more: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.folder, env=self._env, capture_output=True, text=True, timeout=COMMAND_S, check=False,
            **more,
        )  # type: ignore[call-overload, no-any-return] # fmt: skip

    def _begin(self) -> None:
        """A first job, so that there are Slurm's commands; without any fault."""
        done = subprocess.run(
            [self._aver, "run", "--", "true"], cwd=self.folder, env=self._env, capture_output=True, text=True,
            timeout=COMMAND_S, check=False, preexec_fn=self._kind.limit(),
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"the first job: {done.stderr}")
        (self.folder / "aver-1.out").unlink(missing_ok=True)

    def _start(self, submission: Submission) -> None:
        submission.tries += 1
        submission.process = subprocess.Popen(
            submission.words, cwd=self.folder, env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=self._kind.limit(),
        )  # fmt: skip
        self._target.clients.append(submission.process)

    def _reap(self, submission: Submission) -> bool:
        """Take the answer of a client that has ended."""
        process = submission.process
        if process is None or process.poll() is None:
            return False
        out, err = process.communicate()
        submission.process = None
        submission.status, submission.out, submission.err = process.returncode, out, submission.err + err
        submission.was_killed = submission.was_killed or process.returncode in (-signal.SIGKILL, 137)
        with contextlib.suppress(ValueError):
            if submission.way != "srun" and process.returncode == 0:
                submission.numbers = sorted({*submission.numbers, int(out.split()[-1].split(";")[0])})
        return True

    def _submit_and_strike(self) -> None:
        running: list[Submission] = []
        due = time.monotonic() + self._chance.random() * self._kind.pause_s
        until = None
        while until is None or time.monotonic() < until:
            running = [one for one in running if not self._reap(one)]
            if len(running) < self._kind.clients and len(self._made) < self._submissions:
                self._made.append(self._maker.make())
                self._start(self._made[-1])
                running.append(self._made[-1])
            if len(self._made) == self._submissions and not running and until is None:
                until = time.monotonic() + self._strike_s
            if time.monotonic() >= due:
                self._strikes += self._kind.strike()
                due = time.monotonic() + self._chance.random() * self._kind.pause_s
            time.sleep(0.01)

    def _strike_unattended(self) -> None:
        """Chains of jobs are submitted; then no command is typed until the ledger has them all."""
        for _ in range(2):
            chain = self._maker.chain(5, 0.5)
            self._made.append(chain)
            self._start(chain)
            while not self._reap(chain):
                time.sleep(0.01)
        names = {name for one in self._made for name in one.jobs}
        due, end = time.monotonic() + 1.0, time.monotonic() + SETTLE_S
        while not names <= {line.split()[0] for line in self._ledger().splitlines()}:
            if time.monotonic() > end:
                raise RuntimeError(f"nobody started a coordinator again: {sorted(names)}; {self._ledger()}")
            if time.monotonic() >= due:
                self._strikes += self._kind.strike()
                due = time.monotonic() + 0.5 + self._chance.random() * self._kind.pause_s
            time.sleep(0.02)

    def _resubmit(self) -> None:
        """Nobody knows whether a submission whose client was killed was taken: with its key it is repeated safely.

        One that was refused with a sentence was not taken, whatever the way: it is tried again, for a while, since a
        coordinator that could not write tries again only after a pause.
        """
        for submission in self._made:
            if submission.is_accepted or submission.way == "srun":
                continue
            if submission.was_killed and submission.way != "flow":
                continue  # there once or not at all
            for _ in range(TRIES):
                self._start(submission)
                while not self._reap(submission):
                    time.sleep(0.01)
                if submission.is_accepted or submission.was_killed:
                    break
                time.sleep(0.5)

    # ---- the end ---------------------------------------------------------------------------------

    def _ledger(self) -> str:
        try:
            return self._maker.ledger.read_text()
        except FileNotFoundError:
            return ""

    def _settle(self) -> None:
        end = time.monotonic() + SETTLE_S
        while True:
            jobs = read_jobs(self._run, self._aver)
            left = [(job["name"], job["state"], job["reason"]) for job in jobs if not job["is_settled"]]
            if not left:
                self._jobs = len(jobs)
                return
            if time.monotonic() > end:
                raise RuntimeError(f"not settled: {left[:20]}")
            time.sleep(0.2)

    def _end(self, findings: Findings) -> None:
        self._kind.heal()
        for submission in self._made:
            if submission.process is not None:
                submission.process.kill()
                submission.process.communicate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._run([self._aver, "stop"])
        end = time.monotonic() + 30
        while (left := self._target.everybody()) and time.monotonic() < end:
            time.sleep(0.05)
        if left:
            findings.lost.append(f"processes that are left: {left}")
        for pid in left:
            send(pid, signal.SIGKILL)
        if len(findings):
            made = [f"{one.token} {one.way} {one.numbers} {one.status} {one.err}" for one in self._made]
            (self.folder / "made").write_text("\n".join(made))
            shutil.copytree(self._home, self.folder / "kept", symlinks=True, ignore=lambda *_: ["sock", "filler"])
        self._kind.end()
        if not len(findings):
            shutil.rmtree(self.folder, ignore_errors=True)


class Campaign:
    """Rounds, one kind after another, counted in a file."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._path = folder / "campaign.json"
        folder.mkdir(parents=True, exist_ok=True)
        self.state = {"seed": seed, "round": 0, "seconds": 0.0, "kinds": {}, "findings": [], "explained": []}
        if self._path.exists():
            self.state = json.loads(self._path.read_text())

    def go_on(self, until: float, submissions: int, kinds: tuple[type[Kind], ...]) -> None:
        with tempfile.TemporaryDirectory(prefix="aver-shim-") as folder:
            shim = compile_shim(Path(folder)) if any(kind.needs_shim for kind in kinds) else None
            while time.monotonic() < until:
                self._round(kinds[self.state["round"] % len(kinds)], submissions, shim)

    def _round(self, kind: type[Kind], submissions: int, shim: Path | None) -> None:
        began = time.monotonic()
        seed = f"{self.state['seed']}.{self.state['round']}"
        result = Round(kind, seed, submissions, 2.0, shim).run()
        found = result.findings
        counts = Counter(self.state["kinds"].get(result.kind, {}))
        kills = result.strikes if kind.kills else 0
        found_by_word = {word: len(getattr(found, word)) for word in ("lost", "doubled", "invented")}
        counts.update(rounds=1, jobs=result.jobs, strikes=result.strikes, kills=kills, **found_by_word)
        self.state["kinds"][result.kind] = dict(counts)
        self.state["round"] += 1
        self.state["seconds"] += time.monotonic() - began
        for word in found_by_word:
            for text in getattr(found, word):
                self.state["findings"].append(f"round {seed} ({result.kind}): {word}: {text}")
                print(f"{self.state['findings'][-1]}; {result.folder}", flush=True)
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self.state, indent=1) + "\n")
        part.replace(self._path)

    def table(self) -> str:
        """One line per kind of fault."""
        rows = [("fault", *COLUMNS)]
        for name, counts in self.state["kinds"].items():
            rows.append((name, *(str(counts.get(column, 0)) for column in COLUMNS)))
        kinds = self.state["kinds"].values()
        rows.append(("all", *(str(sum(counts.get(column, 0) for counts in kinds)) for column in COLUMNS)))
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "| --- " * len(rows[0]) + "|")
        return "\n".join(lines) + f"\nseed {self.state['seed']}, {self.state['seconds'] / 3600:.2f} hours"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="campaign", description="Kill, stop and starve Aver while jobs run, and check."
    )
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--state", type=Path, default=Path(__file__).parent, help="folder of campaign.json (default: the source's)"
    )
    parser.add_argument("--submissions", type=int, default=40, help="of each round")
    parser.add_argument("--kind", action="append", help="only these kinds: a part of their names")
    parser.add_argument("--table", action="store_true", help="print what was counted, and run nothing")
    asked = parser.parse_args()
    kinds = tuple(kind for kind in KINDS if not asked.kind or any(word in kind.name for word in asked.kind))
    campaign = Campaign(asked.state, asked.seed)
    for number in (signal.SIGINT, signal.SIGTERM):  # the round is cleared away, and the next one goes on
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        if not asked.table:
            campaign.go_on(time.monotonic() + asked.hours * 3600, asked.submissions, kinds)
    print(campaign.table())
    return 1 if campaign.state["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
