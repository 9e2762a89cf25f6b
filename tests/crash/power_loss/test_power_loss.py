"""The power goes at any instant of a recorded home's life: what was shown stays true, and nothing is made up."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from live_home import LiveHome
from power_loss import tree
from power_loss.checks import Facts, damage, problems
from power_loss.disk import Disk, Tree
from power_loss.programs import python_path
from power_loss.recorder import Recorder
from power_loss.reopen import Reopener
from power_loss.states import State, choose, trees
from power_loss.trace import Op
from power_loss.workload import HOME, record

SEED = 14
STATES = 250  # of each of the two ways in which a store is kept
STATES_OF_LONG = int(os.environ.get("AVER_POWER_LOSS_STATES", "10000"))
SEED_OF_LONG = int(os.environ.get("AVER_POWER_LOSS_SEED", "16"))  # another seed: other states, so counts add up
STARTED = 3  # so many of them are opened by a command, in processes of their own
BATCH = 50
REPEAT = "AVER_POWER_LOSS"  # "FOLDER STATE…": a recording that a failure has kept, and states of it
OTHER_BOOT = "import aver.home\naver.home.read_boot_id = lambda: 'f' * 32\n"


@dataclass(frozen=True)
class Recording:
    folder: Path
    ops: list[Op]
    facts: Facts


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """A folder for homes; in memory where that is possible, since what is synced there need survive nothing."""
    memory = Path("/dev/shm")
    base = memory if os.access(memory, os.W_OK | os.X_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="aver-power-", dir=base))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def reopener(scratch: Path, witness_binary: Path) -> Iterator[Reopener]:
    reopener = Reopener(_environment(), scratch / "config.toml")
    yield reopener
    reopener.close()


@pytest.fixture(scope="module", params=["disk", "network"])
def recording(request: pytest.FixtureRequest, scratch: Path) -> Iterator[Recording]:
    """A recorded home, with the store as it is kept on a disk (WAL) or on a network file system."""
    folder = Path(tempfile.mkdtemp(prefix="aver-power-", dir="/tmp"))
    record(folder, _environment(), on_network=request.param == "network")
    yield _load(folder, scratch / request.param)
    if not (folder / "kept").exists():
        shutil.rmtree(folder)


def _environment() -> dict[str, str]:
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{python_path()}{os.pathsep}{path}" if path else python_path()}


def _load(folder: Path, scratch: Path) -> Recording:
    ops = Recorder(folder).ops()
    disk = Disk()
    for op in ops:
        disk.apply(op)
    scratch.mkdir()
    tree.put(disk.as_seen(), scratch)
    return Recording(folder, ops, Facts.of(ops, scratch / HOME / "aver.db"))


def _put(state: State, survived: Tree, scratch: Path) -> Path:
    """Make the home that the power cut has left, and return its path."""
    place = scratch / str(state) / "root"
    place.mkdir(parents=True)
    tree.put(survived, place)
    home = place / HOME
    if (home / "aver.db").exists():
        tree.put_stale_index(home / "aver.db", random.Random(f"index {state.seed}"))
    home.parent.mkdir(mode=0o700, exist_ok=True)
    return home


def _broken(recording: Recording, states: list[State], scratch: Path, reopener: Reopener) -> list[str]:
    """Open a home in each of these states, and return what is wrong."""
    found: list[str] = []
    made = trees(recording.ops, states)
    while batch := list(islice(made, BATCH)):
        homes = {_put(state, survived, scratch): state for state, survived in batch}
        for state, survived in batch:
            found += [f"state {state}: {one}" for one in damage(recording.facts, state.cut, survived)]
        for home, status in reopener.open(list(homes)):
            state, place = homes[home], home.parents[2]
            log = Path(f"{home}.log").read_text(errors="replace")
            if status or "ready" not in log.splitlines():
                found.append(f"state {state}: the coordinator ended with {status}: {log[-2000:]}")
            found += [f"state {state}: {one}" for one in problems(recording.facts, state.cut, home, place / "ran")]
            shutil.rmtree(place)
    return found


def _assert_whole(recording: Recording, found: list[str], seed: int) -> None:
    if found:
        (recording.folder / "kept").touch()
        again = f"{REPEAT}='{recording.folder} {found[0].split()[1].rstrip(':')}' pytest {__file__} -k again"
        pytest.fail(f"{len(found)} promises are broken, seed {seed}; again: {again}\n" + "\n".join(found[:20]))


def test_the_model_agrees_with_the_disk(recording: Recording) -> None:
    """If nothing is lost the model has, byte for byte, what was on the real disk in the end."""
    disk = Disk()
    for op in recording.ops:
        disk.apply(op)
    modelled, real = disk.as_seen(), tree.read(recording.folder / "root")
    assert {path: node.data for path, node in modelled.items()} == {path: node.data for path, node in real.items()}


@pytest.mark.timeout(1500)
def test_no_state_breaks_a_promise(recording: Recording, scratch: Path, reopener: Reopener) -> None:
    """Whatever survives: no shown verdict is lost or changed, none is made up, none is given twice."""
    _assert_whole(recording, _broken(recording, choose(recording.ops, STATES, SEED), scratch, reopener), SEED)


def test_a_command_opens_what_a_power_cut_has_left(
    recording: Recording, scratch: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As above, with a coordinator that a client starts."""
    (tmp_path / "sitecustomize.py").write_text(OTHER_BOOT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    seed = SEED + 1
    states = [state for state in choose(recording.ops, 2 * STARTED, seed) if state.cut > len(recording.ops) // 3]
    found: list[str] = []
    for state, survived in trees(recording.ops, states[-STARTED:]):
        home = _put(state, survived, scratch)
        live = LiveHome(home, tmp_path)
        try:
            live.connect_again()
            with live.reader() as reader:
                runs = [run.id for run in reader.runs()]
            live.settle(runs)
            with live.client() as client:
                client.call("stop")
            live.wait_until_gone()
        finally:
            live.end_everything()
        place = home.parents[2]
        found += [f"state {state}: {one}" for one in problems(recording.facts, state.cut, home, place / "ran")]
        shutil.rmtree(place)
    assert len(states) >= STARTED
    _assert_whole(recording, found, seed)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_no_state_of_very_many_breaks_a_promise(recording: Recording, scratch: Path, reopener: Reopener) -> None:
    """Several states of every position of the trace."""
    states = choose(recording.ops, STATES_OF_LONG, SEED_OF_LONG)
    _assert_whole(recording, _broken(recording, states, scratch, reopener), SEED_OF_LONG)


@pytest.mark.skipif(REPEAT not in os.environ, reason=f"{REPEAT} names no state that is to be looked at again")
def test_a_state_again(scratch: Path, reopener: Reopener) -> None:
    """The states of a recording that a failure has kept."""
    folder, *texts = os.environ[REPEAT].split()
    recording = _load(Path(folder), scratch / "again")
    states = sorted(State.parse(text) for text in texts)
    _assert_whole(recording, _broken(recording, states, scratch, reopener), SEED)
