"""Keys of a job that mean something on a cluster only.

Most are options of sbatch. Each says of itself that it means nothing on this machine; options that are Aver's own are
refused, with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from aver.model.host_name import is_host
from aver.model.job import Scope
from aver.spec.document import Entry, Scalar
from aver.spec.flow.draft import Draft, Put, parsed
from aver.spec.mistakes import shown
from aver.spec.times import parse_warning
from aver.spec.values import Reader

OWNED_OPTIONS = {
    "--array": "use matrix", "-a": "use matrix", "--dependency": "use needs", "-d": "use needs",
    "--job-name": "the job's name is the key's", "-J": "the job's name is the key's", "--wrap": "use run",
    "--parsable": "leave it out", "--wait": "leave it out", "-W": "leave it out", "--test-only": "leave it out",
    "--output": "use output", "-o": "use output", "--error": "use error", "-e": "use error",
    "--input": "use stdin", "-i": "use stdin", "--chdir": "use folder", "-D": "use folder",
    "--time": "use time", "-t": "use time", "--mem": "use mem", "--export": "use env", "--open-mode": "use append",
    "--requeue": "use requeue: slurm", "--no-requeue": "leave it out", "--hold": "use hold", "-H": "use hold",
    "--begin": "use begin", "-b": "use begin", "--signal": "use signal",
    "--clusters": "jobs go to sbatch's own cluster", "--cluster": "jobs go to sbatch's own cluster",
    "-M": "jobs go to sbatch's own cluster",
}  # fmt: skip


def _on_cluster(draft: Draft, entry: Entry) -> None:
    """On one machine this key means nothing."""
    said = f"{entry.key.text}: means nothing on this machine"
    if said not in draft.ignored:
        draft.ignored = (*draft.ignored, said)


def _option(option: str, read: Callable[[Reader, Entry], Any]) -> Put:
    """A key that is an option of sbatch."""

    def put(draft: Draft, entry: Entry, reader: Reader) -> None:
        before = len(reader.mistakes)
        value = read(reader, entry)
        if len(reader.mistakes) == before and value is not None:
            kept = tuple(word for word in draft.slurm_options if not word.startswith(f"--{option}="))
            draft.slurm_options = (*kept, f"--{option}={value}")
            _on_cluster(draft, entry)

    return put


def _nodes(reader: Reader, entry: Entry) -> str | None:
    text = reader.filled(entry)
    if text is not None and not re.fullmatch(r"[1-9][0-9]{0,6}(-[1-9][0-9]{0,6})?", text):
        reader.wrong(entry, f"is {shown(text)}, which is not a number of nodes", "give 2 or 1-4")
        return None
    return text


def own_option(word: str) -> str | None:
    """The option of sbatch that this word gives (`--array=1-3`, `-a1-3`), if it is Aver's own."""
    name = word.partition("=")[0] if word.startswith("--") else word[:2]
    return name if name in OWNED_OPTIONS else None


def _slurm_options(draft: Draft, entry: Entry, reader: Reader) -> None:
    words = reader.texts(entry)
    for word in words or ():
        name = own_option(word)
        if not word.startswith("-"):
            reader.wrong(entry, f"has {shown(word)}, which is not an option", "write each as --name=value")
        elif name is not None:
            reader.wrong(entry, f"has {name}, which is Aver's own", OWNED_OPTIONS[name])
    draft.slurm_options = (*draft.slurm_options, *(words or ()))
    _on_cluster(draft, entry)


def _requeue(draft: Draft, entry: Entry, reader: Reader) -> None:
    if isinstance(entry.value, Scalar) and isinstance(entry.value.value, bool):
        draft.requeue = entry.value.value
        return
    draft.slurm_requeues = reader.word(entry, ("aver", "slurm")) == "slurm"
    _on_cluster(draft, entry)


def _step_warning(draft: Draft, entry: Entry, reader: Reader) -> None:
    draft.step_warning = parsed(entry, reader, lambda text: parse_warning(text, Scope.PROGRAM))
    _on_cluster(draft, entry)


def _host(draft: Draft, entry: Entry, reader: Reader) -> None:
    text = reader.filled(entry)
    if text is not None and not is_host(text):
        reader.wrong(entry, f"is {shown(text)}, which is not the name of a host", "give one, such as me@login")
        return
    draft.host = text
    _on_cluster(draft, entry)


CLUSTER_READERS: dict[str, Put] = {
    "host": _host,
    "partition": _option("partition", Reader.filled),
    "account": _option("account", Reader.filled),
    "qos": _option("qos", Reader.filled),
    "nodes": _option("nodes", _nodes),
    "gres": _option("gres", Reader.filled),
    "constraint": _option("constraint", Reader.filled),
    "slurm_options": _slurm_options,
    "srun_termination_signal": _step_warning,
    "requeue": _requeue,
}
