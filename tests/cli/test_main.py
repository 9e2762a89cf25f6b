"""The edge: arguments in, one line and an exit status out."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from product import run_aver
from stored_past import Aver

from aver.cli import main
from aver.cli.group import HELPS, MODULES
from aver.errors import CantWriteError, UnreachableError, UsageError


def test_the_groups_help_lists_every_command() -> None:
    """`aver --help` names each command with its short help."""
    done = run_aver("--help")
    assert done.returncode == 0
    for name in HELPS:
        assert re.search(rf"^  {name}\b", done.stdout, re.MULTILINE), name


def test_the_groups_help_imports_no_command() -> None:
    """`aver --help` costs no import of a command, of rich, yaml or sqlite3."""
    code = (
        "import sys\nfrom aver.cli.main import invoke\ninvoke(['--help'])\n"
        "names = [n for n in sys.modules if n in ('rich', 'yaml', 'sqlite3', 'asyncio')]\n"
        "own = ('aver.cli.main', 'aver.cli.group', 'aver.cli.catalog', 'aver.cli.output')\n"
        "names += [n for n in sys.modules if n.startswith('aver.cli.') and n not in own]\n"
        "print(names, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("words", ["jobs", "show 2", "why 2", "log 1", "timeline 2"])
def test_looking_at_a_job_imports_no_parser_and_no_planner(past: Path, words: str) -> None:
    """What reads the store alone starts quickly: no YAML, no flow is parsed, nothing is planned."""
    code = (
        f"import sys\nfrom aver.cli.main import invoke\nassert invoke({words.split()}) == 0\n"
        "names = ('yaml', 'aver.spec.flow.file', 'aver.plan.planner', 'aver.report.causes', 'asyncio')\n"
        "print([name for name in names if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", HELPS)
def test_each_short_help_is_the_commands_own(name: str) -> None:
    """The catalogue says what the first line of the command's help says, and each command has an example."""
    command = importlib.import_module(MODULES[name]).command
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help is not None
    assert command.help.splitlines()[0] == HELPS[name]
    assert "Example" in command.help


@pytest.mark.parametrize("name", HELPS)
def test_each_command_has_a_help(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """`aver COMMAND --help` works and exits 0."""
    assert main.invoke([name, "--help"]) == 0
    assert f"Usage: aver {name}" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["jbos"], "aver jobs"),
        (["pythonx"], "aver run -- pythonx"),
        (["--no-such"], "--no-such"),
        (["watch"], "aver watch --help"),
        (["jobs", "--no-such"], "--no-such"),
    ],
)
def test_wrong_usage_is_one_line_with_a_hint_and_exit_2(
    args: list[str], hint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Wrong usage never shows a traceback or a page of help."""
    assert main.invoke(args) == 2
    err = capfd.readouterr().err
    assert err.startswith("aver: ")
    assert err.count("\n") == 1
    assert hint in err


def test_no_command_shows_the_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`aver` alone explains itself where there are no jobs to show."""
    monkeypatch.setenv("AVER_HOME", str(tmp_path / "home"))
    done = run_aver()
    assert done.returncode == 0
    assert "Upkeep:" in done.stdout


@pytest.mark.parametrize(
    ("error", "status"), [(UsageError("x"), 2), (UnreachableError("x"), 69), (CantWriteError("x"), 73)]
)
def test_an_error_of_the_tree_is_one_line_and_its_status(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Errors that a user can cause have no traceback."""

    def fail(argv: list[str]) -> int:
        raise error

    monkeypatch.delenv("AVER_DEBUG", raising=False)
    monkeypatch.setattr(main, "_invoke", fail)
    assert main.invoke([]) == status
    assert capfd.readouterr().err == "aver: x\n"


def test_a_bug_is_said_and_its_traceback_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An unexpected exception exits 70, with the traceback in a file of the home that only its owner reads."""

    def fail(argv: list[str]) -> int:
        raise RuntimeError("boom")

    monkeypatch.setenv("AVER_HOME", str(tmp_path))
    monkeypatch.delenv("AVER_DEBUG", raising=False)
    monkeypatch.setattr(main, "_invoke", fail)
    assert main.invoke([]) == 70
    err = capfd.readouterr().err
    assert err.startswith("aver: a bug in Aver: RuntimeError: boom; the traceback is in ")
    path = Path(err.rsplit(" ", 1)[1].strip())
    assert path.parent == tmp_path
    assert "raise RuntimeError" in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_a_closed_pipe_is_no_bug() -> None:
    """`aver --help | true` ends quietly."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "aver", "completion", "bash"],
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.parametrize(
    ("argv", "head", "tail"),
    [
        (["run", "--", "a", "--", "-b"], ["run"], ("a", "--", "-b")),
        (["run", "-c", "2", "--", "--help"], ["run", "-c", "2"], ("--help",)),
        (["run", "x.sh"], ["run", "x.sh"], None),
        (["submit", "--"], ["submit"], ()),
        (["jobs", "--", "3"], ["jobs", "--", "3"], None),
    ],
)
def test_what_follows_two_dashes_is_the_command_untouched(
    argv: list[str], head: list[str], tail: tuple[str, ...] | None
) -> None:
    """Only `run` and `submit` cut, at the first `--`."""
    assert main.split_command(argv) == (head, tail)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("args", ["jobs", "run -- echo x", "--help"])
def test_closed_streams_are_no_bug(aver_home: Path, tmp_path: Path, closed: str, args: str) -> None:
    """Nothing of ours takes the place of a closed stream, and the job still runs."""
    line = f"exec {sys.executable} -m aver {args} {closed}"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert not list(aver_home.glob("aver-bug-*"))


@pytest.mark.parametrize("args", ["jobs", "run -- echo x", "doctor"])
def test_a_full_disk_behind_stdout_is_one_line_and_73(aver_home: Path, tmp_path: Path, args: str) -> None:
    """Not a bug, and not a success."""
    line = f"exec {sys.executable} -m aver {args} > /dev/full"
    subprocess.run([sys.executable, "-m", "aver", "run", "-q", "--", "true"], cwd=tmp_path, timeout=60, check=True)
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 73, done.stderr
    assert "aver: can't write the answer: No space left on device" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_debug_adds_the_traceback_and_keeps_the_line(tmp_path: Path) -> None:
    """The same last line and the same exit status as without."""
    plain = run_aver("show", "1", AVER_HOME=str(tmp_path))
    debug = run_aver("show", "1", AVER_HOME=str(tmp_path), AVER_DEBUG="1")
    assert (debug.returncode, debug.stderr.splitlines()[-1]) == (plain.returncode, plain.stderr.strip())
    assert debug.stderr.startswith("Traceback")


def test_jobs_of_no_home_are_said_at_once(tmp_path: Path) -> None:
    """The same words as for a home in which nothing was submitted, without the imports of the command line."""
    quick = run_aver("jobs", AVER_HOME=str(tmp_path / "none"))
    (tmp_path / "empty").mkdir(mode=0o700)
    slow = run_aver("jobs", AVER_HOME=str(tmp_path / "empty"))
    assert (quick.returncode, quick.stdout, quick.stderr) == (slow.returncode, slow.stdout, slow.stderr)
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").touch()
    assert run_aver("jobs", AVER_HOME=str(tmp_path / "file" / "home")).returncode == 73  # who can't look does not know
    words = [sys.executable, "-X", "importtime", "-m", "aver", "jobs"]
    env = {**os.environ, "AVER_HOME": str(tmp_path / "none")}
    imported = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=True).stderr
    assert "click" not in imported


def test_words_of_other_tools_are_understood(past: Path, call: Aver) -> None:
    """ls, logs, wait and the like are commands; only a near miss gets a suggestion."""
    assert call("ls", "--json").document == call("jobs", "--json").document
    assert call("logs", "1").out == "hello\n"
    assert call("ps", "--json").document["jobs"] == []
    assert call("describe", "1").out == call("show", "1").out
    assert "did you mean `aver jobs`?" in call("jbos").err
    assert "did you mean" not in call("zebra").err
    assert "`aver cancel 2` ends jobs" in call("stop", "2").err
