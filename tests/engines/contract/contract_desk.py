"""One desk for every engine: hand over orders, listen, judge what was heard, come back as another engine object.

Nothing here knows what a test expects. A desk uses the protocol of `aver.engines.api` and nothing else of an engine.
"""

from __future__ import annotations

import itertools
import os
import secrets
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from aver.config import Config, SlurmConfig
from aver.engines.api import Control, Engine, Order, Rejected, Totals
from aver.engines.local import engine as local
from aver.engines.local.capabilities import find_cgroup
from aver.engines.slurm.cluster import make_engine, note_site
from aver.home import Home
from aver.judge.local import judge
from aver.judge.scheduler import judge_cluster
from aver.model.evidence import Evidence, Rules, Verdict
from aver.model.job import Request
from aver.model.record import replace

DEADLINE_S = 120.0
_numbers = itertools.count(1)


class Desk(ABC):
    """An engine in use. `ran` has a line for each time that an order which says so began."""

    name: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran = folder / "ran"
        self.evidence: dict[str, list[Evidence]] = {}
        self.engine = self.make()
        self.engine.attach()

    @abstractmethod
    def make(self) -> Engine:
        """Another object of the same engine, with the same files."""

    @abstractmethod
    def judge(self, evidence: list[Evidence], rules: Rules) -> Verdict | None:
        """The judge of this engine's attempts."""

    def order(self, text: str | tuple[str, ...], **fields: object) -> Order:
        """A shell's text, or a program as it is."""
        args = ("/bin/sh", "-c", text) if isinstance(text, str) else text
        order = Order(
            key=f"{secrets.token_hex(4)}.{next(_numbers)}.1.{secrets.token_hex(4)}", args=args,
            folder=str(self.folder), env_file=None, env=(f"PATH={os.environ['PATH']}", f"RAN={self.ran}"), umask=0o22,
            limits=(), request=Request(), stdin="/dev/null", stdout=str(self.folder / "out"), stderr=None, append=True,
            warning=None, kill_wait_s=1.0, name="contract",
        )  # fmt: skip
        return replace(order, **fields)  # type: ignore[arg-type]

    def submit(self, *orders: Order) -> None:
        for order, reply in zip(orders, self.engine.submit(orders), strict=True):
            assert reply.key == order.key
            assert not isinstance(reply, Rejected), reply

    def cancel(self, *orders: Order, signal: int = 0) -> None:
        self.engine.control([Control(order.key, "cancel", signal=signal) for order in orders])

    def listen(self, timeout_s: float) -> None:
        """Take what the engine says; its descriptor tells when there is something."""
        select.select([self.engine.fileno()], [], [], timeout_s)
        for heard in self.engine.heard():
            self.evidence.setdefault(heard.key, []).append(heard.evidence)

    def until(self, predicate: Callable[[], object], what: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while not predicate():
            if time.monotonic() > end:
                pytest.fail(f"{what}: not within {DEADLINE_S:g} s; heard: {self.evidence}")
            self.listen(0.05)

    def verdict(self, order: Order, rules: Rules = Rules()) -> Verdict | None:
        return self.judge(self.evidence.get(order.key, []), rules)

    def wait(self, *orders: Order) -> list[Verdict]:
        """The verdicts on these, when all have one."""
        self.until(lambda: all(self.verdict(order) for order in orders), "every order has a verdict")
        return [verdict for order in orders if (verdict := self.verdict(order)) is not None]

    def run(self, *orders: Order) -> list[Verdict]:
        self.submit(*orders)
        return self.wait(*orders)

    def wait_for_file(self, name: str) -> None:
        self.until((self.folder / name).exists, f"the file {name} is there")

    def restart(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """The engine's object goes, and another one comes; what the first had heard is lost."""
        self.engine.close()
        self.evidence.clear()
        meanwhile()
        self.engine = self.make()
        self.engine.attach()

    def settle(self, orders: Collection[Order]) -> None:
        self.engine.settle([order.key for order in orders])

    @abstractmethod
    def left_files(self) -> list[str]:
        """What the engine keeps on disk about attempts."""

    def close(self) -> None:
        self.engine.close()


class LocalDesk(Desk):
    name = "local"

    def __init__(self, folder: Path, witness: Path) -> None:
        self._witness = witness
        (folder / "w").mkdir()
        super().__init__(folder)

    def make(self) -> Engine:
        cgroup, _ = find_cgroup()
        return local.LocalEngine(self.folder / "w", self._witness, Totals(cpus=64, gpus=0, mem_bytes=1 << 40), cgroup)

    def judge(self, evidence: list[Evidence], rules: Rules) -> Verdict | None:
        return judge(evidence, rules)

    def left_files(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "w").iterdir() if path.suffix == ".log")


class SlurmDesk(Desk):
    name = "slurm"

    def __init__(self, folder: Path, configuration: str) -> None:
        self._home = Home(folder / "home")
        self._home.path.mkdir()
        note_site(self._home, [f"PATH={os.environ['PATH']}", f"SLURM_CONF={configuration}"])
        super().__init__(folder)

    def make(self) -> Engine:
        settle = (("record_s", 3.0), ("stable_s", 3.0))
        return make_engine(self._home, Config(slurm=SlurmConfig(poll_s=0.3, settle=settle)))

    def judge(self, evidence: list[Evidence], rules: Rules) -> Verdict | None:
        return judge_cluster(evidence, rules)

    def left_files(self) -> list[str]:
        slurm = self._home.path / "slurm"
        return sorted(path.name for folder in ("batches", "records") for path in (slurm / folder).iterdir())
