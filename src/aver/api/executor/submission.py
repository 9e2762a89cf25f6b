"""From calls to a submission: one run, one job for each call."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from aver.api.executor.future import Future
from aver.api.flow import Flow
from aver.api.function_call import command_words, pickled_call, server_words
from aver.calls.files import Reference, write_calls
from aver.client.origin import origin_of
from aver.config import load_config
from aver.durable_files import naming_failures
from aver.engines.registry import find_engine
from aver.errors import UsageError
from aver.home import Home
from aver.model.job import After, AfterKind, Afters, Argv, FlowSpec, JobSpec, Need, Needs, Streams, Submission
from aver.model.record import replace

LONGEST_NAME = 60
_NAME = re.compile(r"[A-Za-z0-9._-]+")


class Call(NamedTuple):
    """A call on its way: its future, the pickled function with its arguments, what its job may use, what it needs."""

    future: Future[Any]
    data: bytes
    spec: JobSpec
    needs: tuple[Future[Any], ...]
    modules: tuple[str, ...] | None = None  # that a server imports and then forks the call; None: no server
    run_key: str = ""  # of a call with a key: that of its run
    fingerprint: str = ""  # of a call with a key


def check_name(name: str) -> None:
    """Refuse a name of an executor that can't be one: UsageError."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise UsageError(f"the executor's name {name!r}: 1 to {LONGEST_NAME} letters, digits, dots, - and _")


def job_name(text: str) -> str:
    """As jobs may be called."""
    return "".join(one if one.isalnum() or one in "._-" else "_" for one in text) or "call"


def job_spec(options: Mapping[str, object]) -> JobSpec:
    """What the job of a call may use, checked as the keys of a flow are; UsageError."""
    return _job_spec(tuple(sorted((name, _frozen(value)) for name, value in options.items())))


@lru_cache(maxsize=1000)
def _job_spec(options: tuple[tuple[str, Any], ...]) -> JobSpec:
    flow = Flow("call")
    try:
        flow.job("call", argv=["true"], **{name: _thawed(value) for name, value in options})
    except TypeError as error:
        raise UsageError(f"options of a call: {str(error).partition('() ')[2] or error}") from None
    return flow.check().jobs[0]


def _frozen(value: object) -> object:
    """The same, hashable."""
    if isinstance(value, Mapping):
        return ("{}", *((key, _frozen(one)) for key, one in value.items()))
    return ("[]", *map(_frozen, value)) if isinstance(value, list | tuple) else value


def _thawed(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    mark, *rest = value
    return {key: _thawed(one) for key, one in rest} if mark == "{}" else [_thawed(one) for one in rest]


def dump_call(
    function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object], home: Home
) -> tuple[bytes, tuple[Future[Any], ...]]:
    """The call pickled, and the futures whose results stand in its arguments, however deep. UsageError."""
    needs: dict[int, Future[Any]] = {}

    def refer(value: object) -> Reference | None:
        if not isinstance(value, Future):
            return None
        if value._home.path != home.path:
            raise UsageError(f"{value!r} is of another home, {value._home.path}: give its result()")
        needs[id(value)] = value
        return value._reference

    return pickled_call(function, args, kwargs, refer), tuple(needs.values())


def make_submission(name: str, key: str, calls: Sequence[Call]) -> Submission:
    """One run with these calls. Their file is durable when this returns."""
    config = load_config()
    folder = calls[0].future._reference[0]
    batch = hashlib.sha256(f"{key} {calls[0].fingerprint}".encode()).hexdigest()[:24]
    path = os.path.join(folder, f"{batch}.calls")
    with naming_failures(path):
        write_calls(path, {call.future._reference[1]: call.data for call in calls})
    here = {id(call.future): call.future.name for call in calls}
    servers = {group: _server(group, folder) for group in {_group(call) for call in calls}}
    jobs = tuple(_job(call, path, here, servers[_group(call)]) for call in calls)
    submission = Submission(
        FlowSpec(name, jobs), origin_of(("python",), config.secrets), engine=config.engine, host=config.slurm.host,
        key=key,
    )  # fmt: skip
    for job in jobs:
        registered = find_engine(job.engine or config.engine)
        if registered is not None and registered.capabilities.takes_sbatch_options and (job.host or submission.host):
            raise UsageError("functions can't run on a host behind ssh, which has other files: use a flow")
    return submission


def _job(call: Call, path: str, here: Mapping[int, str], server: tuple[str, ...]) -> JobSpec:
    reference = call.future._reference
    own = tuple(Need(here[id(need)]) for need in call.needs if id(need) in here)
    numbers = tuple(
        (need._number, None) for need in call.needs if id(need) not in here and not _is_there(need) and need._number
    )
    words = command_words(path, reference[1])
    log = os.path.join(reference[0], f"{reference[1]}.log").replace("%", "%%")
    return replace(
        call.spec,
        name=call.future.name,
        command=Argv((*words, call.fingerprint) if call.fingerprint else words, server),
        needs=Needs(own),
        after=Afters((After(AfterKind.AFTEROK, numbers),), ends_if_never=True) if numbers else None,
        streams=call.spec.streams if call.spec.streams != Streams() else Streams(stdout=log),
    )


def _group(call: Call) -> tuple[tuple[str, ...] | None, str]:
    """Calls with the same one may be forked by the same server: modules, environment and resources are alike."""
    request = call.spec.request
    return call.modules, "" if call.modules is None else repr((call.spec.env, request.cpus, request.gpus))


def _server(group: tuple[tuple[str, ...] | None, str], folder: str) -> tuple[str, ...]:
    modules, alike = group
    return () if modules is None else server_words(folder, modules, repr((sorted(os.environ.items()), alike)))


def _is_there(need: Future[Any]) -> bool:
    """Whether its result is there already."""
    return need.done() and not need.cancelled() and need.exception() is None


def fingerprint_of(spec: JobSpec) -> str:
    """The fingerprint of a stored call with a key; empty if it has none."""
    command = spec.command
    return command.args[5] if isinstance(command, Argv) and len(command.args) > 5 else ""
