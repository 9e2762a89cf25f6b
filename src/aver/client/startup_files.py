"""Files that shells read when they start, made beside Slurm's commands: they keep these in reach if PATH is set anew.

- `bash_env` is BASH_ENV of every job on this machine, and of `aver shell`. Each bash that is not interactive reads it,
  after the login files if it is a login shell. It puts the folder back where it is gone from PATH, and gives bash a way
  to find the commands where the script itself sets PATH later.
- `bashrc` and `zsh/.zshenv` are for the interactive shell of `aver shell`; the user's own files are read first.

Nothing of the user's is left out, and nothing is written anywhere else.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

BASH_ENV = "bash_env"
OWN_BASH_ENV = "AVER_BASH_ENV"  # the user's
OWN_ZDOTDIR = "AVER_ZDOTDIR"
INSIDE = "AVER_SHELL"  # in `aver shell`

_BASH_ENV = """\
# Made by aver. The user's own BASH_ENV comes first. The redirections keep all this out of what `bash -x` prints.
{ if [ -n "${AVER_BASH_ENV-}" ]; then . "$AVER_BASH_ENV" 2>&3 3>&-; fi; } 3>&2 2>/dev/null
{
    case :$PATH: in
        :%(folder)s:*) ;;
        *:%(folder)s:*) if shopt -q login_shell; then PATH=%(folder)s:$PATH; fi ;;
        *) PATH=%(folder)s:$PATH ;;
    esac
    if ! declare -F command_not_found_handle >/dev/null; then
        command_not_found_handle() {  # bash calls it in the process that the command would have become
            case $1 in
                %(names)s) exec %(folder)s/"$1" "${@:2}" ;;
            esac
            printf '%%s: line %%s: %%s: command not found\\n' "${BASH_SOURCE[1]:-$0}" "${BASH_LINENO[0]}" "$1" >&2
            return 127
        }
    fi
} 2>/dev/null
"""
_BASHRC = """\
# Made by aver, for `aver shell`.
if [ -f ~/.bashrc ]; then . ~/.bashrc; fi
case $PATH in %(folder)s:*) ;; *) PATH=%(folder)s:$PATH ;; esac
"""
_ZSHENV = """\
# Made by aver, for `aver shell`: the user's own files are read from where they are, PATH is looked at after them.
if (( ${+AVER_ZDOTDIR} )); then export ZDOTDIR=$AVER_ZDOTDIR; unset AVER_ZDOTDIR; else unset ZDOTDIR; fi
if [[ -f ${ZDOTDIR:-$HOME}/.zshenv ]]; then . ${ZDOTDIR:-$HOME}/.zshenv; fi
_aver_path() {
    case $PATH in %(folder)s:*) ;; *) export PATH=%(folder)s:$PATH ;; esac
    precmd_functions=(${precmd_functions:#_aver_path})
    unfunction _aver_path
}
typeset -ga precmd_functions
precmd_functions+=(_aver_path)
"""


def startup_files(folder: str, names: Sequence[str]) -> dict[str, str]:
    """Their texts by their names in the folder of the commands."""
    words = {"folder": shlex.quote(folder), "names": "|".join(names)}
    return {BASH_ENV: _BASH_ENV % words, "bashrc": _BASHRC % words, "zsh/.zshenv": _ZSHENV % words}


def without_ours(environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """The environment with the user's own BASH_ENV, which is noted, instead of ours."""
    found = dict(environment)
    own = found.pop(OWN_BASH_ENV, None)
    if found.get("BASH_ENV") == os.path.join(folder, BASH_ENV):
        del found["BASH_ENV"]
        if own is not None:
            found["BASH_ENV"] = own
    if "BASH_ENV" in found:
        found[OWN_BASH_ENV] = found["BASH_ENV"]
    return found


def entered(environment: Mapping[str, str], home: str, folder: str, path: str) -> dict[str, str]:
    """The environment of a shell or a command with Slurm's commands on this PATH."""
    found = without_ours(environment, folder)
    return {**found, "AVER_HOME": home, INSIDE: "1", "PATH": path, "BASH_ENV": os.path.join(folder, BASH_ENV)}


def interactive(shell: str, environment: Mapping[str, str], folder: str) -> tuple[list[str], dict[str, str]]:
    """The words that start this shell for a person, and its environment: its own files can't take PATH away."""
    found = dict(environment)
    match os.path.basename(shell):
        case "bash":
            return [shell, "--rcfile", os.path.join(folder, "bashrc")], found
        case "zsh":
            if "ZDOTDIR" in found:
                found[OWN_ZDOTDIR] = found["ZDOTDIR"]
            found["ZDOTDIR"] = os.path.join(folder, "zsh")
    return [shell], found
