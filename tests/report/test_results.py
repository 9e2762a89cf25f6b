"""`aver results`: one row for each attempt, failed first, numbers that are right or `?`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from past_runs import SECRET, Call


def document(call: Call, *args: str) -> Any:
    status, out, err = call("results", "1", "--json", *args)
    assert (status, err) == (0, "")
    return json.loads(out)


def rows(call: Call, *args: str) -> list[tuple[int, int | None, str]]:
    return [(one["job"], one["attempt"], one["state"]) for one in document(call, *args)["results"]]


def test_failed_jobs_come_first_and_attempts_stay_together(past: Path, call: Call) -> None:
    """Worst first; a job that never had an attempt has one row; the rest by number."""
    assert rows(call) == [
        (5, 1, "OUT_OF_MEMORY"),
        (5, 2, "OUT_OF_MEMORY"),
        (7, 1, "FAILED"),
        (8, 1, "TIMEOUT"),
        (9, 1, "UNVERIFIED"),
        (6, None, "SKIPPED"),
        (2, 1, "COMPLETED"),
        (3, 1, "COMPLETED"),
        (4, 1, "COMPLETED"),
    ]


def test_the_table(past: Path, call: Call) -> None:
    """Return codes as a shell has them, 137 and 152 as agreed; unknown is ?, what there is none of is -."""
    status, out, _ = call("results", "1")
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["JOB", "NAME", "TRY", "STATE", "EXIT", "RC", "REASON", "TIME", "CPU", "PEAK", "NODE"]
    by_job = {line[0]: line for line in lines[2:-1]}
    assert by_job["5"][2:7] == ["2", "OUT_OF_MEMORY", "0:9", "137", "OutOfMemory"]
    assert by_job["7"][3:6] == ["FAILED", "3:0", "3"]
    assert by_job["8"][3:6] == ["TIMEOUT", "0:15", "152"]
    assert by_job["9"][3:6] == ["UNVERIFIED", "?", "?"]
    assert by_job["9"][7:10] == ["?", "?", "?"]
    assert by_job["6"][2:6] == ["-", "SKIPPED", "-", "-"]
    assert by_job["2"][3:6] == ["COMPLETED", "0:0", "0"]
    assert by_job["2"][7:] == ["1.0", "s", "0.6", "s", "48.0", "MiB", "node1"]


def test_the_last_line_sums_up(past: Path, call: Call) -> None:
    """All that was selected, shown or not. Job 9 may have run, and nobody knows for how long: no sum leaves it out."""
    last = call("results", "1", "-n", "1")[1].splitlines()[-1]
    assert last.startswith("run 1 OUT_OF_MEMORY: 8 jobs, 8 attempts: 3 COMPLETED, 1 FAILED, 1 OUT_OF_MEMORY, ")
    assert last.endswith("; ? of time, ? of cpu, highest known peak 64.0 MiB")
    last = call("results", "1", "--pattern", "train*")[1].splitlines()[-1]
    assert last.endswith("; 7.0 s of time, 4.4 s of cpu, highest peak 64.0 MiB")


@pytest.mark.parametrize(
    ("args", "jobs"),
    [
        (("--failed",), [5, 5, 7, 8, 9, 6]),
        (("--state", "timeout", "--state", "FAILED"), [7, 8]),
        (("--pattern", "train*"), [5, 5, 3, 4]),
        (("--pattern", "train[seed=2]"), [4]),
        (("--pattern", "train*", "--failed"), [5, 5]),
        (("--pattern", "nobody"), []),
        (("-n", "2"), [5, 5]),
    ],
)
def test_filters(past: Path, call: Call, args: tuple[str, ...], jobs: list[int]) -> None:
    """By state, by name, by failure, and all together."""
    assert [row[0] for row in rows(call, *args)] == jobs


def test_an_address_of_jobs(past: Path, call: Call) -> None:
    """`1/train` is the members of a matrix; nothing named is the newest run."""
    assert [one["job"] for one in json.loads(call("results", "1/train", "--json")[1])["results"]] == [5, 5, 3, 4]
    status, _, err = call("results")
    assert status == 0
    assert "run 1 (train) is the newest" in err


def test_the_end_of_each_failed_log(past: Path, call: Call) -> None:
    """Of the newest attempt of each failed job, with secrets masked and nothing that draws on the terminal."""
    _, out, _ = call("results", "1", "--failed", "--log")
    assert "job 5 (train[seed=3], attempt 2) OUT_OF_MEMORY; its output ends:\n  | token ***\n  | Killed\n" in out
    assert "\x1b" not in out
    assert out.splitlines()[-1].startswith("run 1 ")
    logs = {one["job"]: one["log"] for one in document(call, "--log")["results"] if one["log"] is not None}
    assert set(logs) == {5, 7, 8}
    assert SECRET not in logs[5]


def test_logs_that_are_not_read_are_said(past: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aver.cli.commands.look.results.LOGS", 1)
    status, out, err = call("results", "1", "--failed", "--log", "--json")
    assert status == 0
    assert sum(one["log"] is not None for one in json.loads(out)["results"]) == 1
    assert "the logs of 2 more failed jobs are not shown" in err


def test_csv(past: Path, call: Call) -> None:
    """All rows, empty where nothing is known, and never a 0 that nobody measured."""
    status, out, _ = call("results", "1", "--csv")
    assert status == 0
    read = list(csv.DictReader(io.StringIO(out)))
    assert len(read) == 9
    lost = next(row for row in read if row["job"] == "9")
    assert (lost["exit"], lost["return_code"], lost["cpu_s"], lost["peak_bytes"]) == ("", "", "", "")
    assert read[0]["return_code"] == "137"
    assert (read[0]["verified"], lost["verified"]) == ("true", "false")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("results", "77"), "no job or run 77"),
        (("results", "1", "--state", "sad"), "is not a state"),
        (("results", "1", "--pattern", "a[b"), "a[b"),
        (("results", "1", "--csv", "--json"), "not both"),
        (("usage", "1", "--csv", "--json"), "not both"),
        (("export", "1", "--csv", "--junit"), "only one format"),
        (("export", "1", "-o", "run.zip"), "give a format"),
        (("usage", "1", "--dry-run"), "--correct"),
        (("usage", "1", "--correct", "--csv"), "--json"),
        (("usage", "1/train", "--correct"), "give the run"),
        (("usage", "1", "--mem-factor", "0.5"), "factor"),
        (("usage", "1", "--mem-floor", "much"), "size"),
        (("recover", "1"), "--yes"),
        (("recover", "1", "--json"), "--yes"),
        (("recover", "1/train", "-n"), "give the run"),
    ],
)
def test_what_is_refused(past: Path, call: Call, args: tuple[str, ...], says: str) -> None:
    """One line on stderr and exit status 2."""
    status, out, err = call(*args)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err
