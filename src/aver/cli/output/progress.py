"""Progress while a command waits: a live line on a terminal, plain lines elsewhere.

The live line is on stderr and is cleared before anything else is written, so that it never mixes with
an answer. It is drawn at most ten times a second.
"""

from __future__ import annotations

import os
import time

from aver.cli.output.documents import JobFacts, RunFacts
from aver.cli.output.text import Output, unselected_text
from aver.cli.output.views import UNKNOWN, absent_text, believed_text, counts_text, duration, state_text
from aver.model.reasons import NOT_STARTED
from aver.model.states import State
from aver.printable import printable

REDRAW_S = 0.1
BAR = 20


def change_line(output: Output, job: JobFacts, before: str = "") -> str:
    """`12:00:01 job 7 train RUNNING`, with the exit and the reason once it is settled; `before`: the last attempt."""
    at = job.ended_at if job.is_settled else job.started_at if job.state == State.RUNNING else None
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    words = [clock, f"job {job.id}", printable(job.name), state_text(output, job.state, job.verified, job.reason)]
    if job.exit is not None and job.state != State.COMPLETED:
        words.append(job.exit.text)
    if job.reason and job.reason != "None" and job.from_run is None:
        words.append(printable(job.reason))
    if job.state != State.PENDING and job.attempt > 1:
        words.append(f"attempt {job.attempt}")
    return " ".join(words) + (f"; {before}" if before else "") + warning_text(job)


def warning_text(job: JobFacts) -> str:
    """`; warning: …` once the job is settled; nothing without a warning."""
    return f"; warning: {printable('; '.join(job.warnings))}" if job.warnings and job.is_settled else ""


def job_summary(job: JobFacts) -> str:
    """`job 7 FAILED 3:0 NonZeroExitCode in 41 s; aver why 7`."""
    words = [f"job {job.id} {believed_text(job)}"]
    if job.state != State.COMPLETED:
        words += [job.exit.text] if job.exit is not None else ["?"] if absent_text(job) == UNKNOWN else []
        words += [printable(job.reason)] if job.reason and job.reason != "None" else []
    if job.reason in NOT_STARTED and job.detail:
        words[-1] += f": {printable(job.detail)}"  # it never ran: what stood in its way is the news
    elif job.elapsed_s is not None:
        words.append(f"in {duration(job.elapsed_s)}")
    text = " ".join(words) + warning_text(job)
    if job.state == State.COMPLETED and job.verified is False and not job.warnings:
        text += f"; {printable(job.detail)}"  # whose word it is
    return text if job.state == State.COMPLETED else f"{text}; aver why {job.id}"


def run_summary(
    run: RunFacts, state: State, warned: tuple[JobFacts, ...], believed: int, taken: int, began_at: float
) -> str:
    """`run 3 FAILED: 2 COMPLETED, 1 FAILED in 12 s; aver why 3`; `warned` are its jobs with warnings.

    `began_at`: when this round began.
    """
    took = f" in {duration(run.ended_at - began_at)}" if run.ended_at is not None else ""
    text = f"run {run.id} {state}: {counts_text(run.counts)}{took}{unselected_text(run.unselected)}"
    if taken:
        text += f"; {taken} of them taken over from earlier runs"
    if believed:
        text += f"; {believed} of them believed, not verified: aver jobs {run.id}"
    if warned:
        more = f", and {len(warned) - 1} more with warnings" if len(warned) > 1 else ""
        text += f"; warning: job {warned[0].id}: {printable('; '.join(warned[0].warnings))}{more}"
    return text if state is State.COMPLETED else f"{text}; aver why {run.id}"


def foreground_summary(run: RunFacts, state: State) -> str:
    """`run 3: its foreground is COMPLETED; all of it is RUNNING: 2 COMPLETED, 1 RUNNING; aver watch 3`."""
    hint = "aver why" if run.is_settled else "aver watch"
    counts = f"{counts_text(run.counts)}{unselected_text(run.unselected)}"
    return f"run {run.id}: its foreground is {state}; all of it is {run.state}: {counts}; {hint} {run.id}"


def bar(run: RunFacts) -> str:
    """`run 3 train [#####...............] 5/20 settled, 2 RUNNING, 1 FAILED`."""
    settled = sum(count for state, count in run.counts.items() if State(state).is_settled)
    total = max(1, sum(run.counts.values()))
    filled = BAR * settled // total
    others = {state: count for state, count in run.counts.items() if state not in (State.COMPLETED, State.PENDING)}
    text = f"run {run.id} {printable(run.name)} [{'#' * filled}{'.' * (BAR - filled)}] {settled}/{total} settled"
    return f"{text}, {counts_text(others)}" if others else text


class LiveLine:
    """One line on the terminal that is drawn over and over; nothing where there is no terminal."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._is_live = output.err_is_terminal and os.environ.get("TERM", "dumb") != "dumb"
        self._is_drawn = False
        self._drawn_at = 0.0

    @property
    def is_due(self) -> bool:
        return self._is_live and time.monotonic() - self._drawn_at >= REDRAW_S

    def draw(self, text: str) -> None:
        if self._is_live:
            cut = self._output.masking.whole(printable(text))[: max(10, self._output.width - 1)]
            self._output.error_raw(f"\r\x1b[K{cut}".encode("utf-8", "surrogateescape"))
            self._is_drawn = True
            self._drawn_at = time.monotonic()

    def clear(self) -> None:
        if self._is_drawn:
            self._output.error_raw(b"\r\x1b[K")
            self._is_drawn = False
