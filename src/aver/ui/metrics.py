"""`metrics`: OpenMetrics text of what the home does, for a monitor that has the token."""

from __future__ import annotations

import time
from itertools import accumulate

from aver.cli.session import Session
from aver.errors import UnreachableError
from aver.model.states import SETTLED, State
from aver.protocol.client import Client
from aver.protocol.messages import Ping, Pong
from aver.store.read.job_list import Wanted, find_jobs
from aver.ui.views import coordinator_facts
from aver.version import __version__

LATENCY = "aver_verdict_latency_seconds"
WINDOW_S = 3600.0
SAMPLED = 200  # of the newest ended jobs, for waits


def metrics_text(session: Session) -> str:
    now = time.time()
    facts = coordinator_facts(session)
    reader = session.reader
    lines = [
        "# TYPE aver_build info",
        f'aver_build_info{{version="{__version__}"}} 1',
        "# TYPE aver_coordinator_up gauge",
        "# HELP aver_coordinator_up Whether a coordinator answers.",
        f"aver_coordinator_up {int(facts.is_running)}",
        "# TYPE aver_jobs gauge",
        "# HELP aver_jobs Jobs that are not settled, by state.",
    ]
    counts = {} if reader is None else reader.unsettled_counts()
    lines += [f'aver_jobs{{state="{state.value}"}} {counts.get(state, 0)}' for state in State if not state.is_settled]
    lines += [
        "# TYPE aver_jobs_settled_last_hour gauge",
        "# HELP aver_jobs_settled_last_hour Jobs that were settled within the last hour, by verdict.",
    ]
    for state in sorted(SETTLED, key=lambda one: one.value):
        wanted = Wanted(states=frozenset({state}), since=now - WINDOW_S)
        count = 0 if reader is None else find_jobs(reader, wanted, 0, now)[1]
        lines.append(f'aver_jobs_settled_last_hour{{state="{state.value}"}} {count}')
    waits: list[float] = []
    if reader is not None:
        numbers, _ = find_jobs(reader, Wanted(states=SETTLED, since=now - WINDOW_S), SAMPLED, now)
        waits = [
            row.started_at - row.submitted_at for row in reader.listed(numbers)
            if row.started_at is not None and row.attempt == 1
        ]  # fmt: skip
    lines += [
        "# TYPE aver_queue_wait_seconds summary",
        "# UNIT aver_queue_wait_seconds seconds",
        f"# HELP aver_queue_wait_seconds From submission to start, of the newest {SAMPLED} jobs of the last hour.",
        f"aver_queue_wait_seconds_count {len(waits)}",
        f"aver_queue_wait_seconds_sum {sum(max(0.0, one) for one in waits):.6f}",
        *_latency_lines(session),
        "# TYPE aver_store_events gauge",
        "# HELP aver_store_events Number of the newest event of the store.",
        f"aver_store_events {0 if reader is None else reader.last_seq()}",
        "# EOF",
    ]
    return "\n".join(lines) + "\n"


def _latency_lines(session: Session) -> list[str]:
    """The coordinator's own histogram; without a coordinator there is none."""
    lines = [
        f"# TYPE {LATENCY} histogram",
        f"# UNIT {LATENCY} seconds",
        f"# HELP {LATENCY} From the end of an attempt to its durable verdict, since the coordinator began.",
    ]
    try:
        client = Client.connect(session.home, start=False)
    except UnreachableError:
        return lines
    try:
        found = client.ask(Ping(), Pong).verdicts
    except UnreachableError:
        return lines
    finally:
        client.close()
    counts = list(accumulate(found.counts))
    bounds = [*(f"{bound:g}" for bound in found.bounds_s), "+Inf"]
    lines += [f'{LATENCY}_bucket{{le="{bound}"}} {count}' for bound, count in zip(bounds, counts, strict=True)]
    return [*lines, f"{LATENCY}_count {counts[-1]}", f"{LATENCY}_sum {found.sum_s:.6f}"]
