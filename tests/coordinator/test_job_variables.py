"""docs/en/reference/job-environment.md lists every variable that a job gets, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from aver.coordinator.order.order import order_of
from aver.coordinator.state.live import Identity
from aver.coordinator.state.machine import Machine
from aver.engines.registry import capabilities_of
from aver.home import Home
from aver.model import threads
from aver.model.job import Argv, Container, FlowSpec, JobSpec, Matrix, Origin, Request, Setup, Streams, Submission
from aver.model.slurm_options import SlurmOptions
from aver.plan.packing import Room

PAGE = Path(__file__).parents[2] / "docs" / "en" / "reference" / "job-environment.md"
GIB = 1 << 30
OPTIONS = SlurmOptions(ntasks=1, ntasks_per_node=1, cpus_per_task=1)
TRUE = Argv(("true",))
FROM_THE_SUBMITTER = {"PATH", "PYTHONUNBUFFERED", "AVER_BASH_ENV"}
FROM_THE_ENGINE = {"AVER_KEY", "AVER_MACHINE_CPUS", *threads.VARIABLES}


def on_page() -> set[str]:
    text = PAGE.read_text().partition("## Other things")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([A-Z_0-9]+)`", cell)}


def names_of(home: Home, *specs: JobSpec) -> set[str]:
    """The variables that the orders of these jobs have, as first and as second attempts."""
    room = Room(8, 2, 64 * GIB)
    machine = Machine(Identity("0123abcd", "b" * 32, "here"), room, 1, capabilities_of)
    machine.submit(Submission(FlowSpec("flow", specs), Origin("tester", 1, "here", "/", 0o22)), 1.0)
    machine.schedule(1.0)
    names: set[str] = set()
    for attempt in list(machine.attempts.values()):
        attempt.gpus = (0,) * attempt.request.gpus
        for attempt.attempt in (1, 2):
            order = order_of(home, machine.runs[attempt.run], attempt, 30.0, 1000.0)
            names |= {pair.partition("=")[0] for pair in order.env}
    return names


def test_the_page_lists_the_variables_of_every_order(tmp_path: Path) -> None:
    """Of a command with GPUs, a member of a matrix, and arrays of sbatch with all that may be asked for."""
    array = Matrix((("array", ("0", "1")),))
    found = names_of(
        Home(tmp_path),
        JobSpec("plain", TRUE, request=Request(gpus=1)),
        JobSpec("boxed", TRUE, setup=Setup(container=Container("image"))),
        JobSpec("member", TRUE, matrix=Matrix((("NAME", ("1",)),))),
        JobSpec(
            "batch", TRUE, request=Request(gpus=1, mem_bytes=GIB, time_s=60), slurm=OPTIONS,
            slurm_options=("--overcommit",), streams=Streams(append=True),
        ),
        JobSpec("array", TRUE, matrix=array, slurm=SlurmOptions(mem_per_cpu=GIB, ntasks=1)),
    )  # fmt: skip
    assert found | FROM_THE_SUBMITTER | FROM_THE_ENGINE == on_page()
