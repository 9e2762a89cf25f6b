"""Files that no database keeps: secrets, values, Slurm's commands, exit records. A power cut leaves them usable."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from aver.client import slurm_bin, vault
from aver.engines.local.slot import split_lines
from aver.home import Home
from aver.judge.witness_record import parse_record
from aver.model.exit import ExitStatus
from aver.store.secrets import keep_values, load_masking
from power_loss import tree
from power_loss.disk import Tree
from power_loss.programs import first_wrong, record_program, run_recorded
from power_loss.recorder import Recorder

FIRST, SECOND = "first-" + "a" * 600, "second-" + "b" * 900
FOLDERS = 'home = root / "home"; (home / "env").mkdir(parents=True)\nfor one in (root, home):\n'
FOLDERS += "    fd = os.open(one, os.O_RDONLY); os.fsync(fd); os.close(fd)\n"


class Opened:
    """The tree of a state, put on a disk for each look at it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def home(self, state: Tree) -> Path:
        self._count += 1
        root = self._folder / f"state-{self._count}"
        root.mkdir()
        tree.put(state, root)
        (root / "home" / "env").mkdir(parents=True, exist_ok=True)
        return root / "home"


def test_a_secret_that_was_kept_is_masked_and_the_next_one_too(tmp_path: Path) -> None:
    """Also where the power went while the second one was written, and it is kept again afterwards."""
    (tmp_path / "recording").mkdir()
    text = f"{FOLDERS}from aver.store.secrets import keep_values\n"
    text += f"keep_values(str(home), 1, [{FIRST!r}]); done('first')\nkeep_values(str(home), 1, [{SECOND!r}])\n"
    ops = record_program(tmp_path / "recording", text)
    opened = Opened(tmp_path)

    def wrong(state: Tree, done: set[str]) -> str | None:
        home = os.fspath(opened.home(state))
        keep_values(home, 1, [SECOND])
        masking = load_masking(home, 1, ["NAME"])
        shown = masking.whole(f"{FIRST} {SECOND}")
        is_masked = SECOND not in shown and (FIRST not in shown or "first" not in done)
        return None if is_masked else f"shown: {shown}"

    assert (found := first_wrong(ops, wrong)) is None, found


def test_a_value_that_was_stored_is_there_and_the_next_one_too(tmp_path: Path) -> None:
    """As above, of the values of a flow's own environment."""
    (tmp_path / "recording").mkdir()
    text = f"{FOLDERS}from aver.client import vault\nfrom aver.home import Home\n"
    text += f"vault.store(Home(home), 1, {{'one': {FIRST!r}}}); done('first')\n"
    text += f"vault.store(Home(home), 1, {{'two': {SECOND!r}}})\n"
    ops = record_program(tmp_path / "recording", text)
    opened = Opened(tmp_path)

    def wrong(state: Tree, done: set[str]) -> str | None:
        home = Home(opened.home(state))
        vault.store(home, 1, {"two": SECOND})
        values = vault.load(home, 1)
        is_whole = values.get("two") == SECOND and ("first" not in done or values.get("one") == FIRST)
        return None if is_whole else f"{values!r:.200}"

    assert (found := first_wrong(ops, wrong)) is None, found


def test_slurms_commands_are_whole_after_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not synced: whatever a power cut made of them, they are made again in the next boot."""
    (tmp_path / "recording").mkdir()
    text = f"{FOLDERS}from aver.client.slurm_bin import install\nfrom aver.home import Home\ninstall(Home(home))\n"
    ops = record_program(tmp_path / "recording", text)
    opened = Opened(tmp_path)
    monkeypatch.setattr(slurm_bin, "read_boot_id", lambda: "f" * 32)
    whole = slurm_bin.texts()
    assert {*slurm_bin.COMMANDS, slurm_bin.SRUN_IN_PYTHON} == {*whole}

    def wrong(state: Tree, _: set[str]) -> str | None:
        home = Home(opened.home(state))
        slurm_bin.install(home)
        broken = [name for name, text in whole.items() if (home.bin / name).read_text() != text]
        return f"broken: {broken}" if broken else None

    assert (found := first_wrong(ops, wrong, count=120)) is None, found


def test_an_exit_record_is_whole_or_absent(tmp_path: Path) -> None:
    """And there once its witness has ended, which is when Slurm knows of the job's end."""
    recorder = Recorder(tmp_path)
    recorder.prepare()
    text = (
        "folder = root / 'records'; folder.mkdir(); fd = os.open(root, os.O_RDONLY); os.fsync(fd)\n"
        f"import subprocess; subprocess.run([{str(recorder.witness())!r}, 'once', '--record', str(folder / 'a.1'),"
        " '--key', 'a.1', '--', '/bin/sh', '-c', 'exit 3'])\ndone('ended')\n"
    )
    ops = run_recorded(recorder, text)

    def wrong(state: Tree, done: set[str]) -> str | None:
        node = state.get("records/a.1")
        if node is None:
            return "lost" if "ended" in done else None
        lines, rest, _ = split_lines(node.data)
        if len(lines) != 1 or rest:
            return f"not whole: {node.data!r}"
        return None if parse_record(json.loads(lines[0])).exit == ExitStatus(3) else "another end"

    assert (found := first_wrong(ops, wrong)) is None, found
