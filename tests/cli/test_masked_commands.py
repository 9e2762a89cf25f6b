"""Secrets on every surface of `aver`: whoever gave the value, however it is written, and after it was removed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from product import Product

SECRET = "hunter2-token"
OLD = "first-'quoted'-value"


def flow_file(aver: Product, value: str, text: str = 'echo "$TOKEN"') -> str:
    """A flow of one job with TOKEN in its `env:`; the name of its file."""
    flow = {"name": "flow", "jobs": [{"name": "one", "run": text, "env": {"TOKEN": value}}]}
    (aver.folder / "flow.json").write_text(json.dumps(flow))
    return "flow.json"


def everything(aver: Product, run: int, job: int) -> str:
    """What each command shows of a run."""
    page = aver.folder / "page.html"
    said = [
        aver(*args)
        for args in (
            ("show", str(run)), ("show", str(job), "--json"), ("log", str(job)), ("why", str(job)), ("jobs",),
            ("timeline", str(job)), ("results", str(run), "--log"), ("export", str(run), "--jsonl"),
            ("export", str(run), "--junit"), ("report", str(run), "-o", str(page)),
        )
    ]  # fmt: skip
    assert [one.err for one in said if one.status not in (0, 1)] == []
    return "".join(one.out + one.err for one in said) + page.read_text()


def test_values_of_the_flow_itself_are_masked(aver: Product) -> None:
    """A name that only the flow's `env:` has is as secret as one that was inherited."""
    file = flow_file(aver, SECRET, 'echo "$TOKEN"; echo hunter2-token >&2; exit 3')
    assert aver("run", "-q", "--secret", "TOKEN", file).status == 1
    shown = everything(aver, 1, 2)
    assert SECRET not in shown
    assert "***" in shown


def test_the_url_of_a_receiver_is_masked(aver: Product) -> None:
    """A variable that only --notify or `notify:` names: whoever has its value may write to the channel."""
    url = "http://127.0.0.1:9/hook-4711"
    (aver.folder / "flow.yaml").write_text("notify: {slack: $CHANNEL}\njobs: {a: {run: echo $CHANNEL}}\n")
    for words in (("--notify", "slack:$CHANNEL", "--", "sh", "-c", "echo $CHANNEL"), ("flow.yaml",)):
        assert aver("run", "-q", *words, env={"CHANNEL": url}).status == 0
    shown = aver("show", "1", "--env").out + everything(aver, 1, 1) + everything(aver, 2, 3)
    assert "CHANNEL=***" in shown
    assert url not in shown


def test_each_value_that_a_matrix_makes_is_masked(aver: Product) -> None:
    """A placeholder in the value is filled for each member; what each of them got is secret."""
    job = {"name": "one", "run": 'echo "$TOKEN"', "env": {"TOKEN": "tok-{who}-en"}, "matrix": {"who": ["ann", "bob"]}}
    (aver.folder / "flow.json").write_text(json.dumps({"name": "flow", "jobs": [job]}))
    assert aver("run", "-q", "--secret", "TOKEN", "flow.json").status == 0
    for number in ("2", "3"):
        assert aver("log", number).out == "***\n"


def test_a_value_is_masked_as_shells_and_programs_write_it(aver: Product) -> None:
    """`set -x`, `printf %q`, `declare -p`, JSON, repr: quoting does not bring it to light."""
    value = 'pass\'word "7" $x\tend\nline two'
    (aver.folder / "job.sh").write_text(
        """#!/bin/bash
set -x; : "$TOKEN"; set +x
printf '%q\\n' "$TOKEN"
declare -p TOKEN
echo $TOKEN
python3 -c 'import json, os, shlex; t = os.environ["TOKEN"]
print(json.dumps(t), json.dumps([repr(t)]), repr(t), [t.encode()], shlex.quote(t), repr(t + chr(34)))'
"""
    )
    answer = aver("run", "-q", "--env", f"TOKEN={value}", "--secret", "TOKEN", "job.sh")
    assert answer.status == 0, answer.err
    assert answer.out.count("***") >= 9
    for word in ("pass", "word", "end", "line", "two"):
        assert word not in answer.out


def test_old_values_stay_masked_after_reinit(aver: Product) -> None:
    """The log of the first attempt has the old value: of the flow's own, and of what was inherited."""
    file = flow_file(aver, OLD, 'echo "$TOKEN $OTHER"')
    env = {"OTHER": "inherited-one"}
    assert aver("run", "-q", "--secret", "TOKEN", "--secret", "OTHER", file, env=env).status == 0
    flow_file(aver, SECRET, 'echo "$TOKEN $OTHER"')
    answer = aver("reinit", "1", "--inherit", "OTHER", env={"OTHER": "inherited-two"})
    assert answer.status == 0, answer.err
    assert aver("watch", "1").status == 0
    for attempt in ("1", "2"):
        assert aver("log", "2", "--attempt", attempt).out == "*** ***\n"


def test_a_refused_submission_leaves_nothing_behind(aver: Product, aver_home: Path) -> None:
    """Neither the copy of stdin, nor an environment, nor a folder for output."""
    for args in (("--cpus", "9999", "--", "cat"), ("--engine", "slurm", "--slurm-option", "x", "--", "cat")):
        answer = aver("submit", "--stdin", "-", *args, stdin=SECRET.encode(), env={"TOKEN": SECRET})
        assert answer.status == 2, answer
    (aver.folder / "flow.json").write_text(
        json.dumps({"name": "flow", "jobs": [{"name": "one", "run": "true", "env": {"TOKEN": SECRET}, "cpus": 9999}]})
    )
    assert aver("submit", "flow.json").status == 2
    held = [path for path in aver_home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert held == []
    assert os.listdir(aver.folder) == ["flow.json"]


def test_a_copy_of_stdin_goes_with_its_run(aver: Product, aver_home: Path) -> None:
    """It is there for a retry, and `aver prune` removes it with the run's environment and scripts."""
    (aver.folder / "job.sh").write_text("#!/bin/sh\ncat\n")
    assert aver("run", "-q", "--stdin", "-", "job.sh", stdin=b"typed", env={"TOKEN": SECRET}).out == "typed"
    assert [path.read_bytes() for path in (aver_home / "stdin").iterdir()] == [b"typed"]
    assert aver("retry", "1").status == 0
    assert aver("watch", "1").status == 0
    assert aver("log", "1", "--attempt", "2").out == "typed"
    document = aver("prune", "--keep-last", "0", "--json").document
    assert [(run["run"], run["private_files"]) for run in document["runs"]] == [(1, 3)]
    for folder in ("stdin", "scripts"):
        assert list((aver_home / folder).iterdir()) == []
    held = [path for path in aver_home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert held == []


@pytest.mark.parametrize("value", [SECRET, "first line\nsecond 'line'"])
def test_what_was_removed_is_masked_by_its_digests(aver: Product, aver_home: Path, value: str) -> None:
    """After `aver prune` no file of the home has the value, and what is shown still has `***` in its place."""
    file = flow_file(aver, value, 'echo "$TOKEN"; echo "($INHERITED)"; exit 3')
    env = {"INHERITED": f"{value} too"}
    assert aver("run", "-q", "--secret", "TOKEN", "--secret", "INHERITED", file, env=env).status == 1
    assert aver("prune", "--keep-last", "0").status == 0
    part = value.encode().splitlines()[0]
    held = [path for path in aver_home.rglob("*") if path.is_file() and part in path.read_bytes()]
    assert held == []
    assert aver("log", "2").out == "***\n(***)\n"
    answer = aver("retry", "1")
    assert answer.status == 2
    assert "environment" in answer.err
    assert len(answer.err.splitlines()) == 1
