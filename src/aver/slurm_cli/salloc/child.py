"""The command of salloc: a process group of its own, in the foreground of the terminal where there is one.

Signals that reach salloc are passed on to it. The terminal is salloc's again when the command has ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence

from aver.slurm_cli.output import say

_FORWARDED = (
    signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT,
)  # fmt: skip
_FAILED_STATUS = 1


class Command:
    def __init__(self, words: Sequence[str], environment: Mapping[str, str], folder: str | None) -> None:
        self._words = list(words)
        self._environment = dict(environment)
        self._folder = folder
        self._pid = 0
        self._has_terminal = os.isatty(0)
        self.status: int | None = None  # the wait status, once it has ended

    def start(self) -> bool:
        """False, and a line, where it can't be started."""
        path = shutil.which(self._words[0], path=self._environment.get("PATH"))
        if path is None:
            say(f'salloc: error: _fork_command: Unable to find command "{self._words[0]}"')
            return False
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda number, _: None)
        self._pid = os.fork()
        if not self._pid:
            self._become(path)
        with contextlib.suppress(OSError):
            os.setpgid(self._pid, self._pid)
        self._take_foreground(self._pid)
        for number in _FORWARDED:
            signal.signal(number, lambda number, _: self.signal(number))
        return True

    def _become(self, path: str) -> None:
        """In the child: never returns."""
        try:
            signal.set_wakeup_fd(-1)
            os.setpgid(0, 0)
            self._take_foreground(os.getpid())
            for number in (*_FORWARDED, signal.SIGTTOU, signal.SIGCHLD, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            if self._folder is not None:
                os.chdir(self._folder)
            os.execve(path, self._words, self._environment)
        except OSError as error:
            say(f'salloc: error: Unable to exec command "{self._words[0]}": {error.strerror}')
        finally:
            os._exit(_FAILED_STATUS)

    def _take_foreground(self, group: int) -> None:
        if self._has_terminal:
            with contextlib.suppress(OSError):
                os.tcsetpgrp(0, group)

    def give_back_terminal(self) -> None:
        self._take_foreground(os.getpgrp())

    def look(self) -> None:
        """See whether it has ended. One that was stopped by its terminal goes on: nobody could continue it."""
        try:
            pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            pid, status = self._pid, _FAILED_STATUS << 8
        if pid and os.WIFSTOPPED(status):
            self.signal(signal.SIGCONT)
        elif pid:
            self.status = status

    def signal(self, number: int) -> None:
        if self.status is None and self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, number)

    def hear_of_the_end(self, kill_signal: int | None) -> None:
        """The allocation is gone: as Slurm, the signal that was asked for, or HUP to a shell at a terminal."""
        if kill_signal is not None:
            self.signal(kill_signal)
        elif self._has_terminal:
            self.signal(signal.SIGHUP)
