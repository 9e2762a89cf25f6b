"""`aver timeline`: each transition with its evidence, through all attempts."""

from __future__ import annotations

import json
from pathlib import Path

from aver.model import events as ev
from aver.model.codec import dumps, encode
from aver.model.evidence import Verdict
from aver.model.exit import ExitStatus
from aver.model.job import Allocation, Request
from aver.model.record import replace
from aver.model.states import State
from aver.render.timeline import Told, in_order, tell, transitions
from past_runs import Call, attempt


def test_all_attempts_with_states_and_words(past: Path, call: Call) -> None:
    """Both attempts of the job: the state that each line led to, and the witness's own words below."""
    status, out, _ = call("timeline", "5")
    assert status == 0
    states = [line.split()[3 if "#" in line else 2] for line in out.splitlines() if line.startswith("2023-")]
    assert states == [
        "PENDING", "-", "RUNNING", "-", "OUT_OF_MEMORY", "PENDING", "-", "RUNNING", "-", "OUT_OF_MEMORY",
    ]  # fmt: skip
    assert out.count('"oom": 1') == 2


def test_the_document_has_the_same(past: Path, call: Call) -> None:
    """Times are unix seconds; a line that led to no other state has null."""
    document = json.loads(call("timeline", "5", "--json")[1])
    assert document["kind"] == "timeline"
    last = document["transitions"][-1]
    assert (last["attempt"], last["state"], last["source"]) == (2, "OUT_OF_MEMORY", "judge")
    assert document["transitions"][1]["state"] is None
    assert document["job"]["state"] == "OUT_OF_MEMORY"


def test_a_verdict_without_a_reason_names_none(past: Path, call: Call) -> None:
    """A completed job has no reason, and no word stands for it."""
    assert call("timeline", "1/prep")[1].rstrip().endswith("verdict: COMPLETED 0:0")


def test_a_skipped_job_has_a_story_too(past: Path, call: Call) -> None:
    """Submitted, then skipped."""
    document = json.loads(call("timeline", "1/eval", "--json")[1])
    assert [one["state"] for one in document["transitions"]] == ["PENDING", "SKIPPED"]


def test_a_checkpoint_that_is_continued_says_so() -> None:
    """The job is PENDING for the reason that its attempt's verdict has: the event does not repeat it."""
    verdict = Verdict(State.CHECKPOINTED, ExitStatus(), "Checkpoint", True, "witness")
    event = ev.Observed(
        9.0, 1, 2, 1, "sacct", "COMPLETED", State.CHECKPOINTED, "Checkpoint", verdict, job_state=State.PENDING
    )
    last = list(tell(event, 2))[-1].what
    assert last == "PENDING (Checkpoint): it was checkpointed, and will be continued"


def test_a_peak_that_nobody_sampled_is_the_kernels() -> None:
    """A process that ended at once was never sampled: 0 bytes are not what it used, the kernel counted more."""
    *_, ended = attempt(1, 2, 1, 0.0, 0.0, 11, Request(), peak=0)
    told = [one.what for one in tell(ended, 2) if one.source == "witness"]
    peak = "peak memory 1.0 MiB (its largest process, resident)"
    assert told == [f"ended with signal 11 (SIGSEGV) after 0.0 s; {peak}"]


def test_an_end_that_is_the_first_word_of_the_start_tells_both() -> None:
    """As of a job that was over before anybody heard of it: the same story as of a longer one."""
    *_, ended = attempt(1, 2, 1, 5.0, 1.0, 0, Request())
    alone = replace(ended, is_start=True)
    lines = [(one.told.what.split(",")[0].split(";")[0], one.state) for one in transitions([alone], 2)]
    assert lines == [
        ("started as process 11", State.RUNNING),
        ("ended with exit code 0 after 1.0 s", None),
        ("verdict: COMPLETED 0:0", State.COMPLETED),
    ]


def test_what_never_began_has_no_exit() -> None:
    """`-` is what there is none of, `?` what nobody knows: in a verdict's line as in every table."""
    verdict = Verdict(State.CANCELLED, None, "None", True, "queue")
    for usage, sign in ((None, "-"), (ev.Usage(5.0), "?")):
        event = ev.Observed(9.0, 1, 2, 1, "squeue", "CANCELLED", State.CANCELLED, "None", verdict, usage)
        assert list(tell(event, 2))[-1].what == f"verdict: CANCELLED {sign}"


def test_a_wish_for_allocations_is_told_as_it_was_typed() -> None:
    """The words of sbatch, and how many."""
    event = ev.PersonAsked(9.0, 1, None, "ann", "allocate", dumps(encode(Allocation(("-N", "2"), count=3))))
    assert [one.what for one in tell(event, 2)] == ["ann asked for 3 more allocations: -N 2"]


def test_what_a_witness_tells_late_stands_where_it_happened() -> None:
    """An act of a record comes before what was told after it; another attempt's lines are not passed."""
    told = [
        Told(1.0, "witness", "started", 1),
        Told(5.0, "coordinator", "step 0 ended", 1),
        Told(3.0, "witness", "warned", 1),
    ]
    assert [one.what for one in in_order(told)] == ["started", "warned", "step 0 ended"]
    later = [Told(9.0, "coordinator", "attempt 1", 1), Told(3.0, "witness", "started", 2)]
    assert [one.what for one in in_order(later)] == ["attempt 1", "started"]
