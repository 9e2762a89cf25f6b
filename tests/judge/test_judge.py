"""The judge: which verdict the evidence supports, and which it does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.judge import local
from aver.judge.local import UNSEEN_WARNING, is_unseen, judge, judge_acceptance, launch_text
from aver.judge.scheduler import judge_cluster_acceptance
from aver.model import reasons
from aver.model.evidence import (
    Accepted,
    Act,
    ActKind,
    CancelledBefore,
    DeadlinePassed,
    Evidence,
    GeneratedRead,
    LaunchFailure,
    LimitMoved,
    LimitPassed,
    MachineRestarted,
    Refused,
    Rules,
    Verdict,
    WitnessRecord,
    WitnessStart,
    WitnessVanished,
)
from aver.model.exit import ExitStatus
from aver.model.record import replace
from aver.model.states import SETTLED, State

PLAIN = Rules()
START = WitnessStart("k", 2, 1, 100.0)
VANISHED = WitnessVanished(200.0, witness_pid=77)
RESTARTED = MachineRestarted(200.0, "a", "b")
ACCEPTED = Accepted(300.0, "alice")
READ = GeneratedRead(301.0)
Accepts = Callable[[Verdict, Accepted, GeneratedRead], Verdict | None]
CLEAN = WitnessRecord("k", 2, ExitStatus(), 100.0, 41.0)
WARN = Act(ActKind.WARN, 1.0, 15)
TIME = Act(ActKind.TIME, 2.0, 15)
JOB_TIME = Act(ActKind.JOB_TIME, 2.0, 15)
CANCEL = Act(ActKind.CANCEL, 2.0, 15)
MEMORY = Act(ActKind.MEMORY, 2.0, 9)
SIGNAL = Act(ActKind.SIGNAL, 2.0, 10)
KILL = Act(ActKind.KILL, 3.0, 9)


def ended(code: int = 0, signal: int = 0, *acts: Act, oom: int = 0, core: bool = False) -> WitnessRecord:
    return replace(CLEAN, exit=ExitStatus(code, signal, core), acts=acts, oom_kills=oom)


def verdict_on(*evidence: Evidence, rules: Rules = PLAIN) -> Verdict:
    verdict = judge(evidence, rules)
    assert verdict is not None
    return verdict


@pytest.mark.parametrize(
    ("record", "state", "exit_text", "reason"),
    [
        pytest.param(ended(), State.COMPLETED, "0:0", "None", id="exit 0"),
        pytest.param(ended(1), State.FAILED, "1:0", "NonZeroExitCode", id="exit 1"),
        pytest.param(ended(137), State.FAILED, "137:0", "NonZeroExitCode", id="exit 137 is no kill"),
        pytest.param(ended(200), State.FAILED, "200:0", "NonZeroExitCode", id="exit 200"),
        pytest.param(ended(0, 15), State.FAILED, "0:15", "RaisedSignal:15(Terminated)", id="kill -TERM $$"),
        pytest.param(ended(0, 1), State.FAILED, "0:1", "RaisedSignal:1(Hangup)", id="kill -HUP $$"),
        pytest.param(ended(0, 2), State.FAILED, "0:2", "RaisedSignal:2(Interrupt)", id="Spur: kill -INT $$"),
        pytest.param(ended(0, 6), State.FAILED, "0:6", "RaisedSignal:6(Aborted)", id="Spur: kill -ABRT $$"),
        pytest.param(ended(0, 9), State.FAILED, "0:9", "RaisedSignal:9(Killed)", id="kill -KILL $$"),
        pytest.param(
            ended(0, 11, core=True), State.FAILED, "0:11", "RaisedSignal:11(Segmentation_fault)", id="kill -SEGV $$"
        ),
        pytest.param(ended(139), State.FAILED, "139:0", "NonZeroExitCode", id="a child's SEGV seen by the shell"),
        pytest.param(ended(0, 15, TIME), State.TIMEOUT, "0:15", "TimeLimit", id="time limit, plain"),
        pytest.param(ended(0, 0, TIME), State.TIMEOUT, "0:0", "TimeLimit", id="time limit, TERM trapped, exit 0"),
        pytest.param(ended(3, 0, TIME), State.TIMEOUT, "3:0", "TimeLimit", id="time limit, TERM trapped, exit 3"),
        pytest.param(ended(0, 9, TIME, KILL), State.TIMEOUT, "0:9", "TimeLimit", id="time limit, TERM ignored"),
        pytest.param(ended(0, 0, WARN), State.COMPLETED, "0:0", "None", id="warned, trapped, exit 0"),
        pytest.param(ended(0, 15, CANCEL), State.CANCELLED, "0:15", "None", id="cancelled while running"),
        pytest.param(ended(0, 0, CANCEL), State.CANCELLED, "0:0", "None", id="cancelled, TERM trapped, exit 0"),
        pytest.param(ended(0, 9, CANCEL, KILL), State.CANCELLED, "0:9", "None", id="cancelled, TERM ignored"),
        pytest.param(
            ended(0, 9, CANCEL, TIME, KILL), State.CANCELLED, "0:9", "None", id="cancel came before the limit"
        ),
        pytest.param(
            ended(0, 9, TIME, CANCEL, KILL), State.TIMEOUT, "0:9", "TimeLimit", id="limit came before the cancel"
        ),
        pytest.param(
            ended(0, 10, SIGNAL),
            State.FAILED,
            "0:10",
            "RaisedSignal:10(User_defined_signal_1)",
            id="cancel --signal USR1",
        ),
        pytest.param(ended(0, 0, SIGNAL), State.COMPLETED, "0:0", "None", id="USR1 trapped"),
        pytest.param(ended(0, 9, SIGNAL, TIME), State.TIMEOUT, "0:9", "TimeLimit", id="a signal is not a cancel"),
        pytest.param(ended(0, 9, oom=1), State.OUT_OF_MEMORY, "0:9", "OutOfMemory", id="over --mem"),
        pytest.param(ended(0, 0, oom=1), State.OUT_OF_MEMORY, "0:0", "OutOfMemory", id="over --mem, then exit 0"),
        pytest.param(ended(1, 0, oom=2), State.OUT_OF_MEMORY, "1:0", "OutOfMemory", id="over --mem, then exit 1"),
        pytest.param(
            ended(0, 9, MEMORY), State.OUT_OF_MEMORY, "0:9", "OutOfMemory", id="killed by the sampling witness"
        ),
        pytest.param(
            ended(0, 9, TIME, KILL, oom=1), State.OUT_OF_MEMORY, "0:9", "OutOfMemory", id="memory before time"
        ),
        pytest.param(ended(0, 9, CANCEL, oom=1), State.OUT_OF_MEMORY, "0:9", "OutOfMemory", id="memory before cancel"),
        pytest.param(
            ended(0, 0, WARN, oom=1), State.OUT_OF_MEMORY, "0:0", "OutOfMemory", id="memory before checkpoint"
        ),
    ],
)
def test_what_a_record_means(record: WitnessRecord, state: State, exit_text: str, reason: str) -> None:
    """The rows of OUTCOMES 2, 3 and 7 that one machine can show, by the witness's record."""
    verdict = verdict_on(START, record)
    assert (verdict.state, str(verdict.exit), verdict.reason) == (state, exit_text, reason)
    assert verdict.verified
    assert verdict.source == "witness"
    assert verdict.warnings == ()
    assert verdict.exit == record.exit


CHECKPOINT = Rules(checkpoint_codes=(0, 85))


@pytest.mark.parametrize(
    ("record", "state"),
    [
        (ended(0, 0, WARN), State.CHECKPOINTED),
        (ended(85, 0, WARN), State.CHECKPOINTED),
        (ended(1, 0, WARN), State.FAILED),
        (ended(0, 15, WARN), State.FAILED),
        (ended(0, 0), State.COMPLETED),
        (ended(85, 0), State.FAILED),
        (ended(0, 0, WARN, TIME), State.TIMEOUT),
        (ended(0, 0, WARN, CANCEL), State.CANCELLED),
        (ended(0, 0, SIGNAL), State.COMPLETED),
    ],
)
def test_checkpointed(record: WitnessRecord, state: State) -> None:
    """CHECKPOINTED: warned, ended with an agreed code, and neither time nor cancel was acted on."""
    assert verdict_on(record, rules=CHECKPOINT).state is state


@pytest.mark.parametrize(
    ("code", "reached", "blocked", "state", "warns"),
    [
        (0, 0, 0, State.COMPLETED, False),
        (85, 0, 0, State.FAILED, False),
        (0, 0, 2, State.COMPLETED, True),
        (85, 0, 1, State.CHECKPOINTED, False),
        (0, 1, 1, State.CHECKPOINTED, False),
        (1, 0, 1, State.FAILED, False),
    ],
)
def test_a_warning_that_was_blocked(code: int, reached: int, blocked: int, state: State, warns: bool) -> None:
    """Exit 0 with it still pending is the end, said so; an agreed code other than 0 is the program's own word."""
    verdict = verdict_on(ended(code, 0, replace(WARN, reached=reached, blocked=blocked)), rules=CHECKPOINT)
    assert (verdict.state, bool(verdict.warnings)) == (state, warns)


@pytest.mark.parametrize(
    ("code", "reached", "state", "warns"),
    [
        (0, 0, State.CHECKPOINTED, True),
        (0, 1, State.CHECKPOINTED, False),
        (85, 0, State.CHECKPOINTED, False),
        (1, 0, State.FAILED, False),
    ],
)
def test_a_warning_of_which_nobody_knows_who_took_it(code: int, reached: int, state: State, warns: bool) -> None:
    """The tasks of that srun have no witness: the work may not be finished, and it is said that this is not known."""
    verdict = verdict_on(ended(code, 0, replace(WARN, reached=reached, unseen=1)), rules=CHECKPOINT)
    assert (verdict.state, verdict.warnings) == (state, (UNSEEN_WARNING,) if warns else ())
    assert verdict_on(ended(0, 0, replace(WARN, reached=0, unseen=1))).state is State.COMPLETED


@pytest.mark.parametrize("record", [ended(0, 0), ended(0, 0, replace(WARN, reached=0)), ended(85, 0)])
def test_a_task_that_was_warned(record: WitnessRecord) -> None:
    """A task of a step is the user's process as the script is, also if the script ended before its own warning."""
    assert verdict_on(record, rules=replace(CHECKPOINT, is_step_warned=True)).state is State.CHECKPOINTED
    assert verdict_on(record, rules=Rules(is_step_warned=True)).state is not State.CHECKPOINTED


@pytest.mark.parametrize(
    ("record", "state", "warns"),
    [
        (ended(0, 0, oom=1), State.COMPLETED, True),
        (ended(0, 0, oom=3), State.COMPLETED, True),
        (ended(0, 0, MEMORY), State.COMPLETED, True),
        (ended(0, 0, TIME, oom=1), State.TIMEOUT, True),
        (ended(0, 0, CANCEL, oom=1), State.CANCELLED, True),
        (ended(0, 0, WARN, oom=1), State.CHECKPOINTED, True),
        (ended(0, 9, oom=1), State.OUT_OF_MEMORY, False),
        (ended(1, 0, oom=1), State.OUT_OF_MEMORY, False),
        (ended(0, 0), State.COMPLETED, False),
    ],
)
def test_oom_warn(record: WitnessRecord, state: State, warns: bool) -> None:
    """`oom: warn` turns a kill into a warning only where the script itself exited 0."""
    verdict = verdict_on(record, rules=Rules(checkpoint_codes=(0,), oom_warns=True))
    assert verdict.state is state
    assert bool(verdict.warnings) is warns
    assert all("for memory" in warning for warning in verdict.warnings)


def test_how_often_is_said() -> None:
    """The warning says how often the kernel killed."""
    rules = Rules(oom_warns=True)
    assert "for memory once" in verdict_on(ended(0, 0, oom=1), rules=rules).warnings[0]
    assert "for memory 3 times" in verdict_on(ended(0, 0, oom=3), rules=rules).warnings[0]


def test_launch_failure() -> None:
    """What could not start is FAILED with errno and path, and no exit at all."""
    launch = LaunchFailure("exec", 2, "/no/such")
    verdict = verdict_on(replace(CLEAN, exit=None, launch=launch))
    assert (verdict.state, verdict.exit, verdict.reason) == (State.FAILED, None, "JobLaunchFailure")
    assert verdict.detail == "exec /no/such: No such file or directory (errno 2)"
    assert verdict.verified


def test_launch_failure_without_a_path() -> None:
    """A failed fork has no path."""
    assert launch_text(LaunchFailure("fork", 11, "")) == "fork: Resource temporarily unavailable (errno 11)"


def test_a_record_that_says_nothing_is_unverified() -> None:
    """Neither wait status nor launch failure: unknown, not guessed."""
    verdict = verdict_on(replace(CLEAN, exit=None))
    assert (verdict.state, verdict.exit, verdict.verified) == (State.UNVERIFIED, None, False)


def test_details() -> None:
    """Requested signals, signals to the witness, kills elsewhere and left-overs explain, and decide nothing."""
    assert "SIGUSR1 was sent by request 2.0 s after" in verdict_on(ended(0, 10, SIGNAL)).detail
    assert "sent" not in verdict_on(ended(0, 11, SIGNAL)).detail
    often = Act(ActKind.SIGNAL, 1.0, 12, times=70, last_s=9.0)
    assert "SIGUSR2 was sent by request 70 times, last 9.0 s" in verdict_on(ended(0, 12, SIGNAL, often)).detail
    assert "its witness was sent SIGTERM" in verdict_on(replace(ended(0, 15), got=(15,))).detail
    killed = verdict_on(replace(ended(0, 9), host_oom_kills=1))
    assert "a hint, not a cause" in killed.detail
    assert (killed.state, killed.warnings) == (State.FAILED, ())
    assert verdict_on(replace(ended(0, 15), host_oom_kills=1)).detail == ""
    assert verdict_on(replace(CLEAN, left_over=1)).detail == "it left 1 process behind, ended by its witness"
    assert verdict_on(replace(ended(1), left_over=2)).detail == "it left 2 processes behind, ended by its witness"
    assert verdict_on(replace(CLEAN, left_over=1)).state is State.COMPLETED


@pytest.mark.parametrize(
    ("said", "state", "reason", "detail"),
    [
        (Refused(1.0, "no such partition"), State.FAILED, "JobLaunchFailure", "no such partition"),
        (CancelledBefore(1.0, "alice"), State.CANCELLED, "None", "cancelled by alice before it started"),
        (
            CancelledBefore(1.0, "a request", "it began"),
            State.CANCELLED,
            "None",
            "cancelled by a request before it began",
        ),
        (DeadlinePassed(1.0), State.DEADLINE, "DeadLine", "its deadline passed before it started"),
    ],
)
def test_what_never_ran(said: Evidence, state: State, reason: str, detail: str) -> None:
    """Refused, cancelled before its start, deadline passed: settled at once, with no exit."""
    verdict = verdict_on(said)
    assert (verdict.state, verdict.exit, verdict.reason, verdict.detail) == (state, None, reason, detail)
    assert judge([said, START], PLAIN) is None, "it was seen to start, so it did run: wait for its record"
    assert verdict_on(said, START, CLEAN).state is State.COMPLETED
    assert verdict_on(said, START, VANISHED).state is State.UNVERIFIED
    assert verdict_on(said, ACCEPTED).state is state, "a person's word does not change what is known"


def test_the_first_of_two_reasons_not_to_run_decides() -> None:
    """Cancelled, and then past its deadline: CANCELLED."""
    assert verdict_on(CancelledBefore(1.0, "a"), DeadlinePassed(2.0)).state is State.CANCELLED


@pytest.mark.parametrize("evidence", [(), (START,), (ACCEPTED,), (START, ACCEPTED)])
def test_no_verdict_while_evidence_may_grow(evidence: tuple[Evidence, ...]) -> None:
    """Nothing said, or only a start: no verdict, and a person cannot end what still runs."""
    assert judge(evidence, PLAIN) is None


def test_vanished() -> None:
    """A witness that is gone without a record: nobody knows, and the verdict says who vanished."""
    verdict = verdict_on(START, VANISHED)
    assert (verdict.state, verdict.exit, verdict.verified) == (State.UNVERIFIED, None, False)
    assert verdict.reason == "WitnessVanished"
    assert verdict.detail == "its witness (pid 77) vanished without a record; exit code unknown"
    assert verdict_on(WitnessVanished(1.0, swept=1)).detail.endswith("; 1 process of the job ended afterwards")
    assert verdict_on(WitnessVanished(1.0, swept=2)).detail.endswith("; 2 processes of the job ended afterwards")
    assert verdict_on(WitnessVanished(1.0)).detail.startswith("its witness vanished")
    lost = verdict_on(WitnessVanished(1.0, 77, is_unreadable=True))
    assert (lost.state, lost.verified) == (State.UNVERIFIED, False)
    assert lost.detail == "what its witness (pid 77) wrote of its end can't be read; exit code unknown"


def test_machine_restarted() -> None:
    """Another boot id and no record: NODE_FAIL, also where the witness was missed first."""
    for evidence in ((RESTARTED,), (START, VANISHED, RESTARTED)):
        verdict = verdict_on(*evidence)
        assert (verdict.state, verdict.exit, verdict.reason) == (State.NODE_FAIL, None, "NodeDown")
        assert "while it ran" in verdict.detail
    assert "before it was seen" in verdict_on(replace(RESTARTED, was_seen_running=False)).detail
    assert verdict_on(RESTARTED, ended(3)).state is State.FAILED, "the journal was found after the restart"


@pytest.mark.parametrize("gone", [VANISHED, RESTARTED])
def test_accepted(gone: Evidence) -> None:
    """A person's word settles what nobody saw; it is not verified, and it says whose word it is."""
    verdict = verdict_on(START, gone, ACCEPTED)
    assert (verdict.state, verdict.exit, verdict.verified) == (State.COMPLETED, ExitStatus(), False)
    assert verdict.source == "person"
    assert "alice" in verdict.detail
    failed = verdict_on(gone, replace(ACCEPTED, exit=ExitStatus(code=3)))
    assert (failed.state, failed.reason) == (State.FAILED, "NonZeroExitCode")
    killed = verdict_on(gone, replace(ACCEPTED, exit=ExitStatus(signal=9)))
    assert (killed.state, killed.reason) == (State.FAILED, "RaisedSignal:9(Killed)")
    assert verdict_on(gone, ACCEPTED, replace(ACCEPTED, by="bob")).detail.startswith("accepted as 0:0 by bob")


@pytest.mark.parametrize("accepts", [judge_acceptance, judge_cluster_acceptance])
def test_a_person_may_vouch_only_for_an_end_that_nobody_saw(accepts: Accepts) -> None:
    """UNVERIFIED and NODE_FAIL without an exit become the person's word; what somebody saw stays as it is."""
    for unseen in (verdict_on(VANISHED), verdict_on(RESTARTED)):
        verdict = accepts(unseen, ACCEPTED, READ)
        assert verdict is not None
        assert (verdict.state, verdict.source, verdict.verified) == (State.COMPLETED, "person", False)
    assert accepts(verdict_on(ended(1)), ACCEPTED, READ) is None
    assert accepts(replace(verdict_on(RESTARTED), exit=ExitStatus(1)), ACCEPTED, READ) is None


def test_a_late_record_beats_a_person() -> None:
    """Late contradicting evidence of the witness wins over what a person said, in either order."""
    for evidence in ((VANISHED, ACCEPTED, ended(1)), (ended(1), VANISHED, ACCEPTED)):
        verdict = verdict_on(*evidence)
        assert (verdict.state, verdict.source, verdict.verified) == (State.FAILED, "witness", True)


def test_the_same_record_twice_is_one_record() -> None:
    """A record that arrives by connection and by journal changes nothing; two that differ are said."""
    assert verdict_on(ended(1), ended(1)) == verdict_on(ended(1))
    differ = verdict_on(ended(1), CLEAN)
    assert differ.state is State.FAILED
    assert "two records that differ" in differ.warnings[0]


def test_what_is_no_evidence_is_a_bug() -> None:
    """The union is closed: anything else is refused loudly, not ignored."""
    with pytest.raises(AssertionError):
        judge(["COMPLETED"], PLAIN)  # type: ignore[list-item]


EXITS = st.one_of(
    st.builds(ExitStatus, code=st.integers(0, 255)),
    st.builds(ExitStatus, signal=st.integers(1, 64), core=st.booleans()),
)
ACTS = st.lists(st.builds(Act, st.sampled_from(list(ActKind)), st.just(1.0), st.integers(0, 64)), max_size=4).map(tuple)
RECORDS = st.builds(
    WitnessRecord,
    key=st.just("k"),
    pid=st.just(2),
    exit=EXITS,
    started_at=st.just(1.0),
    elapsed_s=st.just(1.0),
    oom_kills=st.integers(0, 2),
    host_oom_kills=st.integers(0, 1),
    acts=ACTS,
    got=st.lists(st.integers(1, 64), max_size=2).map(tuple),
    left_over=st.integers(0, 2),
)
OTHERS = st.sampled_from(
    [START, VANISHED, RESTARTED, ACCEPTED, Refused(1.0, "no"), CancelledBefore(1.0, "a"), DeadlinePassed(1.0)]
)
RULES = st.builds(Rules, st.lists(st.integers(0, 255), max_size=3).map(tuple), st.booleans())


@given(RECORDS, RULES)
def test_no_completion_without_exit_0(record: WitnessRecord, rules: Rules) -> None:
    """COMPLETED only on a seen exit 0 without time, cancel or unannounced memory kill; the exit is never changed."""
    verdict = verdict_on(record, rules=rules)
    kinds = {act.kind for act in record.acts}
    assert verdict.exit == record.exit
    assert verdict.state.is_settled
    if verdict.state is State.COMPLETED:
        assert verdict.exit == ExitStatus()
        assert not kinds & {ActKind.TIME, ActKind.CANCEL}
        killed = bool(record.oom_kills) or ActKind.MEMORY in kinds
        assert bool(verdict.warnings) == killed


@given(RECORDS, st.lists(OTHERS, max_size=5), st.integers(0, 5), RULES)
def test_a_record_decides_wherever_it_stands(
    record: WitnessRecord, others: list[Evidence], at: int, rules: Rules
) -> None:
    """Whatever else was said, and whenever, the witness's record gives the verdict."""
    assert judge([*others[:at], record, *others[at:]], rules) == judge([record], rules)


@given(st.lists(OTHERS, max_size=6))
def test_without_a_record_success_is_only_a_persons_word(evidence: list[Evidence]) -> None:
    """No record: COMPLETED comes from a person alone and is never verified."""
    verdict = judge(evidence, PLAIN)
    if verdict is not None and verdict.state is State.COMPLETED:
        assert (verdict.source, verdict.verified) == ("person", False)


@pytest.mark.parametrize("exit_status", [(0, 0), (3, 0), (0, 15), (0, 9)])
def test_a_task_that_its_jobs_limit_ended_was_cancelled_by_it(exit_status: tuple[int, int]) -> None:
    """However it then ended; a limit of its own, or a cancellation that was first, counts before it."""
    verdict = verdict_on(ended(*exit_status, JOB_TIME, CANCEL))
    assert (verdict.state, verdict.reason, verdict.exit) == (
        State.CANCELLED,
        reasons.TIME_LIMIT,
        ExitStatus(*exit_status),
    )
    assert verdict.detail == "its job's time limit passed"
    assert verdict_on(ended(*exit_status, TIME, JOB_TIME)).state is State.TIMEOUT
    assert verdict_on(ended(*exit_status, CANCEL, JOB_TIME)).reason == reasons.NONE


def test_a_limit_that_had_passed_at_the_end_is_timeout() -> None:
    """Signal 0: the witness came too late to act on it. The job was over its limit all the same."""
    verdict = verdict_on(ended(0, 0, replace(TIME, signal=0)))
    assert (verdict.state, verdict.reason) == (State.TIMEOUT, reasons.TIME_LIMIT)


@pytest.mark.parametrize(
    ("time_limit_s", "lead_s", "reason"),
    [
        (None, 2.0, "DeadLine"),
        (600.0, 2.0, "DeadLine"),
        (2.0, 600.0, "TimeLimit"),
        (2.0, None, "TimeLimit"),
    ],
)
def test_a_deadline_that_passes_before_the_limit_is_the_reason(
    time_limit_s: float | None, lead_s: float | None, reason: str
) -> None:
    """The witness ends the job at whichever comes first, and the verdict says which one it was."""
    late = ended(0, 15, TIME)
    rules = Rules(time_limit_s=time_limit_s, deadline_at=None if lead_s is None else late.started_at + lead_s)
    verdict = verdict_on(late, rules=rules)
    assert (verdict.state, verdict.reason) == (State.TIMEOUT, reason)


def test_what_a_witness_says_of_the_limit_is_no_end() -> None:
    """A limit that moved or passed: the record of the end is still to come."""
    assert judge([START, LimitMoved(5.0), LimitPassed(2.0)], PLAIN) is None
    assert verdict_on(START, LimitPassed(2.0), CLEAN).state is State.COMPLETED


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (GeneratedRead(150.0), (State.COMPLETED, "None", "witness", "")),
        (GeneratedRead(150.0, "no jobs"), (State.FAILED, "GeneratedJobs", "coordinator", "no jobs")),
        (GeneratedRead(150.0, "by alice", True), (State.CANCELLED, "None", "coordinator", "by alice")),
    ],
)
def test_jobs_that_could_not_be_added_make_a_completion_none(
    read: GeneratedRead, expected: tuple[State, str, str, str]
) -> None:
    """The exit is what it was; an end that was no completion stays what it was."""
    verdict = judge([START, CLEAN, read], PLAIN)
    assert verdict is not None
    assert (verdict.state, verdict.reason, verdict.source, verdict.detail) == expected
    assert (verdict.exit, verdict.verified) == (ExitStatus(), True)
    failed = judge([START, replace(CLEAN, exit=ExitStatus(3)), read], PLAIN)
    assert failed is not None
    assert (failed.state, failed.reason) == (State.FAILED, "NonZeroExitCode")
    assert judge([START, read], PLAIN) is None


def test_the_page_says_what_can_be_accepted() -> None:
    """docs/design/states.md names the states that a person may accept, and no others."""
    page = " ".join((Path(__file__).parents[2] / "docs" / "design" / "states.md").read_text().split())
    sentence = page.partition("a person accepted")[2].partition(". The correction")[0]
    assert {word for word in State if f" {word} " in f"{sentence} "} == {
        state for state in SETTLED if is_unseen(state, None)
    }


def test_every_reason_of_a_failure_may_be_retried() -> None:
    """The judge's own words, and no list beside them that lacks some."""
    folder = Path(local.__file__).parent
    words = {word for path in folder.glob("*.py") for word in re.findall(r"reasons\.([A-Z_]+)\b", path.read_text())}
    never = {"NONE", "CHECKPOINT", "DEPENDENCY_NEVER_SATISFIED"}  # not failures, or never begun
    assert {getattr(reasons, word) for word in words - never} == set(reasons.OF_FAILURES)
