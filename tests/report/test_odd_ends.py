"""Ends of which something is not known, or only believed: every surface says the same, and none of them says 0."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from odd_ends import ACCEPTED, EITHER, FALLBACK, JOBS, fill_odd

from aver.coordinator.notify.document import notice_of
from aver.home import Home
from aver.model.events import Observed, RunMoved
from aver.model.states import State
from aver.slurm_cli import seff
from aver.slurm_cli.sacct import command
from aver.store.read.reader import Reader
from past_runs import Call


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the run of `odd_ends`."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    fill_odd(tmp_path / "home", tmp_path / "work")
    return tmp_path / "home"


def table(out: str) -> dict[str, dict[str, str]]:
    """The rows of a plain table by NAME, each by its heads; of several attempts the last."""
    head, *lines = out.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+", head)]
    rows = {}
    for line in lines:
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) >= len(starts):
            row = dict(zip(head.split(), cells, strict=False))
            rows[row["NAME"]] = row
    return rows


def test_lists_and_results_show_the_same_end(odd: Path, call: Call) -> None:
    """State and exit of each job: `*` is believed, `?` is not known, `-` is what there is none of."""
    jobs, results = table(call("jobs", "1")[1]), table(call("results", "1")[1])
    shown = {name: (row["STATE"], row["EXIT"]) for name, row in jobs.items()}
    assert shown == {name: (row["STATE"], row["EXIT"]) for name, row in results.items()}
    assert shown == {
        "either_code": ("FAILED", "?"),
        "fallback": ("COMPLETED*", "?"),
        "accepted": ("COMPLETED*", "0:0"),
        "timeout": ("TIMEOUT", "?"),
        "cancelled": ("CANCELLED", "?"),
        "launch": ("FAILED", "-"),
        "reinit": ("COMPLETED", "0:0"),
        "no_peak": ("COMPLETED", "0:0"),
        "lost": ("UNVERIFIED", "?"),
        "retry": ("COMPLETED", "0:0"),
        "step_oom": ("COMPLETED", "0:0"),
        "step_unseen": ("COMPLETED", "0:0"),
        "by_another": ("CANCELLED", "0:15"),
        "lost_accepted": ("COMPLETED*", "0:0"),
    }
    times = {name: (row["TIME"], results[name]["TIME"]) for name, row in jobs.items()}
    assert all(one == other for one, other in times.values()), times
    assert times["lost"] == times["timeout"] == times["lost_accepted"] == ("?", "?")


def test_a_failure_whose_code_is_not_known_did_start(odd: Path, call: Call) -> None:
    """Why it failed is said, and nowhere that it could not start; one that could not is still said to."""
    job = str(JOBS["either_code"])
    assert call("why", job)[1].startswith(f"Failed, and its exit code is not known: {EITHER}.")
    of_run = call("why", "1")[1]
    assert f"job {job} (either_code) failed, exit code not known: {EITHER}\n  next: aver log {job}" in of_run
    assert [line for line in of_run.splitlines() if "could not start" in line] == [
        f"job {JOBS['launch']} (launch) could not start: exec /no/such: No such file or directory (errno 2)"
    ]


def test_whoever_waited_for_a_belief_is_told_whose_it_is(odd: Path, call: Call) -> None:
    """The exit status is that of the state; the line says that nobody attests it."""
    status, _, err = call("watch", str(JOBS["accepted"]), "--exit-status")
    assert status == 0
    assert err.splitlines()[-1] == f"aver: job {JOBS['accepted']} COMPLETED*; {ACCEPTED}"
    assert "; 3 of them believed, not verified: aver jobs 1; " in call("watch", "1")[2]
    assert call("show", str(JOBS["accepted"]))[1].startswith(f"job {JOBS['accepted']} accepted COMPLETED*\n")


def test_the_sums_are_of_all_or_say_that_they_are_not(odd: Path, call: Call) -> None:
    """Jobs are counted by how they ended, also where only an earlier attempt of them is selected."""
    found = json.loads(call("results", "1", "--json", "--state", "failed", "--pattern", "retry")[1])
    assert [one["attempt"] for one in found["results"]] == [1]
    assert (found["sums"]["jobs"], found["sums"]["counts"]) == (1, {"COMPLETED": 1})
    lost = json.loads(call("results", "1", "--json", "--pattern", "lost")[1])["sums"]
    assert (lost["elapsed_s"], lost["cpu_s"], lost["peak_bytes"], lost["peaks_unknown"]) == (None, None, None, 1)
    last = call("results", "1", "--pattern", "*e*")[1].splitlines()[-1]
    assert last.endswith("; ? of time, ? of cpu, highest known peak 48.0 MiB")


def test_the_cpu_time_of_a_run_is_that_of_all_its_attempts(odd: Path, call: Call) -> None:
    """`usage` and `results` agree; the attempt that failed before used its time as well."""
    used = json.loads(call("usage", "1/retry", "--json")[1])
    summed = json.loads(call("results", "1", "--pattern", "retry", "--json")[1])["sums"]
    assert used["cpu_s"] == summed["cpu_s"] == 2.5
    assert used["cpu_given_s"] == summed["elapsed_s"] == 4.0
    assert json.loads(call("usage", "1/lost", "--json")[1])["cpu_s"] is None
    assert json.loads(call("usage", "1/lost_accepted", "--json")[1])["cpu_s"] is None


def test_a_step_that_was_out_of_memory_is_warned_of_everywhere(odd: Path, call: Call) -> None:
    """Its job is COMPLETED all the same; so is that of a step whose end nobody saw."""
    reader = Reader.open(odd / "aver.db")
    assert reader is not None
    expected = {"step_oom": "was out of memory", "step_unseen": "ended unseen; exit code unknown"}
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(call("results", "1", "--csv")[1]))}
    exported = {row["name"]: row for row in csv.DictReader(io.StringIO(call("export", "1", "--csv")[1]))}
    results = {one["name"]: one for one in json.loads(call("results", "1", "--json")[1])["results"]}
    listed = {one["name"]: one for one in json.loads(call("jobs", "1", "--json")[1])["jobs"]}
    cases = {str(case.get("name")): "".join(case.itertext()) for case in junit(call).iter("testcase")}
    with reader:
        for name, text in expected.items():
            warning = f"step {JOBS[name]}.0 (hungry) {text}"
            verdict = [one.event for one in reader.events(job=JOBS[name])][-1]
            told = notice_of(Home(odd), reader, verdict, "every")
            assert told is not None
            said = told.document["job"]
            assert [warning] == results[name]["warnings"] == listed[name]["warnings"] == list(said["warnings"]), name
            assert said["derived_exit"] == listed[name]["derived_exit"], name
            assert warning == rows[name]["warnings"] == exported[name]["warnings"], name
            assert f"Warning: {warning}" in cases[name]
    assert f"job {JOBS['step_oom']}: warning: step" in call("results", "1")[1]


def junit(call: Call) -> ElementTree.Element:
    status, out, _ = call("export", "1", "--junit")
    assert status == 0
    return ElementTree.fromstring(out)


def test_junit_calls_nothing_flaky_that_did_not_fail_and_no_time_0_that_is_not_known(odd: Path, call: Call) -> None:
    """An attempt that completed and ran again, since its input changed, was no failure; a belief is said to be one."""
    cases = {str(case.get("name")): case for case in junit(call).iter("testcase")}
    flaky = {name: [one.get("message") for one in case.iter("flakyFailure")] for name, case in cases.items()}
    assert {name: found for name, found in flaky.items() if found} == {
        "retry": ["attempt 1: FAILED 3:0 NonZeroExitCode"]
    }
    untimed = {name for name, case in cases.items() if case.get("time") is None}
    assert untimed == {"fallback", "accepted", "timeout", "cancelled", "lost", "by_another", "lost_accepted"}
    assert ACCEPTED in "".join(cases["accepted"].itertext())
    assert FALLBACK in "".join(cases["fallback"].itertext())


def test_a_peak_that_the_kernel_had_not_counted_is_not_0(odd: Path, call: Call, capfd: Any) -> None:
    """Nor is it in the exports, nor for Slurm's commands."""
    job = str(JOBS["no_peak"])
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(call("export", "1", "--csv")[1]))}
    assert rows["no_peak"]["peak_bytes"] == ""
    assert "peak memory" not in call("show", job)[1]
    assert command.main(["-n", "-P", "-j", job, "-o", "jobid,maxrss,averss"]) == 0
    assert capfd.readouterr().out.splitlines() == [f"{job}||", f"{job}.batch||"]
    assert seff.main([job]) == 0
    assert "Memory Utilized: unknown\n" in capfd.readouterr().out


def test_no_memory_is_saved_where_a_step_ran_out_of_it(odd: Path, call: Call) -> None:
    """Its job completed, and used little: what it needed is not known. The figures are those of script and step."""
    options = ("--correct", "--dry-run", "--mem-saving", "0", "--mem-floor", "1M", "--json")
    changes = json.loads(call("usage", "1", *options)[1])["changes"]
    assert {one["job"] for one in changes if one["key"] == "mem"} == {"reinit"}
    (step_oom,) = json.loads(call("results", "1", "--pattern", "step_oom", "--json")[1])["results"]
    assert (step_oom["cpu_s"], step_oom["peak_bytes"]) == (pytest.approx(1.45), 3 << 20)


def test_an_end_that_nobody_saw_is_not_taken_for_its_time(odd: Path, call: Call, capfd: Any) -> None:
    """When it was known that it is over says nothing of how long it ran."""
    job = str(JOBS["timeout"])
    shown = dict(
        line.split(maxsplit=1) for line in call("show", job)[1].splitlines() if line[:7] in ("ended  ", "elapsed")
    )
    assert shown["ended"].endswith(", or before: that was when it was known")
    assert shown["elapsed"] == "?"
    assert seff.main([job]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert "CPU Efficiency: unknown of unknown core-walltime" in lines
    assert "Job Wall-clock time: unknown" in lines


def test_the_page_does_not_take_unknown_cpu_time_for_none(odd: Path, call: Call) -> None:
    """The sum says that it is not all."""
    _, page, _ = call("report", "1", "-o", "-")
    found = re.search(r"<dt>cpu time</dt><dd>([^<]*)</dd>", page)
    assert found is not None
    assert found[1] == "at least 11 s"


def test_sacct_has_no_0_0_for_what_ran_and_is_not_known(odd: Path, capfd: Any) -> None:
    """COMPLETED and TIMEOUT had an exit; a batch script is not called CANCELLED without a signal that is known."""
    assert command.main(["-n", "-P", "-j", "1", "-o", "jobid,state,exitcode"]) == 0
    rows = {line.split("|")[0]: line.split("|")[1:] for line in capfd.readouterr().out.splitlines()}
    numbers = {name: str(number) for name, number in JOBS.items()}
    assert rows[numbers["either_code"]] == ["FAILED", "?"]
    assert rows[numbers["either_code"] + ".batch"] == ["FAILED", ""]
    assert rows[numbers["fallback"]] == ["COMPLETED", "?"]
    assert rows[numbers["fallback"] + ".batch"] == ["COMPLETED", ""]
    assert rows[numbers["timeout"]] == ["TIMEOUT", "?"]
    assert rows[numbers["accepted"]] == ["COMPLETED", "0:0"]
    assert rows[numbers["lost"]] == ["NODE_FAIL", "?"]
    assert rows[numbers["launch"]] == ["FAILED", "2:0"]


def test_who_cancelled_an_attempt_did_not_cancel_the_next(odd: Path, call: Call, capfd: Any) -> None:
    """Somebody else ended the second: nobody here knows who, and nobody is named for it."""
    job = JOBS["by_another"]
    said = "Cancelled by somebody at the cluster; it ended with signal 15 (SIGTERM)."
    assert call("why", str(job))[1].splitlines()[0] == said
    cases = {str(case.get("name")): "".join(case.itertext()) for case in junit(call).iter("testcase")}
    assert said in cases["by_another"]
    assert command.main(["-n", "-P", "-X", "-j", str(job), "-o", "state"]) == 0
    assert capfd.readouterr().out == "CANCELLED\n"


def test_a_notice_that_comes_late_is_of_what_it_tells(odd: Path) -> None:
    """The job ran again, and the run went on, before it was told: neither the attempt nor the counts are the later."""
    reader = Reader.open(odd / "aver.db")
    assert reader is not None
    with reader:
        events = [one.event for one in reader.events(run=1)]
        ends = [one for one in events if isinstance(one, Observed) and one.job == JOBS["by_another"] and one.verdict]
        first, second = (notice_of(Home(odd), reader, one, "every") for one in ends)
        assert first is not None
        assert second is not None
        assert (first.document["job"]["attempt"], first.document["job"]["elapsed_s"]) == (1, 2.0)
        assert (second.document["job"]["attempt"], second.document["job"]["elapsed_s"]) == (2, None)
        now = notice_of(Home(odd), reader, events[-1], "settled")
        then = notice_of(Home(odd), reader, RunMoved(events[0].at + 9, 1, State.CANCELLED), "settled")
    assert now is not None
    assert then is not None
    assert sum(now.document["run"]["counts"].values()) == len(JOBS)
    assert then.document["run"]["counts"] is None
    assert then.document["sentence"] == "Run 1 (odd) is CANCELLED in 9.0 s."
