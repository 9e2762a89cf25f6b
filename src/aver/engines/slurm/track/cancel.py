"""Signals to jobs of Slurm. A cancellation that did not reach it is sent again until the job has ended.

Nothing is sent to a job that has ended: its id may be another's by now. A scancel that exits 0 and prints an error was
not heard: one of an older release does so where the controller does not understand it.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from aver.engines.api import Control
from aver.engines.slurm.commands.call import Commands, Reply, Trouble
from aver.engines.slurm.track.evidence import Track
from aver.model.evidence import CancelUnheard, Evidence
from aver.model.job import Scope

AT_ONCE = 500  # ids on one command line
SCANCEL = "scancel"
Tell = Callable[[Track, str, str, Iterable[Evidence]], None]
_ERROR = re.compile(r"^scancel: (?:\[[^]]*\] )?(?:error|fatal): (?P<text>.*)$", re.MULTILINE)
_HAS_ENDED = re.compile(r"already completing or completed|invalid job id", re.IGNORECASE)


class Cancelling:
    """`tracks` is shared with the engine."""

    def __init__(
        self, tracks: Mapping[str, Track], commands: Commands, calls: Counter[str], timeout_s: float, tell: Tell,
        log: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._tracks = tracks
        self._commands = commands
        self._calls = calls
        self._timeout_s = timeout_s
        self._tell = tell
        self._log = log
        self._again: set[str] = set()  # scancel did not reach Slurm

    def too_early(self, controls: Sequence[Control]) -> set[str]:
        """The keys of what is to be cancelled and has no id at Slurm yet."""
        return {one.key for one in controls if one.verb == "cancel" and self._with_id(one.key) is None}

    def send(self, controls: Sequence[Control]) -> None:
        """Pass them on, to those that have an id."""
        by_words: dict[tuple[str, ...], list[Track]] = {}
        for control in controls:
            track = self._with_id(control.key)
            words = _scancel_words(control)
            if track is not None and words is not None and not track.has_ended:
                by_words.setdefault(words, []).append(track)
        for words, tracks in by_words.items():
            self._scancel(words, tracks)

    def _with_id(self, key: str) -> Track | None:
        track = self._tracks.get(key)
        return None if track is None or track.batch.id is None else track

    def send_again(self) -> None:
        """A cancellation holds until the job has ended: Slurm answers again, and hears it again."""
        keys, self._again = self._again, set()
        tracks = [self._tracks[key] for key in sorted(keys) if key in self._tracks]
        self._scancel((), [track for track in tracks if not track.has_ended])

    def _scancel(self, words: tuple[str, ...], tracks: Sequence[Track]) -> None:
        for first in range(0, len(tracks), AT_ONCE):
            some = tracks[first : first + AT_ONCE]
            self._calls[SCANCEL] += 1
            ids = [track.batch.id_of(track.index) for track in some]
            trouble = _trouble(self._commands.call([SCANCEL, *words, *ids], timeout_s=self._timeout_s))
            if trouble is None:
                continue
            text = f"scancel did not reach Slurm: {trouble}"
            self._log(text)
            for track in some:
                if CancelUnheard.__name__ not in track.told:
                    track.told.add(CancelUnheard.__name__)
                    self._tell(track, SCANCEL, text, [CancelUnheard(time.time(), text)])
            if not words:
                self._again.update(track.key for track in some)


def _trouble(reply: Reply | Trouble) -> str | None:
    """Why Slurm did not hear it; None if it did."""
    if isinstance(reply, Trouble):
        return reply.text
    errors = [found["text"] for found in _ERROR.finditer(reply.err) if not _HAS_ENDED.search(found["text"])]
    if errors:
        return errors[0]
    return None if reply.status == 0 else reply.err.strip() or f"exit status {reply.status}"


def _scancel_words(control: Control) -> tuple[str, ...] | None:
    """The options of scancel for this; None: it is not in a user's power on a cluster."""
    match control.verb:
        case "cancel":
            return ("--signal=KILL", "--full") if control.signal == 9 else ()
        case "signal":
            reached = {None: ("--full",), Scope.STEPS: ()}.get(control.scope, ("--batch",))
            return (f"--signal={control.signal}", *reached)
        case _:
            return None
