"""What Slurm's commands say when they refuse, and how their edge says it. Imports nothing to speak of."""

from __future__ import annotations

import os

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli.output import OutputFailed, failed_line, open_streams, say, show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

UNREACHABLE_STATUS = 1
INTERRUPTED_STATUS = 130
PIPE_STATUS = 141


class Refusal(Exception):
    """Lines for stderr, as they are, and the exit status."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


def tell(text: str) -> None:
    """Write a line to stdout."""
    show(text + "\n")


def guarded(program: str, act: Callable[[Sequence[str]], int], words: Sequence[str]) -> int:
    """Run a command: refusals and errors that a user can cause become lines and an exit status."""
    from aver.errors import AverError

    open_streams()
    try:
        return act(words)
    except Refusal as refusal:
        say(refusal.text)
        return refusal.status
    except OutputFailed as error:
        say(failed_line(program, error))
        return UNREACHABLE_STATUS
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return PIPE_STATUS
    except AverError as error:
        say(f"{program}: error: {error}")
        return UNREACHABLE_STATUS
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS
