"""scontrol's reading verbs, against what a real Slurm printed for the same jobs."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from queue_past import Call, Past, ReleaseIs, replaced
from recordings import keys, recorded

from aver.model.events import JobMoved, Observed, PersonAsked, RunMoved
from aver.model.job import After, AfterKind, Afters, Matrix, Request, Streams
from aver.model.record import replace
from aver.model.slurm_options import SlurmOptions
from aver.model.states import State

SHOWN = recorded("scontrol")
OF_THE_LAB = {  # who, where and when; and what there is one of
    "UserId", "GroupId", "Account", "AllocNode:Sid", "Command", "WorkDir", "StdErr", "StdIn", "StdOut", "CPU_IDs",
    "JobId", "SubmitTime", "EligibleTime", "AccrueTime", "StartTime", "EndTime", "LastSchedEval", "RunTime", "NumCPUs",
    "NumTasks", "TRES", "MinMemoryNode", "MinMemoryCPU", "Deadline",
}  # fmt: skip


def values(text: str) -> dict[str, str]:
    return dict(re.findall(r"(?:^|\s)([A-Za-z][\w/:]*)=(\S*)", text))


@pytest.mark.parametrize("flags", ["", "-d ", "-o ", "-d -o "])
def test_layout_of_a_job_is_slurms(release_is: ReleaseIs, call: Call, flags: str) -> None:
    """Same lines, same keys in the same order on each line, same empty line at the end, as in 22.05."""
    release_is("22.05")
    want = SHOWN[f"scontrol {flags}show job 31"]
    got = call("scontrol", *flags.split(), "show", "job", "31").out.split("\n")[:-1]
    assert [keys(line) for line in got] == [keys(line) for line in want]
    assert [len(line) - len(line.lstrip()) for line in got] == [len(line) - len(line.lstrip()) for line in want]
    assert [line.endswith(" ") for line in got] == [line.endswith(" ") for line in want]


@pytest.mark.parametrize("number", ["31", "32", "33", "34", "35", "36_9", "37"])
def test_values_of_a_job_are_slurms(release_is: ReleaseIs, call: Call, number: str) -> None:
    """States, reasons, exits, dependencies and resources are what Slurm 22.05 printed for such a job."""
    release_is("22.05")
    want = values("\n".join(SHOWN[f"scontrol show job {number}"]))
    got = values(call("scontrol", "show", "job", number).out)
    if number != "31":  # of the others only the memory was asked for otherwise
        want.pop("MinMemoryCPU", None)
        got.pop("MinMemoryNode", None)
        want.pop("MinMemoryNode", None)
    assert list(got) == list(want)
    assert {key: got[key] for key in got if key not in OF_THE_LAB} == {
        key: want[key] for key in want if key not in OF_THE_LAB
    }


def test_derived_exit_code_with_details_only(past: Past, call: Call) -> None:
    """-d shows DerivedExitCode, live."""
    assert "DerivedExitCode" not in call("scontrol", "show", "job", "31").out
    assert "   DerivedExitCode=7:0\n" in call("scontrol", "-d", "show", "job", "31").out


def test_files_are_those_that_the_coordinator_opens(past: Past, call: Call) -> None:
    """Output patterns are filled in; a task of an array has its own."""
    shown = values(call("scontrol", "show", "job", "33").out)
    assert shown["StdOut"] == f"{past.work}/out-33.txt"
    assert shown["StdErr"] == f"{past.work}/err-33.txt"
    assert values(call("scontrol", "show", "job", "36_9").out)["StdOut"] == f"{past.work}/slurm-36_9.out"


def test_an_array_is_its_running_tasks_and_the_rest(past: Past, call: Call) -> None:
    """Each task that runs is a record; those that wait are one."""
    out = call("scontrol", "-o", "show", "job", "36").lines
    assert [values(line)["ArrayTaskId"] for line in out] == ["1", "3", "5,7,9%2"]


@pytest.mark.parametrize(
    ("argv", "status", "out", "err"),
    [
        (("show", "job", "99999"), 1, "", "slurm_load_jobs error: Invalid job id specified\n"),
        (("show", "job", "abc"), 1, "", "scontrol_print_job error: Invalid job id specified\n"),
        (("show", "job", "36_99"), 1, "Job 36_99 not found\n", ""),
        (("show", "job", "31", "33"), 1, "", "too many arguments for keyword:show\n"),
        (("-Q", "show", "job", "99999"), 1, "", ""),
        (("show", "step", "99999.0"), 1, "", "slurm_get_job_steps error: Invalid job id specified\n"),
        (("show", "step", "31.0"), 1, "Job step 31.0 not found\n", ""),
        (("show", "step", "34"), 1, "Job step 34. not found\n", ""),
        (("show", "node", "nosuch"), 1, "Node nosuch not found\n", ""),
        (("show", "partition", "nosuch"), 1, "Partition nosuch not found\n", ""),
        (("show", "foo"), 1, "", "invalid entity:foo for keyword:show \n"),
        (("show",), 1, "", "too few arguments for keyword:show\n"),
        (("write", "batch_script", "9999"), 0, "", "job script retrieval failed: Invalid job id specified\n"),
        (("write", "foo"), 1, "", "invalid write argument:foo\n"),
        (("ping", "extra"), 1, "", "too many arguments for keyword:ping\n"),
    ],
)
def test_refusals_are_slurms(past: Past, call: Call, argv: tuple[str, ...], status: int, out: str, err: str) -> None:
    """Slurm's words, on its streams, with its exit statuses."""
    reply = call("scontrol", *argv)
    assert (reply.status, reply.out, reply.err) == (status, out, err)


def test_words_may_be_cut(past: Past, call: Call) -> None:
    """`show jobid`, `show jo`, `show job=31` are the same."""
    whole = values(call("scontrol", "show", "job", "31").out)["JobName"]
    for words in (("jobid", "31"), ("jo", "31"), ("job=31",), ("jobs", "31")):
        assert values(call("scontrol", "show", *words).out)["JobName"] == whole


def test_steps(past: Past, call: Call) -> None:
    """A running step and the batch script, with Slurm's keys."""
    blocks = call("scontrol", "show", "step", "31").out.split("\n\n")[:-1]
    want = {
        block.split(" ")[0].rpartition(".")[2]: block
        for block in "\n".join(SHOWN["scontrol show step 31"]).split("\n\n")
    }
    assert [values(block)["StepId"] for block in blocks] == ["31.1", "31.batch"]
    for block in blocks:
        assert keys(block) == keys(want[values(block)["StepId"].rpartition(".")[2]])


def test_node_and_partition_have_slurms_keys(release_is: ReleaseIs, call: Call) -> None:
    """The machine is one node in one partition; the keys are those of 22.05."""
    release_is("22.05")
    node = call("scontrol", "show", "node").out
    assert [key for key in keys("\n".join(SHOWN["scontrol show node n1"])) if key != "Port"] == keys(node)
    assert keys(call("scontrol", "-o", "show", "partition").out) == keys(SHOWN["scontrol -o show partition main"][0])
    assert values(node)["NodeName"] == os.uname().nodename.partition(".")[0]


def test_config_says_what_clients_ask_for(past: Past, call: Call) -> None:
    """`Name = value` lines with the limits that clients look for."""
    out = call("scontrol", "show", "config").out
    found = dict(re.findall(r"^(\S+) += (.*)$", out, re.MULTILINE))
    assert found["MaxArraySize"] == "1001"
    assert found["ClusterName"] == "aver"
    assert found["NEXT_JOB_ID"] == "43"
    assert found["AccountingStorageType"] == "accounting_storage/slurmdbd"
    assert found["SelectTypeParameters"] == "CR_CPU_MEMORY"
    assert found["PropagateResourceLimits"] == "ALL"
    assert found["TaskProlog"] == "(null)"
    assert found["SLURM_CONF"] == "(null)", "there is no such file"
    assert found["SlurmUser"].endswith(f"({os.getuid()})")
    assert len(found) >= 190


def test_write_batch_script(past: Past, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To standard output, to a file of Slurm's name, or to the file that is named."""
    monkeypatch.chdir(tmp_path)
    script = "#!/bin/bash\nsrun -n2 sleep 40\n"
    assert call("scontrol", "write", "batch_script", "31", "-").out == script
    assert call("scontrol", "write", "batch_script", "31").out == "batch script for job 31 written to slurm-31.sh\n"
    assert (tmp_path / "slurm-31.sh").read_text() == script
    assert call("scontrol", "write", "batch_script", "31", "/proc/none/x").status == 1


def test_updates_are_shown(empty_past: Past, call: Call) -> None:
    """What `scontrol update` changed is what every command shows."""
    past = empty_past
    changes = {"time_s": 1800, "name": "renamed", "priority": 7, "comment": "hi", "partition": "big"}
    asked = PersonAsked(past.now - 2, 3, 3, "ann", "update", json.dumps(changes))
    past.commit(past.submitted(3, past.spec("old")), *past.running(3, 3), asked, RunMoved(past.now, 3, State.RUNNING))
    shown = values(call("scontrol", "show", "job", "3").out)
    assert [shown[key] for key in ("TimeLimit", "JobName", "Priority", "Comment", "Partition")] == [
        "00:30:00", "renamed", "7", "hi", "big",
    ]  # fmt: skip
    assert call("squeue", "-h", "-o", "%l %j %P").out == "30:00 renamed big\n"


def test_jobs_of_an_earlier_version_are_shown_alike(past: Past, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the store has the options as pairs of text, the commands show the same at the same time."""
    monkeypatch.setattr(time, "time", lambda: past.now)
    sweep = past.spec("sweep", matrix=Matrix((("size", ("1", "2")),)), streams=Streams(stdout="{size}.out"))
    past.commit(past.submitted(60, sweep))
    lines = (("scontrol", "show", "job"), ("squeue", "-a"), ("sacct", "-P", "-o", "all", "-S", "now-1days"))
    before = [call(*line).out for line in lines]
    assert "/2.out" in before[0]
    database = sqlite3.connect(past.home / "aver.db", isolation_level=None)
    for seq, data in database.execute("SELECT seq, data FROM events WHERE kind = 'RunSubmitted'").fetchall():
        document = json.loads(data)
        for job in document["submission"]["flow"]["jobs"]:
            options = {"kind": "batch", "array": "?", **job.pop("slurm")}
            job["facts"] = [[name, str(value)] for name, value in options.items()]
        database.execute("UPDATE events SET data = ? WHERE seq = ?", (json.dumps(document), seq))
    database.close()
    assert [call(*line).out for line in lines] == before


def test_secrets_are_shown_nowhere(empty_past: Past, call: Call) -> None:
    """Values of a run's secret names are masked, wherever they stand."""
    past = empty_past
    submitted = past.submitted(
        3, past.spec("old", comment="hunter2-token", slurm=SlurmOptions(command="run hunter2-token"))
    )
    origin = replace(submitted.submission.origin, secrets=("TOKEN",), command=("sbatch", "hunter2-token"))
    (past.home / "env").mkdir()
    (past.home / "env" / "3.env").write_bytes(b"PLAIN=x\0TOKEN=hunter2-token\0")
    past.commit(replace(submitted, submission=replace(submitted.submission, origin=origin)), *past.running(3, 3))
    shown = [
        call("scontrol", "show", "job", "3").out,
        call("sacct", "-P", "-o", "all", "-j", "3").out,
        call("squeue", "-o", "%all").out,
    ]
    assert not [text for text in shown if "hunter2" in text]
    assert all("***" in text for text in shown)


def test_a_requeued_job_waits_with_its_restarts(empty_past: Past, call: Call) -> None:
    """After an attempt has ended and the job waits again, Restarts is 1 and the reason Slurm's own."""
    past = empty_past
    past.commit(
        past.submitted(3, past.spec()),
        *past.ended(3, 3, 1 << 8, job_state=State.PENDING, job_reason="Retry"),
        RunMoved(past.now, 3, State.RUNNING),
    )
    shown = values(call("scontrol", "show", "job", "3").out)
    assert [shown[key] for key in ("JobState", "Reason", "Restarts", "ExitCode", "NodeList")] == [
        "PENDING", "BeginTime", "1", "0:0", "",
    ]  # fmt: skip


def test_a_suspended_job(empty_past: Past, call: Call) -> None:
    """SuspendTime and how long it had run."""
    past = empty_past
    stopped = Observed(past.now - 30, 3, 3, 1, "witness", "{}", State.SUSPENDED, "None")
    past.commit(
        past.submitted(3, past.spec()), *past.running(3, 3, ago=100), stopped, RunMoved(past.now, 3, State.RUNNING)
    )
    shown = values(call("scontrol", "show", "job", "3").out)
    assert shown["JobState"] == "SUSPENDED"
    assert shown["SecsPreSuspend"] == "70"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\S+", shown["SuspendTime"])


def test_dependencies_that_remain(empty_past: Past, call: Call) -> None:
    """Those that are fulfilled are left out; the others say how they stand."""
    past = empty_past
    terms = (
        After(AfterKind.AFTEROK, ((1, None), (2, None), (4, None))),
        After(AfterKind.AFTERANY, ((2, None),)),
        After(AfterKind.AFTERNOTOK, ((2, None),)),
        After(AfterKind.SINGLETON),
    )
    spec = replaced(past.spec(request=Request()), after=Afters(terms))
    past.commit(
        *past.single(1, "good", 0), *past.single(2, "bad", 1 << 8), past.submitted(4, past.spec()),
        past.submitted(9, spec), JobMoved(past.now, 9, 9, State.PENDING, "Dependency"),
    )  # fmt: skip
    shown = values(call("scontrol", "show", "job", "9").out)["Dependency"]
    assert shown == "afterok:2(failed),afterok:4(unfulfilled),singleton(unfulfilled)"


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.sampled_from(["job", "step", "node", "partition", "hostnames", "hostlist", "hostlistsorted", "config", "x"]),
    st.text("0123456789[],-_.abn ", max_size=12),
)
def test_no_argument_is_a_traceback(past: Past, call: Call, entity: str, text: str) -> None:
    """Any text for any entity ends with 0 or 1."""
    assert call("scontrol", "show", entity, text).status in (0, 1)
