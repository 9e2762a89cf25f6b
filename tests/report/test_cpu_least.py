"""CPU time of children that nobody waited for is not counted: every surface says that its figure is a lower bound."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aver.model import events as ev
from aver.model.job import FlowSpec, JobSpec, Request, Shell, Submission
from aver.model.record import replace
from aver.model.states import State
from aver.report.correction.rules import Change, Group, correct
from aver.report.measure import Mark, Measured, Rules, cpu_mark, mem_mark
from aver.report.usage import measured_of
from aver.store.read.reader import Reader
from aver.store.write.writer import Writer
from live_home import LiveHome
from past_runs import attempt, origin

UNWAITED = (
    f"{sys.executable} -I -S -c 'import os, signal, time; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
    "os.fork() or os._exit(0); time.sleep(1)'"
)


@pytest.mark.parametrize("text", [UNWAITED, f'"$AVER_HOME/bin/srun" {UNWAITED}'], ids=["script", "step"])
def test_every_surface_says_that_it_is_at_least_so_much(aver_home: Path, tmp_path: Path, text: str) -> None:
    """Script or step: tables mark the figure, documents and CSV have it by the same name; another job has no mark."""
    live = LiveHome(aver_home, tmp_path)
    least, whole = live.run_text(text), live.run_text("sleep 0.2")
    live.settle([least, whole])

    def aver(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "aver", *words],
            env={**os.environ, "AVER_HOME": str(aver_home)}, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        return done.stdout

    if json.loads(aver("show", str(least), "--json"))["attempts"][0]["is_cpu_least"] is False:
        pytest.skip("the cgroup of a job counts its CPU time here")
    for number, is_least in ((least, True), (whole, False)):
        shown: list[Any] = [
            json.loads(aver("show", str(number), "--json"))["attempts"][0],
            *json.loads(aver("results", str(number), "--json"))["results"],
            json.loads(aver("results", str(number), "--json"))["sums"],
            json.loads(aver("usage", str(number), "--json")),
            *json.loads(aver("usage", str(number), "--json"))["groups"],
            *json.loads(aver("usage", str(number), "--json"))["jobs"],
        ]
        assert [one["is_cpu_least"] for one in shown] == [is_least] * 6
        for words in (("results",), ("usage",), ("usage", "--by", "group"), ("export",)):
            (row,) = csv.DictReader(io.StringIO(aver(words[0], str(number), "--csv", *words[1:])))
            assert row["is_cpu_least"] == str(is_least).lower(), words
        results, usage = aver("results", str(number)), aver("usage", str(number))
        assert ("≥ " in results, "at least" in results) == (is_least, is_least), results
        assert ("≥ " in usage, "at least" in usage) == (is_least, is_least), usage
        seff = subprocess.run(
            [aver_home / "bin/seff", str(number)],
            env={**os.environ, "AVER_HOME": str(aver_home)}, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert ("CPU time is at least this" in seff.stdout) == is_least


def test_nothing_is_lowered_for_cpu_time_that_is_a_lower_bound() -> None:
    """16 CPUs of which one is known to have been busy are too many only if all CPU time is known."""
    known = Measured(State.COMPLETED, 16, None, None, 100.0, 100.0, None)
    least = known._replace(is_cpu_least=True)
    assert (cpu_mark(known, Rules()), cpu_mark(least, Rules())) == (Mark.UNDER, Mark.FINE)
    assert cpu_mark(least._replace(cpus=0.5), Rules()) is Mark.OVER
    lowered = correct(Group(Request(cpus=16), (known, known), True), Rules())
    assert [one.new for one in lowered if isinstance(one, Change)] == [1]
    assert correct(Group(Request(cpus=16), (known, least), True), Rules()) == ()
    raised = correct(Group(Request(cpus=1), (least._replace(cpus=1, cpu_s=400.0),), True), Rules())
    assert [one.new for one in raised if isinstance(one, Change)] == [4]


def test_no_memory_is_lowered_for_a_peak_that_nobody_has(tmp_path: Path) -> None:
    """The kernel gives the peak of a child to who waits for it: without that it is a sample, which may be too low."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    asked = Request(mem_bytes=8 << 30)
    told = attempt(1, 2, 1, 0.5, 100.0, 0, asked, peak=1 << 30)
    last = told[-1]
    assert isinstance(last, ev.Observed)
    assert last.usage is not None
    least = [*told[:-1], replace(last, usage=replace(last.usage, is_cpu_least=True))]
    flow = FlowSpec("flow", (JobSpec("a", Shell("true"), asked),))
    marks = []
    for number, events in enumerate((told, least)):
        path = home / f"{number}.db"
        writer = Writer.open(path)
        writer.commit([ev.RunSubmitted(1.0, 1, 2, Submission(flow, origin(tmp_path))), *events])
        writer.close()
        with Reader.open(path) as reader:  # type: ignore[union-attr]
            (row,) = reader.outcomes(1)
            measured = measured_of(row, reader.request)
        assert measured is not None
        assert measured.peak_bytes == 1 << 30
        marks.append((mem_mark(measured, Rules()), len(correct(Group(asked, (measured,), True), Rules()))))
    assert marks == [(Mark.UNDER, 1), (Mark.FINE, 0)]
