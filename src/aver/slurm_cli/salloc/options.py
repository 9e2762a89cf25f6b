"""What is salloc's own among its options: the command, and how it is waited for and ended."""

from __future__ import annotations

import os
import pwd

from aver.slurm_cli.output import say
from aver.slurm_cli.refusal import Refusal
from aver.spec.getopt import Parsed

USAGE_STATUS = 255


class Asked:
    """What is salloc's own: the command, and how it is waited for and ended."""

    def __init__(self, parsed: Parsed, given: list[tuple[str, str]]) -> None:
        said = dict(given)
        self.has_shell = "no-shell" not in said
        self.is_quiet = "quiet" in said
        self.is_default = not parsed.operands
        self.command = parsed.operands or [_shell()]
        self.folder = said.get("chdir")
        self.patience_s = _seconds(said["immediate"]) if "immediate" in said else None
        self.kill_signal = _signal(said["kill-command"]) if "kill-command" in said else None

    def tell(self, text: str) -> None:
        if not self.is_quiet:
            say(f"salloc: {text}")


def _shell() -> str:
    if os.environ.get("SHELL"):
        return os.environ["SHELL"]
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"


def _seconds(text: str) -> float:
    if text and not (text.isascii() and text.isdigit() and len(text) < 9):
        raise Refusal(f'salloc: error: Invalid numeric value "{text}" for --immediate.')
    return float(text or "1")


def _signal(text: str) -> int:
    from aver.model.signals import parse_signal

    try:
        return parse_signal(text or "TERM")
    except ValueError:
        raise Refusal("salloc: error: Invalid --kill-command specification", USAGE_STATUS) from None
