"""Small programs, recorded, and every state that a power cut may leave of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from power_loss.disk import Tree
from power_loss.recorder import ENVIRONMENT, Recorder
from power_loss.states import State, choose, trees
from power_loss.trace import Kind, Op

DONE = "done"
HEAD = f"""
import os, pathlib
from power_loss.recorder import Recorder
recorder = Recorder(pathlib.Path(os.environ[{ENVIRONMENT!r}]))
root = recorder.root
def done(what):
    with recorder.standstill():
        recorder.mark({{{DONE!r}: what}})
"""
Wrong = Callable[[Tree, set[str]], str | None]  # what is wrong with a tree, if so much was done


def python_path() -> str:
    """Where a recorded Python finds this package and what tests share."""
    here = Path(__file__).resolve().parent
    return os.pathsep.join([str(here.parent), str(here.parents[1])])


def record_program(folder: Path, text: str) -> list[Op]:
    """Run a Python text in a recording of its own; see `run_recorded`."""
    recorder = Recorder(folder)
    recorder.prepare()
    return run_recorded(recorder, text)


def run_recorded(recorder: Recorder, text: str) -> list[Op]:
    """Run a Python text that writes below `root` and says what is `done`."""
    environment = recorder.environment({**os.environ, "PYTHONPATH": python_path()})
    subprocess.run([sys.executable, "-c", HEAD + text], env=environment, check=True)
    return recorder.ops()


def first_wrong(ops: list[Op], is_wrong: Wrong, count: int = 300, seed: int = 7) -> str | None:
    """The first state of the recorded program in which something is wrong, and what. Half of them are of its end."""
    ends = [State(len(ops), seed * 1_000_000 + number) for number in range(count // 2)]
    for state, tree in trees(ops, [*choose(ops, count - len(ends), seed), *ends]):
        done = {str(op.mark[DONE]) for op in ops[: state.cut] if op.kind is Kind.MARK}
        wrong = is_wrong(tree, done)
        if wrong is not None:
            return f"state {state} of seed {seed}: {wrong}"
    return None
