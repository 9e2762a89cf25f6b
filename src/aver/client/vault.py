"""Environment values of jobs, kept out of the store.

A flow's `env:` values are sealed before the flow is stored: each becomes a keyed digest, and the value itself
goes into a file of the run, mode 0600, that is removed with the run's environment. Equal values have equal
digests in one home, so a changed value is still seen as changed.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path

from aver.durable_files import naming_failures, write_file
from aver.home import Home
from aver.model.job import FlowSpec, JobSpec
from aver.model.record import replace
from aver.plan.matrix import members
from aver.plan.placeholders import fill, names_in
from aver.store.secrets import home_key

MARK = "sealed:"
DIGEST_HEX = 32
MOST_MEMBERS = 1000  # of a matrix whose values make secrets


def seal(home: Home, flow: FlowSpec) -> tuple[FlowSpec, dict[str, str]]:
    """The flow with digests in place of its environment values, and the values by their digests."""
    defaults = flow.defaults
    if not any(spec.env for spec in flow.jobs) and (defaults is None or not defaults.env):
        return flow, {}
    key = home_key(os.fspath(home.path))
    values: dict[str, str] = {}

    def sealed(value: str) -> str:
        if is_sealed(value):
            return value
        digest = MARK + hmac.digest(key, os.fsencode(value), "sha256").hex()[:DIGEST_HEX]
        values[digest] = value
        return digest

    def sealed_job(spec: JobSpec) -> JobSpec:
        return replace(spec, env=tuple((name, sealed(value)) for name, value in spec.env)) if spec.env else spec

    jobs = tuple(sealed_job(spec) for spec in flow.jobs)
    return replace(flow, jobs=jobs, defaults=None if defaults is None else sealed_job(defaults)), values


def is_sealed(value: str) -> bool:
    digest = value.removeprefix(MARK)
    return value != digest and len(digest) == DIGEST_HEX and all(letter in "0123456789abcdef" for letter in digest)


def store(home: Home, run: int, values: Mapping[str, str]) -> None:
    """Add values to the run's file, all or none; durable when this returns."""
    if not values:
        return
    known = {**load(home, run), **values}
    data = b"".join(os.fsencode(f"{digest}={value}") + b"\0" for digest, value in known.items())
    with naming_failures(_path(home, run)):
        write_file(_path(home, run), data)


def load(home: Home, run: int) -> dict[str, str]:
    """Load the run's values by their digests; empty if it has none."""
    try:
        data = _path(home, run).read_bytes()
    except FileNotFoundError:
        return {}
    pairs = (os.fsdecode(pair).partition("=") for pair in data.split(b"\0")[:-1])
    return {digest: value for digest, _, value in pairs}


def secret_values(flow: FlowSpec, names: Collection[str], opened: Mapping[str, str] = {}) -> set[str]:
    """The values of these names in a flow's own `env:`, with places filled; `opened` are by digests."""
    found: set[str] = set()
    for spec in flow.jobs:
        for name, sealed in spec.env:
            if name not in names:
                continue
            value = opened.get(sealed, sealed)
            found.add(value)
            if (spec.matrix is not None or spec.params) and names_in(value):
                some = islice(members(spec), MOST_MEMBERS)
                found |= {fill(value, dict(one.values + spec.params)) for one in some}
    return found


def _path(home: Home, run: int) -> Path:
    return home.path / "env" / f"{run}.values.env"
