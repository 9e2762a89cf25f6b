"""What a flow may ask for here: texts that a file name or an argument can hold, and no more than the machine has."""

from __future__ import annotations

import json

from aver.engines.api import LOCAL
from aver.errors import UsageError
from aver.model.codec import encode
from aver.model.job import FlowSpec
from aver.model.units import MIB, size_text
from aver.plan.packing import Room, room_of


def check_text(value: object) -> None:
    """Bytes that are not UTF-8 are surrogates of their own, which can be turned back; others can't."""
    try:
        json.dumps(encode(value), ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        wrong = ascii(error.object[error.start : error.end])
        raise UsageError(f"the character {wrong} stands for no text and can't be used") from None


def check_fits(flow: FlowSpec, engine: str, total: Room) -> None:
    """Refuse what this machine can never give."""
    for spec in flow.jobs:
        if (spec.engine or engine) != LOCAL:
            continue  # the cluster says itself what it does not have
        room = room_of(spec.request)
        if room.cpus < 1:
            raise UsageError(f"job {spec.name!r} asks for {room.cpus} cpus; at least 1 is needed")
        for word, asked, there in (("cpus", room.cpus, total.cpus), ("gpus", room.gpus, total.gpus)):
            if asked > there:
                raise UsageError(f"job {spec.name!r} asks for {asked} {word}, and this machine has {there}")
        if room.mem_bytes > total.mem_bytes:
            raise UsageError(
                f"job {spec.name!r} asks for {size_text(room.mem_bytes)} of memory, "
                f"and this machine has {size_text(total.mem_bytes - total.mem_bytes % MIB)}"
            )
