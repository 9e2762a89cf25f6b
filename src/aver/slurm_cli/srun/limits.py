"""Time, memory and warning signal of a step, in Slurm's forms."""

from __future__ import annotations

from typing import Any

from aver.model.signals import parse_signal
from aver.model.units import parse_size, parse_time
from aver.slurm_cli.srun.options import BadSpecification, Options


def add_limits(spec: dict[str, Any], options: Options) -> None:
    """Put them into the step; BadOption has Slurm's sentence."""
    time_text, mem_text, per_cpu = options.get("time"), options.get("mem"), options.get("mem-per-cpu")
    if time_text:
        try:
            spec["time_s"] = parse_time(time_text)
        except ValueError:
            raise BadSpecification("error: Invalid --time specification") from None
    for text, option in ((mem_text, "mem"), (per_cpu, "mem-per-cpu")):
        if not text or text == "0":
            continue
        try:
            size = parse_size(text)
        except ValueError:
            raise BadSpecification(f"error: Invalid --{option} specification") from None
        spec["mem_bytes"] = size if option == "mem" else size * spec.get("cpus_per_task", 1) * spec["tasks"]
    signal = options.get("signal")
    if signal:
        spec["warning"] = _warning(signal)


def _warning(text: str) -> dict[str, Any]:
    name, _, lead = text.rpartition(":")[2].partition("@")
    try:
        number = parse_signal(name)
    except ValueError:
        raise BadSpecification("error: Invalid --signal specification") from None
    if lead and not (lead.isascii() and lead.isdigit()):
        raise BadSpecification("error: Invalid --signal specification")
    return {"signal": number, "lead_s": int(lead) if lead else 60, "scope": "all"}
