"""How verdicts are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.judge.local import judge, judge_record
from aver.model.evidence import Act, ActKind, LaunchFailure, Rules, Verdict, WitnessRecord, WitnessVanished
from aver.model.exit import ExitStatus
from aver.model.exit_text import slurm_exit
from aver.model.job import Request
from aver.model.reasons import CONDITION_NOT_MET, PENDING_WORDS, need_reason
from aver.model.record import replace
from aver.model.states import SETTLED, UNSETTLED, State
from aver.render.verdict import (
    Piece,
    bytes_words,
    duration_words,
    elapsed_text,
    exit_text,
    exit_words,
    limit_words,
    next_steps,
    piece,
    raw_text,
    reason_text,
    sentence,
    state_text,
    unsettled_sentence,
)

GIB = 1024**3
CLEAN = WitnessRecord("k", 2, ExitStatus(), 100.0, 41.2)
REQUEST = Request(mem_bytes=2 * GIB, time_s=600)
NOT_FOUND = LaunchFailure("exec", 2, "/no/such")


def made(state: State, exit_status: ExitStatus | None = None, reason: str = "None", detail: str = "") -> Verdict:
    return Verdict(state, exit_status, reason, state is not State.UNVERIFIED, "witness", (), detail)


def said(record: WitnessRecord, rules: Rules | None = None, by: str | None = None) -> str:
    return sentence(judge_record(record, rules or Rules()), record, REQUEST, by)


def ended(code: int = 0, signal: int = 0, *acts: Act, core: bool = False) -> WitnessRecord:
    return replace(CLEAN, exit=ExitStatus(code, signal, core), acts=acts)


def test_unknown_is_a_question_mark() -> None:
    """Unknown is `?`, never 0, in every form."""
    assert exit_text(None) == raw_text(None) == "?"
    assert exit_words(None) == "an unknown exit"
    assert exit_text(ExitStatus(137)) == "137:0"
    assert piece(made(State.UNVERIFIED), None) == Piece("UNVERIFIED", "?", "None", "?")


@pytest.mark.parametrize(
    ("state", "end", "launch", "shown"),
    [
        (State.OUT_OF_MEMORY, ExitStatus(signal=9), None, "0:125"),
        (State.FAILED, ExitStatus(137), None, "137:0"),
        (State.FAILED, ExitStatus(signal=15), None, "0:15"),
        (State.FAILED, None, NOT_FOUND, "2:0"),
        (State.FAILED, None, LaunchFailure("stdout", 13, "/x"), "0:53"),
        (State.FAILED, None, None, "?"),
        (State.UNVERIFIED, None, None, "?"),
        (State.COMPLETED, None, None, "?"),
        (State.TIMEOUT, None, None, "?"),
        (State.CANCELLED, None, None, "0:0"),
        (State.CANCELLED, ExitStatus(signal=15), None, "0:15"),
        (State.NODE_FAIL, None, None, "0:0"),
        (State.DEADLINE, None, None, "0:1"),
        (State.PENDING, None, None, "0:0"),
    ],
)
def test_slurm_exit(state: State, end: ExitStatus | None, launch: LaunchFailure | None, shown: str) -> None:
    """The Slurm-style commands print what the `ctl` column of OUTCOMES 7 prints."""
    raw = None if end is None else end.wait_status
    assert slurm_exit(state.value, raw, launch and (launch.operation, launch.errno)) == shown


def test_raw_texts() -> None:
    """DerivedExitCode is shown from its raw status, 0:125 included."""
    assert [raw_text(raw) for raw in (0, 7 << 8, 15, 125, 11 | 0x80)] == ["0:0", "7:0", "0:15", "0:125", "0:11"]


def test_marks() -> None:
    """What is believed has a star, what has warnings an exclamation mark."""
    assert state_text(made(State.COMPLETED)) == "COMPLETED"
    assert state_text(replace(made(State.COMPLETED), verified=False)) == "COMPLETED*"
    assert state_text(replace(made(State.COMPLETED), warnings=("w",))) == "COMPLETED!"
    assert reason_text("") == "None"


@pytest.mark.parametrize(
    ("seconds", "slurm", "words"),
    [
        (0.0, "00:00:00", "0.0 s"),
        (-3.0, "00:00:00", "0.0 s"),
        (0.44, "00:00:00", "0.4 s"),
        (9.96, "00:00:09", "10 s"),
        (41.2, "00:00:41", "41 s"),
        (59.7, "00:00:59", "1 min"),
        (200.0, "00:03:20", "3 min 20 s"),
        (7500.0, "02:05:00", "2 h 5 min"),
        (93784.0, "1-02:03:04", "1 d 2 h"),
    ],
)
def test_durations(seconds: float, slurm: str, words: str) -> None:
    """Slurm's form, and one for people."""
    assert (elapsed_text(seconds), duration_words(seconds)) == (slurm, words)


@pytest.mark.parametrize(
    ("size", "words", "limit"),
    [
        (512, "512 B", "512 B"),
        (2 * GIB, "2.0 GiB", "2 GiB"),
        (1536 * 1024**2, "1.5 GiB", "1536 MiB"),
        (GIB - 1, "1.0 GiB", "1.0 GiB"),
        (1024**6, "1.0 EiB", "1 EiB"),
        (1025, "1.0 KiB", "1025 B"),
    ],
)
def test_sizes(size: int, words: str, limit: str) -> None:
    """A measured size has one decimal; one that was asked for is exact where that is short."""
    assert (bytes_words(size), limit_words(size)) == (words, limit)


@given(st.integers(0, 1024**6))
def test_every_size_has_words(size: int) -> None:
    """No size prints as 1024.0 of anything."""
    assert not bytes_words(size).startswith("1024")


OOM = replace(ended(0, 9), oom_kills=1, limit_bytes=2 * GIB, peak_bytes=2 * GIB - 4096)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (OOM, "Killed by the kernel for memory: it reached 2.0 GiB of the 2 GiB asked for, 41 s after its start."),
        (
            replace(OOM, exit=ExitStatus()),
            "Killed by the kernel for memory: it reached 2.0 GiB of the 2 GiB asked for, 41 s after its start; "
            "the script itself ended with exit code 0.",
        ),
        (
            replace(OOM, peak_bytes=GIB),
            "Killed by the kernel for memory: it was last measured at 1.0 GiB of the 2 GiB asked for, "
            "41 s after its start.",
        ),
        (
            replace(OOM, peak_bytes=None),
            "Killed by the kernel for memory: it was never measured, of the 2 GiB asked for, 41 s after its start.",
        ),
        (
            replace(OOM, oom_kills=0, peak_bytes=3 * GIB, maxrss_bytes=4 * GIB, acts=(Act(ActKind.MEMORY, 1.0, 9),)),
            "Killed by its witness for memory: it reached 3.0 GiB of the 2 GiB asked for, 41 s after its start.",
        ),
        (ended(), "Completed with exit code 0 after 41 s."),
        (ended(3), "Failed with exit code 3, 41 s after its start."),
        (ended(137), "Failed with exit code 137, 41 s after its start."),
        (
            ended(0, 11, core=True),
            "Ended by signal 11, SIGSEGV: Segmentation fault (core dumped), 41 s after its start.",
        ),
        (
            ended(0, 9, Act(ActKind.TIME, 30.0, 15), Act(ActKind.KILL, 40.0, 9)),
            "Ended because its time limit of 10 min passed: it ended with signal 9 (SIGKILL), 41 s after its start.",
        ),
        (
            ended(0, 15, Act(ActKind.CANCEL, 40.0, 15)),
            "Cancelled by alice 40 s after its start; it ended with signal 15 (SIGTERM).",
        ),
        (
            ended(0, 0, Act(ActKind.WARN, 40.0, 15)),
            "Checkpointed: it was warned before its time limit and ended as agreed, with exit code 0, "
            "41 s after its start.",
        ),
        (
            replace(CLEAN, exit=None, launch=NOT_FOUND),
            "It could not start: exec /no/such: No such file or directory (errno 2).",
        ),
    ],
)
def test_sentences_of_records(record: WitnessRecord, expected: str) -> None:
    """`aver why` starts with one plain sentence for each cause."""
    assert said(record, Rules(checkpoint_codes=(0,)), by="alice") == expected


def test_memory_without_a_limit() -> None:
    """Without a limit of its own, none is claimed."""
    verdict = made(State.OUT_OF_MEMORY, ExitStatus(signal=9))
    assert "with no limit of its own" in sentence(verdict, replace(OOM, limit_bytes=None))
    assert sentence(verdict) == "Killed by the kernel for memory: it had no limit."


def test_warnings_are_in_the_sentence() -> None:
    """COMPLETED under `oom: warn` says so at once."""
    record = replace(OOM, exit=ExitStatus())
    assert said(record, Rules(oom_warns=True)).startswith(
        "Completed with exit code 0 after 41 s, but the kernel killed"
    )


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (made(State.COMPLETED, ExitStatus()), "Completed with exit code 0."),
        (
            replace(made(State.COMPLETED, ExitStatus(), detail="accepted by bob"), verified=False),
            "Believed to have completed: accepted by bob.",
        ),
        (
            replace(made(State.FAILED, ExitStatus(3), detail="accepted by bob"), verified=False),
            "Believed to have failed: accepted by bob.",
        ),
        (made(State.FAILED, None, "JobLaunchFailure", "no such engine"), "It could not start: no such engine."),
        (
            made(State.FAILED, None, "NonZeroExitCode", "exit code 9 or 137: accounting takes 128 off"),
            "Failed, and its exit code is not known: exit code 9 or 137: accounting takes 128 off.",
        ),
        (made(State.FAILED, None, "NonZeroExitCode"), "Failed, and its exit code is not known."),
        (made(State.FAILED, ExitStatus(1), detail="it left 1 process"), "Failed with exit code 1 (it left 1 process)."),
        (made(State.CANCELLED, detail="cancelled by bob before it started"), "Cancelled by bob before it started."),
        (made(State.CANCELLED), "Cancelled before it started."),
        (made(State.CANCELLED, ExitStatus(signal=15)), "Cancelled; it ended with signal 15 (SIGTERM)."),
        (made(State.TIMEOUT, ExitStatus()), "Ended because its time limit passed: it ended with exit code 0."),
        (
            made(State.TIMEOUT, ExitStatus(signal=15), "DeadLine"),
            "Ended because its deadline passed: it ended with signal 15 (SIGTERM).",
        ),
        (
            made(State.SKIPPED, reason=need_reason("prep", State.FAILED)),
            "Skipped, it never ran: prep, which it needs, is FAILED.",
        ),
        (made(State.SKIPPED, reason=CONDITION_NOT_MET), "Skipped, it never ran: its condition did not apply."),
        (made(State.SKIPPED), "Skipped, it never ran: None."),
        (made(State.UNVERIFIED), "Nobody knows how it ended."),
        (made(State.NODE_FAIL), "The node on which it ran was lost."),
        (made(State.NODE_FAIL, detail="the machine was restarted"), "The machine was restarted."),
        (made(State.DEADLINE), "Its deadline passed before it could end."),
        (made(State.RUNNING), "Running."),
    ],
)
def test_sentences_without_a_record(verdict: Verdict, expected: str) -> None:
    """Each state has its sentence also where no witness said anything."""
    assert sentence(verdict) == expected


def test_the_sentence_of_a_vanished_witness() -> None:
    """UNVERIFIED says who vanished and that the exit is unknown."""
    verdict = judge([WitnessVanished(1.0, 77)], Rules())
    assert verdict is not None
    assert sentence(verdict) == (
        "Nobody knows how it ended: its witness (pid 77) vanished without a record; exit code unknown."
    )


def test_unsettled_sentences() -> None:
    """Each unsettled state has a sentence, and a pending one says why; a settled state needs its verdict."""
    assert len({unsettled_sentence(state, "Priority") for state in UNSETTLED}) == len(UNSETTLED)
    for reason, words in PENDING_WORDS.items():
        assert unsettled_sentence(State.PENDING, reason) == f"Waiting ({reason}): {words}."
    assert unsettled_sentence(State.PENDING, "QOSMaxJobs") == "Waiting: QOSMaxJobs."
    for state in SETTLED:
        with pytest.raises(ValueError, match="is settled"):
            unsettled_sentence(state, "")


@pytest.mark.parametrize(
    ("verdict", "first"),
    [
        (made(State.OUT_OF_MEMORY, ExitStatus(signal=9)), "aver recover 7"),
        (made(State.TIMEOUT, ExitStatus(signal=15)), "aver recover 7"),
        (made(State.FAILED, ExitStatus(1)), "aver log 7"),
        (made(State.FAILED, None, "JobLaunchFailure"), "aver show 7"),
        (made(State.CANCELLED), "aver retry 7"),
        (made(State.UNVERIFIED), "aver log 7"),
        (made(State.NODE_FAIL), "aver retry 7"),
        (made(State.COMPLETED, ExitStatus()), "aver log 7"),
        (made(State.SKIPPED, reason=CONDITION_NOT_MET), "aver show 7"),
        (made(State.RUNNING), "aver watch 7"),
    ],
)
def test_next_steps(verdict: Verdict, first: str) -> None:
    """The first command to type fits the outcome."""
    assert next_steps(verdict, 7, None, REQUEST)[0] == first


def test_a_skipped_job_names_the_need_as_one_can_type_it() -> None:
    """Its name alone is no address."""
    verdict = made(State.SKIPPED, reason="NeedFailed:train[seed=2](FAILED)")
    assert next_steps(verdict, 7, run=3)[0] == "aver why '3/train[seed=2]'"


def test_every_state_has_a_next_step() -> None:
    """Nobody is left without a command, whatever happened and however little is known."""
    for state in State:
        steps = next_steps(made(state), 7)
        assert steps
        assert all(step.startswith("aver ") for step in steps)
    assert "aver accept 7" in next_steps(made(State.UNVERIFIED), 7)
    assert next_steps(replace(made(State.COMPLETED), warnings=("w",)), 7) == ("aver log 7", "aver show 7")


def test_every_sentence_ends_with_one_full_stop() -> None:
    """Whatever the state, with and without a record, it is one sentence."""
    for state in State:
        for end in (None, ExitStatus(), ExitStatus(3), ExitStatus(signal=9)):
            text = sentence(made(state, end), None, REQUEST)
            assert text.endswith(".")
            assert not text.endswith("..")
