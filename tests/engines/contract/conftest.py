"""Every engine has the same contract: its tests run once with each, and visibly not where nobody can start a Slurm."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract_desk import Desk, LocalDesk, SlurmDesk

from real_slurm import ONLY_ROOT, running_lab

SLURM_MARKS = (
    pytest.mark.slurm,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.skipif(os.geteuid() != 0, reason=ONLY_ROOT),
)


@pytest.fixture(scope="module", params=["local", pytest.param("slurm", marks=SLURM_MARKS)])
def desk(
    request: pytest.FixtureRequest, witness_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """A desk with each engine."""
    with tempfile.TemporaryDirectory(prefix="aver-", dir="/tmp") as folder:  # the path of a socket is short
        if request.param == "local":
            desk: Desk = LocalDesk(Path(folder), witness_binary)
            yield desk
            desk.close()
        else:
            with running_lab(tmp_path_factory.getbasetemp().parent) as lab:
                desk = SlurmDesk(Path(folder), lab.configuration)
                yield desk
                desk.close()
