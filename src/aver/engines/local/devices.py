"""The CPUs and GPUs of a job on this machine, as fields of its order."""

from __future__ import annotations

from aver.engines.api import Order
from aver.engines.local.cpu_sets import MACHINE_CPUS, CpuSets, parse_cpu_list
from aver.engines.local.job_cgroup import job_of_task


class Devices:
    """A job has the CPUs that it took, or that one before it had, and sees no GPU unless it asked for some.

    Without sets jobs share all CPUs.
    """

    def __init__(self, sets: CpuSets | None, hides_gpus: bool) -> None:
        self._sets = sets
        self._hides_gpus = hides_gpus

    def take(self, order: Order) -> list[str]:
        """Give the order CPUs of its own, or its job's; return its fields."""
        job, sets, request = job_of_task(order.key), self._sets, order.request
        cpus = ""
        if sets is not None:
            is_whole = job is None and request.cpus == request.whole_cpus
            cpus = sets.take(order.key, request.whole_cpus) if is_whole else sets.of(job or order.key)
        return self.fields(order, cpus)

    def fields(self, order: Order, cpus: str) -> list[str]:
        """The fields of an order with these CPUs."""
        is_blind = self._hides_gpus and not order.request.gpus and job_of_task(order.key) is None
        fields = ["ECUDA_VISIBLE_DEVICES="] if is_blind else []
        if cpus and self._sets is not None:
            fields += ["B" + cpus, f"E{MACHINE_CPUS}={self._sets.all}"]
        return fields

    def of(self, key: str) -> str:
        """The CPUs that the attempt has; "" without any of its own."""
        return "" if self._sets is None else self._sets.of(key)

    def hold(self, key: str, cpus: str) -> None:
        """The attempt has these."""
        if self._sets is not None and cpus:
            self._sets.hold(key, parse_cpu_list(cpus))

    def release(self, key: str) -> None:
        if self._sets is not None:
            self._sets.release(key)
