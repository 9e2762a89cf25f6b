"""sbatch's answer lost, and a queue that lies: through programs that stand for Slurm's commands."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from fault_desk import BLOCK, OK, ONE, ClusterHome, Watcher, job

from aver.model.job import Matrix
from aver.model.states import State
from live_home import wait_for

LOSES = """\
all="$*"; name=${all##*--job-name=}; name=${name%%.*}
case $name in
hangs | many*) "$real" "$@" >/dev/null; exec sleep 60 ;;
dies) "$real" "$@" >/dev/null; kill -9 $$ ;;
prints) "$real" "$@" >/dev/null; echo "what a fine day"; exit 0 ;;
cut) id=$("$real" "$@"); printf %s "${id%?}"; kill -9 $$ ;;
fails) "$real" "$@" >/dev/null; echo "sbatch: error: Batch job submission failed: The dog ate it" >&2; exit 1 ;;
slow) setsid bash -c 'sleep 6; shift; "$@"' bash slow "$real" "$@" >/dev/null 2>&1 & exec sleep 60 ;;
absent) [ -e HERE/tried ] && exec "$real" "$@"; touch HERE/tried; exec sleep 60 ;;
esac
exec "$real" "$@"
"""


@pytest.fixture
def cluster(whole_cluster: ClusterHome) -> ClusterHome:
    """Nothing here breaks the lab."""
    return whole_cluster


def test_lost_answers_of_sbatch(cluster: ClusterHome) -> None:
    """Taken and unsaid is found by its name; not taken is proven absent and handed over again; nothing runs twice."""
    fake = cluster.wrapper("sbatch", LOSES.replace("HERE", str(cluster.folder)))
    cluster.configure({"sbatch": fake}, timeout=2)
    names = ("hangs", "dies", "prints", "cut", "fails", "slow", "absent")
    run = cluster.submit(
        *(job(name, "exit 1" if name == "dies" else "exit 0") for name in names),
        job("many", "exit {n}", matrix=Matrix((("n", ("0", "1")),))),
    )
    cluster.settle([run], 90)
    expected = dict.fromkeys(names, (State.COMPLETED, OK)) | {"dies": (State.FAILED, ONE)}
    cluster.check(run, expected | {"many[n=0]": (State.COMPLETED, OK), "many[n=1]": (State.FAILED, ONE)})
    calls = Counter(re.findall("--job-name=([a-z]+)", (cluster.folder / "calls-sbatch").read_text()))
    assert calls == {**dict.fromkeys((*names, "many"), 1), "absent": 2}
    assert len(cluster.keys_run()) == len(names) + 2


def test_a_job_that_is_cancelled_while_nobody_knows_whether_slurm_has_it(cluster: ClusterHome) -> None:
    """It is cancelled as soon as it is found, and what was never taken is never handed over."""
    fake = cluster.wrapper("sbatch", LOSES.replace("HERE", str(cluster.folder)))
    cluster.configure({"sbatch": fake}, timeout=3)
    run = cluster.submit(job("hangs", "sleep 60"), job("absent", "sleep 60"))
    wait_for(lambda: cluster.count_calls("sbatch"), "sbatch is called")
    with cluster.client() as client:
        client.call("cancel", ids=[run], by="tester", signal=None, now=False)
    cluster.settle([run], 60)
    with cluster.reader() as reader:
        assert {job.name: job.state for job in reader.jobs(run=run)} == dict.fromkeys(
            ("hangs", "absent"), State.CANCELLED
        )
    assert cluster.count_calls("sbatch") <= 2
    keys = tuple(cluster.keys(run))
    wait_for(
        lambda: not [name for name, state in cluster.lab.queue().items() if state == "RUNNING" and name.endswith(keys)],
        "nothing of this run runs",
    )


def test_a_queue_that_calls_failures_completed(cluster: ClusterHome) -> None:
    """Whatever the queue says, no surface ever shows COMPLETED for a script that exited 1."""
    lie = r"""sed 's/\x1fFAILED\x1f[^\x1f]*\x1f[^\x1f]*/\x1fCOMPLETED\x1fNone\x1f0/'"""
    fake = cluster.wrapper("squeue", f'set -o pipefail; "$real" "$@" | {lie}')
    cluster.configure({"squeue": fake})
    watcher = Watcher()
    with watcher.watching():
        run = cluster.submit(job("seen", "exit 1"), job("unseen", BLOCK + "exit 1"), job("good", "exit 0"))
        cluster.settle([run], 60)
    unseen = ONE if cluster.lab.has_whole_codes else None
    cluster.check(run, {"seen": (State.FAILED, ONE), "unseen": (State.FAILED, unseen), "good": (State.COMPLETED, OK)})
    shown = {(one["name"], one["state"]) for text in watcher.texts for one in json.loads(text)["jobs"]}
    assert {name for name, state in shown if state == "COMPLETED"} <= {"good"}
    assert "the scheduler says COMPLETED" in cluster.verdict_text(run, "seen")
    assert unseen is not None or "exit code 1 or 129" in cluster.verdict_text(run, "unseen")
