"""The folder that a home shares with the nodes of a cluster: what another user made there is not used."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from aver.config import load_config
from aver.engines.api import Order
from aver.engines.slurm.batches import Batch, Shelf
from aver.engines.slurm.cluster import make_allocator, make_engine
from aver.engines.slurm.commands.call import Commands, Reply, Trouble
from aver.engines.slurm.remote.host import Host, Layout
from aver.engines.slurm.submit.sbatch_answer import Refusal
from aver.engines.slurm.submit.sbatch_call import Hander
from aver.errors import UsageError
from aver.model.job import Request
from live_home import LiveHome, shell_job
from node_witness import witness_at
from second_user import OTHER, needs_root, other_does


@pytest.fixture
def scratch(live: LiveHome, place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file system's scratch folder, for everybody and with the sticky bit, named by `slurm.folder`."""
    folder = place / "scratch"
    folder.mkdir()
    folder.chmod(0o1777)
    config = place / "config.toml"
    config.write_text(f'cpus = 4\n[slurm]\nfolder = "{folder}"\n')
    monkeypatch.setenv("AVER_CONFIG", str(config))
    return folder


@needs_root
@pytest.mark.parametrize("made", ["", "bin"])
def test_folder_that_somebody_else_made(live: LiveHome, scratch: Path, made: str) -> None:
    """Whoever submits hears so at once; no witness of ours is put there."""
    own = scratch / live.home.path.name
    if made:
        own.mkdir(mode=0o777)
        own.chmod(0o777)
    other_does(lambda: (own / made).mkdir(mode=0o755))
    for make in (lambda: make_engine(live.home, load_config()), lambda: make_allocator(live.home, load_config(), "k")):
        live.home.prepare()
        with pytest.raises(UsageError, match=rf"{own}.*uid {OTHER}.*slurm\.folder"):
            make()
    with pytest.raises(UsageError, match=rf"{own}.*uid {OTHER}.*slurm\.folder"):
        live.submit(shell_job("job", "exit 0", engine="slurm"))
    assert [path.name for path in own.iterdir()] == ([made] if made else [])


@needs_root
def test_folder_that_others_can_rename(live: LiveHome, scratch: Path) -> None:
    """Without the sticky bit somebody else could put another folder in its place."""
    scratch.chmod(0o777)
    with pytest.raises(UsageError, match=rf"{scratch}.*slurm\.folder"):
        live.submit(shell_job("job", "exit 0", engine="slurm"))


def test_own_folder_is_private(live: LiveHome, scratch: Path) -> None:
    """It has mode 0700, whatever the umask and whatever mode it had."""
    live.home.prepare()
    own = scratch / live.home.path.name
    own.mkdir()
    own.chmod(0o755)
    before = os.umask(0)
    try:
        make_engine(live.home, load_config()).close()
    finally:
        os.umask(before)
    assert {stat.S_IMODE((own / name).stat().st_mode) for name in (".", "bin", "records")} == {0o700}


# ---- on another host ---------------------------------------------------------------------------------------------


class Shell:
    """Stands for the connection: the lines run in a bash of this machine, as the host's do."""

    host = "login"

    def run_text(self, text: str, timeout_s: float, stdin: bytes = b"") -> Reply | Trouble:
        whole = f"_aver_do() {{\n{text}\n}}\n_aver_do"
        done = subprocess.run(["bash", "-c", whole], input=stdin, capture_output=True, timeout=timeout_s, check=False)
        return Reply(done.returncode, done.stdout.decode(), done.stderr.decode(), 0.0)


def _layout(folder: Path, witness: Path) -> Layout | Trouble:
    host = Host(Shell(), str(folder), witness, 30.0, lambda text: None, lambda found: None, lambda: 0.0)  # type: ignore[arg-type]
    return host.layout()


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_folder_on_a_host(place: Path, witness_binary: Path, umask: int) -> None:
    """It is made with mode 0700, with the folders above it, and the witness in it has its hash."""
    before = os.umask(umask)
    try:
        found = _layout(place / "a" / "own", witness_binary)
    finally:
        os.umask(before)
    assert isinstance(found, Layout), found
    assert witness_at(found.witness.path) == found.witness
    modes = {stat.S_IMODE((place / name).stat().st_mode) for name in ("a", "a/own", "a/own/bin", "a/own/records")}
    assert modes == {0o700}
    (place / "a" / "own" / "link").symlink_to("/nowhere")
    assert isinstance(_layout(place / "a" / "own", witness_binary), Layout)


@needs_root
@pytest.mark.parametrize("planted", ["own", "own/bin", "open"])
def test_folder_on_a_host_that_somebody_else_made(place: Path, witness_binary: Path, planted: str) -> None:
    """Nothing is brought there; the sentence says what to do."""
    place.chmod(0o777 if planted == "open" else 0o1777)
    own = place / "own"
    if planted == "own/bin":
        own.mkdir()
        own.chmod(0o777)
    if planted != "open":
        other_does(lambda: (place / planted).mkdir(mode=0o777))
    found = _layout(own, witness_binary)
    assert isinstance(found, Trouble)
    assert "another user's" in found.text if planted != "open" else f"rename what is in {place}" in found.text
    assert list(own.glob("bin/*")) == []


# ---- what sbatch opens -------------------------------------------------------------------------------------------


def _order(stdout: Path, own_parts: int) -> Order:
    return Order(
        key="1a.1.1.x", args=("true",), folder="/", env_file=None, env=(), umask=0o22, limits=(), request=Request(),
        stdin=None, stdout=str(stdout), stderr=None, append=False, warning=None, kill_wait_s=1.0, name="job",
        own_parts=own_parts,
    )  # fmt: skip


def _handed(place: Path, words: Sequence[Order]) -> object:
    sbatch = place / "sbatch"
    sbatch.write_text(f"#!/bin/sh\ntouch {place}/called\necho 7\n")
    sbatch.chmod(0o755)
    commands = Commands(path=f"{place}:/usr/bin:/bin")
    hander = Hander(
        lambda: commands, witness=witness_at("/no"), records="/no", shim="/no", own_folder="/no", timeout_s=20.0
    )
    batch = Batch("job", (words[0].key,), 0.0)
    (place / "batches").mkdir(exist_ok=True)
    return hander.hand_over(batch, words, Shelf(place / "batches"))


@needs_root
@pytest.mark.parametrize("kind", ["folder", "link", "their file"])
def test_output_that_slurm_would_open(place: Path, kind: str) -> None:
    """Slurm follows what is there, so a job whose output somebody else has put there is not handed over."""
    out = place / "aver-7" / "a.out"
    out.parent.mkdir()
    out.parent.chmod(0o777)
    if kind == "link":
        other_does(lambda: out.symlink_to("/dev/null"))
    elif kind == "their file":
        other_does(lambda: out.write_text("x"))
    if kind != "folder":
        out.parent.chmod(0o755)
    answer = _handed(place, [_order(out, 2)])
    assert isinstance(answer, Refusal)
    assert str(out.parent) in answer.text
    assert "not yours" in answer.text
    assert not (place / "called").exists()
    assert not isinstance(_handed(place, [_order(out, 0)]), Refusal)
    assert (place / "called").exists()
