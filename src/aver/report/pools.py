"""Pools that all runs share, as the store and the settings have them: sizes, and which jobs have what of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aver.config import Config
from aver.model.job import JobSpec
from aver.model.record import Record
from aver.model.states import UNSETTLED, State

if TYPE_CHECKING:
    from aver.store.read.reader import Reader  # `aver submit` reads nothing


class PoolFacts(Record):
    """`used` is what active jobs have of it, which may be more than a size that was set since."""

    name: str
    size: int
    used: int
    jobs: tuple[int, ...]  # that have some of it
    waiting: int  # jobs that are pending and ask for it


def pool_sizes(config: Config, reader: Reader | None) -> dict[str, int]:
    """How much each pool has."""
    from aver.plan.packing import Pools  # most who import this need the facts' shape alone

    pools = Pools(dict(config.pools))
    for event in reader.pools() if reader is not None else ():
        pools.resize(event.name, event.size)
    return pools.sizes


def pool_facts(config: Config, reader: Reader | None) -> tuple[PoolFacts, ...]:
    """Every pool, by name."""
    used: dict[str, int] = {}
    holders: dict[str, list[int]] = {}
    waiting: dict[str, int] = {}
    for run in reader.unsettled_runs() if reader is not None else ():
        assert reader is not None
        specs = _specs(reader, run)
        if not any(spec.pools for flow in specs.values() for spec in flow):
            continue
        for row in reader.jobs(run, UNSETTLED):
            for name, amount in specs[row.first_job][row.spec].pools:
                if row.state is State.PENDING:
                    waiting[name] = waiting.get(name, 0) + 1
                else:
                    used[name] = used.get(name, 0) + amount
                    holders.setdefault(name, []).append(row.id)
    return tuple(
        PoolFacts(name, size, used.get(name, 0), tuple(holders.get(name, ())), waiting.get(name, 0))
        for name, size in sorted(pool_sizes(config, reader).items())
    )


def _specs(reader: Reader, run: int) -> dict[int, tuple[JobSpec, ...]]:
    """The definitions of a run's jobs, by the first job that each flow made."""
    row, submission = reader.run(run), reader.submission(run)
    if row is None or submission is None:
        return {}
    batches = {batch.first_job: batch.flow.jobs for batch in reader.generated(run)}
    return {row.first_job: submission.flow.jobs, **batches}
