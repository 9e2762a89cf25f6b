"""What a flow may ask for here: texts that a file name or an argument can hold, and no more than the machine has."""

from __future__ import annotations

import json

from aver.engines.registry import capabilities_of
from aver.errors import UsageError
from aver.model.codec import encode
from aver.model.job import FlowSpec, Script, Shell, Submission
from aver.model.units import LARGEST_BYTES, LATEST_TIME, LONGEST_S, MIB, size_text
from aver.plan.packing import Room, room_of

LARGEST_NUMBER = (1 << 63) - 1


def check_text(value: object) -> None:
    """Bytes that are not UTF-8 are surrogates of their own, which can be turned back; others can't."""
    try:
        json.dumps(encode(value), ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        wrong = ascii(error.object[error.start : error.end])
        raise UsageError(f"the character {wrong} stands for no text and can't be used") from None


def check_values(submission: Submission) -> None:
    """Refuse numbers that mean nothing, and commands of no words."""
    _check("umask", submission.origin.umask, 0, 0o7777)
    for resource, soft, hard in submission.origin.limits:
        _check("limits", resource, 0, 63)
        for limit in (soft, hard):
            _check("limits", limit, -1, LARGEST_NUMBER)
    for spec in submission.flow.jobs:
        command = spec.command
        if not (command.shell if isinstance(command, Shell) else isinstance(command, Script) or command.args):
            raise UsageError(f"job {spec.name!r} has no command")
        request = spec.request
        for name, value, most in (
            ("cpus", request.cpus, LARGEST_NUMBER), ("gpus", request.gpus, LARGEST_NUMBER),
            ("time_s", request.time_s, LONGEST_S), ("mem_bytes", request.mem_bytes, LARGEST_BYTES),
            ("kill_wait_s", spec.kill_wait_s, LONGEST_S), ("begin_at", spec.begin_at, LATEST_TIME),
            ("deadline_at", spec.deadline_at, LATEST_TIME),
        ):  # fmt: skip
            _check(f"job {spec.name!r}: {name}", value, 0, most)


def _check(what: str, value: float | None, least: float, most: float) -> None:
    if value is not None and not least <= value <= most:
        raise UsageError(f"{what}: {value} is out of range")


def check_fits(flow: FlowSpec, engine: str, total: Room) -> None:
    """Refuse what this machine can never give."""
    for spec in flow.jobs:
        if capabilities_of(spec.engine or engine).has_queue:
            continue  # it says itself what it does not have
        room = room_of(spec.request)
        for word, asked, there in (("cpus", spec.request.cpus, total.cpus), ("gpus", room.gpus, total.gpus)):
            if asked > there:
                raise UsageError(f"job {spec.name!r} asks for {asked} {word}, and this machine has {there}")
        if room.mem_bytes > total.mem_bytes:
            raise UsageError(
                f"job {spec.name!r} asks for {size_text(room.mem_bytes)} of memory, "
                f"and this machine has {size_text(total.mem_bytes - total.mem_bytes % MIB)}"
            )
