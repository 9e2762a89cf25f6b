"""Run the commands of a page and compare what they print: `python tests/page_commands.py PAGE...` writes it anew.

A fenced block with the word `console` is executed: lines after `$ ` are commands (`> ` continues one), the lines below
are what it prints, stdout and stderr together. A second word says what the page needs beside this machine
(page_places.py). A block whose fence has `title="NAME"` is a file that the commands find.
All commands of a page share one bash, one folder and one home; jobs have two CPUs. `…` stands for any text, on a line
of its own for any lines. What differs between two runs (times, sizes that are measured, processes, who and where) is
not compared.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from page_places import Place, missing, place_for

STATE = "/home/ann/.local/state/aver"
USER_HOME = "/home/ann"
USER_NAME = "ann"
HOST_NAME = "vm"
MARK = "\x1e"
AFTER = f"status=$?; printf '{MARK}'; (exit $status)"  # the next command can still ask for $?
COMMAND = re.compile(  # a line that somebody may type
    r"^(?:\$ |[a-z]+\$ |)(?:aver|sbatch|srun|salloc|scancel|\./scripts/|scripts/|pip|pipx|uv|python3? -m|mpirun|eval|"
    r"[a-z]+=\$\()(?: |(?<=[/(])\S).*$|^\$ .*$",
    re.MULTILINE,
)
FENCE = re.compile(r"^(?P<fence>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)\n", re.MULTILINE | re.DOTALL)
VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?"), "WHEN"),
    (re.compile(r"\b\d\d:\d\d:\d\d(\.\d+)?\b"), "WHEN"),
    (re.compile(r"\b(\d+ h )?(\d+ min )?\d+(\.\d+)? s\b"), "SPAN"),
    (re.compile(r"\b\d+\.\d [KMG]iB\b"), "SIZE"),
    (re.compile(r"\b(process|coordinator) \d+\b"), "process N"),
    (re.compile(r"memory (watched|sampled|measured)[^,;\n]*"), "memory watched"),
    (re.compile(r" \((its largest process, resident|all its processes)\)"), ""),
    (re.compile(r"time=\"[\d.]+\""), "time"),
    (re.compile(r"\b\d+(\.\d+)?%|\b\d\.\d\d\b"), "SHARE"),
    (re.compile(r"-{3,}"), "---"),
    (re.compile(r"\baver\.\d+\.[0-9a-f]{8}\.r"), "aver.KEY.r"),
    (re.compile(r"^\d+(?=(?:\.\d+)? +(?:-|\d+) +(?:-|\d+) +[\w.]+ +[A-Z_]+ )", re.MULTILINE), "ID"),  # of a Slurm
    (re.compile(r"\b(p\d+)?n\d\b"), "NODE"),
    (re.compile(r"[ \t]+"), " "),
)
PASSING = re.compile(
    r"(WHEN job \d+ \S+ |aver: job \d+ \(\S+\) )(SUBMITTED|RUNNING|PENDING|SETTLING|COMPLETING)\b"
)  # a watcher may come too late for it


@dataclass(frozen=True)
class Command:
    """A command of a page, and what the page says that it prints."""

    text: str
    prints: str


@dataclass(frozen=True)
class Page:
    """The files that a page shows, the commands that it runs, in order, and what these need (page_places)."""

    files: dict[str, str]
    commands: tuple[Command, ...]
    needs: frozenset[str]


def commands_of(body: str) -> Iterator[Command]:
    """The commands of a block with the lines below each."""
    for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE):
        if not part.startswith("$ "):
            assert not part.strip(), f"a console block begins with a command: {part!r}"
            continue
        lines = part.splitlines(keepends=True)
        count = 1
        while count < len(lines) and lines[count].startswith("> "):
            count += 1
        yield Command("".join(line[2:] for line in lines[:count]), "".join(lines[count:]))


def read_page(text: str) -> Page:
    """What a page has to execute."""
    files: dict[str, str] = {}
    commands: list[Command] = []
    needs: set[str] = set()
    for found in FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', found["info"])
        words = found["info"].split()
        if title:
            files.setdefault(title[1], found["body"])
        elif words[:1] == ["console"]:
            commands += commands_of(found["body"])
            needs.update(words[1:])
    return Page(files, tuple(commands), frozenset(needs))


def not_executed(text: str) -> list[str]:
    """The first commands of the blocks with commands that are not executed."""
    blocks = [found for found in FENCE.finditer(text) if found["info"].strip() in ("", "text", "bash", "sh")]
    firsts = (COMMAND.search(found["body"]) for found in blocks)
    return [first[0].strip() for first in firsts if first is not None]


def run_page(page: Page, folder: Path, home: Path, place: Place, timeout_s: float = 580.0) -> list[str]:
    """Run the page's commands in the folder; what each printed, in the names of the page."""
    for name, text in page.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)
    settings = folder.parent / ".config" / "aver" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"cpus = 2\n{place.settings}")
    script = folder.parent / f"{folder.name}.commands"
    script.write_text("".join(f"{command.text}\n{AFTER}\n" for command in page.commands))
    bin_folder = str(Path(sys.executable).parent)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AVER_", "SLURM_", "XDG_"))}
    env |= {
        "AVER_HOME": str(home), "HOME": str(folder.parent),
        "PATH": ":".join([*place.path, bin_folder, os.environ["PATH"]]),
        "LC_ALL": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100", **place.environment,
    }  # fmt: skip
    done = subprocess.run(
        ["bash", str(script)], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    script.unlink()
    text = done.stdout.replace(str(home), STATE).replace(str(folder.parent), USER_HOME)
    text = re.sub(rf"\b{re.escape(socket.gethostname())}\b", HOST_NAME, text)
    text = re.sub(rf"\b{re.escape(getpass.getuser())}\b", USER_NAME, text)
    return text.split(MARK)[: len(page.commands)]


def plain(text: str) -> str:
    """The text without what differs between two runs.

    Verdicts of jobs that ran at the same time are in any order, and what srun says of a task comes before or after what
    Aver says of it.
    """
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    lines: list[str] = []
    events: list[str] = []
    of_srun: list[str] = []
    for line in (line.rstrip() for line in text.strip("\n").split("\n")):
        if PASSING.match(line):
            continue
        if line.startswith("srun: error: "):
            of_srun.append(line)
        elif line.startswith("WHEN job "):
            events.append(line)
        else:
            lines += [*sorted(events), line]
            events = []
    return "\n".join([*of_srun, *lines, *sorted(events)])


def fits(expected: str, printed: str) -> bool:
    """Whether a command printed what the page says."""
    parts = re.split(r"(^…$\n?| ?… ?)", plain(expected), flags=re.MULTILINE)
    pattern = "".join(
        "(?:.*\n)*?" if part == "…\n" else ".*" if part.strip(" ") == "…" else re.escape(part) for part in parts
    )
    last = plain(expected).rstrip("\n").split("\n")[-1] == "…"
    return re.fullmatch(pattern + ("(?:\n.*)*" if last else ""), plain(printed)) is not None


def with_outputs(text: str, outputs: list[str]) -> str:
    """The page's text with what was printed, where it does not say so already."""
    rest = iter(outputs)

    def rewritten(found: re.Match[str]) -> str:
        if found["info"].split()[:1] != ["console"]:
            return found[0]
        body = ""
        for command in commands_of(found["body"]):
            printed = next(rest)
            first, *others = command.text.splitlines(keepends=True)
            body += f"$ {first}" + "".join(f"> {line}" for line in others)
            body += command.prints if fits(command.prints, printed) else printed
        return f"{found['fence']}{found['info']}\n{body}{found['fence']}\n"

    return FENCE.sub(rewritten, text)


def main() -> None:
    """Write the outputs of the named pages anew."""
    for path in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory(prefix="page-") as place:
            folder, home = Path(place, "project"), Path(place, "home")
            folder.mkdir()
            text = path.read_text()
            page = read_page(text)
            if missing(page.needs):
                sys.exit(f"{path}: {missing(page.needs)}")
            with place_for(page.needs, Path(tempfile.gettempdir())) as where:
                outputs = run_page(page, folder, home, where)
            env = {**os.environ, "AVER_HOME": str(home)}
            subprocess.run([sys.executable, "-m", "aver", "stop"], env=env, check=False, capture_output=True)
        path.write_text(with_outputs(text, outputs))


if __name__ == "__main__":
    main()
