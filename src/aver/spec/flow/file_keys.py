"""`inputs:` and `outputs:` of a job.

inputs: [data/*.csv, {files: extra.csv, required: false}]
outputs: results/{sample}.csv
outputs: {files: [a.csv, plots], required: false, clean: true}
"""

from __future__ import annotations

from aver.spec.document import Entry, Mapping, Sequence, Value
from aver.spec.flow.draft import Draft
from aver.spec.values import Reader

PART_KEYS = ("files", "required")
CLEAN = "clean"
FOREIGN_KEYS = {"file": "files", "path": "files", "paths": "files", "optional": "required"}


class _Files:
    def __init__(self) -> None:
        self.required: list[str] = []
        self.optional: list[str] = []


def put_inputs(draft: Draft, entry: Entry, reader: Reader) -> None:
    """Put the inputs into the draft; nothing of them after a mistake."""
    before = len(reader.mistakes)
    found = _read(entry, PART_KEYS, reader)
    if len(reader.mistakes) == before:
        draft.inputs, draft.optional_inputs = tuple(found.required), tuple(found.optional)


def put_outputs(draft: Draft, entry: Entry, reader: Reader) -> None:
    """The same for outputs, which may be removed after a failure."""
    before = len(reader.mistakes)
    clean = isinstance(entry.value, Mapping) and _flag(entry.value, CLEAN, False, reader)
    found = _read(entry, (*PART_KEYS, CLEAN), reader)
    if len(reader.mistakes) == before:
        draft.outputs, draft.optional_outputs, draft.clean = tuple(found.required), tuple(found.optional), clean


def _read(entry: Entry, keys: tuple[str, ...], reader: Reader) -> _Files:
    found = _Files()
    if isinstance(entry.value, Mapping):
        _add_map(found, entry, entry.value, keys, True, reader)
    else:
        _add_list(found, entry, entry.value, True, reader)
    return found


def _add_list(found: _Files, entry: Entry, value: Value, is_required: bool, reader: Reader) -> None:
    for item in value.items if isinstance(value, Sequence) else (value,):
        if isinstance(item, Mapping):
            _add_map(found, entry, item, PART_KEYS, is_required, reader)
        elif (text := reader.filled(Entry(entry.key, item))) is not None:
            (found.required if is_required else found.optional).append(text)


def _add_map(
    found: _Files, entry: Entry, mapping: Mapping, keys: tuple[str, ...], is_required: bool, reader: Reader
) -> None:
    parts = reader.parts(mapping, keys, FOREIGN_KEYS)
    is_required = _flag(mapping, "required", is_required, reader)
    files = parts.get("files")
    if files is None:
        reader.wrong(Entry(entry.key, mapping), 'has no "files"', "name them, such as files: results/*.csv")
    elif isinstance(files.value, Mapping):
        reader.wrong(files, "must be text or a list, not a map")
    else:
        _add_list(found, files, files.value, is_required, reader)


def _flag(mapping: Mapping, key: str, default: bool, reader: Reader) -> bool:
    part = mapping.entries.get(key)
    value = None if part is None else reader.boolean(part)
    return default if value is None else value
