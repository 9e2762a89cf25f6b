"""`--slurm-option`: what is passed to sbatch, and what would take a job from Aver's sight."""

from __future__ import annotations

import pytest

from aver.cli.submission import leave_mails, on_engine
from aver.errors import UsageError
from aver.model.job import Argv, FlowSpec, JobSpec, NotifyOn, NotifyRule, Origin, Submission
from aver.model.record import replace

SUBMISSION = Submission(FlowSpec("a", (JobSpec("a", Argv(("true",))),)), Origin("me", 1, "here", "/", 0o22))


@pytest.mark.parametrize(
    ("word", "name"),
    [("--clusters=other", "--clusters"), ("-Mother", "-M"), ("--test-only", "--test-only"), ("-a1-3", "-a")],
)
def test_options_that_are_avers_own_are_refused(word: str, name: str) -> None:
    """Under another cluster, as an array, or only tested: Aver would not find its job again."""
    with pytest.raises(UsageError, match=f"{name} is Aver's own"):
        on_engine(SUBMISSION, "slurm", ("--partition=gpu", word))


def test_other_options_are_passed_on() -> None:
    """As they are; a word that is no option is refused."""
    words = ("--partition=gpu", "-p", "-pgpu", "--mem-per-cpu=1G", "--array-inx")
    assert on_engine(SUBMISSION, "slurm", words).flow.jobs[0].slurm_options == words
    with pytest.raises(UsageError, match="not an option of sbatch"):
        on_engine(SUBMISSION, "slurm", ("gpu",))


@pytest.mark.parametrize(("engine", "sends"), [("local", True), ("allocation", True), ("slurm", False)])
def test_who_sends_the_mails_of_a_batch_script(engine: str, sends: bool) -> None:
    """sbatch gets --mail-type of a job of its own; of one in an allocation Slurm knows nothing, and Aver sends them."""
    script = replace(SUBMISSION.flow, is_single=True, notify=(NotifyRule(NotifyOn.SETTLED, (), to="mail:me"),))
    sent = leave_mails(on_engine(replace(SUBMISSION, flow=script), engine))
    assert bool(sent.flow.notify) is sends
