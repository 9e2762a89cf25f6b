"""The judge of attempts on a cluster: OUTCOMES 6 rule by rule, and what holds for any evidence in any order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.engines.slurm.states import WORDS, read_word
from aver.judge.scheduler import CAUSES, NO_RECORD, NOBODY_SAID, judge_cluster
from aver.model.evidence import (
    Accepted,
    AccountingSaid,
    Act,
    ActKind,
    CancelledBefore,
    DeadlinePassed,
    Evidence,
    GeneratedRead,
    HeldBack,
    LaunchFailure,
    LeftQueue,
    MemoryWatch,
    NeverSeen,
    NobodySaid,
    QueueSaid,
    RecordIsLate,
    Refused,
    Rules,
    Taken,
    Verdict,
    WitnessRecord,
)
from aver.model.exit import ExitStatus
from aver.model.record import replace
from aver.model.states import State

ENDS = {word for word, state in WORDS.items() if state.is_end}
UNSETTLED = {word for word, state in WORDS.items() if state.is_present}
PLAIN = Rules()
TAKEN = Taken(1.0, "7")
RUNNING = QueueSaid(2.0, read_word("RUNNING"), started_at=2.0, node="n1")
GONE = LeftQueue(5.0)
LATE = RecordIsLate(20.0, 10.0)
SILENT = NobodySaid(700.0, 600.0, "silent")
DISABLED = NobodySaid(20.0, 10.0, "disabled")
NEVER = NeverSeen(400.0, 300.0)
ACCEPTED = Accepted(900.0, "alice")
CLEAN = WitnessRecord("k.r0", 2, ExitStatus(), 2.0, 3.0, watch=MemoryWatch.CGROUP1)
TIME = Act(ActKind.TIME, 2.0, 15)
WARN = Act(ActKind.WARN, 2.0, 10)


def ended(code: int = 0, signal: int = 0, *acts: Act, **more: object) -> WitnessRecord:
    return replace(CLEAN, exit=ExitStatus(code, signal), acts=acts, **more)  # type: ignore[arg-type]


def queue(word: str, exit_text: str = "", reason: str = "") -> QueueSaid:
    return QueueSaid(4.0, read_word(word), reason, exit_text, started_at=2.0, node="n1")


def account(word: str, exit_text: str = "0:0", batch: str = "", *, batch_word: str = "", whole: bool = False,
            has_started: bool = True) -> AccountingSaid:  # fmt: skip
    started_at = 2.0 if has_started else None
    own = batch_word or ("" if not batch else word)
    return AccountingSaid(
        6.0, read_word(word), exit_text, read_word(own) if own else None, batch, whole, started_at, 5.0, 3.0,
        node="n1",
    )  # fmt: skip


def verdict_on(*evidence: Evidence, rules: Rules = PLAIN) -> Verdict:
    verdict = judge_cluster([TAKEN, RUNNING, *evidence], rules)
    assert verdict is not None
    return verdict


def short(verdict: Verdict) -> tuple[str, str, str]:
    return str(verdict.state), "?" if verdict.exit is None else str(verdict.exit), verdict.reason


@pytest.mark.parametrize(
    "evidence",
    [
        [],
        [TAKEN],
        [HeldBack(1.0, "AssocMaxSubmitJobLimit", "x")],
        [TAKEN, queue("PENDING")],
        [TAKEN, RUNNING],
        [TAKEN, RUNNING, GONE],
        [TAKEN, RUNNING, CLEAN],
        [TAKEN, RUNNING, queue("COMPLETING"), CLEAN],
        [TAKEN, RUNNING, queue("COMPLETED", "0:0")],
        [TAKEN, RUNNING, queue("FAILED", "1:0")],
        [TAKEN, RUNNING, queue("TIMEOUT", "0:15")],
        [TAKEN, RUNNING, ended(1), GONE],
        [TAKEN, RUNNING, ended(0, 0, got=(15,)), GONE],
        [TAKEN, RUNNING, ended(0, 0, TIME), GONE],
        [TAKEN, RUNNING, ended(0, 0, oom_kills=1), GONE],
        [TAKEN, RUNNING, ended(0, 0, watch=MemoryWatch.NONE), GONE],
        [TAKEN, RUNNING, queue("QUARANTINED")],
        [TAKEN, RUNNING, queue("QUARANTINED"), GONE],
        [TAKEN, RUNNING, queue("QUARANTINED"), CLEAN],
        [TAKEN, RUNNING, ACCEPTED],
        [TAKEN, RUNNING, GONE, ACCEPTED],
        [TAKEN, RUNNING, GONE, replace(account("COMPLETED", "0:0", "0:0"), ended_at=None)],
        [TAKEN, RUNNING, GONE, CLEAN, queue("RUNNING")],
    ],
)
def test_waits_while_the_evidence_may_grow(evidence: list[Evidence]) -> None:
    """No verdict while it runs, while one of the two sources may still speak, or on a row without an end."""
    assert judge_cluster(evidence, PLAIN) is None


def test_clean_record_and_gone_is_completed_at_once() -> None:
    """Gone from the queue, and its witness saw exit 0, got no signal and no kill for memory: nobody else is asked."""
    verdict = verdict_on(CLEAN, GONE)
    assert short(verdict) == ("COMPLETED", "0:0", "None")
    assert (verdict.verified, verdict.source, verdict.warnings) == (True, "witness", ())
    assert verdict_on(queue("COMPLETED", "0:0"), CLEAN) == verdict


@pytest.mark.parametrize(
    ("record", "word", "expected"),
    [
        (ended(1), queue("FAILED", "1:0"), ("FAILED", "1:0", "NonZeroExitCode")),
        (ended(137), queue("FAILED", "137:0"), ("FAILED", "137:0", "NonZeroExitCode")),
        (ended(0, 15), queue("FAILED", "0:15"), ("FAILED", "0:15", "RaisedSignal:15(Terminated)")),
        (ended(0, 0, got=(15,)), queue("COMPLETED", "0:0"), ("COMPLETED", "0:0", "None")),
        (ended(0, 0, got=(15,)), queue("TIMEOUT", "0:0"), ("TIMEOUT", "0:0", "TimeLimit")),
        (ended(3, 0, got=(15,)), queue("TIMEOUT", "3:0"), ("TIMEOUT", "3:0", "TimeLimit")),
        (ended(0, 0, got=(15,)), queue("CANCELLED", "0:0"), ("CANCELLED", "0:0", "None")),
        (ended(0, 15, got=(15,)), queue("PREEMPTED", "0:15"), ("PREEMPTED", "0:15", "Preempted")),
        (ended(0, 15, got=(15,)), queue("NODE_FAIL", "0:0"), ("NODE_FAIL", "0:15", "NodeDown")),
        (ended(0, 15, TIME), queue("FAILED", "0:15"), ("TIMEOUT", "0:15", "TimeLimit")),
        (ended(0, 0, TIME), queue("COMPLETED", "0:0"), ("TIMEOUT", "0:0", "TimeLimit")),
        (ended(0, 9, oom_kills=1), queue("FAILED", "0:9"), ("OUT_OF_MEMORY", "0:9", "OutOfMemory")),
        (ended(0, 0, oom_kills=1), queue("OUT_OF_MEMORY", "0:125"), ("OUT_OF_MEMORY", "0:0", "OutOfMemory")),
        (ended(0, 9, TIME, oom_kills=1), queue("TIMEOUT", "0:9"), ("OUT_OF_MEMORY", "0:9", "OutOfMemory")),
        (ended(0, 9, TIME, watch=MemoryWatch.NONE), queue("OUT_OF_MEMORY", "0:125"),
         ("OUT_OF_MEMORY", "0:9", "OutOfMemory")),
        (ended(1), account("CANCELLED by 1001", "0:0", "0:15"), ("CANCELLED", "1:0", "None")),
        (ended(0, 0, WARN), queue("COMPLETED", "0:0"), ("COMPLETED", "0:0", "None")),
    ],
)  # fmt: skip
def test_two_sources(record: WitnessRecord, word: Evidence, expected: tuple[str, str, str]) -> None:
    """The witness has the exit status; the scheduler's word has the cause; memory comes before time."""
    for evidence in ([record, word], [word, record], [record, GONE, word]):
        verdict = verdict_on(*evidence)
        assert short(verdict) == expected
        assert (verdict.verified, verdict.source, verdict.warnings) == (True, "witness", ())


def test_checkpointed_on_a_cluster() -> None:
    """Warned, and ended with an agreed code: CHECKPOINTED, as on one machine."""
    rules = Rules(checkpoint_codes=(0,))
    assert verdict_on(ended(0, 0, WARN), queue("COMPLETED", "0:0"), rules=rules).state is State.CHECKPOINTED
    assert verdict_on(CLEAN, queue("COMPLETED", "0:0"), rules=rules).state is State.COMPLETED


def test_launch_failure_is_the_witnesss_own() -> None:
    """The command never ran: the witness says why, whatever number the scheduler saw."""
    record = replace(CLEAN, exit=None, launch=LaunchFailure("exec", 2, "/no/such"))
    verdict = verdict_on(record, queue("FAILED", "2:0"))
    assert short(verdict) == ("FAILED", "?", "JobLaunchFailure")
    assert verdict.detail == "exec /no/such: No such file or directory (errno 2)"
    assert verdict.warnings == ()


@pytest.mark.parametrize(
    ("record", "word", "warning"),
    [
        (ended(3), queue("COMPLETED", "0:0"), "the scheduler says COMPLETED; its witness saw it end with 3:0"),
        (ended(3), account("FAILED", "4:0", "4:0"), "accounting says 4:0; its witness saw 3:0, which counts"),
        (ended(200), account("FAILED", "72:0", "72:0", whole=True),
         "accounting says 72:0; its witness saw 200:0, which counts"),
        (ended(2), queue("FAILED", "1:0"), "the queue says 1:0; its witness saw 2:0, which counts"),
        (CLEAN, queue("FAILED", "0:53"), "the scheduler says FAILED; its witness saw it end with 0:0"),
    ],
)  # fmt: skip
def test_disagreement_is_shown(record: WitnessRecord, word: Evidence, warning: str) -> None:
    """They disagree on the exit status: the witness's counts, and every surface shows the other."""
    verdict = verdict_on(record, word)
    assert verdict.exit == record.exit
    assert verdict.warnings == (warning,)


def test_what_accounting_is_known_to_lose_is_no_disagreement() -> None:
    """Before 25.11, sacct takes 128 off: 72 beside a witness's 200 is the same exit."""
    assert verdict_on(ended(200), account("FAILED", "72:0", "72:0")).warnings == ()
    assert verdict_on(ended(128), account("FAILED", "0:0", "0:0")).warnings == ()


@pytest.mark.parametrize(
    ("said", "words"),
    [(SILENT, "accounting was silent"), (DISABLED, "accounting was disabled")],
)
def test_witness_alone(said: NobodySaid, words: str) -> None:
    """Accounting is disabled or silent for the long wait: the witness alone decides, and that is said."""
    verdict = verdict_on(ended(3), GONE, said)
    assert short(verdict) == ("FAILED", "3:0", "NonZeroExitCode")
    assert verdict.verified
    assert words in verdict.warnings[0]


@pytest.mark.parametrize(
    ("said", "expected", "detail"),
    [
        (account("COMPLETED", "0:0", "0:0"), ("COMPLETED", "0:0", "None"), ""),
        (account("COMPLETED", "0:0"), ("COMPLETED", "0:0", "None"), ""),
        (account("COMPLETED", "0:0", "3:0"), ("FAILED", "?", "NonZeroExitCode"), "3 or 131"),
        (account("COMPLETED", "0:0", "3:0", whole=True), ("FAILED", "3:0", "NonZeroExitCode"), ""),
        (account("COMPLETED", "0:9"), ("FAILED", "0:9", "RaisedSignal:9(Killed)"), ""),
        (account("FAILED", "9:0", "9:0"), ("FAILED", "?", "NonZeroExitCode"), "exit code 9 or 137"),
        (account("FAILED", "137:0", "137:0", whole=True), ("FAILED", "137:0", "NonZeroExitCode"), ""),
        (account("FAILED", "0:0", "0:0"), ("FAILED", "128:0", "NonZeroExitCode"), ""),
        (account("FAILED", "1:0", "0:15", batch_word="CANCELLED"), ("FAILED", "0:15", "RaisedSignal:15(Terminated)"),
         ""),
        (account("FAILED", "nonsense", "nonsense"), ("FAILED", "?", "NonZeroExitCode"), ""),
        (replace(account("FAILED", "0:53", "0:53"), elapsed_s=1.0), ("FAILED", "?", "JobLaunchFailure"),
         "could not open the job's output"),
        (account("FAILED", "0:53", "0:53"), ("FAILED", "0:53", "RaisedSignal:53(Real-time_signal_19)"), ""),
        (account("TIMEOUT", "0:0", "0:15", batch_word="CANCELLED"), ("TIMEOUT", "0:15", "TimeLimit"), ""),
        (account("TIMEOUT", "0:0"), ("TIMEOUT", "?", "TimeLimit"), ""),
        (account("OUT_OF_MEMORY", "0:125", "0:125"), ("OUT_OF_MEMORY", "?", "OutOfMemory"), ""),
        (account("CANCELLED by 1001", "0:0", "0:15"), ("CANCELLED", "0:15", "None"), "cancelled by uid 1001"),
        (account("CANCELLED by 1001", "0:0", has_started=False), ("CANCELLED", "?", "None"), "by uid 1001"),
        (account("CANCELLED", "0:0"), ("CANCELLED", "?", "None"), "after it had begun"),
        (account("NODE_FAIL", "0:0", "", batch_word="CANCELLED"), ("NODE_FAIL", "?", "NodeDown"), ""),
        (account("PREEMPTED", "0:0", "0:15", batch_word="CANCELLED"), ("PREEMPTED", "0:15", "Preempted"), ""),
        (account("DEADLINE", "1:0", has_started=False), ("DEADLINE", "?", "DeadLine"), ""),
        (account("BOOT_FAIL", "0:0", has_started=False), ("BOOT_FAIL", "?", "NodeDown"), ""),
    ],
)  # fmt: skip
def test_accounting_alone(said: AccountingSaid, expected: tuple[str, str, str], detail: str) -> None:
    """The script's row before the job's; a code that may have lost 128 is both; what can't be read is unknown."""
    started = [] if said.started_at is None else [RUNNING]
    verdict = judge_cluster([TAKEN, *started, GONE, said], PLAIN)
    assert verdict is not None
    assert short(verdict) == expected
    assert (verdict.verified, verdict.source) == (True, "accounting")
    assert detail in verdict.detail


def test_unreadable_exit_of_a_completed_row_is_unverified() -> None:
    """COMPLETED with an exit that can't be read attests nothing."""
    verdict = verdict_on(GONE, account("COMPLETED", "garbage", "garbage"))
    assert short(verdict) == ("UNVERIFIED", "?", "None")
    assert not verdict.verified


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (queue("FAILED", "137:0"), ("FAILED", "137:0", "NonZeroExitCode")),
        (queue("FAILED", "0:1"), ("FAILED", "0:1", "RaisedSignal:1(Hangup)")),
        (queue("FAILED", "0:53"), ("FAILED", "?", "JobLaunchFailure")),
        (queue("TIMEOUT", "0:15"), ("TIMEOUT", "0:15", "TimeLimit")),
        (queue("OUT_OF_MEMORY", "0:125"), ("OUT_OF_MEMORY", "?", "OutOfMemory")),
        (queue("NODE_FAIL", ""), ("NODE_FAIL", "?", "NodeDown")),
        (queue("DEADLINE", "0:1"), ("DEADLINE", "0:1", "DeadLine")),
        (queue("FAILED", ""), ("FAILED", "?", "NonZeroExitCode")),
    ],
)
def test_failure_in_the_queue_is_final(said: QueueSaid, expected: tuple[str, str, str]) -> None:
    """The controller's failure counts when the record that would complete it does not come; its codes are whole."""
    for wait in (LATE, SILENT, DISABLED):
        verdict = verdict_on(said, GONE, wait)
        assert short(verdict) == expected
        assert (verdict.verified, verdict.source) == (True, "queue")


def test_a_lost_node_has_no_exit() -> None:
    """Slurm 25.11 prints 0:1 for a job whose node was lost: a placeholder, since nobody exited."""
    for evidence in ([queue("NODE_FAIL", "0:1"), LATE], [GONE, account("NODE_FAIL", "1:0")]):
        assert short(verdict_on(*evidence)) == ("NODE_FAIL", "?", "NodeDown")


def test_a_record_that_excludes_the_time_limit() -> None:
    """It failed by itself, and nobody signalled it, long before its limit: the scheduler's TIMEOUT is not its cause."""
    early = ended(5, time_limit_s=120.0)
    verdict = verdict_on(early, GONE, account("TIMEOUT", "0:0", "5:0"))
    assert short(verdict) == ("FAILED", "5:0", "NonZeroExitCode")
    assert any("the scheduler says TIMEOUT" in warning for warning in verdict.warnings)
    for record in (replace(early, got=(15,)), replace(early, elapsed_s=120.0), replace(early, time_limit_s=None)):
        assert verdict_on(record, GONE, account("TIMEOUT", "0:0", "5:0")).state is State.TIMEOUT


def test_the_witnesss_time_limit_without_its_record() -> None:
    """Slurm's limit is in whole minutes: the witness ended it before, and accounting saw a signal alone."""
    said = replace(account("FAILED", "0:15", "0:15"), elapsed_s=61.0)
    assert short(verdict_on(GONE, said, rules=Rules(time_limit_s=60.0))) == ("TIMEOUT", "0:15", "TimeLimit")
    assert verdict_on(GONE, said, rules=Rules(time_limit_s=90.0)).state is State.FAILED
    assert verdict_on(GONE, said).state is State.FAILED


def test_cancelled_while_it_waited_is_settled_at_once() -> None:
    """It never ran: there is no record to wait for, and no exit."""
    waited = [
        TAKEN,
        QueueSaid(2.0, read_word("PENDING"), "Resources"),
        QueueSaid(3.0, read_word("CANCELLED"), exit="0:0"),
    ]
    verdict = judge_cluster(waited, PLAIN)
    assert verdict is not None
    assert (verdict.state, verdict.exit, verdict.source) == (State.CANCELLED, None, "queue")
    assert (
        judge_cluster([TAKEN, RUNNING, QueueSaid(3.0, read_word("CANCELLED"), exit="0:15", started_at=2.0)], PLAIN)
        is None
    )


def test_completed_in_the_queue_is_not_believed_alone() -> None:
    """A queue that says COMPLETED, and nobody who confirms it: UNVERIFIED, and a person may accept it."""
    said: list[Evidence] = [queue("COMPLETED", "0:0"), GONE, SILENT]
    assert short(verdict_on(*said)) == ("UNVERIFIED", "?", "None")
    verdict = verdict_on(*said, ACCEPTED)
    assert (verdict.state, verdict.verified, verdict.source) == (State.COMPLETED, False, "person")
    assert judge_cluster([TAKEN, RUNNING, queue("COMPLETED", "0:0"), GONE, LATE], PLAIN) is None


def test_an_exit_of_the_queue_goes_with_its_own_word() -> None:
    """A queue that said COMPLETED 0:0 of what accounting calls FAILED lends it no exit 0."""
    verdict = verdict_on(queue("COMPLETED", "0:0"), GONE, account("FAILED", "1:0", "1:0"))
    assert short(verdict) == ("FAILED", "?", "NonZeroExitCode")
    assert "1 or 129" in verdict.detail
    assert short(verdict_on(queue("FAILED", "129:0"), GONE, account("FAILED", "1:0", "1:0")))[1] == "129:0"


def test_nobody_said() -> None:
    """Neither after the long wait: UNVERIFIED with the sentence; `accept` and `settle.fallback` are the ways out."""
    verdict = verdict_on(GONE, SILENT)
    assert (*short(verdict), verdict.verified, verdict.detail) == ("UNVERIFIED", "?", "None", False, NOBODY_SAID)
    accepted = verdict_on(GONE, SILENT, ACCEPTED)
    assert (accepted.state, accepted.verified, accepted.source) == (State.COMPLETED, False, "person")
    refused = verdict_on(GONE, SILENT, replace(ACCEPTED, exit=ExitStatus(0, 9)))
    assert short(refused) == ("FAILED", "0:9", "RaisedSignal:9(Killed)")
    for said in ([GONE, SILENT], [queue("COMPLETED", "0:0"), GONE, SILENT]):
        fallback = verdict_on(*said, rules=Rules(fallback_completes=True))
        assert (*short(fallback), fallback.verified) == ("COMPLETED", "?", "None", False)
        assert "settle.fallback" in fallback.warnings[0]


def test_record_beats_a_persons_word() -> None:
    """A person's word counts only where nobody saw the end."""
    assert short(verdict_on(GONE, SILENT, ACCEPTED, ended(3)))[:2] == ("FAILED", "3:0")


def test_never_seen() -> None:
    """Taken, and no record anywhere: FAILED with the sentence; one that is found after all is judged as found."""
    verdict = judge_cluster([TAKEN, NEVER], PLAIN)
    assert verdict is not None
    assert (verdict.state, verdict.exit, verdict.detail) == (State.FAILED, None, NO_RECORD)
    found = judge_cluster([TAKEN, NEVER, CLEAN, GONE], PLAIN)
    assert found is not None
    assert found.state is State.COMPLETED


def test_a_deadline_that_can_not_be_kept() -> None:
    """Since 23.02 sbatch refuses it: it is DEADLINE, as where the queue says so, and not a failure to launch."""
    verdict = judge_cluster([DeadlinePassed(1.0, "Requested time limit is invalid")], PLAIN)
    assert verdict is not None
    assert short(verdict) == ("DEADLINE", "?", "DeadLine")
    assert "Requested time limit is invalid" in verdict.detail


def test_never_ran() -> None:
    """Refused by Slurm, or cancelled before Slurm took it: it never ran, and has no exit."""
    refused = judge_cluster([Refused(1.0, "invalid partition specified: nope")], PLAIN)
    assert refused is not None
    assert (refused.state, refused.exit, refused.reason) == (State.FAILED, None, "JobLaunchFailure")
    assert refused.detail == "invalid partition specified: nope"
    cancelled = judge_cluster([HeldBack(1.0, "x", "x"), CancelledBefore(2.0, "alice")], PLAIN)
    assert cancelled is not None
    assert short(cancelled) == ("CANCELLED", "?", "None")
    for said in (Refused(1.0, "x"), CancelledBefore(1.0, "x")):
        assert judge_cluster([TAKEN, RUNNING, said], PLAIN) is None, "what was seen did run"


@pytest.mark.parametrize("word", ["QUARANTINED", "COMPLETED?", "completed", ""])
def test_unknown_word(word: str) -> None:
    """A word that nobody knows is quoted and decides nothing; a record beside it still says how it ended."""
    said = replace(account("COMPLETED", "0:0", "0:0"), word=read_word(word))
    verdict = verdict_on(GONE, said, SILENT)
    assert (verdict.state, verdict.exit, verdict.verified) == (State.UNVERIFIED, None, False)
    assert repr(word) in verdict.detail
    failed = verdict_on(ended(3), GONE, said, SILENT)
    assert short(failed)[:2] == ("FAILED", "3:0")
    assert repr(word) in failed.warnings[0]
    clean = verdict_on(CLEAN, GONE, said)
    assert (clean.state, clean.source) == (State.COMPLETED, "witness")
    assert repr(word) in clean.warnings[0]


def test_killed_for_memory_and_forgiven() -> None:
    """`oom: warn` and exit 0: COMPLETED with one warning, whoever saw the kill."""
    rules = Rules(oom_warns=True)
    for record in (ended(0, 0, oom_kills=1), ended(0, 0, watch=MemoryWatch.NONE)):
        verdict = verdict_on(record, queue("OUT_OF_MEMORY", "0:125"), rules=rules)
        assert (verdict.state, len(verdict.warnings)) == (State.COMPLETED, 1)
    assert verdict_on(ended(1), queue("OUT_OF_MEMORY", "0:125"), rules=rules).state is State.OUT_OF_MEMORY


def test_two_records_that_differ() -> None:
    """The first counts, with a warning."""
    verdict = verdict_on(ended(3), ended(4), queue("FAILED", "3:0"))
    assert short(verdict)[:2] == ("FAILED", "3:0")
    assert "two records" in verdict.warnings[0]


def test_listed_again_is_not_gone() -> None:
    """Gone from one answer and back in the next, as after a restart of the controller: it runs."""
    assert judge_cluster([TAKEN, RUNNING, GONE, RUNNING, CLEAN], PLAIN) is None
    assert judge_cluster([TAKEN, RUNNING, GONE, RUNNING, CLEAN, GONE], PLAIN) is not None


# ---- for any evidence --------------------------------------------------------------------------------

exits = st.builds(ExitStatus, st.integers(0, 255)) | st.builds(ExitStatus, st.just(0), st.integers(1, 64))
acts = st.lists(st.builds(Act, st.sampled_from(ActKind), st.just(2.0), st.just(15)), max_size=2).map(tuple)
records = st.builds(
    replace, st.just(CLEAN), exit=exits, acts=acts, oom_kills=st.integers(0, 1),
    got=st.sampled_from([(), (15,)]), watch=st.sampled_from(MemoryWatch),
) | st.just(CLEAN)  # fmt: skip
words = st.sampled_from([*sorted(ENDS), *sorted(UNSETTLED), "CANCELLED by 0", "QUARANTINED", "", "completed"]).map(
    read_word
)
exit_texts = st.sampled_from(["0:0", "1:0", "9:0", "0:15", "0:53", "0:125", "", "x", "255:0"])
queues = st.builds(QueueSaid, st.just(3.0), words, st.just(""), exit_texts, st.just(""), st.sampled_from([None, 2.0]))
accounts = st.builds(
    AccountingSaid, st.just(6.0), words, exit_texts, words, exit_texts, st.booleans(), st.sampled_from([None, 2.0]),
    st.sampled_from([None, 5.0]),
)  # fmt: skip
steps = st.builds(
    replace, accounts, allocation=st.just("17"), allocation_word=words,
    allocation_ended_at=st.sampled_from([None, 4.0, 5.0, 7.0, 60.0]), is_cancelled=st.booleans(),
)  # fmt: skip
waits = st.sampled_from([TAKEN, GONE, LATE, SILENT, DISABLED, NEVER, Refused(1.0, "x"), CancelledBefore(1.0, "x")])
evidences = st.lists(records | queues | accounts | waits, max_size=8) | st.lists(
    records | queues | steps | waits, max_size=8
)
rules_any = st.builds(Rules, st.sampled_from([(), (0,)]), st.booleans())


def is_end_of_script(said: Evidence) -> bool:
    return isinstance(said, WitnessRecord) and said.exit is not None and said.exit.is_success


def is_settled_row(said: Evidence) -> bool:
    return isinstance(said, AccountingSaid) and said.word == read_word("COMPLETED") and said.ended_at is not None


@settings(max_examples=500)
@given(evidences, rules_any)
def test_no_success_without_a_source(evidence: list[Evidence], rules: Rules) -> None:
    """COMPLETED is attested: by a record of exit 0 of something that is over, or by a settled row of accounting."""
    verdict = judge_cluster(evidence, rules)
    if verdict is None or verdict.state is not State.COMPLETED:
        return
    assert verdict.verified
    assert verdict.exit == ExitStatus()
    if verdict.source == "witness":
        assert any(is_end_of_script(said) for said in evidence)
        over = (LeftQueue, NobodySaid, AccountingSaid)
        assert any(
            isinstance(said, over) or (isinstance(said, QueueSaid) and said.word.state.is_end) for said in evidence
        )
    else:
        assert verdict.source == "accounting"
        assert any(is_settled_row(said) for said in evidence)


@settings(max_examples=500)
@given(evidences, st.lists(queues | accounts | steps | waits, max_size=4))
def test_failure_that_the_witness_saw_stays(before: list[Evidence], after: list[Evidence]) -> None:
    """Once its record says how it failed, nothing that anybody says later makes it a success."""
    first = next((said for said in before if isinstance(said, WitnessRecord)), None)
    verdict = judge_cluster(before, PLAIN)
    if first is None or first.exit is None or first.exit.is_success or verdict is None:
        return
    later = judge_cluster([*before, *after], PLAIN)
    assert later is None or later.state is not State.COMPLETED


@settings(max_examples=500)
@given(evidences, records)
def test_turning_into_success_shows_the_contradiction(evidence: list[Evidence], record: WitnessRecord) -> None:
    """A failure by the scheduler's word that a late record of exit 0 overturns says what the scheduler said."""
    before = judge_cluster(evidence, PLAIN)
    after = judge_cluster([*evidence, record], PLAIN)
    if before is None or after is None or before.state is not State.FAILED or after.state is not State.COMPLETED:
        return
    if before.source in ("queue", "accounting") and before.exit is not None:
        assert after.warnings


@settings(max_examples=500)
@given(st.lists(records | waits, max_size=4), st.text(max_size=12), st.booleans())
def test_unknown_words_never_settle_as_success(evidence: list[Evidence], word: str, is_account: bool) -> None:
    """Whatever word it is: without a record of exit 0, one that nobody knows is no success."""
    if word.split(" ")[0].rstrip("+") in ENDS | UNSETTLED:
        return
    said = replace(account("x", "0:0", "0:0"), word=read_word(word)) if is_account else queue(word, "0:0")
    verdict = judge_cluster([*evidence, said], PLAIN)
    if verdict is not None and verdict.state is State.COMPLETED:
        assert verdict.source == "witness"
        assert any(is_end_of_script(one) for one in evidence)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(sorted(UNSETTLED)), min_size=1, max_size=5), st.none() | records)
def test_no_verdict_while_the_queue_has_it(seen: list[str], record: WitnessRecord | None) -> None:
    """As long as the queue says nothing but that it waits or runs, there is no verdict, whatever the record says."""
    evidence: list[Evidence] = [TAKEN, *(queue(word) for word in seen)]
    assert judge_cluster(evidence if record is None else [*evidence, record], PLAIN) is None


@settings(max_examples=300)
@given(records, st.sampled_from(sorted(CAUSES)))
def test_cause_of_the_scheduler_is_never_success(record: WitnessRecord, word: str) -> None:
    """A trapped end is no success: with the scheduler's cause, exit 0 is not COMPLETED."""
    assert verdict_on(record, queue(word, "0:0")).state is not State.COMPLETED


def test_jobs_that_could_not_be_added_make_a_completion_none() -> None:
    """As on one machine."""
    verdict = verdict_on(ended(), GONE, GeneratedRead(9.0, "no jobs"))
    assert short(verdict) == ("FAILED", "0:0", "GeneratedJobs")
    assert verdict.detail == "no jobs"


@pytest.mark.parametrize(
    "evidence", [(GONE, account("TIMEOUT", "0:0", "0:15")), (ended(0, 15), queue("TIMEOUT", "0:15"))]
)
def test_a_deadline_while_it_ran_is_the_reason(evidence: tuple[Evidence, ...]) -> None:
    """Slurm calls a running job past its deadline TIMEOUT, as one past its own limit."""
    for deadline_at, reason in ((30.0, "DeadLine"), (900.0, "TimeLimit")):
        rules = Rules(time_limit_s=600.0, deadline_at=deadline_at)
        assert short(verdict_on(*evidence, rules=rules)) == ("TIMEOUT", "0:15", reason)
