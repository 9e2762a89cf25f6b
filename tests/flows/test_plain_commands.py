"""Jobs whose text is one command of plain words: no shell is started for them, and nothing else is different."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from flow_lab import Lab

import aver


def write(path: Path, text: str, mode: int = 0o755) -> None:
    path.write_text(text)
    path.chmod(mode)


def outcome(lab: Lab, run: str, **keys: object) -> tuple[str, str, str]:
    """State, exit and output of a job with this text."""
    flow = aver.Flow("one", folder=lab.folder)
    flow.job("a", run=run, **keys)  # type: ignore[arg-type]
    done = flow.submit()
    done.wait(60)
    job = done["a"]
    return str(job.state), str(job.exit), job.log()


def both(lab: Lab, run: str) -> tuple[str, str, str]:
    """The same with a comment, for which a shell is started; the outcome, which is the same."""
    plain, shell = outcome(lab, run), outcome(lab, f"{run} # by a shell")
    assert plain == shell
    return plain


def test_outcomes_are_those_of_the_shell(lab: Lab) -> None:
    write(lab.folder / "three", "#!/bin/sh\nexit 3\n")
    write(lab.folder / "dies", "#!/bin/sh\nkill -TERM $$\n")
    write(lab.folder / "closed", "#!/bin/sh\n", 0o644)
    write(lab.folder / "bare", "echo a bare script; exit 4\n")
    write(lab.folder / "odd", "#!/no/such/interpreter\n")
    (lab.folder / "sub").mkdir()
    assert both(lab, "true a b")[:2] == ("COMPLETED", "0:0")
    assert both(lab, "./three x")[:2] == ("FAILED", "3:0")
    assert both(lab, "./dies")[:2] == ("FAILED", f"0:{int(signal.SIGTERM)}")
    assert both(lab, "./closed")[1] == "126:0"
    assert both(lab, "./bare") == ("FAILED", "4:0", "a bare script\n")
    assert both(lab, "./odd")[0] == "FAILED"
    assert both(lab, "./sub")[1] == "126:0"
    assert "command not found" in both(lab, "no-such-program -x")[2]
    assert both(lab, "no-such-program -x")[1] == "127:0"


def test_no_shell_is_started(lab: Lab) -> None:
    """A bash notes in `_` what it starts. The folder is the job's in PWD too."""
    (lab.folder / "sub").mkdir()
    seen = dict(line.split("=", 1) for line in outcome(lab, "env", folder="sub")[2].splitlines() if "=" in line)
    assert seen.get("_") != "/usr/bin/env"
    assert seen["PWD"] == str(lab.folder / "sub")
    assert dict(line.split("=", 1) for line in outcome(lab, "env # x")[2].splitlines())["_"] == "/usr/bin/env"


def test_a_wrong_pwd_of_the_submitter_is_not_the_jobs(lab: Lab) -> None:
    lab.write("jobs: {a: {run: env}}")
    answer = lab("run", "flow.yaml", env={"PWD": "/"})
    assert answer.status == 0
    assert f"PWD={lab.folder}" in aver.Run(1)["a"].log().splitlines()


@pytest.mark.parametrize(
    "env", [{"BASH_FUNC_hello%%": "() { echo by a function\n}"}, {"BASH_ENV": "own"}, {"SHELLOPTS": "xtrace"}]
)
def test_what_changes_a_bash_is_heeded(lab: Lab, env: dict[str, str]) -> None:
    """Functions, files and options that the submitter has exported mean what they meant."""
    write(lab.folder / "bin-hello", "#!/bin/sh\necho by the program\n")
    write(lab.folder / "own", "echo by a file\n")
    os.rename(lab.folder / "bin-hello", lab.folder / "hello")
    lab.write("jobs: {a: {run: hello}}")
    path = f"{lab.folder}:{os.environ['PATH']}"
    own = {name: str(lab.folder / value) if name == "BASH_ENV" else value for name, value in env.items()}
    assert lab("run", "flow.yaml", env={"PATH": path, **own}).status == 0
    said = aver.Run(1)["a"].log()
    assert {"BASH_FUNC_hello%%": "by a function", "BASH_ENV": "by a file", "SHELLOPTS": "+ hello"}[
        next(iter(env))
    ] in said


def test_a_tilde_in_path_is_the_shells(lab: Lab) -> None:
    """bash looks in the user's folder for it; another program of that name may be elsewhere."""
    for folder, text in (("own", "the own one"), ("other", "another one")):
        (lab.folder / folder).mkdir()
        write(lab.folder / folder / "hello", f"#!/bin/sh\necho {text}\n")
    lab.write("jobs: {a: {run: hello}}")
    path = f"~/own:{lab.folder}/other:{os.environ['PATH']}"
    assert lab("run", "flow.yaml", env={"PATH": path, "HOME": str(lab.folder)}).status == 0
    assert aver.Run(1)["a"].log() == "the own one\n"


def test_a_job_that_sets_bash_env_itself(lab: Lab) -> None:
    write(lab.folder / "own", "echo by a file\n")
    assert "by a file" in outcome(lab, "true", env={"BASH_ENV": str(lab.folder / "own")})[2]


def test_members_get_their_values(lab: Lab) -> None:
    """Spaces, quotes and empty text arrive as they are."""
    write(lab.folder / "show", "#!/bin/sh\nprintf '[%s]' \"$@\"\n")
    values = ["a b", "it's", '"$HOME"', "", "-n", "*", "é x"]
    flow = aver.Flow("m", folder=lab.folder)
    flow.job("a", run="./show {v} x{v}y", matrix={"v": values})
    run = flow.submit()
    assert run.wait(60) == "COMPLETED"
    assert [job.log() for job in run.jobs] == [f"[{value}][x{value}y]" for value in values]
