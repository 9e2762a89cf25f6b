"""Secrets and Slurm's commands: the settings hold for them, and an exported value is stored and shown nowhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from queue_past import Call, Past
from slurm_commands import Slurm

from aver.model.record import replace
from aver.model.slurm_options import SlurmOptions
from live_home import pids

SECRET = "hunter2-token"
KEY = "-----BEGIN KEY-----\nsecretlineone\nsecretlinetwo\n-----END KEY-----"


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.toml").write_text('secret = ["TOKEN"]\n')
    monkeypatch.setenv("AVER_CONFIG", str(tmp_path / "settings.toml"))


def shown(slurm: Slurm, number: int) -> str:
    """What Slurm's commands say of a job."""
    said = [
        slurm("scontrol", "show", "job", str(number)),
        slurm("scontrol", "write", "batch_script", str(number), "-"),
        slurm("sacct", "-P", "-o", "all", "-j", str(number)),
        slurm("sacct", "--json", "-j", str(number)),
        slurm("squeue", "-t", "all", "-o", "%all"),
    ]
    return "".join(one.out + one.err for one in said)


def stored(home: Path) -> Iterator[Path]:
    """Files of the home, but for environments, that have the value."""
    for path in home.rglob("*"):
        if path.is_file() and path.parent.name != "env" and SECRET.encode() in path.read_bytes():
            yield path


def test_the_settings_hold_for_sbatch(slurm: Slurm) -> None:
    """A name that the settings mark is masked, inherited or exported."""
    said = slurm("sbatch", "--wait", f"--comment=x{SECRET}", "--wrap", f"echo {SECRET}", env={"TOKEN": SECRET})
    assert said.status == 0, said
    text = shown(slurm, 1)
    assert "x***" in text
    assert SECRET not in text
    exported = slurm("sbatch", "--wait", f"--comment=x{SECRET}", f"--export=TOKEN={SECRET}", "--wrap", "true")
    assert exported.status == 0, exported
    assert SECRET not in shown(slurm, 2)


def test_the_settings_hold_for_srun_and_salloc(slurm: Slurm) -> None:
    """Called alone, each is a job with the settings' names."""
    assert slurm("srun", f"--comment=x{SECRET}", "true", SECRET, env={"TOKEN": SECRET}).status == 0
    assert slurm("salloc", f"--comment=x{SECRET}", "true", SECRET, env={"TOKEN": SECRET}).status == 0
    for number in (1, 2):
        text = shown(slurm, number)
        assert "x***" in text
        assert SECRET not in text


def test_settings_that_cannot_be_read_are_refused(slurm: Slurm, tmp_path: Path) -> None:
    """Whoever can't say what is secret submits nothing, also where a coordinator runs."""
    assert slurm("sbatch", "--wrap", "sleep 60").status == 0
    (tmp_path / "settings.toml").write_text("secret = [TOKEN\n")
    for words in (("sbatch", "--wrap", "true"), ("srun", "true"), ("salloc", "true")):
        said = slurm(*words)
        assert said.status == 1
        assert "not valid TOML" in said.err
        assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("is_cut", [False, True])
def test_what_srun_exports_is_stored_nowhere(slurm: Slurm, is_cut: bool) -> None:
    """The tasks get it. The store, `show` and command lines of the job do not."""
    value = f"{SECRET}-{os.getpid()}-{is_cut}"  # as no other test has it
    words = ["--exp", f"ALL,TOKEN={value}"] if is_cut else [f"--export=ALL,TOKEN={value}"]
    script = 'printf %s "$TOKEN" > got; until test -e go; do sleep 0.02; done; echo "$TOKEN:$AVER_SRUN_EXPORT"'
    command = subprocess.Popen(
        [slurm.home / "bin" / "srun", *words, "sh", "-c", script],
        cwd=slurm.folder, env=slurm.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    slurm.until_file("got", value)
    lines = {pid: line for pid in pids() if pid != command.pid and value.encode() in (line := cmdline(pid))}
    (slurm.folder / "go").touch()
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out.decode()) == (0, f"{value}:\n"), err
    assert lines == {}
    assert list(stored(slurm.home)) == []
    assert SECRET not in shown(slurm, 1)
    assert "--export=ALL,TOKEN=***" in slurm("sacct", "-P", "-n", "-o", "SubmitLine", "-j", "1").out


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_what_a_step_exports_is_masked(slurm: Slurm) -> None:
    """A value that only a step has is a secret of its job, if its name is one."""
    script = slurm.script(
        "#!/bin/sh\nvalue=hunter2-\nvalue=${value}token\nsrun --export=ALL,TOKEN=$value --job-name=x$value true\n"
    )
    said = slurm("sbatch", "--wait", script)
    assert said.status == 0, said
    text = slurm("sacct", "-P", "-n", "-o", "JobID,JobName", "-j", "1").out
    assert "1.0|x***" in text


def test_lines_of_a_value_are_masked(empty_past: Past, call: Call) -> None:
    """A key of several lines is hidden also where one line of it stands alone, and as one line."""
    past = empty_past
    names = ("wckey", "licenses", "reservation", "features", "exclude", "gres")
    slurm = SlurmOptions(command=KEY.replace("\n", " "), **dict.fromkeys(names, "secretlinetwo"))  # type: ignore[arg-type]
    spec = past.spec("old", comment="at secretlineone", slurm=slurm)
    submitted = past.submitted(3, spec)
    origin = replace(submitted.submission.origin, secrets=("TOKEN",), command=("sbatch", "secretlinetwo"))
    (past.home / "env").mkdir()
    (past.home / "env" / "3.env").write_bytes(os.fsencode(f"PLAIN=x\0TOKEN={KEY}\0"))
    past.commit(replace(submitted, submission=replace(submitted.submission, origin=origin)), *past.running(3, 3))
    texts = [
        call("scontrol", "show", "job", "3").out,
        call("sacct", "-P", "-o", "all", "-j", "3").out,
        call("squeue", "-o", "%all").out,
        call("squeue", "--json").out,
        call("sacct", "--json", "-j", "3").out,
    ]
    assert not [text for text in texts if "secretline" in text]
    assert all("***" in text for text in texts)
