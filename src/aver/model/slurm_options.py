"""What a job from a batch script or from one of Slurm's commands was asked for beyond its request.

Slurm's commands show it, the job's SLURM_* variables have it, and a few rules differ by it. None: not asked for.
"""

from __future__ import annotations

from enum import StrEnum

from aver.model.record import Record


class SlurmKind(StrEnum):
    """Which kind of job: only a batch job has a script."""

    BATCH = "batch"
    SRUN = "srun"
    SALLOC = "salloc"


class SlurmOptions(Record):
    kind: SlurmKind = SlurmKind.BATCH
    command: str | None = None  # as scontrol shows it, empty for text without a file; None: not one of Slurm's commands
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    ntasks: int | None = None
    ntasks_per_node: int | None = None
    cpus_per_task: int | None = None
    mem_per_cpu: int | None = None  # bytes
    time_min_s: int | None = None  # less time than this before its deadline, and the job is not started
    requeue: bool | None = None
    exclusive: str | None = None  # empty: the whole machine; `user` and `mcs` mean nothing on one
    gres: str | None = None
    licenses: str | None = None
    features: str | None = None
    reservation: str | None = None
    nodelist: str | None = None
    exclude: str | None = None
    wckey: str | None = None
    nice: str | None = None

    @property
    def has_whole_machine(self) -> bool:
        return self.exclusive == ""

    @property
    def asked_cpus(self) -> int:
        """CPUs of all tasks; 0 where no tasks were asked for."""
        return (self.ntasks or 0) * (self.cpus_per_task or 1)
