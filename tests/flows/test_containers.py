"""`container`: a job in an image of a real podman. Exit codes, signals, memory and ends are the job's own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from flow_lab import Lab, states

import aver
from boxes import IMAGE, WAIT_S, podman_environment, remove_boxes


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    environment = podman_environment(tmp_path_factory.mktemp("podman"))
    yield environment
    remove_boxes(environment)


@pytest.fixture
def boxes(lab: Lab, podman: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Lab:
    for name, value in podman.items():
        monkeypatch.setenv(name, value)
    return lab


def ended(run: aver.Run) -> dict[str, tuple[str, str]]:
    run.wait(WAIT_S)
    return {job.name: (str(job.state), str(job.exit)) for job in run}


def test_exit_codes_signals_and_memory_are_the_jobs_own(boxes: Lab) -> None:
    """137 is told from KILL, a kill for memory is OUT_OF_MEMORY, and nothing of a job is left."""
    run = boxes.submit(
        f"""
defaults: {{cpus: 0, container: {{image: "{IMAGE}", engine: podman}}}}
jobs:
  good:
    matrix: {{word: ["a 'b' $c"]}}
    env: {{OWN: value}}
    outputs: good
    cpus: 1
    run: 'echo "$PWD|$OWN|$AVER_PARAM_word|"{{word}}"|$AVER_JOB_NAME|$(nproc)" > good'
  code: {{run: "exit 7"}}
  looks-killed: {{run: "exit 137"}}
  killed: {{run: "kill -9 $$"}}
  program: {{run: [bash, -c, "kill -SEGV $$"]}}
  memory: {{mem: 300M, run: "x=$(head -c 500M /dev/zero | tr '\\\\0' x); echo ${{#x}}"}}
  left: {{run: "sleep 4321 & echo begun"}}
  shell: {{shell: zsh, run: x}}
  missing: {{outputs: nowhere, run: ":"}}
  input: {{stdin: flow.yaml, run: "head -n 3 > read"}}
"""
    )
    found = ended(run)
    word = "a 'b' $c"
    assert found.pop(f"good[word={word}]") == ("COMPLETED", "0:0")
    assert found.pop("memory")[0] == "OUT_OF_MEMORY"
    assert found == {
        "code": ("FAILED", "7:0"),
        "looks-killed": ("FAILED", "137:0"),
        "killed": ("FAILED", "0:9"),
        "program": ("FAILED", "0:11"),
        "left": ("COMPLETED", "0:0"),
        "shell": ("FAILED", "127:0"),
        "missing": ("FAILED", "0:0"),
        "input": ("COMPLETED", "0:0"),
    }
    name = f"good[word={word}]"
    assert (boxes.folder / "good").read_text() == f"{boxes.folder}|value|{word}|{word}|{name}|1\n"
    assert "choose one that is, such as shell: sh" in run["shell"].log()
    assert (boxes.folder / "read").read_text().startswith("\ndefaults")
    assert not [one for one in Path("/proc").glob("[0-9]*/cmdline") if _is_left(one)]


def _is_left(path: Path) -> bool:
    try:
        return path.read_bytes() == b"sleep\x004321\x00"
    except OSError:
        return False


def test_signals_come_once_and_a_cancellation_ends_it_also_after_kill_9(boxes: Lab) -> None:
    """The coordinator is killed while they run; each signal reaches the program once."""
    run = boxes.submit(
        f"""
defaults: {{cpus: 0, container: "{IMAGE}"}}
jobs:
  signalled:
    run: |
      trap 'echo once >> got' USR1
      echo > up1
      until [ -e go ]; do sleep 0.02 || :; done
      exit 5
  ended:
    kill_wait: 60
    run: |
      trap 'echo told >> told; exit 0' TERM
      echo > up2
      while :; do sleep 0.05; done
"""
    )
    boxes.wait_for("up1")
    boxes.wait_for("up2")
    boxes.kill()
    assert boxes("cancel", "--signal", "USR1", str(run["signalled"].number)).status == 0
    boxes.wait_for("got")
    assert boxes("cancel", str(run["ended"].number)).status == 0
    boxes.until(lambda: states(run)["ended"] == "CANCELLED", "it was not cancelled")
    boxes.let_go("go")
    assert ended(run) == {"signalled": ("FAILED", "5:0"), "ended": ("CANCELLED", "0:0")}
    assert (boxes.lines("got"), boxes.lines("told")) == (["once"], ["told"])


def test_a_warning_counts_where_a_process_inside_takes_it(boxes: Lab) -> None:
    """The shell around the container gets it and hands it on, and is none of the user's processes."""
    warned = "time: 600s, signal: USR1@585, checkpoint: {codes: [0], rounds: 1}"
    run = boxes.submit(
        f"""
defaults: {{cpus: 0, container: "{IMAGE}"}}
jobs:
  takes: {{{warned}, run: "trap 'exit 0' USR1; while :; do sleep 0.05; done"}}
  ignores: {{{warned}, run: "trap '' USR1; sleep 18; exit 0"}}
"""
    )
    assert ended(run) == {"takes": ("CHECKPOINTED", "0:0"), "ignores": ("COMPLETED", "0:0")}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("container: {engine: podman}", '1:31: "container" in job "a" has no "image"; name it, such as'),
        ("container: {image: x, engine: lxc}", "it is one of podman, apptainer, docker"),
        ("container: {image: x, volumes: /a}", 'unknown key "volumes" in job "a"; did you mean "mounts"?'),
        ("container: {image: x, mounts: data}", "give whole paths: /data, /data:ro or /here:/there"),
        ("container: x, venv: env", 'leave "venv" out'),
        ("container: {image: x, engine: docker}, mem: 1G", "use podman or apptainer, or leave mem out"),
    ],
)
def test_mistakes(lab: Lab, text: str, complaint: str) -> None:
    assert complaint in lab("check", str(lab.write(f"jobs: {{a: {{run: x, {text}}}}}\n"))).out


def test_check_and_doctor_say_what_there_is(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/sbin")
    answer = lab("check", str(lab.write("jobs: {a: {run: x, container: {image: x, engine: apptainer}}}\n")))
    assert (answer.status, "a container of apptainer, which is not on PATH" in answer.out) == (2, True)
    checks = lab("doctor", "--json").document["checks"]
    assert next(one["fact"] for one in checks if one["name"] == "containers").startswith("none: neither podman")


def test_the_command_line_of_each_engine(lab: Lab) -> None:
    """Paths, variables by name alone, options and the image; the program follows."""
    jobs = {}
    for engine in ("podman", "apptainer", "docker"):
        box = {"image": "an image", "engine": engine, "mounts": ["/data", "/x:/y:ro", "/z:ro"], "options": ["--one"]}
        jobs[engine] = {"run": ["fit", "a b"], "env": {"TOKEN": "not told"}, "container": box}
    path = lab.write(json.dumps({"jobs": jobs}), "made.yaml")
    for job in lab("run", "--dry-run", "--json", str(path)).document["jobs"]:
        engine, (shell, _, text, name, *words) = job["name"], job["command"]
        bind = "--bind" if engine == "apptainer" else "-v"
        assert (shell, name, words) == ("/bin/sh", engine, ["fit", "a b"])
        assert f"{bind} /data:/data {bind} /x:/y:ro {bind} /z:/z:ro" in text
        assert " --one " in text
        assert "'an image' " in text
        assert "not told" not in text
        assert ("-e TOKEN" in text) == (engine != "apptainer")
        assert subprocess.run(["sh", "-n", "-c", text], check=False).returncode == 0
