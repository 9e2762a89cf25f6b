"""The verdict on an attempt that ran under a scheduler: two sources, and none of them is believed alone too early.

Pure. The witness's record has the wait status, whole; the scheduler has the cause (its time limit, a cancellation,
a lost node). OUTCOMES 6 has the rules; docs/design/verdicts.md has them in words. What always holds: no COMPLETED
without the record of a clean exit 0, or accounting's word with its end set; a word that nobody knows is quoted and
settles nothing as a success.
"""

from __future__ import annotations

from aver.judge.files import with_files
from aver.judge.local import is_unseen, judge_record, judge_unstarted, late_reason, with_generated
from aver.model import reasons
from aver.model.evidence import (
    Accepted,
    AccountingSaid,
    ActKind,
    CancelledBefore,
    DeadlinePassed,
    Evidence,
    GeneratedRead,
    LeftQueue,
    NeverSeen,
    NobodySaid,
    QueueSaid,
    RecordIsLate,
    Refused,
    Rules,
    SchedulerWord,
    StartedAgain,
    Taken,
    Verdict,
    WitnessRecord,
)
from aver.model.exit import ExitStatus
from aver.model.record import Mutable, replace
from aver.model.states import SchedulerState, State

WITNESS = "witness"
QUEUE = "queue"
ACCOUNTING = "accounting"
COORDINATOR = "coordinator"
PERSON = "person"

CAUSES: dict[SchedulerState, tuple[State, str]] = {
    SchedulerState.OUT_OF_MEMORY: (State.OUT_OF_MEMORY, reasons.OUT_OF_MEMORY),
    SchedulerState.TIMEOUT: (State.TIMEOUT, reasons.TIME_LIMIT),
    SchedulerState.CANCELLED: (State.CANCELLED, reasons.NONE),
    SchedulerState.NODE_FAIL: (State.NODE_FAIL, reasons.NODE_DOWN),
    SchedulerState.BOOT_FAIL: (State.BOOT_FAIL, reasons.NODE_DOWN),
    SchedulerState.PREEMPTED: (State.PREEMPTED, reasons.PREEMPTED),
    SchedulerState.DEADLINE: (State.DEADLINE, reasons.DEADLINE),
}
OWN_ENDS = (SchedulerState.COMPLETED, SchedulerState.FAILED)  # the program's, and no cause of the scheduler's
LAUNCH_CUT_OFF = "1:0"
NOBODY_EXITED = (SchedulerState.NODE_FAIL, SchedulerState.BOOT_FAIL)  # their 0:1 is a placeholder
CANT_OPEN_OUTPUT = "0:53"
OUTPUT_OPENED_S = 2.0  # one that ran for so long had its output, and 53 is the signal that ended it
OUT_OF_MEMORY = "0:125"  # Slurm's own code: no signal
ENDING = (9, 15)  # what a scheduler ends tasks with
NOT_BELIEVED = 32  # from here on it may be the number of Slurm's own error: 4008, a credential revoked, is 0:40
NOBODY_SAID = "left the queue, and neither its witness nor accounting said how it ended; exit code unknown"
SRUN_ENDS_S = 5.0  # what ends an allocation may end its srun first
LOST_WITH_ALLOCATION = SchedulerWord(  # its executor was lost: the cluster's loss, not the program's
    SchedulerState.NODE_FAIL, "NODE_FAIL"
)
CANCELLED_WORD = SchedulerWord(SchedulerState.CANCELLED, "CANCELLED")
FAILED_WORD = SchedulerWord(SchedulerState.FAILED, "FAILED")
NO_RECORD = "sbatch accepted the job but the scheduler has no record of it"


class Heard(Mutable):
    """The evidence of one attempt, by source."""

    record: WitnessRecord | None = None
    records_differ: bool = False
    queue: QueueSaid | None = None  # the last thing that it said
    account: AccountingSaid | None = None
    has_run: bool = False  # the queue once said when it began
    taken: bool = False
    is_gone: bool = False
    is_late: bool = False
    nobody: NobodySaid | None = None
    never: NeverSeen | None = None
    refused: Refused | CancelledBefore | DeadlinePassed | None = None
    accepted: Accepted | None = None

    @property
    def words(self) -> list[SchedulerWord]:
        """What accounting and the queue say of its end, in this order; none while it has not ended."""
        said = [one.word for one in (self.account, self.queue) if one is not None and one.word is not None]
        return [word for word in said if not word.state.is_present]

    @property
    def word(self) -> SchedulerState | None:
        """How the scheduler says that it ended, by a word that is known if there is one; None while it does not say."""
        states = [word.state for word in self.words]
        return next((state for state in states if state.is_end), states[0] if states else None)

    @property
    def was_seen(self) -> bool:
        return self.taken or self.queue is not None or self.record is not None


def sort_out(evidence: list[Evidence]) -> Heard:
    heard = Heard()
    for said in evidence:
        match said:
            case WitnessRecord():
                heard.records_differ = heard.records_differ or (heard.record is not None and heard.record != said)
                heard.record = heard.record or said
            case QueueSaid():
                heard.queue = said
                heard.has_run = heard.has_run or said.started_at is not None
                heard.is_gone = False
            case LeftQueue() | StartedAgain():
                heard.is_gone = True
            case AccountingSaid(ended_at=float() | int()):  # a row without an end says nothing
                heard.account = said
            case RecordIsLate():
                heard.is_late = True
            case NobodySaid():
                heard.nobody = said
            case NeverSeen():
                heard.never = said
            case Refused() | CancelledBefore() | DeadlinePassed():
                heard.refused = said
            case Taken():
                heard.taken = True
            case Accepted():
                heard.accepted = said
            case _:
                pass  # the other kinds are of one machine's own engine
    if heard.account is not None and heard.account.allocation:
        heard.account = _of_step(heard.account, heard.record)
    return heard


def _of_step(said: AccountingSaid, record: WitnessRecord | None) -> AccountingSaid:
    """What accounting says of a step that was an attempt, in the words of a job.

    CANCELLED without a name is its word for every step that a signal ended, be it its own; and a step that ended with
    its allocation has the allocation's cause. A witness that got no signal saw nobody end it.
    """
    state = said.word.state if said.word is not None else None
    cause = said.allocation_word
    ended, over = said.ended_at, said.allocation_ended_at
    early_s = 0.0 if cause is not None and cause.state is SchedulerState.COMPLETED else SRUN_ENDS_S
    with_allocation = over is not None and ended is not None and ended >= over - early_s
    is_named = said.word is not None and bool(said.word.by) and not with_allocation  # srun cancels by its user's name
    if state in CAUSES and (state is not SchedulerState.CANCELLED or is_named):
        return said
    was_signalled = record is None or bool(record.got)
    never_ran = _never_ran(said, record, with_allocation)
    is_own = state in OWN_ENDS and record is None and not never_ran
    if was_signalled and said.is_cancelled:
        word = CANCELLED_WORD
    elif record is None and said.word is None:
        word = LOST_WITH_ALLOCATION  # there never was a step
    elif was_signalled and with_allocation and cause is not None and cause.state in CAUSES and not is_own:
        word = cause
    elif was_signalled and with_allocation and (never_ran or state not in OWN_ENDS):
        word = LOST_WITH_ALLOCATION
    else:
        word = said.word if said.word is not None and state in OWN_ENDS else FAILED_WORD
    if never_ran:  # its exit is the number of Slurm's error
        said = replace(said, exit="", batch_exit="")
    return replace(said, word=word, batch_word=word if said.batch_word is not None else None)


def _never_ran(said: AccountingSaid, record: WitnessRecord | None, with_allocation: bool) -> bool:
    """Whether the step was being launched when its allocation was lost.

    Slurm 25.11 calls it FAILED 1:0; no process of it was ever measured, and no witness left a record.
    """
    failed = said.word is not None and said.word.state is SchedulerState.FAILED and said.exit == LAUNCH_CUT_OFF
    lost = said.allocation_word is not None and said.allocation_word.state is not SchedulerState.COMPLETED
    return failed and lost and with_allocation and record is None and said.maxrss_bytes is None


def is_open(state: State, exit_status: ExitStatus | None, verified: bool | None) -> bool:
    """Whether nobody said how it ended, so that late evidence settles it: also where settle.fallback counts it."""
    return state is State.UNVERIFIED or (state is State.COMPLETED and exit_status is None and not verified)


def judge_cluster(evidence: list[Evidence], rules: Rules) -> Verdict | None:
    """The verdict that the evidence supports, or None while it may still grow."""
    heard = sort_out(evidence)
    return with_generated(_with_outputs(_judge_end(heard, rules), heard, rules), evidence)


def judge_late(evidence: list[Evidence], rules: Rules) -> Verdict | None:
    """The verdict on an attempt that was settled since nobody said how it ended, by evidence that came after that.

    None: nobody says it still.
    """
    heard = sort_out(evidence)
    heard.taken = heard.is_gone = True
    heard.nobody = heard.nobody or NobodySaid(0.0, 0.0, "silent")
    verdict = with_generated(_with_outputs(_judge_end(heard, rules), heard, rules), evidence)
    return None if verdict is None or is_open(verdict.state, verdict.exit, verdict.verified) else verdict


def _with_outputs(verdict: Verdict | None, heard: Heard, rules: Rules) -> Verdict | None:
    """Without its witness's record nobody has looked at its outputs."""
    if verdict is None or heard.record is not None or not rules.must_write:
        return verdict
    return with_files(verdict, None, rules)


def _judge_end(heard: Heard, rules: Rules) -> Verdict | None:
    """How the attempt itself ended."""
    if heard.refused is not None and not heard.was_seen:
        return judge_unstarted(heard.refused)
    word = heard.word
    if heard.record is not None:
        return _with_record(heard, heard.record, word, rules)
    if word is not None and word.is_end:
        return _without_record(heard, word, rules)
    if heard.never is not None:
        text = heard.never.text or NO_RECORD
        return Verdict(State.FAILED, None, reasons.JOB_LAUNCH_FAILURE, True, ACCOUNTING, (), text)
    if heard.nobody is None:
        return None
    if heard.accepted is not None:
        return _accepted(heard.accepted)
    if word is not None:
        detail = f"{_unknown(heard)}; exit code unknown"
        return Verdict(State.UNVERIFIED, None, reasons.NONE, False, QUEUE, (), detail)
    return _nobody(rules)


def judge_cluster_acceptance(verdict: Verdict, accepted: Accepted, read: GeneratedRead) -> Verdict | None:
    """A person's word on an attempt on a cluster that has this verdict; None where a source said how it ended."""
    return with_generated(_accepted(accepted), [read]) if is_unseen(verdict.state, verdict.exit) else None


def judge_unseen_step(derived: str) -> Verdict | None:
    """The verdict on a step without any record, by the controller's DerivedExitCode; None: it says nothing sure."""
    detail = "its witness left no record; the controller says how it ended"
    if derived == OUT_OF_MEMORY:
        return Verdict(State.OUT_OF_MEMORY, None, reasons.OUT_OF_MEMORY, True, QUEUE, (), detail)
    exit_status = _parse(derived)
    if exit_status is None or exit_status.signal >= NOT_BELIEVED:
        return None
    if exit_status.signal in ENDING:
        return Verdict(State.CANCELLED, exit_status, reasons.NONE, True, QUEUE, (), detail)
    reason = reasons.raised_signal(exit_status.signal) if exit_status.signal else reasons.NON_ZERO_EXIT_CODE
    return Verdict(State.FAILED, exit_status, reason, True, QUEUE, (), detail)


def _nobody(rules: Rules) -> Verdict:
    if rules.fallback_completes:
        detail = "counted as completed by settle.fallback: nobody said how it ended; exit code unknown"
        return Verdict(State.COMPLETED, None, reasons.NONE, False, COORDINATOR, (detail,), detail)
    return Verdict(State.UNVERIFIED, None, reasons.NONE, False, COORDINATOR, (), NOBODY_SAID)


def _with_record(heard: Heard, record: WitnessRecord, word: SchedulerState | None, rules: Rules) -> Verdict | None:
    if not (
        heard.is_gone or (word is not None and word.is_end) or heard.account is not None or heard.nobody is not None
    ):
        return None  # a word of the queue that nobody knows may mean that it is still there
    if record.warned is None:  # what its tasks took for the warning was somebody else's signal
        rules = replace(rules, is_step_warned=False)
    alone = judge_record(record, rules)
    if heard.records_differ:
        warning = "its witness wrote two records that differ; the first one counts"
        alone = replace(alone, warnings=(*alone.warnings, warning))
    if word is None or not word.is_end:
        if is_clean(record) and word is None:
            return alone
        if not is_clean(record) and heard.nobody is None:
            return None
        text = f"{_unknown(heard)}: its witness alone says how it ended" if word is not None else ""
        if heard.nobody is not None and not text:
            text = f"accounting was {heard.nobody.accounting}: its witness alone says how it ended"
        return replace(alone, warnings=(*alone.warnings, text))
    verdict = alone
    if _excludes(record, word):
        text = f"the scheduler says {word}; its witness saw it end by itself with {record.exit}, before its time limit"
        return replace(alone, warnings=(*alone.warnings, text))
    if word in CAUSES and not _is_decided(record, alone, word):
        state, reason = _cause(heard, word, rules)
        forgiven = state is State.OUT_OF_MEMORY and rules.oom_warns and record.exit is not None
        if forgiven and record.exit is not None and record.exit.is_success:
            if record.oom_kills:
                return alone  # its witness saw that kill too, and warns of it
            text = "the scheduler killed a process of it for memory, and the script still exited 0 (oom: warn)"
            verdict = replace(alone, warnings=(*alone.warnings, text))
        else:
            verdict = Verdict(state, record.exit, reason, True, WITNESS, alone.warnings, _detail(heard, word))
    differing = _difference(heard, record, word)
    return replace(verdict, warnings=(*verdict.warnings, differing)) if differing else verdict


def is_clean(record: WitnessRecord) -> bool:
    """Exit 0, and nothing happened that the scheduler could know better about."""
    return (
        record.exit is not None
        and record.exit.is_success
        and not record.got
        and not record.acts
        and not record.oom_kills
        and record.watch.is_cgroup
    )


def _cause(heard: Heard, word: SchedulerState, rules: Rules) -> tuple[State, str]:
    """The state and reason of a word that names a cause. Slurm calls a running job past its deadline TIMEOUT."""
    state, reason = CAUSES[word]
    if state is not State.TIMEOUT:
        return state, reason
    said = (heard.record, heard.account, heard.queue)
    return state, late_reason(next((one.started_at for one in said if one and one.started_at), None), rules)


def _is_decided(record: WitnessRecord, alone: Verdict, word: SchedulerState) -> bool:
    """Whether the witness itself ended it, or saw the kernel kill it: then it knows the cause. Memory comes first."""
    if alone.state is State.OUT_OF_MEMORY or record.launch is not None:
        return True
    ended = any(act.kind in (ActKind.TIME, ActKind.JOB_TIME, ActKind.CANCEL) for act in record.acts)
    return ended and word is not SchedulerState.OUT_OF_MEMORY


def _excludes(record: WitnessRecord, word: SchedulerState) -> bool:
    """Whether the record rules out what the scheduler says: a failure of its own, unsignalled, before the limit."""
    return (
        word is SchedulerState.TIMEOUT
        and record.exit is not None
        and record.exit.code != 0
        and not record.got
        and not record.acts
        and record.time_limit_s is not None
        and record.elapsed_s - record.suspended_s < record.time_limit_s
    )


def _difference(heard: Heard, record: WitnessRecord, word: SchedulerState) -> str:
    """What the scheduler says otherwise, where it can't be explained by what it is known to lose."""
    if record.exit is None or word in CAUSES:
        return ""
    if (word is SchedulerState.COMPLETED) is not record.exit.is_success:
        return f"the scheduler says {word}; its witness saw it end with {record.exit}"
    said = [("the queue", heard.queue.exit, True)] if heard.queue is not None else []
    if heard.account is not None:
        account = heard.account
        said.insert(0, (ACCOUNTING, account.batch_exit or account.exit, account.has_whole_codes))
    for who, text, has_whole_codes in said:
        theirs = _parse(text)
        if theirs is None or (theirs.code, theirs.signal) == (record.exit.code, record.exit.signal):
            continue
        if not has_whole_codes and record.exit.code >= 128 and theirs.code == record.exit.code - 128:
            continue
        return f"{who} says {text}; its witness saw {record.exit}, which counts"
    return ""


def _unknown(heard: Heard) -> str:
    return f"the scheduler said {heard.words[0].text!r}, which nobody here knows"


def _without_record(heard: Heard, word: SchedulerState, rules: Rules) -> Verdict | None:
    """By the scheduler alone: the controller has whole codes, accounting may have lost 128."""
    account, queue = heard.account, heard.queue
    if account is None:
        if word is SchedulerState.COMPLETED and heard.nobody is None:
            return None  # a queue that says COMPLETED is not believed alone
        if word is SchedulerState.COMPLETED:
            return _accepted(heard.accepted) if heard.accepted is not None else _nobody(rules)
        never_ran = word is SchedulerState.CANCELLED and not heard.has_run  # there is no record to wait for
        if not (heard.is_late or never_ran) and heard.nobody is None:
            return None
    source = ACCOUNTING if account is not None else QUEUE
    exit_status, either = _exit_of(heard, word)
    detail = _detail(heard, word)
    if word in CAUSES:
        state, reason = _cause(heard, word, rules)
        if state is State.CANCELLED and exit_status is None and not detail and (heard.has_run or _has_started(heard)):
            detail = "cancelled after it had begun; exit code unknown"
        return Verdict(state, exit_status, reason, True, source, (), detail)
    said = (queue.exit if queue is not None else "") or (account.batch_exit or account.exit if account else "")
    elapsed_s = None if account is None else account.elapsed_s
    if said == CANT_OPEN_OUTPUT and (elapsed_s is None or elapsed_s < OUTPUT_OPENED_S):
        text = "Slurm could not open the job's output file (0:53)"
        return Verdict(State.FAILED, None, reasons.JOB_LAUNCH_FAILURE, True, source, (), text)
    if exit_status is not None and exit_status.signal in ENDING and _is_over_limit(elapsed_s, rules):
        text = f"it ran for {elapsed_s:g} s of {rules.time_limit_s:g} s; its witness left no record"
        return Verdict(State.TIMEOUT, exit_status, reasons.TIME_LIMIT, True, source, (), text)
    if word is SchedulerState.COMPLETED and exit_status is not None and exit_status.is_success:
        return Verdict(State.COMPLETED, exit_status, reasons.NONE, True, source, (), detail)
    if word is SchedulerState.COMPLETED and exit_status is None and not either:
        if heard.accepted is not None:
            return _accepted(heard.accepted)
        text = f"accounting says COMPLETED, and its exit code {said!r} can't be read; exit code unknown"
        return Verdict(State.UNVERIFIED, None, reasons.NONE, False, source, (), text)
    if either:
        detail = "; ".join(part for part in (detail, either) if part)
    if exit_status is not None and exit_status.signal:
        return Verdict(State.FAILED, exit_status, reasons.raised_signal(exit_status.signal), True, source, (), detail)
    return Verdict(State.FAILED, exit_status, reasons.NON_ZERO_EXIT_CODE, True, source, (), detail)


def _is_over_limit(elapsed_s: float | None, rules: Rules) -> bool:
    """Whether its own time limit passed, which its witness acts on before Slurm, whose limits are whole minutes."""
    return elapsed_s is not None and rules.time_limit_s is not None and elapsed_s >= rules.time_limit_s


def _exit_of(heard: Heard, word: SchedulerState) -> tuple[ExitStatus | None, str]:
    """Its exit status, or None and a sentence with the two that it may have been."""
    account, queue = heard.account, heard.queue
    if not _has_started(heard):
        return None, ""
    theirs = "" if queue is None or queue.word.state is not word or word in NOBODY_EXITED else queue.exit
    if (whole := _parse(theirs)) is not None:
        return whole, ""
    if account is None:
        return None, ""
    if word in CAUSES and not account.batch_exit:
        return None, ""  # the job's own row says 0:0 for these, whatever happened
    said = _parse(account.batch_exit or account.exit)
    if said is None or account.has_whole_codes:
        return said, ""
    own = account.batch_word or account.word
    is_failed = own is not None and own.state is SchedulerState.FAILED
    if said.is_success and is_failed:
        return ExitStatus(128), ""
    if said.code:
        return None, f"exit code {said.code} or {said.code + 128}: accounting takes 128 off"
    return said, ""


def _has_started(heard: Heard) -> bool:
    times = [one.started_at for one in (heard.account, heard.queue) if one is not None]
    return any(at is not None for at in times)


def _parse(text: str) -> ExitStatus | None:
    try:
        return ExitStatus.parse(text)
    except ValueError:
        return None  # also 0:125: out of memory is not a signal


def _detail(heard: Heard, word: SchedulerState) -> str:
    account = heard.account
    said = account.word if account is not None else heard.queue.word if heard.queue is not None else None
    over = account.allocation_word if account is not None else None
    if account is not None and over is not None and said in (over, LOST_WITH_ALLOCATION):
        return f"its allocation {account.allocation} ended: {over.text}"
    if word is SchedulerState.CANCELLED and said is not None and said.by:
        return f"cancelled by uid {said.by}, says accounting"
    return ""


def _accepted(accepted: Accepted) -> Verdict:
    detail = f"accepted as {accepted.exit} by {accepted.by}; nobody saw how it ended"
    if accepted.exit.is_success:
        return Verdict(State.COMPLETED, accepted.exit, reasons.NONE, False, PERSON, (), detail)
    word = reasons.raised_signal(accepted.exit.signal) if accepted.exit.signal else reasons.NON_ZERO_EXIT_CODE
    return Verdict(State.FAILED, accepted.exit, word, False, PERSON, (), detail)
