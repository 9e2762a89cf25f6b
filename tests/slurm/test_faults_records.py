"""The records of witnesses: missing, cut, late, foreign, unreadable, huge; and a folder that no node can see."""

from __future__ import annotations

import json
import os
import zlib

import pytest
from fault_desk import OK, SEVEN, ClusterHome, job, until

from aver.model.exit import ExitStatus
from aver.model.job import JobSpec, RetryRule
from aver.model.states import State
from live_home import wait_for

DAMAGED = ("missing", "cut", "foreign", "huge", "folder", "pipe", "loop", "garbage", "older")
AGAIN = '[ "$AVER_ATTEMPT" = 2 ] || exit 9; '


@pytest.fixture
def cluster(whole_cluster: ClusterHome) -> ClusterHome:
    """Nothing here breaks the lab."""
    return whole_cluster


def damaged(how: str, end: str, text: str) -> JobSpec:
    """A job whose record will be damaged; one of an older attempt needs an older attempt."""
    if how != "older":
        return job(f"{how}-{end}", text)
    return job(f"{how}-{end}", AGAIN + text, retry=RetryRule(max=1, codes=(9,)))


def older(cluster: ClusterHome, run: int, name: str, record: bytes) -> bytes:
    """A whole record of the attempt before, which ended otherwise: with 0 what failed, with 9 what was well."""
    with cluster.reader() as reader:
        number = next(one.id for one in reader.jobs(run=run) if one.name == name)
        first, second = reader.attempts(number)
    said = json.loads(record[18:])
    assert said["key"] == f"{second.key}.r0"
    body = json.dumps({**said, "key": f"{first.key}.r0", "raw": 0 if said["raw"] else 9 << 8}).encode()
    return b"%08x %08x %s\n" % (len(body), zlib.crc32(body), body)


def test_damaged_records_say_nothing(cluster: ClusterHome) -> None:
    """The scheduler decides, and that is said; a failure is one though the record of another job, or of an older
    attempt, says 0; a late one counts."""
    hold = cluster.folder / "accounting-is-away"
    fake = cluster.wrapper(
        "sacct", f'[ ! -e {hold} ] || {{ echo "sacct: error: timed out" >&2; exit 1; }}; exec $real "$@"'
    )
    cluster.configure({"sacct": fake})
    hold.touch()
    go = cluster.folder / "go"
    run = cluster.submit(
        job("good", until(go) + "exit 0"),
        job("late", until(go) + "exit 0"),
        *(damaged(how, "good", until(go) + "exit 0") for how in DAMAGED),
        *(damaged(how, "bad", until(go) + "exit 7") for how in DAMAGED),
    )
    wait_for(lambda: len(cluster.keys_run()) == len(cluster.states(run)) + 2, "all run, two of them again")
    for name in cluster.states(run):
        cluster.wait_state(run, name, State.RUNNING)
    cluster.kill_coordinator()
    go.touch()
    cluster.wait_ended(run)
    good = cluster.record_of(run, "good").read_bytes()
    late = cluster.record_of(run, "late")
    kept = late.read_bytes()
    late.unlink()
    for how in DAMAGED:
        for end in ("good", "bad"):
            path = cluster.record_of(run, f"{how}-{end}")
            text = path.read_bytes()
            path.unlink()
            match how:
                case "cut":
                    path.write_bytes(text[: len(text) // 2])
                case "foreign":
                    path.write_bytes(good)
                case "older":
                    path.write_bytes(older(cluster, run, f"{how}-{end}", text))
                case "huge":
                    path.write_bytes(good * 5000)
                case "folder":
                    path.mkdir()
                case "pipe":
                    os.mkfifo(path)
                case "loop":
                    path.symlink_to(path)
                case "garbage":
                    path.write_bytes(os.urandom(300))
    cluster.connect_again()
    cluster.wait_state(run, "good", State.COMPLETED)
    for how in DAMAGED:
        cluster.wait_state(run, f"{how}-bad", State.FAILED)
        cluster.wait_state(run, f"{how}-good", State.SETTLING)
    cluster.wait_state(run, "late", State.SETTLING)
    late.write_bytes(kept)
    cluster.wait_state(run, "late", State.COMPLETED)
    assert {cluster.states(run)[f"{how}-good"] for how in DAMAGED} == {"SETTLING"}
    hold.unlink()
    cluster.settle([run])
    cluster.check(
        run,
        {"good": (State.COMPLETED, OK), "late": (State.COMPLETED, OK)}
        | {f"{how}-good": (State.COMPLETED, OK) for how in DAMAGED}
        | {f"{how}-bad": (State.FAILED, SEVEN) for how in DAMAGED},
        {"older-good": 2, "older-bad": 2},
    )
    assert cluster.verdict_text(run, "late").startswith("witness")
    for how in DAMAGED:
        assert cluster.verdict_text(run, f"{how}-good").startswith("accounting")
        assert cluster.verdict_text(run, f"{how}-bad").startswith("queue")


def test_a_folder_that_no_node_sees(cluster: ClusterHome) -> None:
    """The jobs run all the same, and their verdicts come from the scheduler, said so."""
    cluster.settle([cluster.submit(job("first", "exit 0"))])
    shared = cluster.home.path / "slurm"
    (shared / "bin").rename(shared / "bin.away")
    run = cluster.submit(job("good", "exit 0"), job("bad", "exit 137"))
    cluster.settle([run])
    cluster.check(run, {"good": (State.COMPLETED, OK), "bad": (State.FAILED, ExitStatus(137))})
    assert cluster.verdict_text(run, "good").startswith("accounting")
    assert cluster.verdict_text(run, "bad").startswith("queue")
    (shared / "bin.away").rename(shared / "bin")
    (shared / "records").rename(shared / "records.away")
    run = cluster.submit(job("good", "exit 0"), job("bad", "exit 7"))
    cluster.settle([run])
    cluster.check(run, {"good": (State.COMPLETED, OK), "bad": (State.FAILED, SEVEN)})
    assert cluster.verdict_text(run, "good").startswith("accounting")
