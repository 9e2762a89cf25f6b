"""`aver map`, end to end."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from product import Product, end, wait_for_file


def test_a_command_for_each_input_in_their_order(aver: Product) -> None:
    """stdout has what the jobs wrote and nothing else; hostile inputs reach the program as they are."""
    inputs = ["b", "a c", "it's", "$(touch hit)", "-n", "*"]
    answer = aver("map", "-k", "printf '%s|' {} '{}' \"{}\" \"$AVER_PARAM_input\"; echo", "--", *inputs)
    assert answer.status == 0, answer.err
    assert answer.out == "".join(f"{one}|" * 4 + "\n" for one in inputs)
    assert answer.err.startswith("aver: run 1 COMPLETED: 6 COMPLETED in ")
    assert not (aver.folder / "hit").exists()


def test_placeholders(aver: Product) -> None:
    """As GNU parallel has them."""
    answer = aver("map", "-k", "echo {} {.} {/} {//} {/.} {#}", "data/a.tar.gz", "b")
    assert answer.out == "data/a.tar.gz data/a.tar a.tar.gz data a.tar 1\nb b b . b 2\n"


def test_a_shell_where_it_is_needed(aver: Product) -> None:
    """Words alone are given to the program; what bash would do more than start it is left to bash."""
    (aver.folder / "text").write_text("echo text $1\n")  # no `#!`: a shell runs it, the kernel does not
    (aver.folder / "text").chmod(0o755)
    for command, printed in (
        ("/bin/echo a={} {#}", "a=x y 1\n"), ("./text {}", "text x y\n"), ("echo {}", "x y\n"), ("A={} env", None),
        ("/bin/echo {} *", None), ("/bin/echo {a,b}{}", "ax y bx y\n"),
    ):  # fmt: skip
        answer = aver("map", "-q", command, "x y")
        assert answer.status == 0, (command, answer.err)
        assert printed is None or answer.out == printed, command
    missing = aver("map", "nosuchprogram {}", "1")
    assert missing.status == 1
    assert "127:0" in missing.err


def test_inputs_on_stdin(aver: Product) -> None:
    """Lines; empty ones are none, and the same one twice is two jobs. {} is added where there is none."""
    answer = aver("map", "-k", "echo got", stdin=b"x\r\n\ny z\nx")
    assert answer.out == "got x\ngot y z\ngot x\n"
    names = [job["name"] for job in aver("show", "1", "--json").document["jobs"]]
    assert names == ["echo[input=x,number=1]", "echo[input=y z,number=2]", "echo[input=x,number=3]"]


def test_parameters(aver: Product) -> None:
    """Their product, and with inputs each input with each of their combinations."""
    answer = aver("map", "-k", "echo {lr} {seed}", "--param", "lr=0.1,x", "--param", "seed=1..2")
    assert answer.out == "0.1 1\n0.1 2\nx 1\nx 2\n"
    assert aver("map", "-k", "echo {/} {n}", "d/a", "d/b", "-p", "n=1..2").out == "a 1\na 2\nb 1\nb 2\n"
    assert aver("map", "-k", "echo {} {n}", "-p", "n=1..2", stdin=b"a\nb\n").out == "a 1\na 2\nb 1\nb 2\n"


def test_it_is_a_run_like_any_other(aver: Product) -> None:
    """Its status, the retries of a rule, `why`, and a retry of what failed alone."""
    text = 'echo "{} $AVER_ATTEMPT" >> ran; test "{}" != b || test -e mended'
    answer = aver("map", "--retry", "1", "--mem", "100M", "--time", "1m", text, "a", "b")
    assert answer.status == 1
    assert "FAILED: 1 COMPLETED, 1 FAILED" in answer.err
    assert sorted((aver.folder / "ran").read_text().splitlines()) == ["a 1", "b 1", "b 2"]
    shown = aver("show", "3", "--json").document
    asked = [(one["state"], one["mem_bytes"], one["time_s"]) for one in shown["attempts"]]
    assert asked == [("FAILED", 100 << 20, 60)] * 2
    (aver.folder / "mended").touch()
    assert aver("retry", "1").status == 0
    assert aver("watch", "1", "--exit-status").status == 0
    assert sorted((aver.folder / "ran").read_text().splitlines()) == ["a 1", "b 1", "b 2", "b 3"]


def test_no_more_at_once_than_asked(aver: Product) -> None:
    """With -j 1 no job begins before the last has ended."""
    aver("map", "-j", "1", ": {}; echo + >> order; sleep 0.05; echo - >> order", "1", "2", "3", "4")
    assert (aver.folder / "order").read_text().split() == ["+", "-"] * 4


def test_dry_run_prints_the_commands(aver: Product) -> None:
    """And runs nothing."""
    answer = aver("map", "--dry-run", './fit {} > "{.}.out"', "a b.csv", "it's")
    assert answer.out == "./fit 'a b.csv' > \"a b.out\"\n./fit 'it'\\''s' > \"it's.out\"\n"
    assert aver("runs", "--json").document["runs"] == []


def test_submit_prints_the_number(aver: Product) -> None:
    answer = aver("map", "--submit", "echo {}", "a", "b")
    assert (answer.status, answer.out) == (0, "1\n")
    assert aver("watch", "1", "--exit-status").status == 0


def test_json_is_the_end_of_the_run(aver: Product) -> None:
    """As of `aver run --json`."""
    answer = aver("map", "--json", "test {} = a", "a", "b")
    document = json.loads(answer.out)
    assert (answer.status, document["kind"], document["exit_status"]) == (1, "ended", 1)
    assert document["runs"][0]["counts"] == {"COMPLETED": 1, "FAILED": 1}


def test_an_interrupt_cancels_the_run(aver: Product) -> None:
    process = aver.start("map", "touch began-{}; sleep 60", "1", "2")
    wait_for_file(aver.folder / "began-1")
    answer = end(process, signal.SIGINT)
    assert answer.status == 128 + signal.SIGINT
    assert {job["state"] for job in aver("show", "1", "--json").document["jobs"]} == {"CANCELLED"}


def test_it_goes_on_after_kill_9_of_the_coordinator(aver: Product, aver_home: Path) -> None:
    """Each input has run once, and the command that waits for it gets the verdicts."""
    process = aver.start("map", "-k", "echo {} >> ran; until test -e go; do sleep 0.05; done; echo {}", "1", "2", "3")
    wait_for_file(aver.folder / "ran")
    os.kill(int(json.loads((aver_home / "lock").read_text())["pid"]), signal.SIGKILL)
    (aver.folder / "go").touch()
    answer = end(process)
    assert aver("watch", "1", "--exit-status").status == 0, answer.err
    assert sorted((aver.folder / "ran").read_text().split()) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("echo {}",), "there are no inputs"),
        (("echo {} {n}", "-p", "n=1"), "there are no inputs"),
        (("echo {}", "a", "-p", "n"), "--param n: write it as NAME=VALUE,VALUE or NAME=1..3"),
        (("echo {}", "a", "-p", "input=1"), "--param input: the name is taken"),
        (("echo {csv}", "-p", "csv=1,2"), "--param csv: the name is taken; choose another"),
        (("echo {}", "a", "-p", "n=1"), 'matrix key "n" is not used in job "echo"'),
        (("echo `echo {}`", "a"), "has {input} inside `...`, where no value can be put in"),
        (("echo", "a", "-j", "0"), '"max_parallel" in the flow is 0; the least is 1'),
        (("echo", "a", "--retry", "x"), '"retry" in job "echo"'),
        (("echo", "a\nb"), "an input has a line break in it"),
        (("echo", "a\x1bb"), "has a control character in a value"),
    ],
)
def test_mistakes(aver: Product, args: tuple[str, ...], said: str) -> None:
    """Said before anything is run."""
    answer = aver("map", *args)
    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err
    assert "Traceback" not in answer.err
