"""How a process ended, kept whole.

An exit status is an exit code 0-255 or a signal 1-64, never both, and whether a core was
dumped. Unknown is None, never an ExitStatus. `128+n` exists only in `shell_code`.
"""

from __future__ import annotations

from aver.model.record import Record

CORE_BIT = 0x80


class ExitStatus(Record):
    code: int = 0
    signal: int = 0
    core: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.code <= 255:
            raise ValueError(f"exit code {self.code} is not in 0-255")
        if not 0 <= self.signal <= 64:
            raise ValueError(f"signal {self.signal} is not in 0-64")
        if self.code and self.signal:
            raise ValueError(f"{self.code}:{self.signal}: a process ends by code or by signal, not by both")
        if self.core and not self.signal:
            raise ValueError("a core dump without a signal")

    @classmethod
    def from_wait(cls, raw: int) -> ExitStatus:
        """Decode the status that wait(2) gave; raise ValueError if it is not that of an ended process."""
        if raw < 0 or raw > 0xFFFF:
            raise ValueError(f"{raw} is not a wait status")
        signal = raw & 0x7F
        if signal == 0:
            if raw & CORE_BIT:
                raise ValueError(f"{raw:#x} is not a wait status of an ended process")
            return cls(code=raw >> 8)
        if signal > 64 or raw >> 8:  # 0x7f is "stopped"; Linux has 64 signals
            raise ValueError(f"{raw:#x} is not a wait status of an ended process")
        return cls(signal=signal, core=bool(raw & CORE_BIT))

    @classmethod
    def parse(cls, text: str) -> ExitStatus:
        """Read `code:signal`; raise ValueError for anything else."""
        code, colon, signal = text.partition(":")
        if not (colon and _is_number(code) and _is_number(signal)):
            raise ValueError(f"{text!r} is not code:signal")
        return cls(code=int(code), signal=int(signal))

    @property
    def wait_status(self) -> int:
        return self.code << 8 | self.signal | (CORE_BIT if self.core else 0)

    @property
    def is_success(self) -> bool:
        return self.code == 0 and self.signal == 0

    @property
    def shell_code(self) -> int:
        """What `$?` would be in a shell."""
        return 128 + self.signal if self.signal else self.code

    def __str__(self) -> str:
        return f"{self.code}:{self.signal}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 3
