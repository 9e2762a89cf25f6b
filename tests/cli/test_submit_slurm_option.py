"""`--slurm-option`: what is passed to sbatch, and what would take a job from Aver's sight."""

from __future__ import annotations

import pytest

from aver.cli.submission import on_engine
from aver.errors import UsageError
from aver.model.job import Argv, FlowSpec, JobSpec, Origin, Submission

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
