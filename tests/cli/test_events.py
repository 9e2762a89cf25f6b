"""`aver events`: numbered changes as JSON lines."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from product import Product, end
from stored_past import SECRET, Aver
from test_json import SCHEMA, problems


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_past_is_told_without_a_coordinator(past: Path, call: Aver) -> None:
    """One line for each change, in order, each of the schema's shape; nothing is started."""
    found = lines(call("events").out)
    assert [one["seq"] for one in found] == sorted({one["seq"] for one in found})
    assert [one["detail"] for one in found if one["what"] == "submitted"] == [
        "echo: 1 job",
        "python: 1 job",
        "flow: 3 jobs",
    ]
    settled = [(one["job"], one["state"]) for one in found if one["what"] == "job" and one["is_settled"]]
    assert settled == [(1, "COMPLETED"), (2, "OUT_OF_MEMORY"), (4, "COMPLETED"), (5, "FAILED"), (6, "SKIPPED")]
    reasons = {one["job"]: one["reason"] for one in found if one["what"] == "job" and one["is_settled"]}
    assert (reasons[1], reasons[5]) == (None, "NonZeroExitCode")
    assert found[-1]["what"] == "run"
    assert (found[-1]["run"], found[-1]["state"]) == (3, "FAILED")
    assert [problem for one in found for problem in problems(one, SCHEMA["$defs"]["EventFacts"])] == []
    assert not (past / "lock").exists()


def test_since_goes_on_where_a_reader_stopped(past: Path, call: Aver) -> None:
    """Whatever the number, the rest is the same lines as before, byte for byte."""
    text = call("events").out
    whole = text.splitlines()
    for number, line in enumerate(whole):
        assert call("events", "--since", str(json.loads(line)["seq"])).out.splitlines() == whole[number + 1 :]


@pytest.mark.parametrize(("ids", "runs"), [(("1",), {1}), (("3",), {3}), (("1", "2"), {1, 2})])
def test_ids_choose(past: Path, call: Aver, ids: tuple[str, ...], runs: set[int]) -> None:
    """Only events of what is named."""
    assert {one["run"] for one in lines(call("events", *ids).out)} == runs


def test_a_job_of_a_run_has_its_own_events(past: Path, call: Aver) -> None:
    """And none of the run's."""
    assert {one["job"] for one in lines(call("events", "3/eval").out)} == {6}


def test_secrets_are_masked(past: Path, call: Aver, tmp_path: Path) -> None:
    """What a person asked for is masked as everything else is."""
    from aver.model.events import PersonAsked
    from aver.store.write.writer import Writer

    writer = Writer.open(past / "aver.db")
    writer.commit([PersonAsked(1_700_000_100.0, 2, None, "ann", "update", f"comment {SECRET}")])
    writer.close()
    last = lines(call("events").out)[-1]
    assert (last["what"], last["source"], last["detail"]) == ("asked", "ann", "update: comment ***")


def test_an_empty_home_has_no_events(tmp_path: Path, call: Aver, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is no error."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "none"))
    assert call("events") == call("events", "--since", "7")
    assert (call("events").status, call("events").out) == (0, "")


def following(aver: Product, *args: str) -> subprocess.Popen[bytes]:
    return aver.start("events", "--follow", *args)


def read_until_settled(process: subprocess.Popen[bytes], run: int) -> list[dict[str, Any]]:
    """The events up to the end of the run."""
    assert process.stdout is not None
    found: list[dict[str, Any]] = []
    while not (found and found[-1]["what"] == "run" and found[-1]["run"] == run and found[-1]["is_settled"]):
        line = process.stdout.readline()
        assert line, "the stream ended"
        found.append(json.loads(line))
    return found


def test_follow_tells_what_happens_and_ctrl_c_ends_it(aver: Product) -> None:
    """It is begun before anything was submitted; what it told can be replayed."""
    process = following(aver)
    run = aver.submit("--", "sh", "-c", "exit 3")
    found = read_until_settled(process, run)
    verdict = next(one for one in found if one["what"] == "job" and one["is_settled"])
    assert (verdict["job"], verdict["state"], verdict["exit"]["text"], verdict["verified"]) == (
        run,
        "FAILED",
        "3:0",
        True,
    )
    answer = end(process, signal.SIGINT)
    assert (answer.status, answer.out, answer.err) == (-signal.SIGINT, "", "")
    assert lines(aver("events").out) == found


def test_follow_ends_when_nobody_reads(aver: Product) -> None:
    """Also when nothing happens any more that could be written."""
    run = aver.submit("--", "true")
    process = following(aver, str(run))
    read_until_settled(process, run)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == b""


def test_a_retry_is_told_apart_from_a_verdict(aver: Product) -> None:
    """The attempt failed, and the job is not settled."""
    (aver.folder / "flow.yaml").write_text("jobs:\n  a: {run: exit 3, retry: 1}\n")
    run = aver.submit("flow.yaml")
    aver("watch", str(run))
    ends = [one for one in lines(aver("events").out) if one["attempt_state"] == "FAILED"]
    assert [(one["attempt"], one["is_settled"]) for one in ends] == [(1, False), (2, True)]
