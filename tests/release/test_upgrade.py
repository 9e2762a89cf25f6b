"""Another version of the package is installed while jobs run: they go on, and get the verdict that they earned."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from packages import Environment

from aver.store.schema import VERSION
from aver.version import __version__
from live_home import wait_for

WAIT = "touch begun.$AVER_JOB; until test -e go; do sleep 0.05; done; "


@pytest.fixture
def place(tmp_path: Path, aver_home: Path) -> Environment:
    return Environment(tmp_path, aver_home)


def schema_of(home: Path) -> int:
    with sqlite3.connect(f"file:{home}/aver.db?mode=ro", uri=True) as store:
        return int(store.execute("PRAGMA user_version").fetchone()[0])


def begun(place: Environment, *jobs: int) -> None:
    for job in jobs:
        wait_for((place.folder / f"begun.{job}").exists, f"job {job} has begun")


def witnesses(home: Path) -> set[str]:
    """The programs of the processes that have a socket in the home's folder of witnesses open."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").readlink().name.startswith("aver-witness") and any(
                os.fspath(home) in os.fspath(fd.readlink()) for fd in (process / "fd").iterdir()
            ):
                found.add(process.name)
        except OSError:
            continue
    return found


def test_jobs_survive_an_upgrade(place: Environment, earlier_wheel: Path, wheel: Path) -> None:
    """Old witnesses keep their jobs, the new coordinator hears how they ended, and the database is the new one's."""
    place.install(earlier_wheel)
    assert place("--version") == "aver 0.1.0\n"
    flow = place.folder / "flow.yaml"
    flow.write_text(
        "name: f\ndefaults: {time: 5m, mem: 64M, cpus: 1}\njobs:\n"
        f"  a: {{run: '{WAIT}'}}\n  b: {{needs: [a], run: 'echo b > b.txt'}}\n"
    )
    place("submit", str(flow))  # run 1, jobs 2 and 3
    failing = place.submit(f"{WAIT} exit 3")
    begun(place, 2, failing)
    old_pid, old_witnesses = place.pid(), witnesses(place.home)
    assert schema_of(place.home) < VERSION
    assert "version" not in place.lock()
    assert len(old_witnesses) == 2

    place.install(wheel)
    assert place("--version") == f"aver {__version__}\n"
    assert [place.job(one)["state"] for one in (2, 3, failing)] == ["RUNNING", "PENDING", "RUNNING"]
    assert place.pid() != old_pid
    assert place.lock()["version"] == __version__
    assert schema_of(place.home) == VERSION
    assert witnesses(place.home) == old_witnesses
    later = place.submit("kill -9 $$")
    (place.folder / "go").touch()
    place("watch", "--timeout", "60", "1", str(failing), str(later))
    jobs = {one: place.job(one) for one in (2, 3, failing, later)}
    assert {one: (job["state"], job["exit"]["text"]) for one, job in jobs.items()} == {
        2: ("COMPLETED", "0:0"),
        3: ("COMPLETED", "0:0"),
        failing: ("FAILED", "3:0"),
        later: ("FAILED", "0:9"),
    }
    assert all(job["verified"] for job in jobs.values())
    assert (place.folder / "b.txt").read_text() == "b\n"
    assert [job["attempt"] for job in jobs.values()] == [1, 1, 1, 1]  # nothing ran twice


def test_a_job_of_the_old_version_is_cancelled_by_the_new_one(
    place: Environment, earlier_wheel: Path, wheel: Path
) -> None:
    """The order goes through an old witness; a time limit that it was given ends a job there, too."""
    place.install(earlier_wheel)
    job = place.submit(WAIT)
    begun(place, job)
    limited = int(place("submit", "--time", "0:04", "--mem", "64M", "--", "sleep", "60").split()[-1])
    wait_for(lambda: "RUNNING" in place("show", str(limited)), "the job with a limit runs")
    place.install(wheel)
    place("cancel", str(job))
    place("watch", "--timeout", "60", str(job), str(limited))
    assert [place.job(one)["state"] for one in (job, limited)] == ["CANCELLED", "TIMEOUT"]


def test_who_waits_with_the_old_version_is_told(place: Environment, earlier_wheel: Path, wheel: Path) -> None:
    """`aver run` of the old version ends with 69 and a sentence when the new coordinator comes; its job goes on."""
    place.install(earlier_wheel)
    waiting = subprocess.Popen(
        place.words("run", "--time", "5m", "--mem", "64M", "--", "sh", "-c", f"{WAIT} exit 3"),
        cwd=place.folder, env={**os.environ, "AVER_HOME": str(place.home)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    begun(place, 1)
    place.install(wheel)
    place.submit("true")
    _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 69
    assert "jobs that run go on" in said
    (place.folder / "go").touch()
    place("watch", "--timeout", "60", "1")
    assert (place.job(1)["state"], place.job(1)["exit"]["text"]) == ("FAILED", "3:0")


def test_a_newer_database_is_refused_in_a_sentence(place: Environment, earlier_wheel: Path, wheel: Path) -> None:
    """After a downgrade every command says to upgrade and touches nothing; the job goes on, and is judged later."""
    place.install(wheel)
    job = place.submit(f"{WAIT} exit 5")
    begun(place, job)
    place("stop")
    place.install(earlier_wheel)
    sentence = f"aver: {place.home}/aver.db was written by a newer Aver (schema {VERSION}, this one knows "
    for words in (["jobs"], ["show", str(job)], ["submit", "--time", "1m", "--mem", "64M", "--", "true"]):
        said = place(*words, status=2)
        assert said.startswith(sentence), said
        assert said.endswith("): upgrade Aver\n")
        assert said.count("\n") == 1
    (place.folder / "go").touch()
    place.install(wheel)
    place("watch", "--timeout", "60", str(job))
    assert (place.job(job)["state"], place.job(job)["exit"]["text"]) == ("FAILED", "5:0")


def test_a_newer_coordinator_is_asked_and_named_when_it_refuses(place: Environment, wheel: Path) -> None:
    """A command of an older version never ends a newer coordinator; what that refuses says which versions there are."""
    place.install(wheel)
    version = next((place.folder / "venv").rglob("aver/version.py"))
    text = version.read_text()
    version.write_text(text.replace(f'"{__version__}"', '"99.0.0"'))
    place.submit("true", "--key", "mine")
    newer = place.pid()
    version.write_text(text)
    place.submit("true")
    said = place("submit", "--key", "mine", "--time", "5m", "--mem", "64M", "--", "false", status=2)
    assert place.pid() == newer
    assert place.lock()["version"] == "99.0.0"
    explained = f"(the coordinator is Aver 99.0.0, this is {__version__}: use that one, or `aver stop` first)"
    assert said.endswith(f"{explained}\n")
    place("stop")
    place.submit("true")
    assert place.lock()["version"] == __version__


def test_many_commands_come_at_once_after_an_upgrade(place: Environment, earlier_wheel: Path, wheel: Path) -> None:
    """Each finds the old coordinator and tells it to leave; all are served by one new one, Slurm's commands too."""
    place.install(earlier_wheel)
    job = place.submit(f"{WAIT} exit 3")
    begun(place, job)
    old_pid = place.pid()
    place.install(wheel)
    submit = place.words("submit", "--time", "1m", "--mem", "64M", "--", "true")
    sbatch = place.words("shell", "--", "sbatch", "--mem=64", "--wrap", "true")
    environment = {**os.environ, "AVER_HOME": str(place.home)}
    commands = [
        subprocess.Popen(
            words, cwd=place.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for words in [submit, sbatch] * 4
    ]
    said = [command.communicate(timeout=120) for command in commands]
    assert [command.returncode for command in commands] == [0] * 8, said
    numbers = {int(out.split()[-1]) for out, _ in said}
    assert len(numbers) == 8
    assert place.pid() != old_pid
    assert place.lock()["version"] == __version__
    (place.folder / "go").touch()
    place("watch", "--timeout", "60", str(job), *map(str, numbers))
    assert (place.job(job)["state"], place.job(job)["exit"]["text"]) == ("FAILED", "3:0")
    assert {place.job(one)["state"] for one in numbers} == {"COMPLETED"}
