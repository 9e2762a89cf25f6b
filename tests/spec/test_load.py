"""Files, commands and flags of the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aver.errors import UsageError
from aver.model.job import Argv, FlowSpec, JobSpec, Request
from aver.spec.command import flow_of_command
from aver.spec.flags import Overrides, parse_overrides
from aver.spec.load import load
from aver.spec.mistakes import SpecError


def refusal(path: str, overrides: Overrides = Overrides(), args: tuple[str, ...] = ()) -> str:
    with pytest.raises(UsageError) as caught:
        load(path, overrides, args=args, now=0.0)
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_by_extension_and_content(tmp_path: Path) -> None:
    """Flows by their extension or their look, scripts by their first line."""
    for name, text in {
        "a.yaml": "jobs: {x: {run: y}}",
        "b.json": '{"jobs": {"x": {"run": "y"}}}',
        "c": "# a flow\njobs:\n  x: {run: y}\n",
        "d.sh": "#!/bin/sh\n",
        "e.yml": "#!/bin/sh\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert load(str(tmp_path / "a.yaml")).name == "a"
    assert load(str(tmp_path / "b.json")).jobs == load(str(tmp_path / "c")).jobs
    assert load(str(tmp_path / "d.sh")).is_single
    assert load(str(tmp_path / "e.yml")).is_single


def test_what_can_not_be_read(tmp_path: Path) -> None:
    """A missing file, a folder and a FIFO, each in one sentence."""
    os.mkfifo(tmp_path / "fifo")
    assert "does not exist" in refusal(str(tmp_path / "no\nfile"))
    assert "\n" not in refusal(str(tmp_path / "no\nfile"))
    assert "is a folder" in refusal(str(tmp_path))
    assert "is not a file" in refusal(str(tmp_path / "fifo"))
    assert "can't be read" in refusal("a\0b")


def test_a_program_is_answered_with_the_hint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`aver run python x.py` says how to write it."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir("/")
    assert refusal("python", args=("x.py",)) == (
        "`python` is a program, not a flow or a script: put the command after --:  aver run -- python x.py"
    )


def test_flags_and_arguments_of_a_flow(tmp_path: Path) -> None:
    """A flow can be renamed; all else is said in the flow."""
    path = tmp_path / "f.yaml"
    path.write_text("jobs: {x: {run: y}}")
    assert load(str(path), Overrides(name="other")).name == "other"
    assert refusal(str(path), Overrides(mem_bytes=5)).startswith("--mem is for a script or a command")
    assert refusal(str(path), args=("1",)).startswith("a flow takes no arguments")


def test_mistakes_name_the_file(tmp_path: Path) -> None:
    """By the path that was given."""
    path = tmp_path / "f.yaml"
    path.write_text("jobs: 3")
    with pytest.raises(SpecError, match=f"^{path}:1:7: "):
        load(str(path))


def test_commands() -> None:
    """The job is named after its program; names are made clean and cut."""
    spec = flow_of_command(["/usr/bin/env", "x", ""], parse_overrides(now=0.0, mem="512", time="10"))
    request = Request(mem_bytes=512 * 1024**2, time_s=600)
    assert spec == FlowSpec("env", (JobSpec("env", Argv(("/usr/bin/env", "x", "")), request),), is_single=True)
    assert flow_of_command(["./a\nb\udcff"]).name == "a\\nb\\xff"
    assert len(flow_of_command(["x" * 300]).name) == 255
    with pytest.raises(UsageError, match="no command after --"):
        flow_of_command([])


@pytest.mark.parametrize(
    ("flag", "text", "start"),
    [
        ("mem", "-1", "--mem: '-1' is not a size"),
        ("mem", "9999999999999G", "--mem: "),
        ("time", "x", "--time: 'x' is not a time"),
        ("cpus", "-1", "--cpus: '-1' is not a number of cpus"),
        ("gpus", "-1", "--gpus: "),
        ("signal", "TERM@", "--signal: "),
        ("kill_wait", "-3", "--kill-wait: "),
        ("kill_wait", "2d", "--kill-wait: '2d' is more than a day"),
        ("begin", "99:99", "--begin: "),
        ("deadline", "2001-01-01", "--deadline: '2001-01-01' is in the past"),
        ("name", " ", "--name: a name can't be empty"),
        ("output", "", "--output: "),
        ("oom", "x", "--oom: 'x' is neither warn nor fail"),
        ("priority", "1-", "--priority: "),
    ],
)
def test_wrong_flags(flag: str, text: str, start: str) -> None:
    """One sentence that names the flag."""
    with pytest.raises(UsageError) as caught:
        parse_overrides(now=1_900_000_000.0, **{flag: text})  # type: ignore[arg-type]
    assert str(caught.value).startswith(start)
    assert "\n" not in str(caught.value)


def test_options_after_stdin(tmp_path: Path) -> None:
    """A script on stdin could have them as its own, so a flow's come before."""
    path = tmp_path / "flow.yaml"
    path.write_text("jobs: {a: {run: x}}\n")
    assert refusal(str(path), args=("-j", "1")).endswith('was given "-j"; options come before it')
