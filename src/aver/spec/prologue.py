"""A few words before the second line of a script whose shell reads login files: they put Slurm's commands back on PATH.

`#!/bin/bash -l` reads /etc/profile, which sets PATH anew; then the first thing that runs is the script itself. The
words stand before what its second line has (the first is the `#!` line, so the second always begins a command or a
comment): `$0`, `$@`, `$LINENO`, signals and the exit status are those of the script without them. `sbatch "$0"` takes
them out again. Pure.
"""

from __future__ import annotations

import os

_SH = ("sh", "dash", "ash", "bash", "ksh", "ksh93", "mksh")  # read login files with -l
_ALWAYS = ("zsh", "csh", "tcsh")  # read files of the user in every script, unless they are told not to with -f
_END = "; : aver; "


def interpreter(text: str) -> tuple[str, ...]:
    """The program of the `#!` line and its one argument, as the kernel splits them."""
    first = text.split("\n", 1)[0]
    words = first[2:].strip(" \t\r").split(None, 1) if first.startswith("#!") else []
    return tuple(words) if words else ("/bin/sh",)


def prologue(shell: tuple[str, ...], folder: str) -> str:
    """The words in the language of this shell; empty where it leaves PATH alone, or is none that is known."""
    import re
    import shlex

    words = [word for argument in shell for word in argument.split()]
    if not words:
        return ""
    if os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if word not in ("-S", "--split-string") and "=" not in word] or ["env"]
    name = os.path.basename(words[0])
    letters = "".join(word[1:] for word in words[1:] if word.startswith("-") and not word.startswith("--"))
    if (name in _SH and ("l" in letters or "--login" in words)) or (name == "zsh" and "f" not in letters):
        quoted = shlex.quote(folder)
        return f'case $PATH in {quoted}:*) ;; *) export PATH={quoted}:"$PATH";; esac{_END}'
    if name in _ALWAYS and "f" not in letters and re.fullmatch(r"[\w/.,+@%=-]+", folder, re.ASCII):
        return f'if ( "$PATH" !~ {folder}:* ) setenv PATH {folder}:"$PATH"{_END}'
    return ""


def with_prologue(text: str, folder: str) -> str:
    """The script as it runs."""
    words = prologue(interpreter(text), folder)
    first, _, rest = text.partition("\n")
    return f"{first}\n{words}{rest}" if words else text


def without_prologue(text: str) -> str:
    """The script as it was submitted, of one that is running."""
    if _END not in text:
        return text
    import re  # costs more than the rest of sbatch's start

    first, newline, rest = text.partition("\n")
    found = re.match(r"(?:case \$PATH in |if \( \"\$PATH\" !~ )[^\n]*?" + re.escape(_END), rest)
    return first + newline + (rest[found.end() :] if found else rest)
