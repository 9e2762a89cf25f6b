"""A row about allocations on a real Slurm: steps per second of Aver's executor, beside bare calls of srun in a loop.

Both have an allocation of the same size, one after the other. The figure is from the first step's start to the last
one's end. Needs a Slurm that answers (scripts/slurm-lab start; eval "$(scripts/slurm-lab env)").
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from figures import FOLDER, Row
from product import Product, many_jobs
from slurm_rows import answers

from aver.model.codec import encode
from aver.model.job import Allocation, Submission
from aver.store.read.reader import Reader

WORDS = ("-N4", "--ntasks-per-node=1", "-c2", "-t30")
LONGEST_S = 1200
SRUN = "srun --exact -N1 -n1 -c1 --mem=0 true </dev/null"
LOOP = f"for i in $(seq $1); do {SRUN}; done"
AT_ONCE = f"seq $1 | xargs -P8 -I{{}} {SRUN.split(' <')[0]}"


def allocation(quick: bool) -> list[Row]:
    if not answers():
        return [
            Row("steps in an allocation", "/s", 0.0, note="skipped: no slurmctld answers (scripts/slurm-lab start)")
        ]
    count = 40 if quick else 300
    ours = _ours(count)
    bare = _bare(LOOP, count)
    at_once = _bare(AT_ONCE, count)
    note = f"bare srun in a loop: {bare:.1f} /s; eight at a time: {at_once:.1f} /s"
    return [
        Row(f"{count} steps in an allocation of 4 nodes", "/s", ours, must_hold=">= 0.8 of bare srun in a loop",
            holds=ours >= 0.8 * bare, note=note),
    ]  # fmt: skip


def _ours(count: int) -> float:
    with Product(slots=2) as product:
        whole = Submission(
            many_jobs("many", count, "/bin/true"), product.origin(), engine="allocation", allocation=Allocation(WORDS)
        )
        client = product.connect()
        environment = [f"{name}={value}" for name, value in os.environ.items()]
        run = client.call("submit", submission=encode(whole), env=environment)["run"]
        client.close()
        assert isinstance(run, int)
        product.settle([run])
        reader = Reader.open(product.home.database)
        assert reader is not None
        with reader:
            rows = reader.attempts_of_run(run)
    times = [(row.started_at, row.elapsed_s) for row in rows]
    known = [(start, start + took) for start, took in times if start is not None and took is not None]
    assert len(known) == count, f"{count - len(known)} steps have no times"
    return count / (max(end for _, end in known) - min(start for start, _ in known))


def _bare(loop: str, count: int) -> float:
    with tempfile.TemporaryDirectory(dir=FOLDER) as place:
        script, result = Path(place) / "loop", Path(place) / "result"
        script.write_text(f"#!/bin/bash\ns=$EPOCHREALTIME\n{loop}\necho $s $EPOCHREALTIME >{result}\n")
        words = ["sbatch", "--wait", "--output=/dev/null", *WORDS, str(script), str(count)]
        subprocess.run(words, check=True, capture_output=True, timeout=LONGEST_S)
        began, ended = (float(word.replace(",", ".")) for word in result.read_text().split())
    return count / (ended - began)


ROWS: dict[str, Callable[[bool], list[Row]]] = {"allocation": allocation}
