"""A text for a shell that is one command of plain words: it means the same without the shell.

Pure. Starting a shell costs more than starting most programs. Where the text has nothing that a shell acts on, the
words can be given to the program themselves. Anything in doubt is left to the shell.
"""

from __future__ import annotations

import re
from functools import lru_cache

from aver.plan.placeholders import AXIS_NAME

_SHELLS = frozenset({"bash", "sh", "dash"})
_OPTIONS = frozenset({"-e", "-u", "-eu", "-o", "-eo", "-euo", "pipefail", "errexit", "nounset"})  # change nothing here
_WORD = re.compile(r"(?:[\w./=:,@%+-]|\{" + AXIS_NAME.pattern + r"\})+", re.ASCII)
_PROGRAM = re.compile(r"[\w./+-]+", re.ASCII)
_OF_SHELLS = frozenset(  # keywords, and builtins that are no program or another one; true and false are the same
    "alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs disown "
    "do done echo elif else enable esac eval exec exit export fc fg fi for function getopts hash help history if in "
    "jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt "
    "source suspend test then time times trap type typeset ulimit umask unalias unset until wait while . :".split()
)


@lru_cache(maxsize=256)
def plain_words(text: str, shell: tuple[str, ...]) -> tuple[str, ...]:
    """The words of the command, with each `{name}` as it stands; empty where only the shell can read the text."""
    if not shell or shell[0] not in _SHELLS or not _OPTIONS.issuperset(shell[1:]):
        return ()
    text = text.strip(" \t\n")
    words = tuple(re.findall(r"[^ \t]+", text)) if "\n" not in text else ()
    if not words or not _PROGRAM.fullmatch(words[0]) or words[0] in _OF_SHELLS:
        return ()
    return words if all(_WORD.fullmatch(word) for word in words) else ()
