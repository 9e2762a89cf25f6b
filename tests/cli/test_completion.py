"""Completion in the shells themselves: numbers, names of jobs with all their characters, states, options."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from product import DEADLINE_S, Product, run_aver
from stored_past import SECRET

from aver.cli.completion import complete_address

PROMPT = "ready> "
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
SET_UP = {
    "bash": "bind 'set enable-bracketed-paste off'; PS1='ready''> '; eval \"$(aver completion bash)\"",
    "zsh": "unsetopt zle_bracketed_paste PROMPT_SP; unset zle_bracketed_paste; autoload -U compinit; compinit -u -D; "
    "PS1='ready''> '; eval \"$(aver completion zsh)\"",
}


class Shell:
    """A shell on a pseudo-terminal that completes `aver`."""

    def __init__(self, kind: str, path: Path) -> None:
        env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "TERM": "dumb", "HOME": str(path)}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe(START[kind][0], START[kind], env)
        self.seen = ""
        self.count = 0
        os.write(self.terminal, f"{SET_UP[kind]}\n".encode())
        self.wait(PROMPT)

    def wait(self, text: str) -> None:
        """Until it has written this, whatever it drew over."""
        end = time.monotonic() + DEADLINE_S
        while text not in self.seen:
            assert time.monotonic() < end, self.seen[-2000:]
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.seen += re.sub(r"\x1b\[[\d;?]*\w|[\r\x07]", "", os.read(self.terminal, 65536).decode())

    def complete(self, typed: str, text: str) -> None:
        """Type this and the Tab key: the line has the text; then the line is taken back."""
        self.seen = ""
        os.write(self.terminal, f"{typed}\t".encode())
        self.wait(text)
        self.count += 1
        os.write(self.terminal, f"\x15echo done{self.count}.\n".encode())
        self.wait(f"\ndone{self.count}.")

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@pytest.fixture
def path(aver: Product, tmp_path: Path) -> Path:
    """A folder with `aver` in it, and a home with run 1 of a matrix."""
    (aver.folder / "flow.yaml").write_text(
        "jobs:\n  prep: {run: 'true'}\n  train: {run: 'echo {sample} {seed}', matrix: {sample: [a, b], seed: [1, 2]}}\n"
    )
    assert aver("run", "-q", "flow.yaml").status == 0
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "aver").write_text(f'#!/bin/sh\nexec {sys.executable} -m aver "$@"\n')
    (folder / "aver").chmod(0o755)
    return folder


@pytest.fixture
def shell(path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} here")
    made = Shell(request.param, path)
    yield made
    made.close()


@pytest.mark.parametrize("shell", ["bash", "zsh"], indirect=True)
def test_a_key_completes_numbers_names_and_options(shell: Shell) -> None:
    """Also behind an =, which bash takes for the end of a word."""
    shell.complete("aver log 1/pr", "1/prep")
    shell.complete("aver watch 1 la", "1 last")
    shell.complete("aver log last/tra", "sample=")
    shell.complete("aver log '1/train[sample=b,seed=2", "seed=2]")
    shell.complete("aver log 1/train\\[sample=b,s", "seed=")
    shell.complete("aver jobs --stat", "--state")
    shell.complete("aver jobs --state NODE", "NODE_FAIL")
    shell.complete("aver recov", "recover")


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("aver log 1/train", "1/train[sample=b,seed=2]"),
        ("aver watch 1 la", "last"),
        ("aver jobs --state NODE", "NODE_FAIL"),
        ("aver jobs --stat", "--state"),
        ("aver canc", "cancel"),
    ],
)
def test_fish_completes_the_same(path: Path, typed: str, offered: str) -> None:
    """A comma in a name or in a help is part of it."""
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"aver completion fish | source; complete -C '{typed}'"], capture_output=True,
        text=True, timeout=DEADLINE_S, check=True, env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert offered in [line.partition("\t")[0] for line in done.stdout.splitlines()], done


def test_a_shell_completes_numbers_and_names(past: Path) -> None:
    """The newest first; after a run's slash its jobs; values of secrets are not among them."""
    assert [item.value for item in complete_address("")] == ["last", "6", "5", "4", "3", "2", "1"]
    assert [item.value for item in complete_address("3/tr")] == ["3/train[seed=1]", "3/train[seed=2]"]
    assert [item.value for item in complete_address("last/e")] == ["last/eval"]
    assert complete_address("9/") == []
    assert all(SECRET not in (item.help or "") for item in complete_address(""))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str) -> None:
    """Each shell gets its script."""
    done = run_aver("completion", shell)
    assert done.returncode == 0
    assert "_AVER_COMPLETE" in done.stdout


def test_completion_knows_the_states() -> None:
    """In any case, as the option takes them."""
    done = run_aver(_AVER_COMPLETE="bash_complete", COMP_WORDS="aver jobs --state fai", COMP_CWORD="3")
    assert done.stdout == "plain,FAILED\n"


def test_completion_knows_the_commands() -> None:
    """The shell asks, and Aver answers with commands."""
    done = run_aver(_AVER_COMPLETE="bash_complete", COMP_WORDS="aver ca", COMP_CWORD="1")
    assert "cancel" in done.stdout
