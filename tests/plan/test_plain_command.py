"""Texts that need no shell: a real shell gives the program the same words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from aver.plan.placeholders import fill
from aver.plan.plain_command import plain_words
from aver.plan.shell_text import fill_shell

BASH = ("bash", "-eo", "pipefail")
PIECES = st.sampled_from([
    "a", "B", "7", "_", ".", "/", "=", ":", ",", "@", "%", "+", "-", " ", "  ", "\t", "\n", "{v}", "{w}", "{", "}", "~",
    "$x", "*", "?", "[a]", "!", "#", ";", "&", "|", "<", ">", "(", ")", "'", '"', "\\", "`", "^", "é", "\0"[:0],
])  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bin")
    (folder / "show").write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    (folder / "show").chmod(0o755)
    return folder


@pytest.mark.parametrize("shell", [BASH, ("sh", "-e"), ("dash",)])
@settings(max_examples=60, deadline=None)
@given(
    st.lists(PIECES, max_size=8).map("".join),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
)
@example("{v} a{v}b {w}", "")
@example("--x={v} {v}\n", "a b'\n$(id)")
@example("%1 @x ,a a=b -n", "")
def test_the_program_gets_the_same_words(shell: tuple[str, ...], folder: Path, rest: str, value: str) -> None:
    text, values = f"show {rest}", {"v": value}
    words = plain_words(text, shell)
    assume(words)
    command = [*shell, "-c", fill_shell(text, values, shell)]
    seen = subprocess.run(command, env={"PATH": f"{folder}:/bin:/usr/bin"}, capture_output=True, check=True, cwd=folder)
    assert words[0] == "show"
    expected = "".join(f"{fill(word, values)}\0" for word in words[1:])
    assert seen.stdout.decode("utf-8", "surrogateescape") == (expected or "\0")  # printf has its say once


def test_what_a_shell_has_itself_is_left_to_it() -> None:
    """Of all keywords and builtins of bash only true and false are programs that do the same."""
    own = subprocess.run(["bash", "-c", "compgen -b; compgen -k"], capture_output=True, text=True, check=True).stdout
    assert [word for word in sorted(set(own.split())) if plain_words(f"{word} x", BASH)] == ["false", "true"]


@pytest.mark.parametrize(
    "text",
    ["", " ", "a=1 show", "A=1", "show *", "show $x", "show; show", "show &", "show a\nshow b", "show 'a'", "~/show",
     "{v} a", "show > out", "show # a", "(show)", "show {a,b}", "show {1..3}", "! show", "show \\{v}", "show ${v}",
     "-", "é"],
)  # fmt: skip
def test_what_only_a_shell_can_read(text: str) -> None:
    assert plain_words(text, BASH) == ((text,) if text == "-" else ())


@pytest.mark.parametrize(
    "shell", [("bash", "-x"), ("bash", "-l"), ("zsh",), ("/usr/bin/bash",), ("env", "bash"), ("python3",)]
)
def test_other_shells_are_started(shell: tuple[str, ...]) -> None:
    assert plain_words("show a", shell) == ()
