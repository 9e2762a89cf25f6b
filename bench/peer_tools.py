"""The tools of `bench/peers`: how each runs many jobs, a chain, and goes on after it was killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from product import Product, many_jobs

from aver.model.job import Argv, FlowSpec, JobSpec, Matrix, Need, Needs, Streams

TRUE = "/bin/true"
SILENT = Streams(stdout="/dev/null")
NOWHERE: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Ledger:
    """Jobs that write down when they begin and end, in a folder of their own: what happened, whoever says what."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        self.script = folder / "job"
        self.script.write_text(f"#!/bin/sh\necho $1 >> {folder}/began\nsleep 0.1\necho $1 >> {folder}/ended\n")
        self.script.chmod(0o755)

    def began(self) -> list[int]:
        return self._numbers("began")

    def ended(self) -> list[int]:
        return self._numbers("ended")

    def _numbers(self, name: str) -> list[int]:
        path = self.folder / name
        return [int(line) for line in path.read_text().split()] if path.exists() else []


class Tool:
    name = ""
    program = ""
    count = 2_000  # jobs of `flat`; a tenth for `chain`
    has_chains = True
    note = ""

    def is_there(self) -> bool:
        return shutil.which(self.program) is not None

    def flat(self, folder: Path, count: int) -> float:
        """Run so many /bin/true in two slots; seconds."""
        raise NotImplementedError

    def chain(self, folder: Path, count: int) -> float:
        """Run so many /bin/true, each after the one before; seconds."""
        raise NotImplementedError

    def begin(self, ledger: Ledger) -> int:
        """Begin the ledger's jobs in two slots; the process to kill."""
        raise NotImplementedError

    def known(self, ledger: Ledger) -> set[int]:
        """The jobs of which it has a verdict."""
        raise NotImplementedError

    def go_on(self, ledger: Ledger) -> None:
        """Do the rest, as its manual says; return when all is done."""
        raise NotImplementedError

    def reap(self, pid: int) -> None:
        """The process was killed."""
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass  # not ours

    def leave(self, ledger: Ledger) -> None:
        """End what is left of it."""


def _seconds(words: list[str], folder: Path, lines: Iterable[int] | None = None) -> float:
    given = None if lines is None else "".join(f"{line}\n" for line in lines).encode()
    began = time.perf_counter()
    subprocess.run(
        words, cwd=folder, input=given, stdin=subprocess.DEVNULL if given is None else None,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    return time.perf_counter() - began


class OfLines(Tool):
    """A tool that takes its jobs as lines on its stdin. It knows no chains."""

    has_chains = False

    def words(self, folder: Path, program: str) -> list[str]:
        raise NotImplementedError

    def flat(self, folder: Path, count: int) -> float:
        return _seconds(self.words(folder, TRUE), folder, range(count))

    def begin(self, ledger: Ledger) -> int:
        return self._start(ledger, self.words(ledger.folder, str(ledger.script))).pid

    def _start(self, ledger: Ledger, words: list[str]) -> subprocess.Popen[bytes]:
        lines = ledger.folder / "lines"
        lines.write_text("".join(f"{at}\n" for at in range(ledger.count)))
        with lines.open() as source:
            return subprocess.Popen(words, cwd=ledger.folder, **{**NOWHERE, "stdin": source})

    def go_on(self, ledger: Ledger) -> None:
        self._start(ledger, self.words(ledger.folder, str(ledger.script))).wait()


class Xargs(OfLines):
    name, program, count = "xargs", "xargs", 10_000
    note = "keeps no record: it can only begin anew"

    def words(self, folder: Path, program: str) -> list[str]:
        return ["xargs", "-P2", "-n1", program]

    def known(self, ledger: Ledger) -> set[int]:
        return set()


class Parallel(OfLines):
    name, program = "GNU parallel", "parallel"
    note = "--joblog, and --resume to go on; jobs that ran when it was killed run again"

    def words(self, folder: Path, program: str) -> list[str]:
        return ["parallel", "--will-cite", "-j2", "--joblog", f"{folder}/joblog", "--resume", program, "{}"]

    def known(self, ledger: Ledger) -> set[int]:
        lines = (ledger.folder / "joblog").read_text().splitlines()[1:]
        return {int(line.split()[-1]) for line in lines}


class OfFiles(Tool):
    """A tool whose record of a job is the file that the job makes."""

    def write(self, folder: Path, jobs: list[tuple[str, str, str | None]]) -> None:
        """Jobs as output, command, and the output that each needs."""
        raise NotImplementedError

    def words(self) -> list[str]:
        raise NotImplementedError

    def flat(self, folder: Path, count: int) -> float:
        self.write(folder, [(f"o{at}", TRUE, None) for at in range(count)])
        return _seconds(self.words(), folder)

    def chain(self, folder: Path, count: int) -> float:
        self.write(folder, [(f"o{at}", TRUE, f"o{at - 1}" if at else None) for at in range(count)])
        return _seconds(self.words(), folder)

    def begin(self, ledger: Ledger) -> int:
        self.write(ledger.folder, [(f"o{at}", f"{ledger.script} {at}", None) for at in range(ledger.count)])
        return subprocess.Popen(self.words(), cwd=ledger.folder, **NOWHERE).pid

    def known(self, ledger: Ledger) -> set[int]:
        return {at for at in range(ledger.count) if (ledger.folder / f"o{at}").exists()}

    def go_on(self, ledger: Ledger) -> None:
        subprocess.run(self.words(), cwd=ledger.folder, check=True, **NOWHERE)


class Make(OfFiles):
    name, program = "make", "make"
    note = "its record of a success is the file that the job makes; of a failure it keeps nothing"

    def write(self, folder: Path, jobs: list[tuple[str, str, str | None]]) -> None:
        rules = [f"{name}: {needs or ''}\n\t@{command} && touch {name}\n" for name, command, needs in jobs]
        (folder / "Makefile").write_text(f"all: {' '.join(name for name, _, _ in jobs)}\n" + "".join(rules))

    def words(self) -> list[str]:
        return ["make", "-j2"]


class Ninja(OfFiles):
    name, program = "ninja", "ninja"
    note = "as make"

    def write(self, folder: Path, jobs: list[tuple[str, str, str | None]]) -> None:
        edges = [
            f"build {name}: run {needs or ''}\n  command = {command} && touch {name}\n" for name, command, needs in jobs
        ]
        (folder / "build.ninja").write_text("rule run\n  command = $command\n" + "".join(edges))

    def words(self) -> list[str]:
        return ["ninja", "-j2"]


class Snakemake(OfFiles):
    name, program, count = "Snakemake", "snakemake", 100
    note = "the working folder is unlocked first, then --rerun-incomplete"

    def write(self, folder: Path, jobs: list[tuple[str, str, str | None]]) -> None:
        rules = [f"rule all:\n    input: {[name for name, _, _ in jobs]!r}\n"]
        for name, command, needs in jobs:
            rules.append(
                f"rule:\n    input: {[needs] if needs else []!r}\n    output: {name!r}\n"
                f"    shell: {f'{command} && touch {name}'!r}\n"
            )
        (folder / "Snakefile").write_text("".join(rules))

    def words(self) -> list[str]:
        return ["snakemake", "-j2", "--rerun-incomplete", "--quiet", "all"]

    def go_on(self, ledger: Ledger) -> None:
        subprocess.run(["snakemake", "--unlock"], cwd=ledger.folder, check=True, **NOWHERE)
        super().go_on(ledger)


class TaskSpooler(Tool):
    name, program, count = "task-spooler", "tsp", 1_000
    note = "its server keeps the queue in memory"

    def _env(self, folder: Path) -> dict[str, str]:
        (folder / "out").mkdir(exist_ok=True)
        return {**os.environ, "TS_SOCKET": f"{folder}/socket", "TMPDIR": f"{folder}/out", "TS_MAXFINISHED": "100000"}

    def _queue(self, folder: Path, commands: Iterable[list[str]]) -> None:
        env = self._env(folder)
        subprocess.run(["tsp", "-S", "2"], env=env, check=True, **NOWHERE)
        for words in commands:
            subprocess.run(["tsp", "-n", *words], env=env, check=True, **NOWHERE)

    def _finish(self, folder: Path) -> None:
        """Wait for the newest job, and for the one that may run beside it."""
        env = self._env(folder)
        subprocess.run(["tsp", "-w"], env=env, check=False, **NOWHERE)
        while re.search(r"(?m)^\d+ +(running|queued)", self._list(folder)):
            time.sleep(0.01)

    def _list(self, folder: Path) -> str:
        return subprocess.run(["tsp", "-l"], env=self._env(folder), capture_output=True, text=True, check=False).stdout

    def _server(self, folder: Path) -> int:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    environment = (entry / "environ").read_bytes().split(b"\0")
                    name = (entry / "comm").read_text().strip()
                except OSError:
                    continue
                if name == "tsp" and f"TS_SOCKET={folder}/socket".encode() in environment:
                    return int(entry.name)
        raise RuntimeError("task-spooler's server was not found")

    def flat(self, folder: Path, count: int) -> float:
        began = time.perf_counter()
        self._queue(folder, ([TRUE] for _ in range(count)))
        self._finish(folder)
        took = time.perf_counter() - began
        os.kill(self._server(folder), 15)
        return took

    def chain(self, folder: Path, count: int) -> float:
        began = time.perf_counter()
        self._queue(folder, (["-d", TRUE] if at else [TRUE] for at in range(count)))
        self._finish(folder)
        took = time.perf_counter() - began
        os.kill(self._server(folder), 15)
        return took

    def begin(self, ledger: Ledger) -> int:
        self._queue(ledger.folder, ([str(ledger.script), str(at)] for at in range(ledger.count)))
        return self._server(ledger.folder)

    def known(self, ledger: Ledger) -> set[int]:
        found = re.findall(r"(?m)^\d+ +finished .* (\d+)$", self._list(ledger.folder))
        return {int(number) for number in found}

    def go_on(self, ledger: Ledger) -> None:
        self._queue(ledger.folder, ([str(ledger.script), str(at)] for at in range(ledger.count)))
        self._finish(ledger.folder)

    def leave(self, ledger: Ledger) -> None:
        os.kill(self._server(ledger.folder), 15)


class HyperQueue(Tool):
    """Through its Python package, which has the server and the worker, and no journal."""

    name, program = "HyperQueue", ""
    note = "its Python package, which the registry has, can't keep a journal; the program `hq` can"

    def _python(self) -> str:
        return str(Path(shutil.which("snakemake") or sys.executable).parent / "python")

    def is_there(self) -> bool:
        return subprocess.run([self._python(), "-c", "import hyperqueue"], check=False, **NOWHERE).returncode == 0

    def _words(self, folder: Path, jobs: str) -> list[str]:
        return [self._python(), "-c", f"""
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=2))
    job = Job({str(folder)!r})
    last = None
    def add(words, is_chained=False):
        global last
        last = job.program(words, deps=[last] if is_chained and last is not None else [], stdout=None, stderr=None)
    {jobs}
    client = cluster.client()
    client.wait_for_jobs([client.submit(job)])
"""]  # fmt: skip

    def flat(self, folder: Path, count: int) -> float:
        return _seconds(self._words(folder, f"[add([{TRUE!r}]) for _ in range({count})]"), folder)

    def chain(self, folder: Path, count: int) -> float:
        return _seconds(self._words(folder, f"[add([{TRUE!r}], True) for _ in range({count})]"), folder)

    def begin(self, ledger: Ledger) -> int:
        return subprocess.Popen(self._ledger_words(ledger), cwd=ledger.folder, **NOWHERE).pid

    def _ledger_words(self, ledger: Ledger) -> list[str]:
        return self._words(ledger.folder, f"[add([{str(ledger.script)!r}, str(at)]) for at in range({ledger.count})]")

    def known(self, ledger: Ledger) -> set[int]:
        return set()

    def go_on(self, ledger: Ledger) -> None:
        subprocess.run(self._ledger_words(ledger), cwd=ledger.folder, check=True, **NOWHERE)


class Aver(Tool):
    name, program, count = "aver", "", 10_000
    note = "the coordinator is killed; the next command starts another, and nothing has to be told to go on"

    def __init__(self) -> None:
        self._product: Product | None = None
        self._run = 0

    def is_there(self) -> bool:
        return True

    def flat(self, folder: Path, count: int) -> float:
        return self._seconds(many_jobs("true", count, TRUE))

    def chain(self, folder: Path, count: int) -> float:
        jobs = [
            JobSpec(f"j{at}", Argv((TRUE,)), needs=Needs((Need(f"j{at - 1}"),)) if at else Needs(), streams=SILENT)
            for at in range(count)
        ]
        return self._seconds(FlowSpec("chain", tuple(jobs)))

    def _seconds(self, flow: FlowSpec) -> float:
        with Product(slots=2) as product:
            began = time.perf_counter()
            product.settle([product.submit(flow)])
            return time.perf_counter() - began

    def begin(self, ledger: Ledger) -> int:
        self._product = Product(slots=2).__enter__()
        numbers = tuple(str(at) for at in range(ledger.count))
        job = JobSpec("job", Argv((str(ledger.script), "{at}")), matrix=Matrix((("at", numbers),)), streams=SILENT)
        self._run = self._product.submit(FlowSpec("ledger", (job,)))
        return self._product.pid

    def known(self, ledger: Ledger) -> set[int]:
        assert self._product is not None
        document = json.loads(self._product.aver("results", str(self._run), "--json")[0])
        return {int(re.sub(r"\D", "", str(one["name"]))) for one in document["results"] if one["state"] == "COMPLETED"}

    def go_on(self, ledger: Ledger) -> None:
        assert self._product is not None
        self._product.settle([self._run])

    def leave(self, ledger: Ledger) -> None:
        assert self._product is not None
        self._product.__exit__(None, None, None)


TOOLS: tuple[Tool, ...] = (
    Aver(), Xargs(), Parallel(), Make(), Ninja(), TaskSpooler(), HyperQueue(), Snakemake(),
)  # fmt: skip
