"""The engines by their names: those that Aver ships, and those that `[engines]` in the settings names.

Each name stands for a `Registration`, written as `module:attribute`; the module is imported when somebody asks for it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from aver.config import ALLOCATION_ENGINE, SHIPPED_ENGINES, engine_names, load_config
from aver.engines.api import ABSENT, Capabilities, Registration
from aver.errors import UsageError

_SHIPPED = {
    **{name: f"aver.engines.{name}.registration:ENGINE" for name in SHIPPED_ENGINES},
    ALLOCATION_ENGINE: "aver.engines.slurm.registration:ALLOCATION_ENGINE",
}
_capabilities: dict[str, Capabilities] = {}  # of engines that somebody asked for


def find_engine(name: str) -> Registration | None:
    """The engine of this name; None: nobody registered one. UsageError if its module can't be used."""
    place = _SHIPPED.get(name) or dict(load_config().engines).get(name)
    return None if place is None else _load(name, place)


def capabilities_of(name: str) -> Capabilities:
    """What the engine can do; `ABSENT` where its module is gone: the store may name any, and is read all the same.

    The coordinator does not start with settings whose engines can't be loaded.
    """
    known = _capabilities.get(name)
    if known is not None:
        return known
    try:
        found = find_engine(name)
    except UsageError:
        return ABSENT
    if found is None:
        return ABSENT
    return _capabilities.setdefault(name, found.capabilities)


def all_engines() -> list[Registration]:
    """Those that people may choose, and the engine of allocations."""
    found = [find_engine(name) for name in (*engine_names(), ALLOCATION_ENGINE)]
    return [one for one in found if one is not None]


def host_engine() -> str:
    """The engine of jobs that are given a host behind ssh."""
    return next(one.name for one in all_engines() if one.capabilities.takes_sbatch_options)


def allocation_engine() -> str:
    """The engine of jobs that run in allocations of their run."""
    return next(one.name for one in all_engines() if one.capabilities.uses_allocations)


@cache
def _load(name: str, place: str) -> Registration:
    module, _, attribute = place.partition(":")
    try:
        found = getattr(import_module(module), attribute, None)
    except (ImportError, SyntaxError) as error:
        raise UsageError(f"the settings: engines.{name}: can't import {module}: {error}") from None
    if not isinstance(found, Registration) or found.name != name:
        raise UsageError(f"the settings: engines.{name}: {place} is not the registration of an engine {name!r}")
    return found
