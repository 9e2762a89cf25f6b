"""Polling interval with exponential back-off: short after a change, longer while nothing happens, and a
multiple of what a slow call takes.

Pure: the times are arguments.
"""

from __future__ import annotations

from aver.model.record import Record

RECENT_S = 10.0  # after a change the next question comes soon
GROWTH = 1.3
CALM = 5.0  # times what a call takes is the least pause after it
LATE_S = 7 * 86400.0  # what nobody has said for so long nobody will say


class Pace(Record):
    """In seconds."""

    least_s: float = 1.0
    most_s: float = 30.0
    trouble_most_s: float = 60.0
    retry_least_s: float = 5.0
    retry_most_s: float = 120.0
    timeout_s: float = 60.0
    at_once_s: float = 2.0  # so long orders are handed over before anything else has its turn

    def slower(self, pause_s: float) -> float:
        """The pause after this one, while nothing happens."""
        return min(pause_s * GROWTH, self.most_s)

    def troubled(self, pause_s: float) -> float:
        """The pause after this one, while nobody answers."""
        return min(max(pause_s, self.least_s) * 2, self.trouble_most_s)

    def at_least(self, pause_s: float, took_s: float) -> float:
        """The pause, or more after a call that took so long."""
        return max(pause_s, min(took_s * CALM, self.most_s))
