"""Placeholders: what two runs print is the same text."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.conformance.normal_form import Names, echoes, messages


@pytest.fixture
def names() -> Names:
    found = Names(frozenset({"n1", "host"}), Path("/tmp/x"), "c0ffee")
    found.learn_id("137", "{a}")
    found.learn_id("3", "{b}")
    found.learn("c0ffee.exit.1.a", "NAME")
    return found


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("slurmstepd: error: *** JOB 137 ON n1 CANCELLED", "slurmstepd: error: *** JOB {a} ON NODE CANCELLED"),
        ("slurmstepd: error: *** STEP 137.0 ON n1 CANCELLED", "slurmstepd: error: *** STEP {a}.0 ON NODE CANCELLED"),
        ("[2026-11-17T12:33:27.754] error: *** JOB 137 ON n1 X", "slurmstepd: error: *** JOB {a} ON NODE X"),
        ("srun: Force Terminated StepId=137.0", "srun: Force Terminated StepId={a}.0"),
        ("event(s) in StepId=137.batch.", "event(s) in StepId={a}.batch."),
        ("Submitted batch job 3", "Submitted batch job {b}"),
        ("Kill job error on job id 137: no", "Kill job error on job id {a}: no"),
        ("Kill job error on job step id 137: no", "Kill job error on job step id {a}: no"),
        ("Requested operation is disabled for job 3", "Requested operation is disabled for job {b}"),
        ("Unable to create step for job 1370: no", "Unable to create step for job ID: no"),
        ("JobId=99 JobName=c0ffee.exit.1.a /tmp/x/out", "JobId=ID JobName=NAME DIR/out"),
    ],
)
def test_ids_and_names_are_replaced(names: Names, text: str, plain: str) -> None:
    """Known jobs have the case's name for them, other jobs are `ID`."""
    assert names.plain(text) == plain


@pytest.mark.parametrize("text", ["child=137", "3:00 JobHeldUser PD", "Only allocated 1 nodes asked for 3", "a3-137"])
def test_a_number_that_is_no_id_stays(names: Names, text: str) -> None:
    """A job whose id happens to be an exit code, a time or a count changes nothing: ids begin with 1 in a new lab."""
    assert names.plain(text) == text


def test_echoes_and_messages(names: Names) -> None:
    """The script's own lines in their order; Slurm's lines sorted and once, without those of the moment."""
    text = "srun=137\nsrun: b\n1: srun: a\nsrun: b\nnoise\nsrun: job 3 queued and waiting for resources\nrestart=3\n"
    assert echoes(text, names) == ["srun=137", "restart=3"]
    assert messages(text, names) == ["srun: a", "srun: b"]
