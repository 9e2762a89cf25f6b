"""`aver export`: JUnit XML that CI systems read, JSON lines of all events, CSV; files that are whole or not there."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from aver.model.states import State
from aver.report.junit import Result, result_of
from aver.store.read.reader import Reader
from past_runs import SECRET, Call, fill, fill_again

# What Jenkins's own schema of the format allows.
ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id", "package"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "time", "classname"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"message"},
    "flakyFailure": {"type", "message"},
    "rerunFailure": {"type", "message"},
    "system-out": set(),
}


def test_junit_says_of_each_job_what_ci_must_know(past: Path, call: Call) -> None:
    """FAILED, OUT_OF_MEMORY and TIMEOUT are failures, UNVERIFIED is an error, SKIPPED is skipped; the rest passes."""
    status, out, _ = call("export", "1", "--junit")
    assert status == 0
    suite = ElementTree.fromstring(out).find("testsuite")
    assert suite is not None
    found = {}
    for case in suite.iter("testcase"):
        verdict = [one for one in case if one.tag in ("failure", "error", "skipped")]
        found[case.get("name")] = (verdict[0].tag, verdict[0].get("message")) if verdict else None
    assert found == {
        "prep": None,
        "train[seed=1]": None,
        "train[seed=2]": None,
        "train[seed=3]": ("failure", "OUT_OF_MEMORY 0:9 OutOfMemory"),
        "eval": ("skipped", "SKIPPED NeedFailed:train[seed=3](OUT_OF_MEMORY)"),
        "lint": ("failure", "FAILED 3:0 NonZeroExitCode"),
        "slow": ("failure", "TIMEOUT 0:15 TimeLimit"),
        "lost": ("error", "UNVERIFIED WitnessVanished"),
    }
    totals = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert totals == {"tests": "8", "failures": "3", "errors": "1", "skipped": "1"}
    times = {case.get("name"): case.get("time") for case in suite.iter("testcase")}
    assert (times["prep"], times["eval"], times["lost"]) == ("1.000", "0.000", None), "nobody knows how long it ran"
    again = suite.find("testcase[@name='train[seed=3]']/rerunFailure")
    assert again is not None
    assert again.get("message") == "attempt 1: OUT_OF_MEMORY 0:9 OutOfMemory"


def test_junit_has_only_what_the_schema_allows(past: Path, call: Call) -> None:
    """Every element and attribute is one of the format's; times are plain numbers."""
    _, out, _ = call("export", "1", "--junit")
    for element in ElementTree.fromstring(out).iter():
        assert set(element.attrib) <= ALLOWED[element.tag], element.tag
        if "time" in element.attrib:
            assert re.fullmatch(r"[0-9]+\.[0-9]+", element.attrib["time"])


def test_junit_spells_out_what_xml_cannot_have(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control characters of a log and markup in names are text; secrets are masked."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    fill(tmp_path / "home", tmp_path / "work", name='a"b<c>&', job_name="</testcase>")
    _, out, _ = call("export", "1", "--junit")
    suite = ElementTree.fromstring(out).find("testsuite")
    assert suite is not None
    assert suite.get("name") == 'a"b<c>&'
    case = next(one for one in suite.iter("testcase") if one.get("name") == "</testcase>")
    assert r"\x1b[31m" in (case.findtext("system-out") or "")
    assert SECRET not in out


def test_junit_keeps_names_that_attributes_would_change(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line end or a tab in a name is read again as it was, not as a space."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    fill(tmp_path / "home", tmp_path / "work", job_name="a\nb\tc\rd")
    _, out, _ = call("export", "1", "--junit")
    assert "a\nb\tc\rd" in {case.get("name") for case in ElementTree.fromstring(out).iter("testcase")}


COUNTS_AS = {
    Result.PASSED: {"COMPLETED"},
    Result.FAILURE: {"FAILED", "OUT_OF_MEMORY", "TIMEOUT", "DEADLINE"},
    Result.SKIPPED: {"SKIPPED"},
}


@pytest.mark.parametrize("state", list(State))
def test_how_each_state_counts(state: State) -> None:
    """What the work did is a failure; all else that is neither COMPLETED nor SKIPPED is an error, and turns CI red."""
    expected = next((result for result, names in COUNTS_AS.items() if state.name in names), Result.ERROR)
    assert result_of(state) is expected


def test_junit_tells_of_earlier_attempts(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that passed in the end was flaky; one that went on as agreed was not; a person's word is said to be one."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    fill_again(tmp_path / "home", tmp_path / "work")
    _, out, _ = call("export", "1", "--junit")
    cases = {case.get("name"): case for case in ElementTree.fromstring(out).iter("testcase")}
    assert {name: [(one.tag, one.get("message")) for one in case] for name, case in cases.items()} == {
        "flaky": [("flakyFailure", "attempt 1: FAILED 3:0 NonZeroExitCode")],
        "goes-on": [],
        "believed": [("system-out", None)],
    }
    assert cases["believed"].findtext("system-out") == "Believed, not verified: accepted as 0:0 by ann\n"


def test_json_lines_are_all_events(past: Path, call: Call) -> None:
    """One object for each event of the store, in order, with what the sources said."""
    _, out, _ = call("export", "1", "--jsonl")
    lines = [json.loads(line) for line in out.splitlines()]
    reader = Reader.open(past / "aver.db")
    assert reader is not None
    with reader:
        stored = list(reader.events(run=1))
    assert [(line["seq"], line["kind"]) for line in lines] == [(one.seq, type(one.event).__name__) for one in stored]
    assert any('"oom": 1' in line.get("said", "") for line in lines)


def test_csv_has_a_row_for_each_attempt(past: Path, call: Call) -> None:
    """Also one for a job that never had any; unknown is empty, never 0."""
    _, out, _ = call("export", "1", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["name"], row["attempt"], row["state"]) for row in rows] == [
        ("prep", "1", "COMPLETED"),
        ("train[seed=1]", "1", "COMPLETED"),
        ("train[seed=2]", "1", "COMPLETED"),
        ("train[seed=3]", "1", "OUT_OF_MEMORY"),
        ("train[seed=3]", "2", "OUT_OF_MEMORY"),
        ("eval", "", "SKIPPED"),
        ("lint", "1", "FAILED"),
        ("slow", "1", "TIMEOUT"),
        ("lost", "1", "UNVERIFIED"),
    ]
    lost = rows[-1]
    assert (lost["exit"], lost["return_code"], lost["elapsed_s"], lost["verified"]) == ("", "", "", "false")
    killed = rows[4]
    assert (killed["exit"], killed["return_code"], killed["peak_bytes"]) == ("0:9", "137", str(64 << 20))


def test_csv_keeps_rows_whole_whatever_is_in_them(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks, quotes and every kind of line end in a name are in one cell, in both commands that write CSV."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    name = 'a\rb\nc\r\nd,"e"'
    fill(tmp_path / "home", tmp_path / "work", job_name=name)
    for command in (("export", "1", "--csv"), ("results", "1", "--csv"), ("usage", "1", "--csv")):
        _, out, _ = call(*command)
        rows = list(csv.DictReader(io.StringIO(out, newline="")))
        assert [row["job"] for row in rows if row["name"] == name] == ["7"], command
        assert None not in {key for row in rows for key in row}


def test_a_file_says_its_format_and_is_whole(past: Path, call: Call, tmp_path: Path) -> None:
    """Nothing but the file is left beside it; a file that was there keeps its mode; a link stays a link."""
    real = tmp_path / "real.csv"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(real)
    assert call("export", "1", "-o", str(link))[0] == 0
    assert link.is_symlink()
    assert real.read_text().startswith("run,job,name")
    assert real.stat().st_mode & 0o777 == 0o640
    assert not list(tmp_path.glob(".aver-*"))
    status, out, _ = call("export", "1", "-o", str(tmp_path / "r.xml"), "--json")
    assert status == 0
    assert json.loads(out) | {"size_bytes": 0} == {
        "kind": "written", "run": 1, "format": "junit", "path": str(tmp_path / "r.xml"), "size_bytes": 0, "jobs": 8,
        "is_settled": True,
    }  # fmt: skip


@pytest.mark.parametrize("command", ["report", "export"])
def test_what_cannot_be_written_is_73(past: Path, call: Call, tmp_path: Path, command: str) -> None:
    """A folder that is not there, and a disk that is full: one line, exit 73."""
    more = ["--csv"] if command == "export" else []
    status, _, err = call(command, "1", *more, "-o", str(tmp_path / "none" / "x"))
    assert (status, err) == (73, f"aver: can't write {tmp_path}/none/x: No such file or directory\n")
    if os.path.exists("/dev/full"):
        assert call(command, "1", *more, "-o", "/dev/full")[0] == 73


def test_wrong_calls_are_one_line(past: Path, call: Call) -> None:
    """No format, no such run, a document about nothing."""
    for args in (("export", "1"), ("export", "77", "--csv"), ("export", "1", "--csv", "--json"), ("report", "x")):
        status, _, err = call(*args)
        assert status == 2
        assert len(err.splitlines()) == 1
