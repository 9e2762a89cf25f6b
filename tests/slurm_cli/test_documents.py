"""--json and --yaml: the shape of a current Slurm, and the same facts as the text."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import yaml
from queue_past import Call, Past
from slurm_commands import Slurm

from aver.slurm_cli.documents import exit_code, number

PROGRAMS = (("squeue",), ("sacct", "-S", "now-1hour"), ("sinfo",), ("scontrol", "show", "jobs"))


def document(call: Call, *argv: str) -> dict[str, Any]:
    reply = call(*argv, "--json")
    assert reply.status == 0, reply
    found: dict[str, Any] = json.loads(reply.out)
    return found


@pytest.mark.parametrize("argv", PROGRAMS, ids=" ".join)
def test_a_document_says_which_shape_it_has(past: Past, call: Call, argv: tuple[str, ...]) -> None:
    """The parser's version, the release of that shape, the cluster, and empty lists of errors and warnings."""
    found = document(call, *argv)
    assert found["errors"] == found["warnings"] == []
    assert found["meta"]["plugin"]["data_parser"] == "data_parser/v0.0.44"
    assert found["meta"]["slurm"]["version"] == {"major": "25", "minor": "11", "micro": "6"}
    assert found["meta"]["slurm"]["cluster"] == "aver"
    assert found["meta"]["command"][0] == argv[0]


@pytest.mark.parametrize("argv", PROGRAMS, ids=" ".join)
def test_yaml_is_the_same_document(past: Past, call: Call, argv: tuple[str, ...]) -> None:
    """Written as blocks, read back as the same values."""
    key = "sinfo" if argv[0] == "sinfo" else "jobs"
    in_yaml, in_json = yaml.safe_load(call(*argv, "--yaml").out)[key], document(call, *argv)[key]
    if argv[0] == "sinfo":  # load and free memory change while we look
        in_yaml, in_json = in_yaml[0]["partition"], in_json[0]["partition"]
    if argv[0] == "sacct":  # and how long a job has run
        in_yaml, in_json = ([job for job in jobs if job["time"]["end"]] for jobs in (in_yaml, in_json))
        assert in_json
    assert in_yaml == in_json


def test_numbers_and_exits() -> None:
    """Unknown and not there yet are not set; a code is whole; a signal is named; 125 is Slurm's own."""
    assert number(None) == {"set": False, "infinite": False, "number": 0}
    assert number(None, is_infinite=True) == {"set": False, "infinite": True, "number": 0}
    assert exit_code("137:0")["status"] == ["ERROR"]
    assert exit_code("137:0")["return_code"] == {"set": True, "infinite": False, "number": 137}
    assert exit_code("0:9")["status"] == ["SIGNALED"]
    assert exit_code("0:9")["signal"] == {"id": {"set": True, "infinite": False, "number": 9}, "name": "KILL"}
    assert exit_code("0:11", 0x8B)["status"] == ["CORE_DUMPED"]
    assert exit_code("0:125")["signal"]["name"] == "125"
    assert exit_code("?")["status"] == ["INVALID"]
    assert exit_code("0:0", has_ended=False)["status"] == ["PENDING"]
    assert exit_code("?")["return_code"]["set"] is False


def test_squeue_lists_what_ended_not_long_ago_too(past: Past, call: Call) -> None:
    """As Slurm's, within MinJobAge; -t, -j and other filters choose."""
    states = {job["job_id"]: job["job_state"] for job in document(call, "squeue")["jobs"]}
    assert states[31] == ["RUNNING"]
    assert states[32] == ["FAILED"]
    assert [job["job_id"] for job in document(call, "squeue", "-j", "32")["jobs"]] == [32]
    running = document(call, "squeue", "-t", "RUNNING")["jobs"]
    assert {tuple(job["job_state"]) for job in running} == {("RUNNING",)}


def test_squeue_and_scontrol_have_one_document(past: Past, call: Call) -> None:
    """`scontrol show job N --json` is the job of `squeue --json`."""
    assert document(call, "scontrol", "show", "job", "32")["jobs"] == document(call, "squeue", "-j", "32")["jobs"]


def test_a_document_says_what_the_text_says(past: Past, call: Call) -> None:
    """State, reason, exit, name, partition, times of every job, field by field."""
    names = "jobid,state,reason,exitcode,jobname,partition,elapsedraw,user,uid"
    rows = [line.split("|") for line in call("sacct", "-nPX", "-S", "now-1hour", "-o", names).lines]
    found = document(call, "sacct", "-X", "-S", "now-1hour")["jobs"]
    assert len(found) == len(rows)
    for job, row in zip(found, rows, strict=True):
        assert row[0].partition("_")[0] in (str(job["job_id"]), str(job["array"]["job_id"]))
        assert [row[1].partition(" ")[0]] == job["state"]["current"]
        assert row[2].partition(":")[0] == job["state"]["reason"]
        assert (row[4], row[5], row[7]) == (job["name"], job["partition"], job["user"])
        assert int(row[6]) == pytest.approx(job["time"]["elapsed"], abs=2)
        code, _, signal = row[3].partition(":")
        if job["exit_code"]["status"] == ["PENDING"]:
            assert job["state"]["current"][0] in ("PENDING", "RUNNING")
        elif signal != "0":
            assert job["exit_code"]["signal"]["id"]["number"] == int(signal)
        else:
            assert job["exit_code"]["return_code"]["number"] == int(code)


def test_who_cancelled_and_the_steps_are_there(past: Past, call: Call) -> None:
    """The person by name, the state as one word, and a step for the script and each srun."""
    job = document(call, "sacct", "-j", "37")["jobs"][0]
    assert job["state"]["current"] == ["CANCELLED"]
    import pwd

    assert job["kill_request_user"] == pwd.getpwuid(os.getuid()).pw_name
    assert [step["step"]["id"] for step in job["steps"]] == ["37.batch"]
    assert job["steps"][0]["exit_code"]["signal"]["name"] == "TERM"


def test_other_shapes_are_refused(past: Past, call: Call) -> None:
    """Another version, numbers in another form (`+complex`) and other entities are one line and exit 1."""
    served = "v0.0.40, v0.0.41, v0.0.42, v0.0.43, v0.0.44, v0.0.45"
    for argv in (("squeue",), ("sacct",), ("sinfo",), ("scontrol", "show", "job", "31")):
        for asked in ("v0.0.99", "v0.0.44+complex"):
            reply = call(*argv, f"--json={asked}")
            assert reply.status == 1
            assert reply.err == f"{argv[0]}: error: --json={asked} is not supported by aver: {served} are\n"
    assert call("scontrol", "show", "config", "--json").status == 1


def test_exit_137_stays_137_everywhere(slurm: Slurm) -> None:
    """A real job with a step of its own: whole in squeue, sacct and scontrol, and in the step."""
    job = slurm.submit("--wrap", "srun sh -c 'exit 200'; exit 137", "-o", "out")
    slurm.until_settled(job)
    for argv in (("squeue", "-j", str(job)), ("sacct", "-j", str(job)), ("scontrol", "show", "job", str(job))):
        said = slurm(*argv, "--json")
        found = json.loads(said.out)["jobs"][0]
        assert found["exit_code"]["return_code"] == {"set": True, "infinite": False, "number": 137}
        assert found["derived_exit_code"]["return_code"]["number"] == 200
    steps = json.loads(slurm("sacct", "-j", str(job), "--json").out)["jobs"][0]["steps"]
    assert [step["exit_code"]["return_code"]["number"] for step in steps] == [137, 200]
    alone = json.loads(slurm("sacct", "-j", f"{job}.0", "--json").out)["jobs"]
    assert [(one["job_id"], [step["step"]["id"] for step in one["steps"]]) for one in alone] == [(job, [f"{job}.0"])]
    memory = [one for one in steps[0]["tres"]["requested"]["max"] if one["type"] == "mem"]
    assert memory
    assert memory[0]["count"] > 0
