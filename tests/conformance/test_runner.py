"""The runner against commands that are small scripts: what it calls right, wrong, late, and out of reach."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from aver.conformance.observer import Record, read_record

ROOT = Path(__file__).resolve().parents[2]

FAKES = {
    "sbatch": """
        while [ $# -gt 1 ]; do [ "$1" = -J ] && echo "$2" >"$STATE/name"; shift; done
        echo "Submitted batch job 7"
        sh "$1"; echo $? >"$STATE/code"
    """,
    "scontrol": """
        case "$*" in *"show node"*) echo NodeName=solo; exit;; --version) echo $SAYS_VERSION; exit;; esac
        [ -e "$STATE/code" ] || exit 0
        code=$(cat "$STATE/code"); state=FAILED; reason=NonZeroExitCode
        [ "$code" = 0 ] && state=COMPLETED reason=None
        [ -z "$NEVER_SETTLES" ] || state=RUNNING
        echo "JobId=7 JobName=$(cat "$STATE/name") JobState=$state Reason=$reason ExitCode=$code:0 DerivedExitCode=0:0"
    """,
    "sacct": """
        [ -e "$STATE/code" ] || exit 0
        code=$(cat "$STATE/code"); state=FAILED; [ "$code" = 0 ] && state=COMPLETED
        code=$((code - ${LOSES:-0}))
        echo "7|$(cat "$STATE/name")|$state|$code:0|0:0|2026-01-01T00:00:00"
        echo "7.batch|batch|$state|$code:0||2026-01-01T00:00:00"
    """,
    "srun": "exit 0",
    "squeue": "exit 0",
    "scancel": "exit 0",
}


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands that know one job, number 7."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in FAKES.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}")
        (folder / name).chmod(0o755)
    state = tmp_path / "state"
    state.mkdir()
    monkeypatch.setenv("STATE", str(state))
    return folder


def conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aver.conformance", *arguments], capture_output=True, text=True, check=False
    )


def test_commands_that_say_what_is_intended_hold(fakes: Path) -> None:
    """A folder of commands is held to what Aver intends: exit 137 is 137:0, in sacct too."""
    done = conformance("--against", str(fakes), "--case", "exit/137", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = json.loads(done.stdout)
    cells = {cell["cell"]: cell for cell in report["cases"][0]["cells"]}
    assert cells["sacct.exit"]["got"] == "137:0"
    assert cells["sacct.exit"]["slurm"] == "9:0"
    assert cells["sacct.exit"]["difference"] == "whole-codes"


@pytest.mark.parametrize(
    ("says", "version", "release"),
    [("", None, "22.05"), ("slurm-wlm 22.05.8", "22.05.8", "22.05"), ("slurm 25.11.6", "25.11.6", "25.11")],
)
def test_expectations_are_those_of_the_version_that_the_commands_print(
    fakes: Path, monkeypatch: pytest.MonkeyPatch, says: str, version: str | None, release: str
) -> None:
    """The report names the version and the release whose expectations apply, in JSON and in its last line."""
    monkeypatch.setenv("SAYS_VERSION", says)
    done = conformance("--against", str(fakes), "--case", "exit/1", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = json.loads(done.stdout)
    assert (report["version"], report["release"]) == (version, release)
    assert f"aver: version {version or 'unknown'}, expectations of Slurm {release}: 1 cases" in done.stderr


def test_a_cell_that_differs_is_named(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Slurm prints where Aver intends otherwise is wrong for Aver, and the table says where."""
    monkeypatch.setenv("LOSES", "128")
    done = conformance("--against", str(fakes), "--case", "exit/137")
    assert done.returncode == 1
    wrong = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [words[1] for words in wrong] == ["sacct.exit", "batch.exit"]
    assert all("WRONG" in " ".join(words) for words in wrong)


def test_a_job_that_never_settles_is_late_not_wrong_in_silence(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The case says what it waited for and what it saw last, and the whole fails."""
    monkeypatch.setenv("NEVER_SETTLES", "1")
    done = conformance("--against", str(fakes), "--case", "exit/1", "--timeout", "2", "--json")
    assert done.returncode == 1
    trouble = json.loads(done.stdout)[0]["cases"][0]["trouble"]
    assert "a settles" in trouble
    assert "RUNNING" in trouble


def test_what_was_refused_is_not_waited_for(fakes: Path) -> None:
    """Its rows are `none`, at once, and differ from what the case expects."""
    (fakes / "sbatch").write_text("#!/bin/sh\necho 'sbatch: error: no' >&2; exit 1\n")
    done = conformance("--against", str(fakes), "--case", "exit/1", "--timeout", "60", "--json")
    (report,) = json.loads(done.stdout)
    assert report["seconds"] < 30
    assert report["cases"][0]["trouble"] is None
    assert {cell["got"] for cell in report["cases"][0]["cells"]} == {"none"}


def test_the_last_member_that_waits_may_have_the_arrays_limit() -> None:
    """25.11 writes `ArrayTaskId=2%1`."""
    line = "JobId=9 ArrayJobId=7 ArrayTaskId=2%1 ArrayTaskThrottle=1 JobName=a JobState=PENDING"
    record = read_record(line)
    assert record is not None
    assert record.key == "7_2"


def test_a_need_that_is_not_met_is_skipped_visibly(fakes: Path) -> None:
    """A skipped case is in the table, with its reason."""
    done = conformance("--against", str(fakes), "--case", "nodes/node-fail")
    assert done.returncode == 0
    assert "skipped: one machine has no operator" in done.stdout


def test_missing_commands_are_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the commands there is nothing to compare: exit status 69, in one line."""
    monkeypatch.setenv("PATH", str(tmp_path))
    done = conformance("--against", str(tmp_path), "--case", "exit/1")
    assert done.returncode == 69
    assert done.stderr.startswith("aver conformance: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_call_is_a_usage_error() -> None:
    """An unknown case: exit status 2."""
    done = conformance("--against", "slurm", "--case", "no/such")
    assert done.returncode == 2
    assert done.stderr.startswith("aver conformance: ")


def test_the_room_knows_nothing_of_the_rest() -> None:
    """The matrix imports no room of Aver but its own, and errors: it may not share what it is to judge."""
    for path in (ROOT / "src" / "aver" / "conformance").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aver"):
                assert (node.module or "").startswith(("aver.conformance", "aver.errors")), f"{path}: {node.module}"


def test_the_reason_of_a_start_is_none_once_the_job_has_ended() -> None:
    """slurmctld may not have cleared it by then; of a job that starts it is a reason like any other."""
    assert Record("7", "a", "COMPLETED", "0:0", "0:0", "Prolog").row == "COMPLETED 0:0 0:0 None"
    assert Record("7", "a", "RUNNING", "0:0", "0:0", "Prolog").row == "RUNNING 0:0 0:0 Prolog"
