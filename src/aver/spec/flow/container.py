"""`container:` of a job.

container: docker.io/library/python:3.12
container: {image: tools.sif, engine: apptainer, mounts: [/data:ro]}
"""

from __future__ import annotations

from aver.model.job import Container
from aver.spec.container_command import ENGINES
from aver.spec.document import Entry, Mapping
from aver.spec.mistakes import shown
from aver.spec.values import Reader

KEYS = ("image", "engine", "mounts", "options")


def read_container(entry: Entry, reader: Reader) -> Container | None:
    """An image, or a map with `image`."""
    if not isinstance(entry.value, Mapping):
        image = reader.filled(entry)
        return None if image is None else Container(image)
    parts = reader.parts(entry.value, KEYS, {"volumes": "mounts", "binds": "mounts", "args": "options"})
    if "image" not in parts:
        reader.wrong(entry, 'has no "image"', "name it, such as image: docker.io/library/python:3.12")
        return None
    image = reader.filled(parts["image"])
    engine = reader.word(parts["engine"], ENGINES) if "engine" in parts else ENGINES[0]
    mounts = (reader.texts(parts["mounts"]) if "mounts" in parts else ()) or ()
    options = (reader.texts(parts["options"]) if "options" in parts else ()) or ()
    for path in mounts:
        if not path.startswith("/"):
            reader.wrong(parts["mounts"], f"has {shown(path)}", "give whole paths: /data, /data:ro or /here:/there")
    return None if image is None or engine is None else Container(image, engine, mounts, options)
