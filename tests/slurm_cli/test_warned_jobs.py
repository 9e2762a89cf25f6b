"""A completion with a warning: Slurm's commands say so as well."""

from __future__ import annotations

import json

from queue_past import Call, Past

from aver.model.states import State

SAID = "the kernel killed 2 processes for the memory limit of a cgroup that the job itself made"


def test_every_command_shows_the_warning(empty_past: Past, call: Call) -> None:
    """In SystemComment, and beside a table on stderr; a job without a warning says nothing."""
    empty_past.commit(*empty_past.single(1, "warned", 0, inner=2), *empty_past.single(2, "plain", 0))
    assert f"SystemComment={SAID}" in call("scontrol", "show", "job", "1").out
    assert "SystemComment" not in call("scontrol", "show", "job", "2").out
    assert f"1|COMPLETED|{SAID}" in call("sacct", "-X", "-n", "-P", "-j", "1", "-o", "JobID,State,SystemComment").out
    for command, words in (("sacct", ("-j", "1,2")), ("squeue", ("-t", "all"))):
        assert call(command, *words).err == f"{command}: warning: job 1: {SAID}\n"
    assert SAID in call("squeue", "-t", "all", "-j", "1", "-O", "system_comment:100").out
    (job,) = json.loads(call("squeue", "-t", "all", "-j", "1", "--json").out)["jobs"]
    assert job["system_comment"] == SAID


def test_every_command_shows_that_a_step_was_out_of_memory(empty_past: Past, call: Call) -> None:
    """Its job is COMPLETED, as in Slurm; without a word beside it the lost work would look like done."""
    submitted, *life, moved = empty_past.single(1, "job", 0)
    killed = empty_past.step(1, 1, 0, "eat", 9, state=State.OUT_OF_MEMORY)
    empty_past.commit(submitted, *life[:-1], *killed, life[-1], moved)
    said = "step 1.0 (eat) was out of memory"
    assert f"SystemComment={said}" in call("scontrol", "show", "job", "1").out
    assert f"1|COMPLETED|{said}" in call("sacct", "-X", "-n", "-P", "-j", "1", "-o", "JobID,State,SystemComment").out
    for command, words in (("sacct", ("-j", "1")), ("squeue", ("-t", "all"))):
        assert call(command, *words).err == f"{command}: warning: job 1: {said}\n"
    (job,) = json.loads(call("squeue", "-t", "all", "-j", "1", "--json").out)["jobs"]
    assert job["system_comment"] == said
