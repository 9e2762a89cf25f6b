"""A flow file: YAML or JSON to a FlowSpec, with every mistake at once.

A FlowSpec that is returned is whole: its needs name jobs of the flow, there is no cycle, and
every value was checked. Nothing is expanded, and of the world only `files` are looked at.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from aver.model.job import FlowSpec, JobSpec
from aver.printable import printable
from aver.spec.document import Entry, Mapping, Scalar, Value, read_document
from aver.spec.document import Sequence as Items
from aver.spec.files import Files
from aver.spec.flow.draft import Draft
from aver.spec.flow.graph import check_graph
from aver.spec.flow.include import Inclusion, Part, together
from aver.spec.flow.job import NeedsMemory, ReadJob, read_defaults, read_job
from aver.spec.flow.keys import FLOW_KEYS, FOREIGN_FLOW_KEYS, JOB_KEYS
from aver.spec.flow.matrix import Allowance, read_axes
from aver.spec.flow.notify import read_notify
from aver.spec.flow.params import Params, ParamValues, read_params
from aver.spec.mistakes import Mistakes, shown
from aver.spec.values import Reader, kind

MAX_NAME = 255
FILLED = FLOW_KEYS.keys() - {
    "params",
    "defaults",
    "jobs",
    "notify",
    "axes",
    "include",
}  # each job, and defaults, key by key


def parse_flow(
    data: bytes | str,
    file: str,
    *,
    now: float,
    name: str = "flow",
    is_json: bool = False,
    files: Files | None = None,
    params: ParamValues = ParamValues(),
) -> FlowSpec:
    """The flow in `data`; `name` is its name if it has none. Raise SpecError with all mistakes.

    `files` are where values of matrices are looked up; `params` has values for its parameters.
    """
    mistakes = Mistakes(file)
    with collector_paused():
        root = read_document(data, mistakes, is_json=is_json)
        flow = _read_flow(root, file, mistakes, now, name, Allowance(files=files), params) if root is not None else None
    mistakes.refuse_if_any()
    assert flow is not None
    return flow


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection meanwhile: reading makes no cycles, and 10,000 jobs took 6.6 s with it, 2.0 s without."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_flow(
    root: Value, file: str, mistakes: Mistakes, now: float, name: str, allowance: Allowance, wanted: ParamValues
) -> FlowSpec | None:
    if not isinstance(root, Mapping):
        hint = 'a flow has "jobs:" with the jobs by their names'
        mistakes.add(root, f"the flow must be a map, not {kind(root)}", hint)
        return None
    reader = Reader(mistakes, "the flow", now, allowance.files)
    parts = root.entries
    for key, entry in parts.items():
        if key not in FLOW_KEYS and not key.startswith("x-"):
            if key in JOB_KEYS and "jobs" not in parts:
                mistakes.add(entry.key, f"{shown(key)} belongs in a job", "write it as jobs: {NAME: {run: ...}}")
            else:
                reader.unknown_key(entry.key, FLOW_KEYS, FOREIGN_FLOW_KEYS)
    inclusion = Inclusion(mistakes, allowance.files)
    inclusion.read(file, parts)
    files = inclusion.parts
    declared = together(files, "params", "param", mistakes)
    params = allowance.params = read_params(declared, wanted, reader)
    parts = {key: params.put_into(entry) if key in FILLED else entry for key, entry in parts.items()}
    if "name" in parts:
        name = _flow_name(parts["name"], reader) or name
    max_parallel = reader.integer(parts["max_parallel"], 1) if "max_parallel" in parts else None
    budget = reader.integer(parts["retry_budget"], 0) if "retry_budget" in parts else None
    notify = read_notify(parts["notify"], reader) if "notify" in parts else ()
    sync = reader.texts(parts["sync"]) if "sync" in parts else None
    exclude = reader.texts(parts["sync_exclude"]) if "sync_exclude" in parts else None
    defaults = _read_flow_defaults(parts, reader, params)
    if not any("jobs" in part.entries for part in files):
        if "include" not in parts or not len(mistakes):  # else why there are none is told
            mistakes.add(root, 'the flow has no "jobs"', "write it as jobs: {NAME: {run: ...}}")
        return None
    if (axes := together(files, "axes", "axis", mistakes)) is not None:
        read_axes(params.put_into(axes), Reader(mistakes, "axes", now), allowance)
    drafts = [defaults]
    for part in files[1:]:
        drafts.append(_read_part_defaults(part, drafts[part.above or 0], reader, params))
    entries = [
        (part.entries["jobs"], draft) for part, draft in zip(files, drafts, strict=True) if "jobs" in part.entries
    ]
    jobs = read_jobs(entries, (), allowance, mistakes, now, is_whole=inclusion.is_whole)
    if not len(mistakes):  # else what was not read would be called unused
        params.check_used(declared, reader)
    return FlowSpec(
        printable(name)[:MAX_NAME], jobs, max_parallel, budget, notify=notify, sync=sync or (),
        sync_exclude=exclude or (), params=tuple(params.values.items()), defaults=defaults.template(),
        included=tuple(part.path for part in files[1:]),
    )  # fmt: skip


def _flow_name(entry: Entry, reader: Reader) -> str | None:
    text = reader.filled(entry)
    if text is not None and not text.isprintable():
        reader.wrong(entry, "has a control character")
        return None
    if text is not None and len(text) > MAX_NAME:
        reader.wrong(entry, f"is longer than {MAX_NAME} characters")
        return None
    return text


def _read_flow_defaults(parts: dict[str, Entry], reader: Reader, params: Params) -> Draft:
    own: dict[str, Entry] = {name: parts[name] for name in ("engine", "host") if name in parts}
    draft = Draft()
    if own:
        first = next(iter(own.values())).key
        draft = read_defaults(Mapping(first.line, first.column, own), reader, params)
    mapping = reader.mapping(parts["defaults"]) if "defaults" in parts else None
    if mapping is None:
        return draft
    defaults = read_defaults(mapping, Reader(reader.mistakes, "defaults", reader.now, reader.files), params)
    defaults.engine = defaults.engine or draft.engine
    defaults.host = defaults.host or draft.host
    return defaults


def _read_part_defaults(part: Part, above: Draft, reader: Reader, params: Params) -> Draft:
    """Of an included file: what the file that includes it says, and what it says itself."""
    mapping = reader.mapping(part.entries["defaults"]) if "defaults" in part.entries else None
    if mapping is None:
        return above
    return read_defaults(mapping, Reader(reader.mistakes, "defaults", reader.now, reader.files), params, above)


def read_jobs(
    parts: Sequence[tuple[Entry, Draft]],
    known: Sequence[JobSpec],
    allowance: Allowance,
    mistakes: Mistakes,
    now: float,
    *,
    is_whole: bool = True,
) -> tuple[JobSpec, ...]:
    """The jobs of maps, or of lists whose items have a `name`, each with its defaults. `known` as in `check_graph`.

    Reading ends where there are more jobs than allowed. Not `is_whole`: a file with further jobs could not be read.
    """
    memory = NeedsMemory()
    taken = {spec.name: 0 for spec in known}
    read: list[ReadJob] = []
    entries = [(one, defaults) for entry, defaults in parts for one in _job_entries(entry, mistakes)]
    if not entries and not len(mistakes):
        at = parts[0][0].value
        mistakes.add(at, "there are no jobs", "write at least one, such as hello: {run: echo hello}")
    for job_entry, defaults in entries:
        name = job_entry.key
        if name.text in taken:
            first = taken[name.text]
            hint = f"it is first at {mistakes.place_text(first)}" if first else "the run has a job of that name already"
            mistakes.add(name, f"duplicate job name {shown(name.text)}", hint)
        else:
            taken[name.text] = name.line
        job = read_job(
            job_entry, defaults, memory, allowance, Reader(mistakes, f"job {shown(name.text)}", now, allowance.files)
        )
        if allowance.is_used_up:
            mistakes.add(name, allowance.sentence, "let a job generate further jobs")
            return ()
        if job is not None:
            read.append(job)
    if is_whole and len(read) == len(entries):  # else a need of a job that could not be read would be called unknown
        check_graph(read, known, mistakes)
    return tuple([job.spec for job in read])


def _job_entries(entry: Entry, mistakes: Mistakes) -> list[Entry]:
    value = entry.value
    if isinstance(value, Mapping):
        return list(value.entries.values())
    if not isinstance(value, Items):
        mistakes.add(value, f'"jobs" must be a map, not {kind(value)}', "write it as jobs: {NAME: {run: ...}}")
        return []
    entries = []
    for item in value.items:
        named = item.entries.get("name") if isinstance(item, Mapping) else None
        if isinstance(item, Mapping) and named is not None and isinstance(named.value, Scalar):
            rest = {key: part for key, part in item.entries.items() if key != "name"}
            entries.append(Entry(named.value, Mapping(item.line, item.column, rest)))
        else:
            mistakes.add(item, 'each job of a list must be a map with a "name"')
    return entries


def looks_like_flow(data: bytes) -> bool:
    """Whether a file without a telling extension holds a flow rather than a script."""
    head = data[:4096]
    return not head.startswith(b"#!") and re.search(rb'(?m)^(?:jobs|defaults)\s*:|^\s*\{\s*"', head) is not None
