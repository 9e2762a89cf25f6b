"""Error lines of Slurm's commands never have a raw control character, whatever they quote."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

from aver.client.slurm_bin import install
from aver.home import Home

SOURCE = Path(__file__).resolve().parents[2] / "src" / "aver" / "slurm_cli"
HOSTILE = b"x\x1b]0;owned\x07\x1b[2J\x9b31m\xc2\x9b31m\r\x08\xe2\x80\xae"
CALLS = (
    (b"sbatch", b"--" + HOSTILE), (b"sbatch", b"-t", HOSTILE, b"--wrap", b"true"), (b"sbatch", HOSTILE),
    (b"sbatch", b"-D", HOSTILE, b"--mem", HOSTILE, b"--wrap", b"true"), (b"sbatch", b"-d", HOSTILE, b"--wrap=true"),
    (b"srun", b"--" + HOSTILE), (b"srun", b"-n", HOSTILE, b"true"), (b"srun", HOSTILE), (b"srun", b"-t", HOSTILE, b"x"),
    (b"srun", b"--multi-prog", HOSTILE), (b"srun", b"--jobid", HOSTILE, b"true"),
    (b"squeue", b"--" + HOSTILE), (b"squeue", b"-t", HOSTILE), (b"squeue", b"-o", b"%" + HOSTILE),
    (b"squeue", b"-j", HOSTILE), (b"squeue", b"-O", HOSTILE), (b"squeue", b"--sort", HOSTILE),
    (b"sacct", b"--" + HOSTILE), (b"sacct", b"-S", HOSTILE), (b"sacct", b"-o", HOSTILE), (b"sacct", b"-s", HOSTILE),
    (b"sacct", b"-j", HOSTILE), (b"scontrol", HOSTILE), (b"scontrol", b"show", HOSTILE),
    (b"scontrol", b"show", b"job", HOSTILE), (b"scontrol", b"update", b"JobId=1", HOSTILE + b"=1"),
    (b"scontrol", b"hold", HOSTILE), (b"scancel", b"--" + HOSTILE), (b"scancel", HOSTILE),
    (b"scancel", b"-s", HOSTILE, b"1"), (b"scancel", b"-t", HOSTILE), (b"salloc", b"--" + HOSTILE),
    (b"salloc", b"-n", HOSTILE), (b"sinfo", b"-o", HOSTILE), (b"sinfo", b"--" + HOSTILE), (b"sstat", b"-j", HOSTILE),
    (b"sacctmgr", HOSTILE), (b"seff", HOSTILE), (b"sshare", b"--" + HOSTILE),
)  # fmt: skip


@pytest.mark.parametrize("command", CALLS, ids=lambda words: ascii(b" ".join(words[:2])))
def test_no_control_character_gets_through(aver_home: Path, tmp_path: Path, command: tuple[bytes, ...]) -> None:
    """In options, operands, names of files and values."""
    home = Home(aver_home)
    home.prepare()
    install(home)
    program = os.path.join(os.fsencode(home.bin), command[0])
    done = subprocess.run([program, *command[1:]], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    text = done.stderr.decode("utf-8", "surrogateescape")
    assert [ascii(one) for one in text if not one.isprintable() and one not in "\n\t"] == []
    assert "Traceback" not in text


def test_stderr_has_one_door() -> None:
    """No module of Slurm's commands writes to stderr itself, `say` aside."""
    writers = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            words = ast.unparse(node) if isinstance(node, ast.Call) else ""
            if words.startswith(("sys.stderr.", "os.write(2,")) or ("print(" in words and "sys.stderr" in words):
                writers.add(path.relative_to(SOURCE).as_posix())
    assert writers == {"output.py"}
