"""Record what processes write below one folder: the shim and a witness that has it built in, both compiled here."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from power_loss.trace import Op, parse, record_of_mark

SOURCE = Path(__file__).with_name("recorder.c")
WITNESS = Path(__file__).resolve().parents[3] / "src" / "aver" / "witness" / "witness.c"
ENVIRONMENT = "AVER_RECORDING"  # names the folder of a recording to the workload


class Recorder:
    """The recording in one folder: `root` is what is recorded, `trace` what happened to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.root = self.folder / "root"
        self.trace = self.folder / "trace"
        self._shim = self.folder / "recorder.so"
        self._site = self.folder / "site"

    def prepare(self) -> None:
        """Compile the shim."""
        self.root.mkdir()
        self.trace.touch()
        self._site.mkdir()
        self._compile("-shared", "-fPIC", str(SOURCE), "-o", str(self._shim))

    def set_site(self, text: str) -> None:
        """Have each recorded Python execute this at its start."""
        (self._site / "sitecustomize.py").write_text(text)

    def witness(self) -> Path:
        """Compile the witness that records itself."""
        path = self.folder / "aver-witness"
        self._compile(str(WITNESS), str(SOURCE), "-o", str(path))
        return path

    def _compile(self, *arguments: str) -> None:
        names = [f'-DRECORD_ROOT="{self.root}"', f'-DRECORD_TRACE="{self.trace}"']
        command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", *names, *arguments]
        subprocess.run(command, check=True)

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """The environment of a process that is recorded."""
        path = base.get("PYTHONPATH", "")
        return {
            **base,
            "LD_PRELOAD": str(self._shim),
            "PYTHONPATH": f"{self._site}{os.pathsep}{path}" if path else str(self._site),
            ENVIRONMENT: str(self.folder),
        }

    def ops(self) -> list[Op]:
        return parse(self.trace.read_bytes(), str(self.root))

    @contextlib.contextmanager
    def standstill(self) -> Iterator[None]:
        """Meanwhile no other process changes anything: what is seen now is so at this position of the trace.

        For a recorded process with one thread, which may itself go on: even a reader of SQLite makes files.
        """
        shim = ctypes.CDLL(str(self._shim))
        shim.recorder_hold()
        try:
            yield
        finally:
            shim.recorder_release()

    def mark(self, mark: dict[str, object]) -> None:
        """Note something at this position; only at a standstill."""
        fd = os.open(self.trace, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, record_of_mark(mark))
        finally:
            os.close(fd)
