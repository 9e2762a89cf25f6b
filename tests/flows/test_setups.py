"""`env_file`, `venv`, `conda` and `module`: what jobs run in, and that exit codes, signals and ends are their own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from flow_lab import Lab, states, wait_for_file

import aver

HAS_MODULES = Path("/usr/share/modules/init/sh").exists()


@pytest.fixture
def venv(lab: Lab) -> Lab:
    """A folder with a real venv, without pip."""
    import venv

    venv.create(lab.folder / "env", with_pip=False, symlinks=True)
    return lab


def test_a_job_runs_in_its_venv_whatever_starts_it(venv: Lab) -> None:
    """A shell's text, a program, another interpreter; the first line of a text stays the first."""
    tell = "import os, sys; print(sys.prefix, os.environ['VIRTUAL_ENV'])"
    run = venv.run(
        f"""
defaults: {{venv: env}}
jobs:
  text:
    run: |
      python -c "{tell}" > text; echo $LINENO $# >> text
  argv: {{run: [python, -c, "{tell}"], output: argv}}
  other: {{shell: python3, run: "{tell}", output: other}}
  outside: {{venv: ../here/env, folder: ., run: 'command -v python > outside'}}
"""
    )
    assert set(states(run).values()) == {"COMPLETED"}
    prefix = str(venv.folder / "env")
    assert venv.lines("text") == [prefix, prefix, "1", "0"]
    assert venv.lines("argv") == [prefix, prefix]
    assert venv.lines("other") == [prefix, prefix]
    assert venv.lines("outside") == [f"{prefix}/bin/python"]


def test_exit_codes_signals_and_ends_are_the_jobs_own(venv: Lab) -> None:
    """No process is between the witness and the program, and none is left behind."""
    run = venv.run(
        """
defaults: {venv: env}
jobs:
  code: {run: [sh, -c, exit 7]}
  signal: {run: [sh, -c, "kill -SEGV $$"]}
  shell: {run: "kill -9 $$"}
  child: {run: [sh, -c, "test $(ps -o ppid= -p $$ | xargs -I{} cat /proc/{}/comm) = aver-witness"]}
  left: {run: "sleep 1000 & echo $! > left"}
  warned: {time: 60s, signal: USR1@59s, run: "trap 'echo warned > warned; exit 5' USR1; while :; do sleep 0.01; done"}
  none: {venv: nowhere, run: "true"}
"""
    )
    found = {job.name: (str(job.state), str(job.exit)) for job in run}
    assert found == {
        "code": ("FAILED", "7:0"),
        "signal": ("FAILED", "0:11"),
        "shell": ("FAILED", "0:9"),
        "child": ("COMPLETED", "0:0"),
        "left": ("COMPLETED", "0:0"),
        "warned": ("FAILED", "5:0"),
        "none": ("FAILED", "127:0"),
    }
    assert not Path(f"/proc/{venv.lines('left')[0]}").exists()
    assert "there is no venv in nowhere" in run["none"].log()


def test_an_untrapped_warning_does_not_end_the_shell(venv: Lab) -> None:
    """As without a venv: the warning is for the program that the shell started."""
    program = "python -c 'import signal, sys; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0)); signal.pause()'"
    run = venv.run(f'jobs: {{a: {{venv: env, time: 60s, signal: USR1@59s, run: "{program}; echo after > after"}}}}\n')
    assert (states(run), venv.lines("after")) == ({"a": "COMPLETED"}, ["after"])


def test_env_file(lab: Lab) -> None:
    """The job's own `env` counts before it; values are in no store; a changed value is seen by reinit."""
    lab.write("# a comment\nexport A=1\nB='two words'\nC=\"x=y\"\n\nD=\n", "vars.env")
    path = lab.write(
        "defaults: {env_file: vars.env}\njobs: {a: {env: {A: own}, run: 'echo \"$A|$B|$C|$D|${E-unset}\" > out'}}\n"
    )
    run = aver.Flow.from_file(path, folder=lab.folder).run(60)
    assert run.state == "COMPLETED"
    assert (lab.folder / "out").read_text() == "own|two words|x=y||unset\n"
    assert b"two words" not in (lab.home / "aver.db").read_bytes()
    lab.write("B=new\n", "vars.env")
    assert [one.why for one in run.reinit(dry_run=True)] == ["its environment changed (B, C, D)"]


def test_generated_jobs_and_kill_9(venv: Lab) -> None:
    """The flow's venv is theirs as well, and a coordinator that comes back knows it."""
    batch = '{"late": {"run": ["python", "-c", "import sys; open(\'late\', \'w\').write(sys.prefix)"]}}'
    venv.write(batch, "more.src")
    run = venv.submit(
        "defaults: {venv: env}\njobs:\n"
        f'  gen: {{generates: more.json, run: "touch begun; {wait_for_file("go")}; cp more.src more.json"}}\n'
    )
    venv.wait_for("begun")
    venv.kill()
    venv.let_go("go")
    venv("runs")
    assert run.wait(60) == "COMPLETED"
    assert venv.lines("late") == [str(venv.folder / "env")]


@pytest.mark.skipif(not HAS_MODULES, reason="environment-modules is not installed")
def test_modules(lab: Lab) -> None:
    """Loaded before the job; one that is not there ends it with 127 and the tool's own words."""
    modules = lab.folder / "modules"
    modules.mkdir()
    (modules / "tool").mkdir()
    (modules / "tool" / "1.2").write_text("#%Module\nsetenv TOOL_HOME /opt/tool\n")
    path = lab.write(
        f"defaults: {{env: {{MODULEPATH: '{modules}'}}}}\njobs:\n"
        "  text: {module: [tool/1.2], run: 'echo $TOOL_HOME > text'}\n"
        "  argv: {module: tool/1.2, run: [printenv, TOOL_HOME], output: argv}\n"
        "  none: {module: tool/9, run: 'touch ran'}\n"
    )
    run = aver.Flow.from_file(path, folder=lab.folder).run(60)
    assert {job.name: str(job.exit) for job in run} == {"text": "0:0", "argv": "0:0", "none": "127:0"}
    assert lab.lines("text") == lab.lines("argv") == ["/opt/tool"]
    assert not (lab.folder / "ran").exists()
    assert "tool/9" in run["none"].log()


@pytest.mark.skipif(shutil.which("conda") is None, reason="conda is not installed")
def test_conda(lab: Lab) -> None:
    run = lab.run("jobs: {a: {conda: base, run: 'echo $CONDA_DEFAULT_ENV > out'}}\n")
    assert (states(run), lab.lines("out")) == ({"a": "COMPLETED"}, ["base"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("env_file: none.env", "can't be read: none.env: No such file or directory"),
        ("env_file: [bad.env]", "has no NAME=VALUE in line 2 of bad.env"),
        ("venv: [a]", "must be text, not a list"),
    ],
)
def test_mistakes(lab: Lab, text: str, complaint: str) -> None:
    lab.write("A=1\nno pair\n", "bad.env")
    assert complaint in lab("check", str(lab.write(f"jobs: {{a: {{run: x, {text}}}}}\n"))).out


@pytest.mark.skipif(shutil.which("conda") is not None, reason="conda is installed")
def test_check_and_doctor_say_what_is_missing(lab: Lab) -> None:
    answer = lab("check", str(lab.write("jobs: {a: {run: x, conda: base}}\n")))
    assert (answer.status, "conda is not on PATH" in answer.out) == (2, True)
    fact = next(one for one in lab("doctor", "--json").document["checks"] if one["name"] == "environments")["fact"]
    assert fact.startswith("jobs may have venv")


def test_a_dry_run_prints_what_will_run(venv: Lab) -> None:
    path = str(venv.write("defaults: {venv: env}\njobs: {a: {run: 'true'}, b: {run: [python, -V]}}\n"))
    a, b = venv("run", "--dry-run", "--json", path).document["jobs"]
    assert a["script"].startswith("VIRTUAL_ENV=")
    assert a["script"].endswith("true")
    assert (b["command"][:2], b["command"][-2:]) == (["/bin/sh", "-c"], ["python", "-V"])
    assert b["command"][2].endswith('exec "$@"')
