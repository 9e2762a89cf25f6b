"""An engine that the settings name and nothing else knows: flows, retries, cancels and `kill -9` on it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from flow_lab import Lab
from test_crashes import FLOWS, outcome, ping

import aver

SETTINGS = 'kill_wait = 1\ncpus = 4\nengine = "pool"\n[engines]\npool = "pool_engine:ENGINE"\n[pool]\nmost = 3\n'


@pytest.fixture
def pool(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab whose jobs run on the third engine unless they say otherwise."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    (lab.folder.parent / "config.toml").write_text(SETTINGS)
    return lab


@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_ends_as_on_this_machine(pool: Lab, name: str) -> None:
    """States, reasons and exits of every attempt are those of the engine that Aver ships."""
    there = pool.run(FLOWS[name])
    (pool.folder / "order").unlink()
    here = pool.run(f"engine: local\n{FLOWS[name]}")
    assert outcome(there) == outcome(here)
    assert there.state == here.state


@pytest.mark.parametrize("name", ["cascade", "retries", "matrix"])
def test_killed_at_random_times(pool: Lab, name: str) -> None:
    """After `kill -9` of the coordinator its attempts are found again, and none runs twice."""
    undisturbed = pool.run(FLOWS[name])
    order = sorted(pool.lines("order"))
    (pool.folder / "order").unlink()
    seed = time.time_ns() % 10_000
    chance = random.Random(seed)
    run = pool.submit(FLOWS[name])
    kills = 0
    while not run.state.is_settled and kills < 8:
        time.sleep(chance.uniform(0.0, 0.25))  # the instant of the kill is the random input of this test
        pool.kill()
        kills += 1
        ping()
    run.wait(60)
    assert outcome(run) == outcome(undisturbed), f"seed {seed}, {kills} kills"
    assert sorted(pool.lines("order")) == order, f"seed {seed}, {kills} kills"


def test_jobs_of_two_engines_in_one_flow(pool: Lab) -> None:
    """Each runs where it says; the store and every surface name its engine."""
    run = pool.run(
        "jobs:\n  a: {run: echo a}\n  b: {needs: a, engine: local, run: echo b}\n  c: {needs: b, run: exit 3}\n"
    )
    assert {job.name: str(job.state) for job in run} == {"a": "COMPLETED", "b": "COMPLETED", "c": "FAILED"}
    assert [job.attempts[-1].engine for job in run] == ["pool", "local", "pool"]
    assert "exit" in pool("why", f"{run.number}/c").out


WAITS = "jobs:\n  m: {matrix: {n: 1..5}, run: 'echo {n} >> order; until test -e go; do sleep 0.02; done'}\n"


def began_three(pool: Lab) -> aver.Run:
    run = pool.submit(WAITS)
    pool.until(lambda: [str(job.state) for job in run].count("RUNNING") == 3, "three run, as its settings say")
    pool.until(lambda: len(pool.lines("order")) == 3, "three have begun")
    return run


def test_cancelled_in_its_queue_and_while_it_runs(pool: Lab) -> None:
    """What waits in the engine's own queue never runs; what runs is ended."""
    run = began_three(pool)
    run.cancel()
    run.wait(60)
    assert {str(job.state) for job in run} == {"CANCELLED"}
    assert len(pool.lines("order")) == 3


def test_a_cancellation_survives_kill_9(pool: Lab) -> None:
    """It is durable before the engine is told: the next coordinator tells it again."""
    run = began_three(pool)
    run.cancel()
    pool.kill()
    ping()
    run.wait(60)
    assert {str(job.state) for job in run} == {"CANCELLED"}


def test_a_time_limit(pool: Lab) -> None:
    """Its witness enforces the limit, and the judge says TIMEOUT, whatever the engine calls it."""
    run = pool.run("jobs:\n  a: {time: 1s, run: sleep 60}\n")
    (job,) = run
    assert (str(job.state), job.reason) == ("TIMEOUT", "TimeLimit")


def test_what_it_does_not_do_is_refused_in_its_words(pool: Lab) -> None:
    """Suspending, by the engine's own refusal."""
    run = pool.submit("jobs:\n  a: {run: 'touch began; until test -e go; do sleep 0.02; done'}\n")
    pool.wait_for("began")
    pool.until(lambda: str(run["a"].state) == "RUNNING", "it runs")
    answer = pool("suspend", f"{run.number}/a")
    assert "in the pool nothing is suspended" in answer.out + answer.err
    pool.let_go("go")
    run.wait(60)
    assert str(run["a"].state) == "COMPLETED"


def test_an_engine_that_nobody_registered(pool: Lab) -> None:
    """Refused wherever it is named: in a flow, in an option, and by the coordinator."""
    mistake = pool("check", str(pool.write("engine: pond\njobs: {a: {run: 'true'}}\n")))
    assert (mistake.status, "local, slurm, pool" in mistake.out) == (2, True)
    option = pool("run", "--engine", "pond", "--", "true")
    assert (option.status, "'local', 'slurm', 'pool'" in option.err) == (2, True)


def test_an_engine_whose_settings_are_gone(pool: Lab) -> None:
    """Of its attempts nobody says how they ended: UNVERIFIED, never run again; the other engines go on."""
    run = pool.submit("jobs:\n  a: {run: 'touch began; until test -e go; do sleep 0.02; done'}\n")
    pool.wait_for("began")
    pool.until(lambda: str(run["a"].state) == "RUNNING", "it runs")
    pool.kill()
    (pool.folder.parent / "config.toml").write_text("kill_wait = 1\n")
    ping()
    run.wait(60)
    assert str(run["a"].state) == "UNVERIFIED"
    assert "there is no engine 'pool'" in pool("why", f"{run.number}/a").out
    (pool.folder.parent / "config.toml").write_text('[engines]\npool = "no_such_module:ENGINE"\n')
    assert "UNVERIFIED" in pool("why", f"{run.number}/a").out
    (pool.folder.parent / "config.toml").write_text("kill_wait = 1\n")
    pool.let_go("go")
    assert pool("run", "--", "true").status == 0


def test_the_schema_for_editors_names_it(pool: Lab) -> None:
    """`python -m aver.spec.flow.schema` writes the engines that the settings name too."""
    done = subprocess.run([sys.executable, "-m", "aver.spec.flow.schema"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["$defs"]["engine"] == {"enum": ["local", "slurm", "pool"]}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ('[engines]\nslurm = "pool_engine:ENGINE"\n', "engines: 'slurm' can't be the name of an engine"),
        ('[engines]\nallocation = "pool_engine:ENGINE"\n', "engines: 'allocation' can't be the name of an engine"),
        ('[engines]\nretention = "pool_engine:ENGINE"\n', "engines: 'retention' can't be the name of an engine"),
        ('[engines]\npool = "pool_engine"\n', "engines: pool is 'pool_engine'; write module:attribute"),
        ('[engines]\npond = "pool_engine:ENGINE"\n', "pool_engine:ENGINE is not the registration of an engine 'pond'"),
        ('[engines]\npool = "no_such_module:ENGINE"\n', "engines.pool: can't import no_such_module"),
        ('engine = "pond"\n', "engine: 'pond' is none of local, slurm"),
        ("[pool]\nmost = 1\n", "pool: unknown setting"),
    ],
)
def test_settings_that_register_no_engine(pool: Lab, settings: str, sentence: str) -> None:
    """What is wrong is said in one line by the first command that needs a coordinator; nothing runs."""
    (pool.folder.parent / "config.toml").write_text(settings)
    answer = pool("run", "--", "touch", "ran")
    assert answer.status == 2
    assert sentence in answer.err
    assert not (pool.folder / "ran").exists()
