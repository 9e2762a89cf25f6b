"""Rows about steps: how many a second the `srun`s of one script begin and end, beside a real Slurm where one is up."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from figures import FOLDER, Row
from product import Product, one_job

PING_S = 10
SLURM_S = 600
LOOP = "date +%s.%N; i=0; while [ $i -lt {count} ]; do srun /bin/true || exit 1; i=$((i+1)); done; date +%s.%N"


def steps(quick: bool) -> list[Row]:
    """`srun true` again and again in one job, from the first to the last one's end, as the script sees it."""
    count = 20 if quick else 200
    with Product(slots=2) as product:
        stdout = product.folder / "steps"
        product.settle(
            [product.submit(one_job("steps", "/bin/sh", "-c", LOOP.format(count=count), stdout=str(stdout)))]
        )
        ours = _rate(stdout, count)
    return [Row(f"{count} × srun true in one job", "steps/s", ours, note=_slurms(count))]


def _slurms(count: int) -> str:
    """The same of a real Slurm, in words; why not, where none answers."""
    if shutil.which("sbatch") is None or shutil.which("scontrol") is None:
        return "a real Slurm: skipped, its commands are not on PATH (scripts/slurm-lab start)"
    try:
        ping = subprocess.run(["scontrol", "ping"], capture_output=True, timeout=PING_S, check=False)
        if ping.returncode != 0 or b"UP" not in ping.stdout:
            return "a real Slurm: skipped, no slurmctld answers (scripts/slurm-lab start)"
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            stdout = Path(folder) / "steps"
            line = ["sbatch", "--wait", "-n1", "-o", str(stdout), "--wrap", LOOP.format(count=count)]
            done = subprocess.run(line, cwd=folder, capture_output=True, timeout=SLURM_S, check=False)
            if done.returncode != 0:
                return f"a real Slurm: skipped, its job ended with status {done.returncode}"
            return f"a real Slurm on this machine: {_rate(stdout, count):.1f} steps/s"
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        return f"a real Slurm: skipped, {error}"


def _rate(stdout: Path, count: int) -> float:
    """Steps a second, from the two times that the script printed."""
    try:
        began, ended = (float(line) for line in stdout.read_text().split())
    except (OSError, ValueError):
        raise RuntimeError("the script of steps did not get to its end") from None
    return count / (ended - began)


ROWS: dict[str, Callable[[bool], list[Row]]] = {"steps": steps}
